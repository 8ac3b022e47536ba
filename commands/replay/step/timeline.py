"""Any message of a capture, in any order: from the checkpoint before it, the messages between are replayed.

A capture is in blocks. Each has a checkpoint, the state before its first message, so that stepping can begin there. A
block is as long as the state is large, and not shorter than ``SHORTEST``: thus all checkpoints together grow with the
capture, and not with the capture times the state.

The steps of the blocks visited last are kept. Going back within them undoes changes, and replays nothing.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

from commands.broker.outcome import Outcome
from commands.broker.puts import Put
from commands.explain.selection import MessageValues, Where
from commands.headers.response import Completion
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.local import LocalReplay, transcript_lines
from commands.replay.step.state import Change, SnapshotError, StepState, difference, resumed, snapshot_of, state_of
from rfh2.captured import CapturedMessage
from streams.selectors import Value

# One message after another, with what it changes.
#
# A breakpoint is a condition like that of ``--where``, which also knows the result of a message.


class StepFacts(NamedTuple):
    """The values of one step for conditions; they are kept with checkpoints, so that a search decodes nothing.

    topics, queues: of the command, and of its puts. reason: of the result; else the one that the message carries.
    """

    seq: int
    seconds: float | None
    command: str | None
    topics: tuple[str, ...]
    queues: tuple[str, ...]
    qmgr: str | None
    user: str | None
    program: str | None
    reason: int | None
    size: int

    @classmethod
    def of(cls, message: CapturedMessage, outcome: Outcome, puts: Sequence[Put]) -> StepFacts:
        """Those of *message*, and of what came of it."""
        values = MessageValues(message)
        command = outcome.command
        word = values.command if command is None else command.word
        topics = values.topics if command is None else command.topics
        reason = outcome.reason if command is not None else outcome.reason or values.reason
        return cls(
            message.seq,
            values.seconds,
            word,
            tuple(dict.fromkeys([*topics, *(put.topic for put in puts if put.topic is not None)])),
            tuple(dict.fromkeys([*([message.queue] if message.queue else []), *(put.queue for put in puts)])),
            message.qmgr,
            values.user,
            values.program,
            reason,
            len(message.body_hex) // 2,
        )


def needs_message(where: Where) -> bool:
    """Whether a condition asks for properties of the message, which facts do not have."""
    return not where.names <= _NAMES


_NAMES = frozenset({"command", "topic", "queue", "qmgr", "user", "program", "reason", "time", "size", "seq"})


def stops_at(where: Where, facts: StepFacts, message: CapturedMessage | None = None) -> bool:
    """Whether the condition is TRUE of a step, with any of its topics and any of its queues.

    message: needed where ``needs_message``.
    """
    topics: Sequence[str | None] = (facts.topics or (None,)) if "topic" in where.names else (None,)
    queues: Sequence[str | None] = (facts.queues or (None,)) if "queue" in where.names else (None,)
    properties = None if message is None else MessageValues(message)
    for topic in topics:
        for queue in queues:
            known: dict[str, Value | None] = {
                "seq": facts.seq,
                "time": facts.seconds,
                "command": facts.command,
                "topic": topic,
                "queue": queue,
                "qmgr": facts.qmgr,
                "user": facts.user,
                "program": facts.program,
                "reason": facts.reason,
                "size": facts.size,
            }

            def lookup(name: str, known: dict[str, Value | None] = known) -> Value | None:
                if name in known:
                    return known[name]
                return None if properties is None else properties(name)

            if where.test(lookup):
                return True
    return False


MOST_LINES: Final = 200
"""So many lines of a transcript are kept of one message; a publication can have 100,000 receivers."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message, its result, and what it changed.

    completion: ``ok``, ``warning`` or ``error``; None where the message was not processed, and *why* says so. lines:
    the transcript. puts: how many messages were put.
    """

    message: CapturedMessage
    completion: Completion | None
    reason: int | None
    why: str
    lines: tuple[str, ...]
    puts: int
    changes: tuple[Change, ...]
    facts: StepFacts


class Stepper:
    """A replay that keeps its state as items. replay, state: where it begins; a new replay by default."""

    def __init__(self, replay: LocalReplay, state: StepState | None = None) -> None:
        self._replay = replay
        self.state = state if state is not None else StepState()

    @classmethod
    def of_snapshot(cls, data: bytes, setup: str, semantics: str) -> Stepper:
        """The stepper that a snapshot was taken of. Raises SnapshotError."""
        return cls(*resumed(data, setup, semantics))

    def snapshot(self) -> bytes:
        """The state between two messages, for ``of_snapshot``."""
        return snapshot_of(self._replay, self.state.queues)

    def step(self, message: CapturedMessage) -> Step:
        """Replay one message. Raises what ``LocalReplay.replay`` does."""
        qmgr = message.qmgr or DEFAULT_QMGR
        is_new = qmgr not in self._replay.brokers
        outcome, puts = self._replay.replay(message)
        if is_new:
            # The setup has run, too; and what it defined has begun to expire, which is no effect of a command.
            after = self.state.copy()
            after.apply(self.state.changes(qmgr, (), puts))
            now = state_of(self._replay, after.queues)
            changes = tuple(difference(self.state, now))
        else:
            changes = tuple(self.state.changes(qmgr, outcome.effects, puts))
        self.state.apply(changes)
        shown = tuple(islice(transcript_lines(message, outcome, puts[: MOST_LINES + 1]), MOST_LINES))
        return Step(
            message,
            outcome.completion,
            outcome.reason,
            outcome.why,
            shown,
            len(puts),
            changes,
            StepFacts.of(message, outcome, puts),
        )


SHORTEST: Final = 1_000
_QUICKLY: Final = 1


@dataclass(frozen=True, slots=True)
class BlockHead:
    """Where a block is in the capture. first: position of its first message, from 0."""

    first: int
    count: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Block:
    """Some messages in order, with the snapshot before the first of them; messages and facts are packed."""

    head: BlockHead
    snapshot: bytes
    packed_messages: bytes
    packed_facts: bytes

    def messages(self) -> list[CapturedMessage]:
        """The messages. Raises SnapshotError."""
        try:
            lines = zlib.decompress(self.packed_messages).split(b"\n")
            return [CapturedMessage.model_validate_json(line) for line in lines]
        except (zlib.error, ValueError) as error:
            raise SnapshotError(f"the messages from number {self.head.first_seq} on are damaged: {error}") from error

    def facts(self) -> list[StepFacts]:
        """The facts of each message. Raises SnapshotError."""
        try:
            rows = json.loads(zlib.decompress(self.packed_facts))
            return [StepFacts._make((*row[:3], tuple(row[3]), tuple(row[4]), *row[5:])) for row in rows]
        except (zlib.error, ValueError, TypeError) as error:
            raise SnapshotError(f"the facts from number {self.head.first_seq} on are damaged: {error}") from error


class BlockStore(Protocol):
    """Where blocks are kept, in order."""

    def heads(self) -> list[BlockHead]:
        """Those of all blocks, in order."""

    def block(self, number: int) -> Block:
        """The block of that number, from 0. Raises SnapshotError where it cannot be read."""

    def facts(self, number: int) -> list[StepFacts]:
        """The facts of that block, without its other parts. Raises SnapshotError."""


def blocks_of(
    messages: Iterable[CapturedMessage], setup: str, semantics: str, *, shortest: int = SHORTEST
) -> Iterator[Block]:
    """Replay *messages*, which are in the order of seq, and give them in blocks.

    Raises OutOfOrderError where they are not in order; QPubSubError where the setup fails.
    """
    stepper = Stepper(LocalReplay(setup, semantics))
    first = 0
    held: list[CapturedMessage] = []
    facts: list[StepFacts] = []
    snapshot, length = stepper.snapshot(), shortest
    for message in messages:
        facts.append(stepper.step(message).facts)
        held.append(message)
        if len(held) >= length:
            yield _packed(first, snapshot, held, facts)
            first += len(held)
            held, facts = [], []
            snapshot, length = stepper.snapshot(), max(shortest, len(stepper.state))
    if held:
        yield _packed(first, snapshot, held, facts)


def _packed(first: int, snapshot: bytes, messages: list[CapturedMessage], facts: list[StepFacts]) -> Block:
    head = BlockHead(first, len(messages), messages[0].seq, messages[-1].seq)
    lines = b"\n".join(message.model_dump_json().encode() for message in messages)
    rows = json.dumps(facts, separators=(",", ":")).encode()
    return Block(head, snapshot, zlib.compress(lines, _QUICKLY), zlib.compress(rows, _QUICKLY))


_BLOCKS_KEPT: Final = 3


class _Visited:
    """One block: steps as far as they were made, and a state that moves among them."""

    def __init__(self, first: int, messages: list[CapturedMessage], stepper: Stepper) -> None:
        self.first, self.messages = first, messages
        self._stepper = stepper
        self._steps: list[Step] = []
        # The state after as many of the steps as this says.
        self._done = 0
        self._state = stepper.state.copy()

    def step(self, at: int) -> Step:
        while len(self._steps) <= at:
            self._steps.append(self._stepper.step(self.messages[len(self._steps)]))
        return self._steps[at]

    def state(self, done: int) -> StepState:
        """The state after the first *done* messages of the block."""
        if done:
            self.step(done - 1)
        while self._done < done:
            self._state.apply(self._steps[self._done].changes)
            self._done += 1
        while self._done > done:
            self._done -= 1
            self._state.undo(self._steps[self._done].changes)
        return self._state


class Timeline:
    """The messages of a capture by position, from 0. setup, semantics: those that the blocks were made with."""

    def __init__(self, store: BlockStore, setup: str, semantics: str) -> None:
        self._store, self._setup, self._semantics = store, setup, semantics
        self._heads = store.heads()
        self._firsts = [head.first for head in self._heads]
        self._visited: OrderedDict[int, _Visited] = OrderedDict()
        self._last_facts: tuple[int, list[StepFacts]] | None = None

    @property
    def seqs(self) -> tuple[int, int] | None:
        """The numbers of the first and the last message; None of an empty capture."""
        return (self._heads[0].first_seq, self._heads[-1].last_seq) if self._heads else None

    def __len__(self) -> int:
        return self._heads[-1].first + self._heads[-1].count if self._heads else 0

    def step(self, at: int) -> Step:
        """The step at a position. Raises IndexError, SnapshotError."""
        block, inside = self._place(at)
        return self._block(block).step(inside)

    def before(self, at: int) -> StepState:
        """The state before the message at a position; valid until the next call. Raises IndexError, SnapshotError."""
        block, inside = self._place(at)
        return self._block(block).state(inside)

    def after(self, at: int) -> StepState:
        """The state after it; valid until the next call. Raises IndexError, SnapshotError."""
        block, inside = self._place(at)
        return self._block(block).state(inside + 1)

    def message(self, at: int) -> CapturedMessage:
        """The message at a position. Raises IndexError, SnapshotError."""
        block, inside = self._place(at)
        return self._block(block).messages[inside]

    def facts(self, at: int) -> StepFacts:
        """The facts of the step at a position, without replaying. Raises IndexError, SnapshotError."""
        block, inside = self._place(at)
        return self._facts(block)[inside]

    def _facts(self, number: int) -> list[StepFacts]:
        if self._last_facts is None or self._last_facts[0] != number:
            self._last_facts = number, self._store.facts(number)
        return self._last_facts[1]

    def position_of(self, seq: int) -> int | None:
        """The position of the first message with that number; None where there is none. Raises SnapshotError."""
        for number, head in enumerate(self._heads):
            if head.first_seq <= seq <= head.last_seq:
                for inside, facts in enumerate(self._facts(number)):
                    if facts.seq == seq:
                        return head.first + inside
        return None

    def next_stop(self, at: int, breakpoints: list[Where]) -> int | None:
        """The first position after *at* (-1: of all) at which a breakpoint stops. Raises SnapshotError."""
        return self._stop(at + 1, len(self), 1, breakpoints)

    def previous_stop(self, at: int, breakpoints: list[Where]) -> int | None:
        """The last position before *at* at which a breakpoint stops. Raises SnapshotError."""
        return self._stop(at - 1, -1, -1, breakpoints)

    def _stop(self, begin: int, end: int, direction: int, breakpoints: list[Where]) -> int | None:
        decodes = any(needs_message(where) for where in breakpoints)
        at = begin
        while at != end and 0 <= at < len(self):
            number, inside = self._place(at)
            head, facts = self._heads[number], self._facts(number)
            messages = self._store.block(number).messages() if decodes else None
            while 0 <= inside < head.count:
                message = None if messages is None else messages[inside]
                if any(stops_at(where, facts[inside], message) for where in breakpoints):
                    return head.first + inside
                inside += direction
            at = head.first + inside
        return None

    def _place(self, at: int) -> tuple[int, int]:
        if not 0 <= at < len(self):
            raise IndexError(at)
        number = bisect_right(self._firsts, at) - 1
        return number, at - self._firsts[number]

    def _block(self, number: int) -> _Visited:
        found = self._visited.get(number)
        if found is None:
            block = self._store.block(number)
            stepper = Stepper.of_snapshot(block.snapshot, self._setup, self._semantics)
            found = self._visited[number] = _Visited(block.head.first, block.messages(), stepper)
            while len(self._visited) > _BLOCKS_KEPT:
                self._visited.popitem(last=False)
        self._visited.move_to_end(number)
        return found
