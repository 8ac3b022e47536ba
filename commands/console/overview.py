"""The first page, and that of links: what ``qpubsub status`` prints, with rates."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from commands.broker.context import not_read
from commands.console.source import LENGTHS_S, MOST_PERIODS, ROWS, History, Query, State, pager
from commands.pages import Series, spelt, timeline
from commands.running.journal import where_it_works
from commands.running.status import status_of
from rfh2.constants import reason_text
from streams.mapping import collisions, stream_topic
from streams.topic_objects import DEFAULT_SUB_POINT, QUEUE_NAMELIST, SUB_POINT_NAMELIST

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
        "periods": periods_of(state.history, 5, _PLOTTED),
    }


def in_short(state: State) -> dict[str, Any]:
    """A row of the list of queue managers."""
    status = status_of(state.store, state.now)
    return {
        "running": status["processor"]["running"],
        "subscriptions": status["subscriptions"],
        "messages": sum(row["depth"] for row in status["queues"].values()),
        "waiting": status["input"]["waiting"],
        "dead_letters": status["dead_letters"]["looked_into"],
    }


def _reason(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "text": "" if row["reason"] is None else reason_text(row["reason"])}


def links(state: State, _query: Query) -> dict[str, Any]:
    """The link to a topic tree, neighbours, and what is undelivered: a queue refuses them."""
    status = status_of(state.store, state.now)
    processor = status["processor"]
    return {
        "link": processor.get("link"),
        "processor": processor,
        "owed": status["owed"],
        "neighbours": status["neighbours"],
    }


def periods_of(history: History, length_s: int, plotted: tuple[tuple[str, Series], ...]) -> list[dict[str, Any]]:
    """The same as numbers."""
    names = tuple(name for name, _ in plotted)
    found = sorted(history.periods(length_s, names).items())
    return [{"start": start, **dict(zip(names, numbers, strict=True))} for start, numbers in found]


def plot(history: History, length_s: int, plotted: tuple[tuple[str, Series], ...]) -> Markup:
    """Lanes of the history as HTML; "" where nothing happened yet."""
    periods = history.periods(length_s, tuple(name for name, _ in plotted))
    return timeline([series for _, series in plotted], periods, length_s)


# The page of flow: what went through the queue manager, over time.

_ALL_LANES: Final = (
    ("commands", Series("commands processed", "blue")),
    ("published", Series("publications on topics", "violet")),
    ("delivered", Series("publications delivered", "green")),
    ("filtered", Series("not selected by filters", "amber")),
    ("responses", Series("responses", "blue")),
    ("errors", Series("commands in error", "red")),
    ("dead_letters", Series("dead letters", "red")),
    ("puts", Series("messages put on queues", "violet")),
    ("gets", Series("messages removed from queues", "green")),
    ("depth", Series("messages on queues, at most", "amber")),
)


def flow(state: State, query: Query) -> dict[str, Any]:
    """All lanes, in periods of the length that is asked for."""
    asked = query.number("length", LENGTHS_S[0])
    length_s = asked if asked in LENGTHS_S else LENGTHS_S[0]
    return {
        "plot": plot(state.history, length_s, _ALL_LANES),
        "periods": periods_of(state.history, length_s, _ALL_LANES),
        "length": length_s,
        "lengths": [(each, spelt(each), spelt(each * MOST_PERIODS)) for each in LENGTHS_S],
    }


# Errors of commands: by reason and program, and the last ones as they were logged.

_ERROR_SORTS: Final = ("count", "reason", "program", "last")


def errors(state: State, query: Query) -> dict[str, Any]:
    """The table of causes since the processor was started, and the last errors."""
    status = where_it_works(state.store.database)["status"]
    wanted = query.wanted(_ERROR_SORTS, "-count")
    search = wanted.search.lower()
    causes = [{**cause, "text": reason_text(cause["reason"])} for cause in status.get("errors_by_program") or []]
    found = [cause for cause in causes if search in f"{cause['reason']} {cause['text']} {cause['program']}".lower()]
    found.sort(key=lambda cause: cause[wanted.sort], reverse=wanted.descending)
    shown = found[wanted.first : wanted.first + ROWS]
    return {
        "rows": shown,
        "pager": pager(wanted, len(found), len(shown)),
        "last": list(reversed(status.get("last_errors") or [])),
        "since": status.get("started"),
    }


# Streams and subscription points: where their topics are, whether their queues are read, and what collides.


def streams(state: State, _query: Query) -> dict[str, Any]:
    """Both namelists, with the topic object of each name."""
    with state.store.one_moment():
        objects = state.store.overview().objects
        queues = status_of(state.store, state.now)["queues"]
    namelists = objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST)
    stream_list, point_list = namelists
    shown = []
    for name in stream_list.names if stream_list is not None else ():
        place, topic_object = stream_topic(name, objects.topics), objects.topics.get(name)
        depth = queues[name]["depth"] if name in queues else None
        shown.append({"name": name, "prefix": place.prefix, "object": topic_object, "depth": depth})
    points = []
    for name in point_list.names if point_list is not None else ():
        topic_object = objects.topics.get(name)
        prefix = "" if name == DEFAULT_SUB_POINT or topic_object is None else topic_object.topic_string
        points.append({"name": name, "prefix": prefix, "object": topic_object})
    unread = [{"name": name, "why": not_read(name)} for name, row in queues.items() if row["not_read"]]
    findings = [finding.text for finding in collisions(*namelists, objects.topics)]
    return {"streams": shown, "points": points, "unread": unread, "findings": findings}
