"""Who may publish and subscribe where: asked for each topic, answered from what the edge provides."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Action(StrEnum):
    """What is to be done: to a topic, or to a queue."""

    PUBLISH = "pub"
    SUBSCRIBE = "sub"
    RESUME = "resume"
    PUT = "put"


class Authority(Protocol):
    """The answers of an object authority manager."""

    def may_use_topic(self, user: str, action: Action, topic_string: str) -> bool:
        """Whether *user* may do *action* at this topic (guide 5)."""

    def may_put(self, user: str, queue: str) -> bool:
        """Whether *user* may put to *queue*."""


class NoAuthority:
    """Authority checking switched off, as it is until the first authority record is set."""

    def may_use_topic(self, user: str, action: Action, topic_string: str) -> bool:
        return True

    def may_put(self, user: str, queue: str) -> bool:
        return True
