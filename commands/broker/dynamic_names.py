"""Names that queue managers give to dynamic queues: the prefix that a program asks for, then what makes it unique.

AMQ.4D3F1A2B20000105            AMQ.*, the default of MQOD.DynamicQName
AMQSPSDA.4D3F1A2B20000105       the same with the program's own prefix
"""

from __future__ import annotations

import re
from typing import Final

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
