"""The stores of a link at the queue manager: each of its threads makes its own connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from commands.links.engine.followed_filters import Positions
from commands.links.engine.inbound_writer import CommandPutter, InboundWriter
from commands.links.engine.spool import Spool
from streams.operations import RetainedPublication


@dataclass(frozen=True, slots=True)
class LinkStores:
    """writer: puts native publications. putter: puts them in a unit of work of the tree, if it has the queues too.

    spool: the outgoing queue. retained: what is retained here, as kept, for as long as one is inside.
    """

    writer: Callable[[], InboundWriter]
    putter: CommandPutter
    spool: Callable[[], Spool]
    retained: Callable[[], AbstractContextManager[list[RetainedPublication]]]

    def position(self) -> Positions | None:
        """The position in the tree's logs behind the last commands from it; None for none. Raises StoreError."""
        writer = self.writer()
        try:
            return writer.position()
        finally:
            writer.close()
