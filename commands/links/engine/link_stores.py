"""What a link's threads work with, beside the tree: each thread makes connections of its own to the queue manager."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from commands.links.engine.inbound_writer import Intake
from commands.links.engine.spool import Spool
from streams.operations import RetainedPublication


@dataclass(frozen=True, slots=True)
class Edge:
    """intake: where native publications go. spool: the outgoing queue.

    retained: what is retained here, as kept, for as long as one is inside.
    """

    intake: Callable[[], Intake]
    spool: Callable[[], Spool]
    retained: Callable[[], AbstractContextManager[list[RetainedPublication]]]
