"""The columns of the tables that a capture becomes."""

from __future__ import annotations

from commands.replay.columns import TABLES
from extension.markdown import NOTHING, Table, code


def table(name: str) -> Table:
    """The columns of one of ``commands.replay.columns.TABLES``."""
    rows = tuple((code(each.name), code(each.type), each.about, each.null or NOTHING) for each in TABLES[name])
    return Table(("column", "type", "what it is", "null"), rows)
