"""The queues of IBM MQ classes for JMS in publish/subscribe (MQJMS_PSQ.mqsc), by name.

A subscriber has its own queue (a dynamic one, or one that an administrator defined), or shares one with others. Those
that share a queue find their messages by CorrelId.
"""

from __future__ import annotations

from typing import Final

ADMIN_QUEUE: Final = "SYSTEM.JMS.ADMIN.QUEUE"
STATUS_QUEUE: Final = "SYSTEM.JMS.PS.STATUS.QUEUE"
REPORT_QUEUE: Final = "SYSTEM.JMS.REPORT.QUEUE"
NONDURABLE_PREFIX: Final = "SYSTEM.JMS.ND."
DURABLE_PREFIX: Final = "SYSTEM.JMS.D."
SHARED_QUEUES: Final = frozenset(
    f"SYSTEM.JMS.{kind}{connection}SUBSCRIBER.QUEUE" for kind in ("D.", "ND.") for connection in ("", "CC.")
)
"""Those that subscribers share: CC for connection consumers."""

RECORD_QUEUES: Final = (ADMIN_QUEUE, STATUS_QUEUE)
"""Where SUBSTORE(QUEUE) keeps what it knows of subscriptions and subscribers."""


def is_for_nondurable(queue: str) -> bool:
    """Whether *queue* is one of subscribers that end with their program."""
    return queue.startswith(NONDURABLE_PREFIX)


def is_for_durable(queue: str) -> bool:
    """Whether *queue* is one of subscriptions that outlive their program."""
    return queue.startswith(DURABLE_PREFIX)
