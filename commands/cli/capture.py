"""``qpubsub capture``: messages of IBM MQ's queues, into the files of a directory or a topic of Kafka.

Messages of IBM MQ's queues for a capture: looked at and left there, or taken in units of work.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import click

from commands.broker.objects import is_object_name
from commands.client.errors import BackedOutError, ConnectionLostError, MqError
from commands.config.settings import Config, QueuesConfig, exposed_secrets, read_config
from commands.config.urls import Address, is_topic_address, parse_topic_address
from commands.links.engine.threads import Backoff
from commands.links.ibmmq.channel import connection_to
from commands.links.ibmmq.connection import Got
from commands.links.ibmmq.unit import InputQueues
from commands.links.opening import queues_address
from commands.options.verb import FILE, given_on_the_line, verb
from commands.running.capture_files import MOST_IN_DOUBT, CapturedOnce, CaptureFiles, CaptureTopic
from commands.terminal.console import Console
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from rfh2.captured import CapturedMessage
from rfh2.captures import put_time
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQGMO_BROWSE_FIRST, MQOO_BROWSE, MQOO_INPUT_SHARED, MQRC_SYNCPOINT_LIMIT_REACHED
from rfh2.mqmd import Mqmd, name_of

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


class MqCapture:
    """The queues of one queue manager. Raises MqError from everything; connect again after a ConnectionLostError.

    queues: by queue, the name that its messages have in the capture. takes: whether messages are taken off the queues.
    Messages have ``seq`` 0.
    """

    def __init__(self, address: Address, config: QueuesConfig, queues: Mapping[str, str], *, takes: bool) -> None:
        self._connection = connection_to(address, config, "qpubsub capture")
        self._qmgr, self._names, self._takes = address.qmgr, dict(queues), takes
        self._handles: list[tuple[str, Any]] = []
        # What was seen and may be there: the queue, the message's token there, and its descriptor.
        self._seen: set[tuple[str, bytes, bytes]] = set()

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._connection.is_up

    def connect(self) -> None:
        """Connect and open the queues."""
        self._connection.connect()
        options = MQOO_BROWSE | (MQOO_INPUT_SHARED if self._takes else 0)
        self._handles = [(queue, self._connection.queue(queue, options)) for queue in self._names]

    def disconnect(self) -> None:
        """Disconnect; what was not committed is backed out."""
        self._handles = []
        self._connection.disconnect()

    def look(self) -> Iterator[CapturedMessage]:
        """The messages that the look before did not see, in the order in which they were put; each stays on its queue.

        It is a look only if it is read to its end.
        """
        there: set[tuple[str, bytes, bytes]] = set()
        queues = (self._look_at(queue, handle, there) for queue, handle in self._handles)
        yield from heapq.merge(*queues, key=lambda message: message.time or _NO_TIME)
        self._seen = there

    def _look_at(self, queue: str, handle: Any, there: set[tuple[str, bytes, bytes]]) -> Iterator[CapturedMessage]:
        connection, first = self._connection, True
        option = MQGMO_BROWSE_FIRST
        while (glance := connection.glance(handle, first)) is not None:
            first = False
            found = (queue, glance.token, glance.md)
            there.add(found)
            if found not in self._seen:
                got = connection.get(handle, option, token=glance.token)
                if got is not None:
                    self._seen.add(found)
                    yield self._captured(queue, got)

    def take(self, most: int, most_bytes: int) -> list[CapturedMessage]:
        """Take the next messages in a unit of work, until ``commit`` or ``backout``: in the order of their puts.

        most: messages. most_bytes: no other message is taken once they have so many bytes.
        """
        inputs, size = InputQueues(self._connection, self._handles), 0
        taken: list[CapturedMessage] = []
        while len(taken) < most and size < most_bytes:
            try:
                one = inputs.take()
            except MqError as error:
                if error.reason == MQRC_SYNCPOINT_LIMIT_REACHED and taken:
                    break  # the next unit of work goes on
                raise
            if one is None:
                break
            size += len(one[1].body)
            taken.append(self._captured(*one))
        return taken

    def commit(self) -> None:
        """Remove what was taken. BackedOutError: it is on the queues. ConnectionLostError: nobody knows yet."""
        self._connection.commit()

    def backout(self) -> None:
        """Leave on the queues what was taken."""
        self._connection.backout()

    def _captured(self, queue: str, got: Got) -> CapturedMessage:
        return CapturedMessage.model_construct(
            seq=0,
            time=put_time(got.md),
            qmgr=self._qmgr,
            queue=self._names[queue],
            user=name_of(Mqmd.decode(got.md).user_identifier) or None,
            md_hex=got.md.hex(),
            body_hex=got.body.hex(),
        )


_MOST_BYTES: Final = 16 * 1024 * 1024
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


@verb(
    "qpubsub capture --queues 'mq://mq:1414/QM1?channel=APP' --out day1 SPORT.STREAM",
    "qpubsub capture --config bridge.toml --out day1 --take --follow SPORT.COPY=SPORT.STREAM",
    "qpubsub capture --config bridge.toml --out kafka://broker/qm1.capture --take --follow SPORT.COPY=SPORT.STREAM",
    former={"--to": "--out"},
)
@click.option("--queues", metavar="URL", help="The queue manager: mq://host:1414/QMGR?channel=NAME, as for run.")
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="The same as for run: [queues], and for --out kafka:// the users, TLS and [topics.kafka] of [topics].",
)
@click.option(
    "--out",
    "to",
    required=True,
    metavar="DIRECTORY|URL",
    help="The directory of the files, or kafka://host[:9092]/TOPIC (kafkas:// with TLS). --take goes on in it.",
)
@click.option("--take", is_flag=True, help="Remove the messages from the queues: for queues that only get copies.")
@click.option("--follow", is_flag=True, help="Go on with later messages, until Ctrl-C or --limit ends it.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="With --follow, wait this long after a look that found no message.",
)
@click.option("--limit", "-C", type=click.IntRange(min=1), metavar="N", help="Capture at most N messages.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    metavar="FORMAT",
    help="Format of the files: jsonl, parquet.",
)
@click.option("--json", "form", flag_value="jsonl", help="The same as --format jsonl.")
@click.option(
    "--per-file",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Begin another file after N messages.",
)
@click.argument("queue", nargs=-1, required=True, metavar="QUEUE[=NAME]...")
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    queues: str | None,
    config: Path | None,
    to: str,
    take: bool,
    follow: bool,
    every_s: float,
    limit: int | None,
    form: str,
    per_file: int,
    queue: tuple[str, ...],
) -> None:
    """Write the messages on queues of an IBM MQ queue manager to files in a directory, for verbs that read captures.

    With --out kafka://, write them to a topic of Kafka instead, a record for each message, with its JSON as the value.

    The messages stay on the queues, and a program that reads a queue is not disturbed. But what it removes between two
    looks is not captured. To capture everything, have IBM MQ put a copy of each message on another queue (STREAMQ), and
    use --take for that queue: it removes a message after it is on the disk. NAME is the queue that the capture shows.

    An interrupted capture with --take goes on when the command is given again; no message is lost.
    """
    settings = read_config(config)
    for exposed in exposed_secrets(settings):
        console.warn(exposed)
    address = queues_address(queues, settings)
    if address is None:
        raise click.UsageError("--queues or --config with [queues] url says which queue manager")
    topic = _topic(to)
    source = MqCapture(address, settings.queues, _names(queue), takes=take)
    stop = threading.Event()
    with _place(to, topic, settings, address.qmgr, form, per_file) as place, stopping(stop):
        if not (take or place.is_new):
            why = "it has captured messages, and without --take they would be captured again; give another directory"
            raise click.UsageError(f"--out {to}: {why} or topic")
        with console.progress("messages captured") as advance:
            run = _Run(console, source, place, stop, advance, limit)
            try:
                run.all(takes=take, every_s=every_s if follow else None)
            finally:
                source.disconnect()
        unsure = place.once.unsure
        if unsure:
            left = f"whether {counted(unsure, 'message')} left the queues is not known"
            console.warn(f"{left}: give the command again to complete the capture")
        else:
            place.finish()
    console.say(f"{counted(run.done, 'message')} captured in {to}")


class CapturePlace(Protocol):
    """Where captured messages are kept: ``CaptureFiles``, ``CaptureTopic``."""

    @property
    def once(self) -> CapturedOnce: ...
    @property
    def is_new(self) -> bool: ...
    def add(self, messages: Sequence[CapturedMessage]) -> int: ...
    def roll(self) -> None: ...
    def finish(self) -> None: ...


def _topic(to: str) -> tuple[Address, str] | None:
    """The topic that --to names; None for a directory."""
    if not is_topic_address(to):
        if "://" in to:
            raise click.UsageError(f"--out {to}: a directory, or kafka://host:9092/TOPIC")
        return None
    if given_on_the_line("form") or given_on_the_line("per_file"):
        raise click.UsageError("--format and --per-file are for files; a topic has a record for each message")
    return parse_topic_address(to, "--to")


def _place(
    to: str, topic: tuple[Address, str] | None, settings: Config, qmgr: str, form: str, per_file: int
) -> CaptureFiles | CaptureTopic:
    if topic is None:
        return CaptureFiles(Path(to), form, per_file)
    return CaptureTopic(*topic, settings.topics, qmgr)


def _names(queues: Sequence[str]) -> dict[str, str]:
    names = {}
    for each in queues:
        queue, _, name = each.partition("=")
        for one in (queue, name or queue):
            if not is_object_name(one):
                raise click.UsageError(f"{each}: {one!r} is not the name of a queue")
        if queue in names:
            raise click.UsageError(f"{each}: queue {queue} is given twice")
        names[queue] = name or queue
    return names


@dataclass(slots=True)
class _Run:
    console: Console
    source: MqCapture
    place: CapturePlace
    stop: threading.Event
    advance: Callable[[int], None]
    limit: int | None
    done: int = 0

    def all(self, *, takes: bool, every_s: float | None) -> None:
        """Capture until nothing is there or it is stopped. every_s: between two looks; None for no second one."""
        backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self.source.connect()
        while not self.stop.is_set() and (self.place.once.unsure or self.done != self.limit):
            try:
                if not self.source.is_up:
                    self.source.connect()
                    self.console.say("connected again")
                found = self._take() if takes else self._look()
            except ConnectionLostError as error:
                self.source.disconnect()
                if every_s is None:
                    raise
                self.console.warn(f"{error}; connecting again")
                self.stop.wait(backoff.next())
                continue
            backoff.reset()
            if not found:
                if every_s is None:
                    break
                self.stop.wait(every_s)

    def _look(self) -> bool:
        looked = self.source.look()
        if self.limit is not None:
            looked = islice(looked, self.limit - self.done)
        for batch in _batches(looked):
            self._add(batch)
            self.place.roll()
        return False

    def _take(self) -> bool:
        most = MOST_IN_DOUBT if self.limit is None else min(MOST_IN_DOUBT, self.limit - self.done)
        taken = self.source.take(most or self.place.once.unsure, _MOST_BYTES)
        if not most and not self.place.once.knows(taken):
            self.source.backout()
            taken = []
        self.place.once.unsure = 0
        if not taken:
            return False
        try:
            self._add(taken)
        except (OSError, StoreError):
            self.source.backout()
            raise
        try:
            self.source.commit()
        except BackedOutError as error:
            self.source.backout()
            self.place.once.doubt()
            self.console.warn(f"{error}; getting the messages again")
            return True
        except ConnectionLostError:
            self.place.once.doubt()
            raise
        self.place.roll()
        return True

    def _add(self, messages: Sequence[CapturedMessage]) -> None:
        new = self.place.add(messages)
        self.done += new
        self.advance(new)


def _batches(messages: Iterator[CapturedMessage]) -> Iterator[list[CapturedMessage]]:
    while batch := list(islice(messages, MOST_IN_DOUBT)):
        yield batch
