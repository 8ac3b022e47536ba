"""Text from messages as a person may see it: what programs wrote must not drive a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    """*text* in one line, with what no terminal should see escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
