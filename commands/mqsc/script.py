"""A script's lines, put together to commands: MQSC's text rules, before any grammar.

- A command starts on a new line and ends with it, unless the last character that is no blank is ``+`` or ``-``: then it
  goes on with the next line that is neither blank nor a comment, after ``+`` from its first non-blank character, after
  ``-`` from its first column. That holds inside quotes too, so a break may fall anywhere.
- ``;`` outside quotes ends a command as well.
- A line whose first non-blank character is ``*`` is a comment. Between the lines of one command the ``*`` must stand in
  the first column: further right it is a value, as in ``DISPLAY TOPIC( +`` / ``  *)``.
- ``END``, ``EXIT`` or ``QUIT`` alone ends the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_LAST_WORDS: Final = frozenset({"END", "EXIT", "QUIT"})
_BLANKS: Final = " \t"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """One command as it was written and as it reads once joined.

    line: the number of its first line, from 1. source: its lines, unchanged. text: the command, continuations joined.
    unfinished: the script ended where a continuation was announced.
    """

    line: int
    source: tuple[str, ...]
    text: str
    unfinished: bool = False


def lines_of(text: str) -> Iterable[str]:
    """The lines of a script, whatever they end with."""
    return _LINE_END.split(text.removeprefix("\ufeff"))


def split_script(lines: Iterable[str]) -> Iterator[ScriptCommand]:
    """The commands of a script, in order, up to its end or to END; each as soon as its last line is there."""
    for command in _joined(lines):
        if command.text.strip().upper() in _LAST_WORDS:
            return
        yield command


def _joined(lines: Iterable[str]) -> Iterator[ScriptCommand]:
    start, source, joined, mark = 0, list[str](), "", ""
    for number, ended in enumerate(lines, 1):
        raw = ended.rstrip("\r\n")
        line = raw.rstrip()
        if not line or line.startswith("*") or (not mark and line.lstrip(_BLANKS).startswith("*")):
            continue
        if not mark:
            start, source, joined = number, [], ""
        source.append(raw)
        content = line.lstrip(_BLANKS) if mark == "+" else line
        mark = content[-1:] if content[-1:] in {"+", "-"} else ""
        joined += content[:-1] if mark else content
        if not mark:
            yield from _split_at_semicolons(start, tuple(source), joined)
    if mark:
        yield ScriptCommand(start, tuple(source), joined, unfinished=True)


def _split_at_semicolons(line: int, source: tuple[str, ...], text: str) -> Iterator[ScriptCommand]:
    begin, quote = 0, ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ";":
            if text[begin:position].strip():
                yield ScriptCommand(line, source if not begin else (text[begin:position],), text[begin:position])
            begin = position + 1
    if text[begin:].strip():
        yield ScriptCommand(line, source if not begin else (text[begin:],), text[begin:])
