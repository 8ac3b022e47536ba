"""MQSC text for any values (migration sources, 9.1).

Every value is in quotes, and quotes in it are doubled. A line has at most ``MAX_LINE`` characters. A longer value
continues on the next line after a ``-``, so that its blanks are kept. MQSC cannot express a value with a line end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rfh2.terminal_escape import drives_terminal

# runmqsc reads lines of 2048 characters; other tools that scripts are passed through may not.
MAX_LINE: Final = 1000
MAX_COMMAND: Final = 32_762

Attribute = tuple[str, str | int]


class NoMqscFormError(Exception):
    """A value that MQSC has no form for; the caller says so where the command would stand."""


def quoted(value: str) -> str:
    """*value* in quotes. Raises NoMqscFormError where it holds a control character, or ends in a blank.

    Characters that turn the direction of writing round count as such: scripts are read and printed by people.
    """
    if value.endswith(" "):
        raise NoMqscFormError("a value ends in a blank, which MQSC takes for padding; use PCF")
    if "\t" in value or drives_terminal(value):
        raise NoMqscFormError("a value holds control characters, for which MQSC has no form; use PCF")
    return "'" + value.replace("'", "''") + "'"


def keyword(name: str, value: str | int) -> str:
    """``NAME('value')``; numbers, and words that MQSC itself defines, go without quotes: give those as ``Word``."""
    return f"{name}({value if isinstance(value, int | Word) else quoted(value)})"


class Word(str):
    """A value that is a word of MQSC's."""

    __slots__ = ()


def statement(head: str, attributes: Iterable[Attribute]) -> list[str]:
    """One command, an attribute a line, as it is written in a script.

    Raises NoMqscFormError where MQSC cannot say it.
    """
    parts = [head, *(keyword(name, value) for name, value in attributes)]
    if sum(len(part) + 1 for part in parts) > MAX_COMMAND:
        raise NoMqscFormError(f"the command would be longer than {MAX_COMMAND} characters; use PCF")
    lines = [f"  {part}" if at else part for at, part in enumerate(parts)]
    whole = [f"{line} +" for line in lines[:-1]] + lines[-1:]
    return [piece for line in whole for piece in _broken(line)]


def _broken(line: str) -> Iterator[str]:
    at = 0
    while len(line) - at > MAX_LINE:
        end = at + MAX_LINE - 1
        # A line that begins with * is a comment, and one of blanks is skipped: no line may begin so.
        while end > at and line[end] in "* ":
            end -= 1
        if end == at:
            raise NoMqscFormError("a value holds too many blanks or asterisks in a row; use PCF")
        yield line[at:end] + "-"
        at = end
    yield line[at:]


def comment(text: str) -> str:
    """A comment line; line ends in *text* are escaped."""
    return "* " + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
