"""The page of flow: what went through the queue manager, over time."""

from __future__ import annotations

from typing import Any, Final

from commands.console.pages.overview import plot
from commands.console.pages.query import Query
from commands.console.reading.history import LENGTHS_S, MOST_PERIODS
from commands.console.reading.source import State
from commands.pages import Series
from commands.pages.timeline import spelt

_PLOTTED: Final = (
    ("commands", Series("commands processed", "blue")),
    ("published", Series("publications on topics", "violet")),
    ("delivered", Series("publications delivered", "green")),
    ("filtered", Series("kept away by filters", "amber")),
    ("responses", Series("responses", "blue")),
    ("errors", Series("commands in error", "red")),
    ("dead_letters", Series("dead letters", "red")),
    ("puts", Series("messages put on queues", "violet")),
    ("gets", Series("messages got from queues", "green")),
    ("depth", Series("messages on queues, at most", "amber")),
)


def flow(state: State, query: Query) -> dict[str, Any]:
    """All lanes, in periods of the length that is asked for."""
    asked = query.number("length", LENGTHS_S[0])
    length_s = asked if asked in LENGTHS_S else LENGTHS_S[0]
    return {
        "plot": plot(state.history, length_s, _PLOTTED),
        "length": length_s,
        "lengths": [(each, spelt(each), spelt(each * MOST_PERIODS)) for each in LENGTHS_S],
    }
