"""What a link works with beside the tree: each of its threads makes connections of its own to the queue manager."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from commands.links.engine.inbound_writer import CommandPutter, InboundWriter
from commands.links.engine.spool import Spool
from streams.operations import RetainedPublication


@dataclass(frozen=True, slots=True)
class LinkStores:
    """writer: where native publications go. putter: puts them into a unit of work of the tree, where one does for both.

    spool: the outgoing queue. retained: what is retained here, as kept, for as long as one is inside.
    """

    writer: Callable[[], InboundWriter]
    putter: CommandPutter
    spool: Callable[[], Spool]
    retained: Callable[[], AbstractContextManager[list[RetainedPublication]]]
