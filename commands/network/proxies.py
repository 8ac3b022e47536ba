"""The proxy subscriptions that a queue manager makes at its neighbours (guide 3.1.1, 3.1.2).

One for each topic string and neighbour, however many subscriptions want it: made for the first, withdrawn after the
last. A subscription counts once; so does a proxy subscription that another neighbour made here, and each topic object
with PROXYSUB(FORCE).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from commands.network.flows import Link, Place, ProxyFlow


class Proxies:
    """What one queue manager wants of each neighbour. qmgr: its name."""

    def __init__(self, qmgr: str) -> None:
        self._qmgr = qmgr
        self._wanted: dict[Link, Counter[Place]] = {}

    def __len__(self) -> int:
        """How many proxy subscriptions it has at its neighbours."""
        return sum(map(len, self._wanted.values()))

    def at(self, link: Link) -> Iterator[Place]:
        """Those at one neighbour, in the order in which they were made."""
        return iter(self._wanted.get(link, ()))

    def want(self, targets: Iterable[tuple[Link, Place]]) -> Iterator[ProxyFlow]:
        """One reason more for each of *targets*; the flows for those that are new."""
        for link, place in targets:
            counts = self._wanted.setdefault(link, Counter())
            counts[place] += 1
            if counts[place] == 1:
                yield ProxyFlow(self._qmgr, link.neighbour, link.cluster, place)

    def release(self, targets: Iterable[tuple[Link, Place]]) -> Iterator[ProxyFlow]:
        """One reason less; the flows for those that nothing needs any more."""
        for link, place in targets:
            counts = self._wanted[link]
            counts[place] -= 1
            if not counts[place]:
                del counts[place]
                yield ProxyFlow(self._qmgr, link.neighbour, link.cluster, place, withdrawn=True)
