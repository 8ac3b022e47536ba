"""Numbers in sentences: ``1 message``, ``1,204 messages``."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """*count* with its noun, thousands apart. plural: where that is not *noun* with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
