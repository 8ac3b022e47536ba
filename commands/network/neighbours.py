"""What a queue manager is to another one that it is connected with, in words that operators know."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Relation(StrEnum):
    """What another queue manager is to this one: TYPE of DISPLAY PUBSUB, which does not show members of clusters."""

    PARENT = "PARENT"
    CHILD = "CHILD"
    MEMBER = "MEMBER"


class NeighbourStatus(StrEnum):
    """STATUS of DISPLAY PUBSUB.

    STARTING: the parent has not answered yet. REFUSED: the parent does not want this queue manager as its child.
    """

    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    REFUSED = "REFUSED"


class Refresh(IntEnum):
    """What a neighbour is to be sent again.

    PROXIES: all proxy subscriptions. ALL: also what is retained here and it has subscribed to; it may have lost some.
    """

    NOTHING = 0
    PROXIES = 1
    ALL = 2
