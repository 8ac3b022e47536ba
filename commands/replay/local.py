"""The local replay: one broker for each queue manager in the capture, all in this process, in the order of ``seq``
and, of messages with one seq, of queue managers.

Every other engine must give the same result: the same capture gives the same puts, byte for byte, on every machine and
in every replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from commands.broker.exit_values import PublishExit
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, Put, PutKind
from commands.headers.response import Completion
from commands.mqsc.broker import Broker, BrokerState
from commands.replay.arrivals import DEFAULT_QMGR, OutOfOrderError, in_order
from commands.templates.templates import PublicationTemplates
from rfh2.captured import CapturedMessage
from rfh2.constants import REASON_NAMES
from rfh2.errors import QPubSubError
from rfh2.message import Message, decode
from rfh2.terminal_escape import visible


@dataclass(slots=True)
class ReplayCounts:
    """The result of a replay. passed_over: messages on queues that a broker does not read, by queue."""

    messages: int = 0
    puts: dict[PutKind, int] = field(default_factory=lambda: dict.fromkeys(PutKind, 0))
    errors: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)

    def add(self, more: ReplayCounts) -> None:
        """Add the result of a part of the replay."""
        self.messages += more.messages
        self.errors += more.errors
        for kind, count in more.puts.items():
            self.puts[kind] += count
        for queue, count in more.passed_over.items():
            self.passed_over[queue] = self.passed_over.get(queue, 0) + count

    def count(self, queue: str, outcome: Outcome, puts: Iterable[Outgoing]) -> None:
        """Count one message on *queue*. outcome: at its queue manager. puts: all that it led to."""
        self.messages += 1
        if outcome.completion is None:
            self.passed_over[queue] = self.passed_over.get(queue, 0) + 1
        for put in puts:
            self.puts[put.kind] += 1
        self.errors += outcome.completion is Completion.ERROR


ExitOf = Callable[[str], PublishExit | None]
"""The publish exit of a queue manager, None for none. Raises PublishExitError where it cannot be started."""


class LocalReplay:
    """Replays captured messages.

    setup: MQSC text that every queue manager starts with. semantics: ``v7`` or ``v6``. exit_of: the publish exit of a
    queue manager (guide 4.6.2).
    """

    def __init__(self, setup: str = "", semantics: str = "v7", exit_of: ExitOf | None = None) -> None:
        self._setup, self._semantics, self._exit_of = setup, semantics, exit_of
        self._brokers: dict[str, Broker] = {}
        self._templates: dict[str, PublicationTemplates] = {}
        self._last = -1
        self.counts = ReplayCounts()

    @property
    def brokers(self) -> Mapping[str, Broker]:
        """The broker of each queue manager that had a message."""
        return self._brokers

    @property
    def last_seq(self) -> int:
        """The number of the last message; -1 before the first one."""
        return self._last

    @classmethod
    def resumed(cls, setup: str, semantics: str, last_seq: int, states: Mapping[str, BrokerState]) -> Self:
        """The replay that goes on behind message *last_seq*. states: of each queue manager. Its counts begin anew.

        Raises what ``Broker.of_state`` does.
        """
        replay = cls(setup, semantics)
        replay._last = last_seq
        replay._brokers = {qmgr: Broker.of_state(qmgr, setup, semantics, state) for qmgr, state in states.items()}
        return replay

    def puts(self, messages: Iterable[CapturedMessage]) -> Iterator[Put]:
        """The puts of *messages*, which are in the order of ``seq``. Raises what ``replay`` and ``in_order`` do."""
        for message in in_order(messages):
            yield from self.replay(message)[1]

    def replay(self, message: CapturedMessage, *, counted: bool = True) -> tuple[Outcome, list[Put]]:
        """Replay one message: its outcome and its puts. counted: whether it is in ``counts``.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        outcome, puts = self._next(message).replay(message)
        if counted:
            self.counts.count(message.queue, outcome, outcome.puts)
        return outcome, puts

    def put_all(self, message: CapturedMessage) -> Outcome:
        """Replay one message for a caller that needs its puts alone: templates make most outcomes."""
        if self._exit_of is not None:
            return self.replay(message)[0]
        broker = self._next(message)
        return self._by_template(broker, broker.arrival(message), counted=True)

    def put_all_of(self, qmgr: str, arrival: Arrival, *, counted: bool) -> Outcome:
        """The same for what ``Arrivals`` made of a message; the order is not checked again."""
        return self._by_template(self._broker(qmgr), arrival, counted)

    def _by_template(self, broker: Broker, arrival: Arrival, counted: bool) -> Outcome:
        templates = self._templates.get(broker.qmgr)
        if templates is None:
            templates = self._templates[broker.qmgr] = PublicationTemplates(broker, effects=True)
        outcome = templates.process(arrival)
        if counted:
            self.counts.count(arrival.queue, outcome, outcome.puts)
        return outcome

    def _next(self, message: CapturedMessage) -> Broker:
        if message.seq < self._last:
            raise OutOfOrderError(f"seq {message.seq} comes after seq {self._last}")
        self._last = message.seq
        return self._broker(message.qmgr or DEFAULT_QMGR)

    def _broker(self, qmgr: str) -> Broker:
        broker = self._brokers.get(qmgr)
        if broker is None:
            publish_exit = None if self._exit_of is None else self._exit_of(qmgr)
            broker = self._brokers[qmgr] = Broker.of_capture(qmgr, self._setup, self._semantics, publish_exit)
        return broker


# A replay in words: each command, its result, and who received what.

_MOST_TEXT = 48


def transcript_lines(message: CapturedMessage, outcome: Outcome, puts: Sequence[Put]) -> list[str]:
    """The lines about one message: the command, then an indented line for each put."""
    if outcome.completion is None:
        return []
    lines = [f"{message.seq:>4}  {_command(message, outcome)}", *(f"      -> {_put(put)}" for put in puts)]
    lines += [f"      left out for {what}" for what in outcome.lost]
    return [visible(line) for line in lines]


def _command(message: CapturedMessage, outcome: Outcome) -> str:
    command = outcome.command
    if command is None:
        what = "a message without a command" if outcome.undecodable else "a command with a fault"
        return f"{message.user or 'somebody'}: {what}: {outcome.why}"
    user = message.user or "somebody"
    topics = f" {', '.join(command.topics)}" if command.topics else ""
    options = [option.value for option in getattr(command, "options", None) or ()]
    words = f"{user}: {command.word}{topics}" + (f" [{' '.join(options)}]" if options else "")
    if outcome.completion is Completion.OK:
        return words
    reason = outcome.reason or 0
    return f"{words}: {outcome.completion} {reason} {REASON_NAMES.get(reason, '')}".rstrip()


def _put(put: Put) -> str:
    where = put.queue
    if put.kind is PutKind.PUBLICATION:
        return f"{where} receives {put.topic}{_data(put)}"
    if put.kind is PutKind.RESPONSE:
        return f"{where} is answered {put.completion}" + (f" {put.reason}" if put.reason else "")
    reason = put.reason or 0
    return f"{where}: dead letter, {reason} {REASON_NAMES.get(reason, '')}".rstrip()


def _data(put: Put) -> str:
    try:
        message: Message = decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))
    except QPubSubError:
        return ""
    text = message.body_text
    if not message.body:
        return ""
    if text is None or not text.isprintable():
        return f": {len(message.body)} bytes"
    return f": {text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + '...'}"
