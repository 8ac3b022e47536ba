"""DISPLAY's selection: generic names, WHERE, and which attributes are shown.

Without attributes, one object by its full name shows all of them, a generic name only what each object is called; WHERE
adds its own keyword. Comparisons are of numbers where both sides are numbers, else of text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from commands.broker.attribute_kinds import Shown
from commands.mqsc.answers import not_found
from commands.mqsc.model import Command, Condition, Keyword, MqscError
from commands.mqsc.script import syntax_error

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "LT": lt,
    "GT": gt,
    "EQ": eq,
    "NE": ne,
    "LE": le,
    "GE": ge,
}
# ALL asks for everything; the others choose a command's scope where there is only one, and change nothing here.
PASSED_OVER: Final = frozenset({"ALL", "CMDSCOPE", "QSGDISP", "CLUSINFO"})

Row = Mapping[str, Shown]


def is_generic(name: str) -> bool:
    """Whether a name stands for all that begin like it: it ends in ``*``."""
    return name.endswith("*")


def matches_name(pattern: str, name: str) -> bool:
    """Whether *name* is what a full or generic name means."""
    return name.startswith(pattern[:-1]) if is_generic(pattern) else name == pattern


def select(
    command: Command,
    rows: Iterable[Row],
    identity: Sequence[str],
    *,
    known: frozenset[str],
    without_effect: frozenset[str] = frozenset(),
    passed_over: frozenset[str] = frozenset(),
    brief: bool | None = None,
    missing: Callable[[str], MqscError] = not_found,
) -> Iterator[dict[str, Shown]]:
    """The rows that DISPLAY shows, each with the attributes that it shows; one at least.

    rows: all attributes of each candidate, in order of showing; the name has been looked at. identity: keywords shown
    first and always. known: every keyword that a row may have; without_effect: those of MQ that are shown blank.
    passed_over: keywords that the caller has dealt with. brief: whether no attributes means the identity alone; None
    decides by the name. missing: makes the error for the name where nothing is left. Raises MqscError: that one (by
    default AMQ8147); AMQ8405 for an attribute that there is not.
    """
    wanted = list(_wanted(command, known, without_effect, passed_over))
    named = command.name.text if command.name else ""
    everything = command.keyword("ALL") is not None
    if not wanted and not everything:
        everything = not (is_generic(named) if brief is None else brief)
    if command.where is not None:
        _check_condition(command, command.where, known | without_effect)
        wanted.append(command.where.keyword)
    where = command.where

    def found() -> Iterator[dict[str, Shown]]:
        for row in rows:
            if where is not None and not _holds(where, row.get(where.keyword, "")):
                continue
            keys = dict.fromkeys((*identity, *(row if everything else ()), *wanted))
            yield {key: row.get(key, "") for key in keys if key in row or key in without_effect}

    shown = found()
    first = next(shown, None)
    if first is None:
        raise missing(named)
    return chain([first], shown)


def _wanted(
    command: Command, known: frozenset[str], without_effect: frozenset[str], passed_over: frozenset[str]
) -> Iterator[str]:
    for keyword in command.keywords:
        if keyword.name in passed_over or keyword.name in PASSED_OVER:
            continue
        if keyword.values is not None or keyword.name not in known | without_effect:
            raise _no_such_attribute(command, keyword, known)
        yield keyword.name


def _no_such_attribute(command: Command, keyword: Keyword, known: frozenset[str]) -> MqscError:
    name = f"({command.name.text})" if command.name else ""
    segment = f"{command.verb} {command.target}{name} {keyword.name}"
    return syntax_error(segment, f"DISPLAY {command.target} shows: {' '.join(sorted(known))}")


def _check_condition(command: Command, condition: Condition, known: frozenset[str]) -> None:
    if condition.keyword not in known:
        raise _no_such_attribute(command, Keyword(condition.keyword, None), known)
    if len(condition.values) != 1:
        why = f"WHERE({condition.keyword} {condition.operator} ...) takes one value."
        raise MqscError("AMQ8569", "Error in filter specification.", (why,))


def _holds(condition: Condition, value: Shown) -> bool:
    wanted = condition.values[0].text
    operator = condition.operator
    if operator in ("CT", "EX", "CTG", "EXG"):
        items = value if isinstance(value, tuple) else str(value).split(",")
        contained = any(matches_name(wanted, item) if operator.endswith("G") else item == wanted for item in items)
        return contained == operator.startswith("CT")
    if operator in ("LK", "NL"):
        return matches_name(wanted, _text(value)) == (operator == "LK")
    compare = _COMPARISONS[operator]
    if isinstance(value, int):
        # A number is never less or greater than a word such as ASPARENT.
        return compare(value, int(wanted)) if _is_number(wanted) else operator == "NE"
    if _is_number(wanted) and operator not in ("EQ", "NE") and value in ("", "ASPARENT", "UNLIMITED"):
        return False
    return compare(_text(value), wanted.rstrip(" "))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None


def _text(value: Shown) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
