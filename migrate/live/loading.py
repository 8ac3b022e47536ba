"""Puts the messages of a plan's files on queues, each once, however often the run is killed.

A message on ``QPUBSUB.APPLY.PROGRESS`` says how many messages of the file were put. It is replaced in the unit of work
that puts them: both are committed, or neither.

The answers of a broker to commands in MQRFH, on a reply queue: responses, and what is no response.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from commands.broker.objects import CONTROL_QUEUE
from commands.qmgr.store.port import StoredMessage
from migrate.planned_state import PlannedHeading
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQPER_PERSISTENT, MQRCCF_COMMAND_FAILED
from rfh2.errors import MigrationError, QPubSubError
from rfh2.message import decode
from rfh2.mqi_constants import MQCC_OK
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import MQPS_COMP_CODE, MQPS_REASON

PROGRESS_QUEUE: Final = "QPUBSUB.APPLY.PROGRESS"
DELETE_PROGRESS: Final = f"DELETE QLOCAL('{PROGRESS_QUEUE}') PURGE"
_BATCH: Final = 100
_FORMAT: Final = "MQSTR"


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
        raise MigrationError(f"{PROGRESS_QUEUE}: it holds a message that qpubsub did not put") from error


_PAUSE_S: Final = 0.05


def reason_of(message: StoredMessage) -> int | None:
    """MQPSReason of a response, 0 for success; None for a message that is no response.

    A response has a group of pairs for each topic: the first group that has failed counts. One that does not say why
    has MQRCCF_COMMAND_FAILED, and is not taken for a success.
    """
    try:
        decoded = decode(message.body, message.md)
        pairs = () if decoded.rfh1 is None else tuple(decoded.rfh1.pairs())
    except QPubSubError:
        return None
    starts = [at for at, (word, _) in enumerate(pairs) if word == MQPS_COMP_CODE]
    if not starts:
        return None
    for start, end in zip(starts, [*starts[1:], len(pairs)], strict=True):
        if pairs[start][1].strip() != str(MQCC_OK):
            reason = dict(pairs[start:end]).get(MQPS_REASON, "").strip()
            return (int(reason) if reason.isdecimal() else 0) or MQRCCF_COMMAND_FAILED
    return 0


def answers_until_response(messages: Messages, queue: str, wait_s: float, take: Callable[[StoredMessage], None]) -> int:
    """Take messages off *queue* until a response arrives, giving each of them to *take*; the response's reason.

    Raises MigrationError where none arrives in *wait_s* seconds after the last message.
    """
    end = time.monotonic() + wait_s
    while True:
        with messages.unit_of_work() as unit:
            found = unit.get(queue)
        if found is None:
            if time.monotonic() >= end:
                why = f"no answer on {queue} in {wait_s:g} s: see that the broker processes {CONTROL_QUEUE}"
                raise MigrationError(why)
            time.sleep(_PAUSE_S)
            continue
        take(found)
        reason = reason_of(found)
        if reason is not None:
            return reason
        end = time.monotonic() + wait_s
