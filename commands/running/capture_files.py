"""The directory of ``capture``: files of captured messages, complete but the last one, which has a hidden name.

    capture-000001.jsonl   capture-000002.jsonl   .capture-000003.jsonl.partial

Messages are on the disk before they leave their queues (``captured_once``).

A topic of Kafka as the place of a capture: a record for each message, and all that there is in its value.

    key     the queue manager: so all records are in one partition, and in the order of seq
    value   the captured message as a line of JSON, with MQMD and body; what a consumer prints is a capture file

A message leaves its queue when the brokers have acknowledged its record (all replicas in sync; the producer is
idempotent, so a record that it sends again is there once). A capture that was interrupted goes on from what the end of
the topic has (``captured_once``): so a topic is for one queue manager.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address
from commands.disk.files import directory_to_disk, make_directory, private, put_in_place, to_disk
from commands.disk.lock import HolderLock, require_locks
from commands.links.kafka.cluster import client_settings, make_topic, partitions_of, settings_of
from commands.terminal.output_file import naming
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures, write_captures
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError
from rfh2.layouts import MQMD1

# Messages of a capture, numbered, and each of them once: also those that come again because a commit is in doubt.
#
# Messages are kept before they leave their queues. Where nobody knows whether the queue manager let them go, they may
# come again: then they are known, and not kept twice.

MOST_IN_DOUBT: Final = 500
"""So many messages are committed at once at most."""

_BACKOUT_COUNT: Final = 2 * MQMD1.offset("BackoutCount")
"""Where it begins in the hexadecimal MQMD."""


class CapturedOnce:
    """What a capture has kept. seq: of the last message.

    unsure: how many were in doubt, and nobody has looked for since. Call ``new``, keep what it gives, then ``kept``.
    """

    def __init__(self) -> None:
        self.seq = self.unsure = 0
        # Messages that may come again, and how often.
        self._in_doubt: Counter[bytes] = Counter()
        self._last: list[bytes] = []
        self._known: Counter[bytes] = Counter()
        self._next_seq = 0

    def may_come_again(self, messages: Iterable[CapturedMessage]) -> None:
        """An earlier process kept these, and nobody knows whether they left their queues."""
        self._in_doubt.update(map(_mark, messages))

    def new(self, messages: Sequence[CapturedMessage]) -> list[CapturedMessage]:
        """Those of *messages* that are not kept yet, numbered."""
        self._last = [_mark(message) for message in messages]
        self._known = Counter(self._last) & self._in_doubt
        left, self._next_seq, found = self._known.copy(), self.seq, []
        for mark, message in zip(self._last, messages, strict=True):
            if left[mark]:
                left[mark] -= 1
                continue
            self._next_seq += 1
            found.append(message.model_copy(update={"seq": self._next_seq}))
        return found

    def kept(self) -> None:
        """What ``new`` gave is kept."""
        self._in_doubt -= self._known
        self.seq = self._next_seq

    def doubt(self) -> None:
        """Nobody knows whether what was kept last has left its queues: it may come again."""
        self._in_doubt.update(self._last)
        self.unsure = len(self._last)

    def knows(self, messages: Sequence[CapturedMessage]) -> bool:
        """Whether one of *messages* has come again."""
        return any(_mark(message) in self._in_doubt for message in messages)


def _mark(message: CapturedMessage) -> bytes:
    """The same for a message that was backed out and is got again, and for no other one."""
    md = message.md_hex or ""
    parts = (message.queue, md[:_BACKOUT_COUNT], md[_BACKOUT_COUNT + 8 :], message.body_hex)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()


_WHOLE: Final = re.compile(r"capture-(\d{6,})\.(?:jsonl|parquet)")
_PARTIAL: Final = re.compile(r"\.capture-(\d{6,})\.jsonl\.partial")


class CaptureFiles:
    """Files that grow message by message. form: ``jsonl`` or ``parquet``. most: messages a file.

    Raises OSError; StoreError where another process writes there; CaptureError where Parquet's library is missing.
    """

    def __init__(self, directory: Path, form: str, most: int) -> None:
        write_captures((), io.BytesIO(), form)
        make_directory(directory)
        self._directory, self._form, self._most = directory, form, most
        require_locks("a capture")
        self._lock = HolderLock(directory / ".lock", with_directory=True)
        if not self._lock.take():
            raise StoreError(f"{directory} is in use: process {self._lock.holder()} captures messages there")
        try:
            self._number, self._count = 1, 0
            self._file: FileIO | None = None
            self.once = CapturedOnce()
            self._recover()
        except BaseException:
            self._lock.release()
            raise

    @property
    def is_new(self) -> bool:
        """Whether no message was captured there before."""
        return self.once.seq == 0

    def add(self, messages: Sequence[CapturedMessage]) -> int:
        """Have *messages* on the disk, but for those that are there; how many are new.

        Raises OSError: then none of them is there.
        """
        lines = [message.model_dump_json().encode("utf-8", "surrogatepass") for message in self.once.new(messages)]
        if lines:
            self._append(b"\n".join([*lines, b""]))
        self.once.kept()
        self._count += len(lines)
        return len(lines)

    def roll(self) -> None:
        """Complete the file if it has all the messages that a file may have. Nothing in it may be in doubt by now."""
        if self._count >= self._most:
            self.finish()

    def finish(self) -> None:
        """Complete the file, if there is one."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        partial, whole = self._partial, self._directory / f"capture-{self._number:06}.{self._form}"
        if self._form == "jsonl":
            put_in_place(partial, whole)
        else:
            made = partial.with_name(f".{whole.name}.partial")
            with naming(str(made)), open(made, "wb", opener=private) as target:
                write_captures(_messages(partial), target, self._form)
                to_disk(target)
            put_in_place(made, whole)
            partial.unlink()
        self._number, self._count = self._number + 1, 0

    def close(self) -> None:
        """Close the file as it is, for another ``CaptureFiles`` to go on."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _partial(self) -> Path:
        return self._directory / f".capture-{self._number:06}.jsonl.partial"

    def _append(self, data: bytes) -> None:
        file = self._file
        if file is None:
            file = self._file = self._opened(self._partial)
            directory_to_disk(self._directory)
        before, rest = os.fstat(file.fileno()).st_size, data
        try:
            while rest:
                rest = rest[file.write(rest) or 0 :]
            os.fsync(file.fileno())
        except OSError as error:
            file.truncate(before)
            raise OSError(error.errno, error.strerror, str(self._partial)) from error

    @staticmethod
    def _opened(path: Path) -> FileIO:
        return open(path, "ab", buffering=0, opener=private)

    def _recover(self) -> None:
        """Go on where an earlier process ended."""
        names = [path.name for path in self._directory.iterdir()]
        whole = {int(found[1]): found[0] for name in names if (found := _WHOLE.fullmatch(name))}
        if whole:
            self._number = max(whole) + 1
            last = self._directory / whole[max(whole)]
            self.once.seq = max((r.message.seq for r in read_captures(last) if r.message is not None), default=0)
        for number in sorted(int(found[1]) for name in names if (found := _PARTIAL.fullmatch(name))):
            self._go_on(number, is_whole=number in whole)

    def _go_on(self, number: int, *, is_whole: bool) -> None:
        path = self._directory / f".capture-{number:06}.jsonl.partial"
        in_doubt: deque[CapturedMessage] = deque(maxlen=MOST_IN_DOUBT)
        sound = 0
        for line, message in _lines(path):
            in_doubt.append(message)
            if not is_whole:
                sound += len(line)
                self.once.seq, self._count = message.seq, self._count + 1
        self.once.may_come_again(in_doubt)
        if is_whole:
            path.unlink()  # it was ended between the two
        else:
            self._number = number
            # A line that was cut: its message was not committed, and comes again.
            os.truncate(path, sound)
            self._file = self._opened(path)


def _lines(path: Path) -> Iterator[tuple[bytes, CapturedMessage]]:
    """The lines of a file and their messages, up to one that was cut."""
    with path.open("rb") as file:
        for line in file:
            try:
                message = CapturedMessage.model_validate_json(line)
            except ValidationError:
                return
            if not line.endswith(b"\n"):
                return
            yield line, message


def _messages(path: Path) -> Iterator[CapturedMessage]:
    return (message for _, message in _lines(path))


try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    _NO_LEADER_YET: Final = (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    )
except ImportError:  # pragma: no cover - the extra is not installed
    Consumer = None  # type: ignore[assignment,misc]

PATIENCE_S: Final = 60.0
_NAP_S: Final = 0.1
_READER: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}
_WRITER: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",
    # The topic says what is too long, not the client.
    "message.max.bytes": 1_000_000_000,
    "batch.size": 1_000_000,
    "linger.ms": 5,
}


class KafkaUnreachableError(StoreError):
    """Kafka did not do what was asked: nobody answered in time, or it refuses."""


class CaptureTopic:
    """The topic *topic*, for captures of queue manager *qmgr*. patience_s: for the brokers to acknowledge.

    Raises ConfigError where confluent-kafka is missing or the topic cannot be for this; KafkaUnreachableError.
    """

    def __init__(
        self, address: Address, topic: str, config: TopicsConfig, qmgr: str, patience_s: float = PATIENCE_S
    ) -> None:
        if Consumer is None:
            raise ConfigError("--to", f"kafka:// needs the package confluent-kafka: {how_to_install('kafka')}")
        self._address, self._topic, self._qmgr, self._patience_s = address, topic, qmgr, patience_s
        self.once = CapturedOnce()
        name = f"qpubsub-capture-{qmgr}"
        writer = {**_WRITER, "message.timeout.ms": int(patience_s * 1000)}
        reader = client_settings(address, config, name, {**_READER, "group.id": name})
        with self._asking():
            self._admin = AdminClient(client_settings(address, config, name, {}))
            self._make_topic(config.replicas)
            self._recover(reader)
            self._producer = Producer(client_settings(address, config, name, writer))

    def __str__(self) -> str:
        return f"{self._address}/{self._topic}"

    @property
    def is_new(self) -> bool:
        """Whether no message was captured there before."""
        return self.once.seq == 0

    def add(self, messages: Sequence[CapturedMessage]) -> int:
        """Have *messages* in the topic, but for those that are there; how many are new.

        Raises KafkaUnreachableError: then some of them may be there, and must stay on their queues.
        """
        new, failed = self.once.new(messages), list[KafkaError]()

        def answered(error: KafkaError | None, _record: object) -> None:
            if error is not None:
                failed.append(error)

        with self._asking():
            for message in new:
                value = message.model_dump_json().encode("utf-8", "surrogatepass")
                self._produce(value, answered)
            left = self._producer.flush(self._patience_s + 1)
        if failed or left:
            self._producer.purge()
            why = failed[0].str() if failed else "it does not answer"
            raise KafkaUnreachableError(f"{self}: {why}; give the command again: nothing is lost or doubled")
        self.once.kept()
        return len(new)

    def roll(self) -> None:
        """Nothing: a topic has no files."""

    def finish(self) -> None:
        """Nothing: each record is complete."""

    def close(self) -> None:
        """Let the clients go."""
        self._producer.purge()
        self._producer.flush(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _produce(self, value: bytes, answered: Any) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, self._qmgr.encode(), on_delivery=answered)
            except BufferError:
                self._producer.poll(_NAP_S)  # its queue is full
            else:
                return

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise KafkaUnreachableError(f"{self}: {error.args[0].str()}") from error

    def _make_topic(self, replicas: int) -> None:
        """Make the topic where it is not there; what is in it stays for ever then."""
        if partitions_of(self._admin, self._topic, self._patience_s) is None:
            make_topic(self._admin, self._topic, 1, replicas, {"retention.ms": "-1"}, self._patience_s)
        elif "compact" in settings_of(self._admin, self._topic, self._patience_s).get("cleanup.policy", ""):
            why = f"topic {self._topic} is compacted, and would keep one message; give one with cleanup.policy=delete"
            raise ConfigError("--to", why)

    def _recover(self, settings: dict[str, Any]) -> None:
        """Go on where an earlier process ended."""
        consumer = Consumer(settings)
        try:
            last, count = self._end(consumer)
        finally:
            consumer.close()
        for message in last:
            if message.qmgr != self._qmgr:
                why = f"topic {self._topic} has messages of {message.qmgr or 'no queue manager'}, not of {self._qmgr}"
                raise ConfigError("--to", f"{why}: give each queue manager a topic of its own")
        # Old records may be gone: the numbers behind them are not given again all the same.
        self.once.seq = max([count, *(message.seq for message in last)])
        self.once.may_come_again(heapq.nlargest(MOST_IN_DOUBT, last, key=lambda message: message.seq))

    def _end(self, consumer: Consumer) -> tuple[list[CapturedMessage], int]:
        """The last messages of each partition, and how many records there ever were. Raises ConfigError."""
        starts, left, count = list[TopicPartition](), set[int](), 0
        for number in partitions_of(self._admin, self._topic, self._patience_s) or ():
            low, high = self._bounds(consumer, TopicPartition(self._topic, number))
            count += high
            if high > low:
                starts.append(TopicPartition(self._topic, number, max(low, high - MOST_IN_DOUBT)))
                left.add(number)
        consumer.assign(starts)
        found: list[CapturedMessage] = []
        end = time.monotonic() + self._patience_s
        while left:
            record = consumer.poll(_NAP_S)
            if record is None:
                if time.monotonic() > end:
                    raise KafkaUnreachableError(f"{self}: its end could not be read in {self._patience_s:.0f} s")
                continue
            error = record.error()
            if error is None:
                found.append(self._message(record))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(record.partition())
            else:
                raise KafkaException(error)
        return found, count

    def _bounds(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """The first offset of a partition, and the next one."""
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return consumer.get_watermark_offsets(partition, timeout=self._patience_s, cached=False)
            except KafkaException as error:
                # A broker that has just started, or the topic with it, has to find its leader first.
                if error.args[0] not in _NO_LEADER_YET or time.monotonic() > end:
                    raise
            time.sleep(_NAP_S)

    def _message(self, record: Any) -> CapturedMessage:
        try:
            return CapturedMessage.model_validate_json(record.value() or b"")
        except ValidationError as error:
            where = f"record {record.offset()} of partition {record.partition()}"
            why = f"topic {self._topic}: {where} is not a captured message; give a topic of its own"
            raise ConfigError("--to", why) from error
