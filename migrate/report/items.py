"""Every item of a migration with its fate, as CSV: one row each, for a spreadsheet or a script."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

COLUMNS: Final = ("kind", "number", "item", "source", "result", "becomes", "severity", "reasons", "ids")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def items_csv(facts: dict[str, Any]) -> str:
    """The rows of *facts*, with a head. Text that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for fate in facts["fates"]:
        reasons = fate["reasons"]
        severities = [reason["severity"] for reason in reasons]
        worst = next((word for word in ("error", "warning", "info") if word in severities), "")
        ids = sorted({known for reason in reasons for known in reason["ids"]})
        texts = "; ".join(reason["text"] for reason in reasons)
        row = (fate["label"], fate["source"], fate["verdict"], fate["becomes"], worst, texts, " ".join(ids))
        writer.writerow([fate["kind"], fate["number"], *map(harmless, row)])
    return text.getvalue()


def harmless(text: str) -> str:
    """*text* that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
