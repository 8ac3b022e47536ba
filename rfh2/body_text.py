"""The data behind the headers as text, where it is text."""

from __future__ import annotations

import re
from typing import Final

from rfh2.constants import MQFMT_STRING
from rfh2.message import Message

# Text may hold tabs and line ends. Data that holds other control characters is not text unless its Format says so.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def body_text(message: Message) -> str | None:
    """The body as text; None where it does not fit its CCSID, or holds control characters and no Format calls it text.

    Nulls at its end are left out.
    """
    text = message.body_text
    if text is None or (message.body_format != MQFMT_STRING and _CONTROL.search(text)):
        return None
    return text
