"""Every item of a migration with its fate, as CSV: one row each, for a spreadsheet or a script."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any, Final

COLUMNS: Final = ("kind", "number", "item", "source", "result", "becomes", "severity", "reasons", "ids")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def items_csv(facts: dict[str, Any]) -> Iterator[str]:
    """The rows of *facts*, with a head. Text that a spreadsheet would take for a formula begins with an apostrophe."""
    row = _Row()
    yield row.text(COLUMNS)
    for fate in facts["fates"]:
        reasons = fate["reasons"]
        severities = [reason["severity"] for reason in reasons]
        worst = next((word for word in ("error", "warning", "info") if word in severities), "")
        ids = sorted({known for reason in reasons for known in reason["ids"]})
        texts = "; ".join(reason["text"] for reason in reasons)
        cells = (fate["label"], fate["source"], fate["verdict"], fate["becomes"], worst, texts, " ".join(ids))
        yield row.text([fate["kind"], fate["number"], *map(harmless, cells)])


class _Row:
    """Gives the text of one row after the other."""

    def __init__(self) -> None:
        self._text = ""
        self._writer = csv.writer(self)

    def write(self, text: str) -> None:
        """What the writer calls."""
        self._text = text

    def text(self, cells: Any) -> str:
        """The row with its line end."""
        self._writer.writerow(cells)
        return self._text


def harmless(text: str) -> str:
    """*text* that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
