"""Whether a value that is wanted is the one that a queue manager shows, whatever its way of showing it."""

from __future__ import annotations

from typing import Final

from commands.broker.attribute_kinds import Choice, Number, Shown
from commands.mqsc.attributes import QALIAS, QMGR, SUB, TOPIC
from migrate.live.administrator import Row
from migrate.live.snapshot import names, text, word

_HEXADECIMAL: Final = frozenset({"DESTCORL", "PUBACCT"})
_LISTS: Final = frozenset({"NAMES", "AUTHLIST"})
_UNLIMITED: Final = "UNLIMITED"
# Their values are words of MQSC, which a queue manager may print in small letters.
_WORDS: Final = frozenset(
    attribute.keyword
    for kind in (SUB, TOPIC, QALIAS, QMGR)
    for attribute in kind.attributes
    if isinstance(attribute.kind, Choice | Number) and attribute.kind.meanings
)


def is_alike(keyword: str, wanted: Shown, row: Row) -> bool:
    """Whether *row* shows *wanted* for *keyword*. EXPIRY counts down: it is compared as limited or unlimited."""
    if keyword in _LISTS:
        listed = wanted if isinstance(wanted, tuple) else (str(wanted),)
        return {name.rstrip(" ") for name in listed if name.strip(" ")} == set(names(row, keyword))
    if keyword in _HEXADECIMAL:
        # Bytes that are not given are zeros.
        return str(wanted).upper().rstrip("0") == text(row, keyword).upper().rstrip("0")
    if keyword == "EXPIRY":
        return (str(wanted).upper() == _UNLIMITED) == (word(row, keyword) == _UNLIMITED)
    one, other = str(wanted).rstrip(" "), text(row, keyword)
    return one == other or (keyword in _WORDS and one.upper() == other.upper())
