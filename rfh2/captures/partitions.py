"""Directories named ``column=value``, as Hive and Spark lay out a table: what they say of the messages in them.

A table that was written with ``partitionBy("qmgr")`` has no column ``qmgr`` in its files. Without the directory's name,
the messages of all queue managers would be those of one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rfh2.captures.compressed import UnreadableDataError

TAKEN: Final = ("qmgr", "queue", "user")
"""The fields of a captured message that a directory can give."""
_REFUSED: Final = ("seq", "time", "md", "body", "md_hex", "body_hex")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: Path) -> dict[str, str]:
    """The fields that the directories of *path* give to messages which have none of their own; others are ignored.

    The deepest directory decides. Raises UnreadableDataError for a field that a directory cannot give: a time there has
    no zone.
    """
    values: dict[str, str] = {}
    for name in path.absolute().parent.parts:
        column, equals, value = name.partition("=")
        column = column.lower()
        if equals and column in _REFUSED:
            raise UnreadableDataError(
                f"it is in the directory {name}, and {column} is read from files only: write the capture again without "
                f"partitions by {column}"
            )
        if equals and column in TAKEN:
            values[column] = "" if value == _NULL else unquote(value)
    return {column: value for column, value in values.items() if value}
