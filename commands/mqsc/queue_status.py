"""DISPLAY QSTATUS: local queues, how deep they are, and when a message was last put on them and got from them.

TYPE(HANDLE) finds nothing: a put or a get is one step here, and no program keeps a queue open.
"""

from __future__ import annotations

from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.counts import QueueCounts
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed
from commands.mqsc.display import matches_name, select
from commands.mqsc.model import Command
from commands.mqsc.values import shown_moment, word_of

_MOST_S: Final = 999_999_999
_MONITORED: Final = frozenset(["LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME", "MSGAGE"])
_KNOWN: Final = frozenset(["QUEUE", "TYPE", "CURDEPTH", "IPPROCS", "OPPROCS", "UNCOM", "MONQ"])
_BLANK: Final = frozenset(["CURFSIZE", "CURMAXFS", "MEDIALOG", "QTIME"])
_PASSED_OVER: Final = frozenset({"TYPE", "OPENTYPE", "MONITOR"})
_NOTHING: Final = QueueCounts()


def display(command: Command, administration: Administration) -> Answer:
    """DISPLAY QSTATUS by name or generic name. Raises MqscError AMQ8147 where there is no such local queue."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    kind = command.keyword("TYPE")
    names = [name for name in sorted(administration.objects.queues) if matches_name(pattern, name)]
    if kind is not None and word_of(kind, "QUEUE", "HANDLE") == "HANDLE":
        raise answers.not_found(pattern)
    counters = administration.queues.counters
    counted = {} if counters is None else counters.queues()
    rows = [_row(name, administration, counted.get(name, _NOTHING)) for name in names]
    found = select(
        command,
        rows,
        ("QUEUE", "TYPE"),
        known=_KNOWN if counters is None else _KNOWN | _MONITORED,
        without_effect=_BLANK | _MONITORED if counters is None else _BLANK,
        passed_over=_PASSED_OVER,
        brief=False,
    )
    return displayed(answers.QSTATUS_DISPLAY, found)


def _row(name: str, administration: Administration, counts: QueueCounts) -> dict[str, Shown]:
    depth, counters = administration.queues.depth(name), administration.queues.counters
    row: dict[str, Shown] = {"QUEUE": name, "TYPE": "QUEUE", "CURDEPTH": depth, "IPPROCS": 0, "OPPROCS": 0}
    # The caller has a unit of work open, and there is only one at a time.
    row |= {"UNCOM": "NO", "MONQ": "OFF" if counters is None else "HIGH"}
    if counters is not None:
        oldest = counters.oldest(name) if depth else None
        age_s = 0 if oldest is None else int((administration.now - oldest).total_seconds())
        row |= shown_moment("LPUTDATE", "LPUTTIME", counts.last_put)
        row |= shown_moment("LGETDATE", "LGETTIME", counts.last_get) | {"MSGAGE": min(max(age_s, 0), _MOST_S)}
    return row
