"""The role of a message in the first pass, by its command. The message is parsed only if its bytes do not show enough.

Programs put the same headers repeatedly, so most headers were parsed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Final

import pyarrow as pa

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import EPOCH, Arrival
from commands.headers.registry import parse
from commands.model import DeletePublication, Publish, PubOpt
from commands.replay.plain_publications import is_plain
from commands.replay.spark.rows import columns
from commands.templates.parts import ShapeKey, parts_of
from rfh2.errors import QPubSubError
from rfh2.message import decode

_MOST_KNOWN: Final = 100_000


class FirstPassRole(Enum):
    """CONTROL: it is on the control queue, or deletes what is retained. RETAINING: it leaves something retained, if it
    succeeds. NONE: it does neither."""

    CONTROL = auto()
    RETAINING = auto()
    NONE = auto()


class Roles:
    """The roles of messages on the control queue and on stream queues."""

    def __init__(self) -> None:
        self._known: dict[ShapeKey, FirstPassRole] = {}

    def of(self, queue: str, md: bytes | None, body: bytes) -> FirstPassRole:
        """The role of one message."""
        if queue == CONTROL_QUEUE:
            return FirstPassRole.CONTROL
        if is_plain(body):
            return FirstPassRole.NONE
        # Messages of one shape are one command, but for texts that only decide whether it succeeds.
        parts = parts_of(Arrival(0, EPOCH, queue, md, body))
        role = None if parts is None else self._known.get(parts.key)
        if role is not None:
            return role
        role = _role_of(md, body)
        if role is None:
            return FirstPassRole.NONE
        if parts is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[parts.key] = role
        return role

    def split(self, batch: pa.RecordBatch) -> dict[FirstPassRole, pa.RecordBatch]:
        """The messages of *batch* by their role."""
        places: dict[FirstPassRole, list[int]] = {role: [] for role in FirstPassRole}
        for at, row in enumerate(columns(batch, "queue", "md", "body")):
            places[self.of(*row)].append(at)
        return {role: batch.take(pa.array(found, pa.int64())) for role, found in places.items() if found}


def _role_of(md: bytes | None, body: bytes) -> FirstPassRole | None:
    """The role of the command in a message; None where there is none that can be read."""
    try:
        command = parse(decode(body, md))
    except QPubSubError:
        return None
    if isinstance(command, DeletePublication):
        return FirstPassRole.CONTROL
    retains = isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB)
    return FirstPassRole.RETAINING if retains else FirstPassRole.NONE


def with_role(role: FirstPassRole) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does that keeps the messages with this role."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        roles = Roles()
        for batch in batches:
            found = roles.split(batch).get(role)
            if found is not None:
                yield found

    return run
