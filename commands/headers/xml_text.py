"""Characters that XML allows: all except most control characters, which MQRFH and PCF strings may hold."""

from __future__ import annotations

import re
from typing import Final

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def has_room_for(text: str) -> bool:
    """Whether XML text can hold *text* as it is."""
    return _FORBIDDEN.search(text) is None


def in_xml(text: str) -> str:
    """*text* with U+FFFD for each character that XML cannot hold."""
    return _FORBIDDEN.sub(_REPLACEMENT, text)
