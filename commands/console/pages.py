"""The pages of the console: their paths, templates, and the function from state and query to a template's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from commands.broker.connections import Order, programs
from commands.console import messages, overview, queues, topics
from commands.console.query import ROWS, NotThereError, Query, pager
from commands.console.queues import Download
from commands.console.source import State
from commands.mqsc.export import exported
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listeners import AskedListeners
from commands.running.mqsc_scripts import apply_script

# The programs that are connected by a listener, and the form that ends one.

_CONNECTION_SORTS: Final = ("address", "channel", "user", "application", "since", "objects", "puts", "gets")
_CONNECTION_TEXTS: Final = ("address", "channel", "user", "asserted", "application")


def connections(state: State, query: Query) -> dict[str, Any]:
    """A page of the list."""
    reports = AskedListeners(state.store.database).reports()
    wanted = query.wanted(_CONNECTION_SORTS, "since")
    search = wanted.search.lower()
    rows: list[dict[str, Any]] = [
        {"row": each, "port": instance.port, "objects": len(each.handles)}
        for report in reports
        for instance in report.instances
        for each in instance.programs
        if any(search in getattr(each, name).lower() for name in _CONNECTION_TEXTS)
    ]
    rows.sort(
        key=lambda row: row["objects"] if wanted.sort == "objects" else getattr(row["row"], wanted.sort),
        reverse=wanted.descending,
    )
    shown = rows[wanted.first : wanted.first + ROWS]
    listening = [str(place) for report in reports for place in report.places]
    return {"rows": shown, "pager": pager(wanted, len(rows), len(shown)), "listening": listening}


def end_program(state: State, query: Query) -> str:
    """End the program that the form names: what was done. Raises NotThereError."""
    listeners, wanted = AskedListeners(state.store.database), query.text("id", 48)
    found = next((each for each in programs(listeners.reports()) if each.id == wanted), None)
    if found is None:
        raise NotThereError("That program is not connected any more.")
    listeners.obey(Order(connection=found.id))
    return f"Program {found.application or found.short_id} of user {found.user} at {found.address} was ended."


# The definitions of the queue manager as MQSC: to look at and to keep, and a script to apply.

_LONGEST: Final = 1_000_000
_MOST_SAID: Final = 3


def definitions(state: State, _query: Query) -> dict[str, Any]:
    """The script."""
    return {"script": definitions_of(state.store, state.now)}


def download_definitions(state: State, _query: Query) -> Download:
    """The script as a file."""
    return Download(f"{state.store.name}.mqsc", definitions_of(state.store, state.now).encode())


def apply_definitions(state: State, query: Query) -> str:
    """Apply the script of the form, as ``qpubsub mqsc`` does; what came of it."""
    count, refused = apply_script(state.store, query.text("script", _LONGEST), state.groups_of)
    said = f"{count:,} command{'' if count == 1 else 's'} read, {len(refused):,} refused"
    which = "; ".join(f"line {line}: {why}" for line, why in refused[:_MOST_SAID])
    return f"{said}: {which}" if refused else f"{said}."


# The definitions of an embedded queue manager as an MQSC script, read without holding up its processor.


def definitions_of(store: QueueManagerStore, now: datetime) -> str:
    """The script: it makes the same objects in another queue manager. now: UTC, from which EXPIRY counts."""
    with store.one_moment():
        objects, subscriptions, _ = store.load_state()
    return "".join(f"{line}\n" for line in exported(objects, subscriptions, now))


@dataclass(frozen=True, slots=True)
class Page:
    """A page. read: what its template shows, by names. key: typed after ``g``, leads to it; "" for none.

    about: one sentence, for the help and for the API, which has the pages that have it. asks: its parameters. gives:
    what the API answers. slow: whether it may take seconds. live_s: seconds until its parts that change are shown
    again; 0 for never. takes: whether a form is sent to it, which changes nothing.
    """

    path: str
    title: str
    template: str
    read: Callable[[State, Query], dict[str, Any]]
    key: str = ""
    about: str = ""
    asks: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    slow: bool = False
    live_s: int = 0
    takes: bool = False


_LIST: Final = ("q", "sort", "first")
_ROWS: Final = ("rows", "pager")

PAGES: Final = (
    Page(
        "/",
        "Overview",
        "overview.html",
        overview.overview,
        "o",
        "What qpubsub status prints, and commands, deliveries and errors of the last 20 minutes.",
        gives=("status", "processor", "queues", "reasons", "periods"),
        live_s=5,
    ),
    Page(
        "/topics",
        "Topics",
        "topics.html",
        topics.topics,
        "t",
        "The topic tree, level by level, or with a search or a sort as a list.",
        ("under", "after", "list", *_LIST),
        (*_ROWS, "under", "nodes", "behind"),
        live_s=5,
    ),
    Page(
        "/subscriptions",
        "Subscriptions",
        "subscriptions.html",
        topics.subscriptions,
        "s",
        "Each subscription with its counters.",
        _LIST,
        _ROWS,
        live_s=10,
    ),
    Page(
        "/queues",
        "Queues",
        "queues.html",
        queues.queues,
        "q",
        "Depth, age of the oldest message, puts and gets of each queue.",
        _LIST,
        _ROWS,
        live_s=5,
    ),
    Page(
        "/connections",
        "Connections",
        "connections.html",
        connections,
        "n",
        "Programs that are connected to the listener.",
        _LIST,
        (*_ROWS, "listening"),
        live_s=5,
    ),
    Page(
        "/streams",
        "Streams",
        "streams.html",
        overview.streams,
        "r",
        "Streams and subscription points, where their topics begin, and what collides.",
        gives=("streams", "points", "unread", "findings"),
        live_s=10,
    ),
    Page(
        "/definitions",
        "Definitions",
        "definitions.html",
        definitions,
        "m",
        "The definitions of the queue manager as MQSC, to keep or to apply elsewhere.",
        gives=("script",),
        slow=True,
    ),
    Page(
        "/links",
        "Links",
        "links.html",
        overview.links,
        "l",
        "The link to a topic tree, neighbours, and publications that wait for delivery.",
        gives=("link", "processor", "owed", "neighbours"),
        live_s=5,
    ),
    Page(
        "/dead-letters",
        "Dead letters",
        "dead-letters.html",
        queues.dead_letters,
        "d",
        "Reason, destination and content of each dead letter.",
        ("after",),
        ("name", "rows", "depth", "behind", "reasons", "looked_into"),
        live_s=10,
    ),
    Page(
        "/errors",
        "Errors",
        "errors.html",
        overview.errors,
        "e",
        "Commands in error since the processor was started, by reason and program, and the last errors.",
        _LIST,
        (*_ROWS, "last", "since"),
        live_s=5,
    ),
    Page(
        "/flow",
        "Flow",
        "flow.html",
        overview.flow,
        "f",
        "Commands, publications, deliveries, errors, puts, gets and depth over time.",
        ("length",),
        ("periods", "length"),
        live_s=5,
    ),
    Page(
        "/decode",
        "Decode",
        "decode.html",
        messages.decoding,
        "c",
        "A message that you give, as qpubsub decode --explain shows it.",
        ("text", "format", "explain", "setup"),
        ("text", "explain", "setup", "messages", "more", "problem"),
        slow=True,
        takes=True,
    ),
    Page(
        "/why",
        "Why",
        "why.html",
        topics.why,
        "w",
        "Who would get a publication, and what keeps publications from a subscription.",
        ("ask", "publish", "data", "stream", "queue", "sub", "topic", "user"),
        ("asked", "default_stream", "kept_back", "delivered", "more", "problem", "is_asked"),
        slow=True,
    ),
    Page(
        "/time-travel",
        "Time travel",
        "time-travel.html",
        messages.time_travel,
        "i",
        "The broker before and after each message of a capture.",
        ("at", "seq", "where", "go"),
        ("has_capture", "of"),
        slow=True,
    ),
    Page("/help", "Help", "help.html", lambda _state, _query: {}),
    Page("/topics/level", "Topics", "level.html", topics.level),
    Page(
        "/topic",
        "Topic",
        "topic.html",
        topics.topic,
        about="Who subscribes to a topic string, and what it retains.",
        asks=("topic",),
        gives=("node", "subscribed", "kept_at", "message"),
        live_s=10,
    ),
    Page(
        "/subscription",
        "Subscription",
        "subscription.html",
        topics.subscription,
        about="All attributes of a subscription.",
        asks=("id",),
        gives=("known", "row", "attributes"),
        live_s=10,
    ),
    Page(
        "/queue",
        "Queue",
        "queue.html",
        queues.queue,
        about="The messages of a queue, in the order in which programs get them.",
        asks=("name", "after", "where"),
        gives=("name", "depth", "rows", "behind", "is_first", "where", "problem"),
        live_s=10,
    ),
    Page(
        "/message",
        "Message",
        "message.html",
        queues.message,
        about="One message of a queue, decoded.",
        asks=("queue", "seq"),
        gives=("name", "seq", "size", "message", "data", "hex"),
        slow=True,
    ),
)

DOWNLOADS: Final = {"/queue/messages": queues.download, "/definitions/mqsc": download_definitions}
"""Files, by path."""

ACTIONS: Final = {
    "/dead-letters/again": (queues.again, "/dead-letters"),
    "/connections/stop": (end_program, "/connections"),
    "/definitions/apply": (apply_definitions, "/definitions"),
}
"""The forms that change something: what each does, and says, and the page that it is on."""

MENU: Final = tuple(page for page in PAGES if page.key)
"""The pages that each page leads to, in order."""
