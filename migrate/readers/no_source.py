"""Listings that administrators collect with the sources and that have no state: named for what they are.

    WebSphere MQ broker for queue manager QM1 running.        dspmqbrk
    BIP1286I: Broker 'B' on queue manager 'QM1' is running.   mqsilist
    AMQ8409: Display Queue details.                           runmqsc, DISPLAY

Each is one item that is no state, with what to give instead. A text of no kind at all is a piece that was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from migrate.legacy_state import Item, Source, Unread
from migrate.readers.text import lines_of

_LISTINGS: Final = (
    (
        re.compile(r"(AMQ58\d\d\w?:)?.*\bbroker (for|on) queue manager \S+ .*(running|active|ended|stopped)\b", re.I),
        "output of dspmqbrk: it says whether the broker runs, and has no state of it",
    ),
    (
        re.compile(r"BIP(8099|12\d\d|13\d\d)\w?:|-{5,}$|BIP8071"),
        "output of mqsilist: it names brokers, and has no state of them; mqsireportproperties has",
    ),
    (
        re.compile(r"AMQ8(4\d\d|864|5\d\d)\w?: *Display|\d+ : DISPLAY |\d+ : DIS ", re.I),
        "output of DISPLAY in runmqsc: give the script of dmpmqcfg -a or saveqmgr as --existing",
    ),
)  # fmt: skip
_RUNMQSC: Final = re.compile(r"\s*[A-Z]+\(.*\)|5724-\w+|Starting MQSC|\d+ MQSC commands|No commands|All valid|One ")


def looks_like(text: str) -> bool:
    """Whether *text* is one of these listings."""
    return _why(text) is not None


def read(text: str, file: str) -> Iterator[Item]:
    """One item that says what it is."""
    first = next(lines_of(text))
    yield Unread(
        source=Source(file=file, position=first.number),
        text=first.text,
        why=_why(text) or "it is not a source",
        is_state=False,
        warns=True,
    )


def _why(text: str) -> str | None:
    """What the listing is; None unless each line is of it, or of runmqsc that printed it."""
    rows = [line.text for line in lines_of(text)]
    for pattern, why in _LISTINGS:
        if any(pattern.match(row) for row in rows[:20]) and all(
            pattern.match(row) or _RUNMQSC.match(row) for row in rows
        ):
            return why
    return None
