"""What names of queues say: whether it is one of IBM MQ classes for JMS, and whether a queue manager made it up.

In publish/subscribe (MQJMS_PSQ.mqsc) a subscriber of JMS has its own queue (a dynamic one, or one that an administrator
defined), or shares one with others. Those that share a queue find their messages by CorrelId.
"""

from __future__ import annotations

import re
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


# Names that queue managers give to dynamic queues: the prefix that a program asks for, then what makes it unique.
#
# AMQ.4D3F1A2B20000105            AMQ.*, the default of MQOD.DynamicQName
# AMQSPSDA.4D3F1A2B20000105       the same with the program's own prefix

_DEFAULT_PREFIX: Final = "AMQ."
# IBM MQ replaces the asterisk with this.
_UNIQUE_PART: Final = re.compile("[0-9A-F]{16}")
_UNIQUE_LENGTH: Final = 16


def is_dynamic_name(queue: str) -> bool:
    """Whether *queue* looks like the name of a dynamic queue, whatever prefix the program gave."""
    return queue.startswith(_DEFAULT_PREFIX) or has_unique_part(queue)


def has_unique_part(queue: str) -> bool:
    """Whether *queue* ends with what a queue manager puts in the place of the asterisk."""
    return _UNIQUE_PART.fullmatch(queue[-_UNIQUE_LENGTH:]) is not None
