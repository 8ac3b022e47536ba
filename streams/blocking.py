"""WILDCARD(BLOCK): which topics a wildcard subscription does not reach (guide 2.5.4, "Controlling wildcard usage").

A topic object with WILDCARD(BLOCK) at topic string B keeps publications at B and below B from subscriptions whose
wildcard lies above B: those whose levels before the first wildcard do not contain B.

    BLOCK at Sports/Football; published to Sports/Football/Arsenal
    Sports/#                  blocked       Sports/Football/#         delivered
    Sports/#/Arsenal          blocked       Sports/Football/Arsenal   delivered: not a wildcard subscription
    Sports/+/Arsenal          blocked       Sports/Football/+         delivered

If a subscription matches topic T, both its literal levels and each B above T are beginnings of T. The literal levels
therefore contain B exactly if B has no more levels than they have. So one number per topic and block set is enough: the
levels of the deepest B at or above T.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streams.topic_strings import SEPARATOR, at_and_above


@dataclass(frozen=True, slots=True)
class BlockSet:
    """The topic strings of all topic objects with WILDCARD(BLOCK) at one moment; the root ("") blocks nothing.

    first_levels: of these topic strings; a topic with another one lies under no block. lengths: of these topic strings,
    each once, in descending order.
    """

    topic_strings: frozenset[str] = frozenset()
    first_levels: frozenset[str] = field(init=False, repr=False, compare=False)
    lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first_levels = frozenset(string.partition(SEPARATOR)[0] for string in self.topic_strings)
        object.__setattr__(self, "first_levels", first_levels)
        lengths = sorted({len(string) for string in self.topic_strings if string}, reverse=True)
        object.__setattr__(self, "lengths", tuple(lengths))

    def __bool__(self) -> bool:
        return bool(self.topic_strings)

    def depth(self, topic_string: str) -> int:
        """How many levels the deepest blocking topic string at or above *topic_string* has; 0 where there is none."""
        if topic_string.partition(SEPARATOR)[0] not in self.first_levels:
            return 0
        above = at_and_above(topic_string, self.lengths)
        return next((block.count(SEPARATOR) + 1 for block in above if block in self.topic_strings), 0)

    def blocks(self, topic_string: str, literal_depth: int) -> bool:
        """Whether a wildcard subscription that matches *topic_string* is kept from it.

        literal_depth: how many whole levels the subscription has before its first wildcard.
        """
        return self.depth(topic_string) > literal_depth


NO_BLOCKS = BlockSet()
