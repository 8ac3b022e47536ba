"""Values of a report as text."""

from __future__ import annotations

from datetime import datetime

from rfh2.constants import REASON_NAMES


def cell_text(value: str | int | datetime | None, name: str = "") -> str:
    """A value for people. name: of its column; a reason code is followed by its name."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, str):
        return value
    if name == "reason":
        return f"{value} {REASON_NAMES.get(value, '')}".rstrip()
    if name == "first_seq":
        return "setup" if value < 0 else str(value)
    return f"{value:,}"


def cut(text: str, width: int) -> str:
    """*text*; if it is wider, its middle is cut, because the end of a topic matters as much as its beginning."""
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[-end:]}"
