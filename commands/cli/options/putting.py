"""What the verbs that put captured messages share: in which batches, and as whom."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator
from typing import Final

from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.mqmd import name_of

_BATCH_MESSAGES: Final = 1_000
_BATCH_BYTES: Final = 16 * 1024 * 1024


def batches(found: Iterable[CaptureRecord]) -> Iterator[list[CaptureRecord]]:
    """*found* in the batches that are put together.

    Read before the unit of work begins: a slow reader must not keep other processes from the queues.
    """
    batch: list[CaptureRecord] = []
    size = 0
    for record in found:
        batch.append(record)
        size += 0 if record.message is None else len(record.message.body_hex) // 2
        if len(batch) >= _BATCH_MESSAGES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def user_of(message: CapturedMessage) -> str | None:
    """Who puts: the user captured, else the MQMD's (None), else whoever calls this program."""
    if message.user is not None:
        return message.user
    descriptor = message.descriptor()
    if descriptor is not None and name_of(descriptor.user_identifier):
        return None
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
