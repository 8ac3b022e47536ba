"""Text of the code as Markdown: what has a meaning there is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SPECIAL = re.compile(r"([\\`*_<>\[\]{}#$~^])")
# An option or a name of IBM's is shown as what somebody types; the rest of a sentence is text.
_TYPED = re.compile(r"((?<![\w-])--[a-z][a-z0-9-]*(?![\w-])|\b(?:SYSTEM|QPUBSUB)\.[A-Z.]+[A-Z]\b)")


def escape(text: str) -> str:
    """*text* so that Markdown shows it as it is; options and names of queues as code."""
    parts = _TYPED.split(text)
    return "".join(f"`{part}`" if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def code(text: str) -> str:
    """*text* as code within a line, backticks and all; nothing for nothing."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


NOTHING = "\N{EN DASH}"
"""What a cell shows that has nothing to show."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the cells are Markdown already, but for the bar that would end one."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """The lines of the table."""
        return [_row(self.header), _row("---" for _ in self.header), *(_row(row) for row in self.rows)]


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
