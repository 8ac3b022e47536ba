"""Lines of a text source: decoded as well as they can be, with their numbers and what they are indented by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from migrate.legacy_state import Source, Unread

_LINE_END = re.compile(r"\r\n|\n|\r")
_TAB_COLUMNS = 8


class SourceLine(NamedTuple):
    """One line. number: from 1. text: without what surrounds it. indent: columns of white space before it."""

    number: int
    text: str
    indent: int


def decoded(data: bytes) -> str:
    """*data* as text: UTF-8, else UTF-16 by its mark, else Latin-1, which takes everything."""
    for charset in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def rows_of(text: str) -> list[str]:
    """All lines, blank ones too, as they are."""
    return _LINE_END.split(text)


def lines_of(text: str) -> Iterator[SourceLine]:
    """The lines that are not blank."""
    for number, raw in enumerate(rows_of(text), 1):
        stripped = raw.strip()
        if stripped:
            expanded = raw.expandtabs(_TAB_COLUMNS)
            yield SourceLine(number, stripped, len(expanded) - len(expanded.lstrip()))


def unread(file: str, number: int, text: str, why: str) -> Unread:
    """What a reader says of a line that it did not understand."""
    return Unread(source=Source(file=file, position=number), text=text, why=why)
