"""Namelists: which queues are stream queues, and which topic objects are subscription points (guide 6.1, 6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
ADMIN_STREAM: Final = "SYSTEM.BROKER.ADMIN.STREAM"
DEFAULT_SUB_POINT: Final = "SYSTEM.BROKER.DEFAULT.SUBPOINT"

QUEUE_NAMELIST: Final = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"
SUB_POINT_NAMELIST: Final = "SYSTEM.QPUBSUB.SUBPOINT.NAMELIST"


@dataclass(frozen=True, slots=True)
class Namelist:
    """A list of object names under a name (DEFINE NAMELIST); ALTER replaces all its names at once (guide 6.5.6)."""

    name: str
    names: tuple[str, ...] = ()
    description: str = ""

    def __contains__(self, name: object) -> bool:
        return name in self.names


# The two that every queue manager has for queued publish/subscribe (guide 6.5.4, 6.5.6).
DEFAULT_NAMELISTS: Final = (
    Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM), "Queued publish/subscribe stream queues"),
    Namelist(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT,), "Queued publish/subscribe subscription points"),
)
