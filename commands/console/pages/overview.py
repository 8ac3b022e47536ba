"""The first page, and that of links: what ``qpubsub status`` prints, with rates."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from commands.console.pages.query import Query
from commands.console.reading.history import History
from commands.console.reading.source import State
from commands.pages import Series, timeline
from commands.running.status import status_of
from rfh2.explain.reasons import reason_text

_PLOTTED: Final = (
    ("commands", Series("commands", "blue")),
    ("delivered", Series("delivered", "green")),
    ("errors", Series("errors", "red")),
)
_FEW: Final = 8


def overview(state: State, _query: Query) -> dict[str, Any]:
    """The state of the queue manager in figures, its queues that hold most, and what went wrong last."""
    status = status_of(state.store, state.now)
    queues = sorted(status["queues"].items(), key=lambda item: (-item[1]["depth"], item[0]))
    return {
        "status": status,
        "processor": status["processor"],
        "queues": [(name, row) for name, row in queues if row["depth"]][:_FEW],
        "reasons": [_reason(row) for row in status["dead_letters"]["reasons"][:_FEW]],
        "plot": plot(state.history, 5, _PLOTTED),
    }


def _reason(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "text": "" if row["reason"] is None else reason_text(row["reason"])}


def links(state: State, _query: Query) -> dict[str, Any]:
    """The link to a topic tree, neighbours, and what is owed to queues that refuse."""
    status = status_of(state.store, state.now)
    processor = status["processor"]
    return {
        "link": processor.get("link"),
        "processor": processor,
        "owed": status["owed"],
        "neighbours": status["neighbours"],
    }


def plot(history: History, length_s: int, plotted: tuple[tuple[str, Series], ...]) -> Markup:
    """Lanes of the history as HTML; "" where nothing happened yet."""
    periods = history.periods(length_s, tuple(name for name, _ in plotted))
    return timeline([series for _, series in plotted], periods, length_s)
