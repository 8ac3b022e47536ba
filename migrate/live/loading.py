"""Puts the messages of a plan's files on queues, each once, however often the run is killed.

A message on ``QPUBSUB.APPLY.PROGRESS`` says how many messages of the file were put. It is replaced in the unit of work
that puts them: both are committed, or neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from commands.qmgr.store.port import StoredMessage
from migrate.planned_state import PlannedHeading
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQPER_PERSISTENT
from rfh2.errors import MigrationError
from rfh2.mqmd import Mqmd

PROGRESS_QUEUE: Final = "QPUBSUB.APPLY.PROGRESS"
DELETE_PROGRESS: Final = f"DELETE QLOCAL('{PROGRESS_QUEUE}') PURGE"
_BATCH: Final = 100
_FORMAT: Final = "MQSTR"


class MessageUnit(Protocol):
    """A unit of work, as far as loading needs it."""

    def get(self, queue: str) -> StoredMessage | None: ...

    def browse(self, queue: str) -> Iterator[StoredMessage]: ...

    def put(
        self,
        queue: str,
        md: bytes | None,
        body: bytes,
        *,
        time: datetime | None = None,
        user: str | None = None,
        application: str = "",
    ) -> int: ...


class Messages(Protocol):
    """The messages of a queue manager: an embedded one, or IBM MQ's through a connection."""

    def unit_of_work(self) -> AbstractContextManager[Any]: ...


def messages_in(file: Path) -> list[CapturedMessage]:
    """The messages of a file of the plan. Raises MigrationError if one cannot be read."""
    found = []
    for record in read_captures(file, "qload"):
        if record.message is None:
            raise MigrationError(f"{file}: {record.problem}")
        found.append(record.message)
    return found


def progress_of(messages: Messages, heading: PlannedHeading, file: str) -> int:
    """How many messages of *file* were put."""
    with messages.unit_of_work() as unit:
        return _noted(next(iter(unit.browse(PROGRESS_QUEUE)), None), heading, file)


def load(
    messages: Messages,
    heading: PlannedHeading,
    file: str,
    queue: str,
    loaded: list[CapturedMessage],
    advance: Callable[[int], None],
) -> int:
    """Put what is left of *loaded* on *queue*; how many messages that were. Raises StoreError, QueueError."""
    done = progress_of(messages, heading, file)
    rest = iter(loaded[done:])
    put = 0
    while batch := list(islice(rest, _BATCH)):
        with messages.unit_of_work() as unit:
            noted = unit.get(PROGRESS_QUEUE)
            if _noted(noted, heading, file) != done + put:
                raise MigrationError(f"{PROGRESS_QUEUE}: another program has changed it; no message of {file} was lost")
            for message in batch:
                unit.put(queue, message.md, message.body, user=message.user, application="qpubsub apply")
            unit.put(PROGRESS_QUEUE, *_note(heading, file, done + put + len(batch)))
        put += len(batch)
        advance(len(batch))
    return put


def _note(heading: PlannedHeading, file: str, count: int) -> tuple[bytes, bytes]:
    body = json.dumps({"plan": heading.fingerprint, "made": heading.made.isoformat(), "file": file, "put": count})
    mqmd = Mqmd(format=_FORMAT, coded_char_set_id=UTF8_CCSID, persistence=MQPER_PERSISTENT)
    return mqmd.encode(), body.encode()


def _noted(message: StoredMessage | None, heading: PlannedHeading, file: str) -> int:
    """What the message on the queue says about *file* of this plan: 0 if it is about another one."""
    if message is None:
        return 0
    try:
        said = json.loads(message.body)
        is_it = (said["plan"], said["made"], said["file"]) == (heading.fingerprint, heading.made.isoformat(), file)
        return int(said["put"]) if is_it else 0
    except (ValueError, KeyError, TypeError) as error:
        raise MigrationError(f"{PROGRESS_QUEUE}: there is a message that is none of qpubsub's") from error
