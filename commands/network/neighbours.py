"""What a queue manager is to another one that it is connected with, in words that operators know."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """What another queue manager is to this one: TYPE of DISPLAY PUBSUB."""

    PARENT = "PARENT"
    CHILD = "CHILD"


class NeighbourStatus(StrEnum):
    """STATUS of DISPLAY PUBSUB.

    STARTING: the parent has not answered yet. REFUSED: the parent does not want this queue manager as its child.
    """

    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    REFUSED = "REFUSED"
