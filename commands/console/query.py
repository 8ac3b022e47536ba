"""What a browser asks of a page, read with limits; and what a page says that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commands.qmgr.store.listing import Wanted
from rfh2.errors import QPubSubError

ROWS: Final = 100
"""Rows of one page of a list."""

# A topic string may have so many characters (guide: 10,240).
_LONGEST: Final = 10_240
_MOST_ROWS: Final = 10_000_000


class NotThereError(QPubSubError):
    """What a page is about does not exist. what: a sentence."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Query:
    """The values of an address or a form. Each is text; where one is no number or is too long, its default is taken."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = values or {}

    def has(self, name: str) -> bool:
        """Whether it is given, empty or not."""
        return name in self._values

    def text(self, name: str, most: int = _LONGEST) -> str:
        """The text, "" where it is not given, at most *most* characters."""
        return self._values.get(name, "")[:most]

    def optional(self, name: str) -> str | None:
        """The text; None where it is not given or empty."""
        return self.text(name) or None

    def number(self, name: str, default: int = 0, most: int = _MOST_ROWS) -> int:
        """A number from 0 to *most*."""
        text = self._values.get(name, "")
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) < 20 else default

    def wanted(self, sorts: tuple[str, ...], default: str) -> Wanted:
        """The page of a list. sorts: the columns that it can be sorted by; "-" before one is descending."""
        asked = self.text("sort") or default
        column = asked.removeprefix("-")
        sort = asked if column in sorts else default
        return Wanted(
            self.text("q"), sort.removeprefix("-"), sort.startswith("-"), self.number("first") // ROWS * ROWS, ROWS
        )


def pager(wanted: Wanted, count: int, shown: int) -> dict[str, int | str | None]:
    """What the template of a list needs to lead to the other pages."""
    return {
        "first": wanted.first,
        "last": wanted.first + shown,
        "count": count,
        "before": wanted.first - ROWS if wanted.first else None,
        "behind": wanted.first + ROWS if wanted.first + shown < count else None,
        "sort": f"-{wanted.sort}" if wanted.descending else wanted.sort,
        "q": wanted.search,
    }
