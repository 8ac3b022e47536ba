"""The pages of the console: their paths, templates, and the function from state and query to a template's values.

The pages as JSON: the values that their templates show, for programs; and what describes them (OpenAPI 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from html import unescape
from typing import Any, Final

from markupsafe import Markup

from commands.broker.connections import Order, programs
from commands.console import messages, overview, queues
from commands.console.queues import Download
from commands.console.source import ROWS, NotThereError, Query, State, pager
from commands.explain.why import Verdict
from commands.mqsc.export import exported
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listeners import AskedListeners
from commands.running.mqsc_scripts import apply_script
from rfh2.distribution import VERSION

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
        queues.topics,
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
        queues.subscriptions,
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
        queues.why,
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
    Page("/topics/level", "Topics", "level.html", queues.level),
    Page(
        "/topic",
        "Topic",
        "topic.html",
        queues.topic,
        about="Who subscribes to a topic string, and what it retains.",
        asks=("topic",),
        gives=("node", "subscribed", "kept_at", "message"),
        live_s=10,
    ),
    Page(
        "/subscription",
        "Subscription",
        "subscription.html",
        queues.subscription,
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


_MARKUP: Final = re.compile(r"<[^>]*>")
# Pictures, and what only the forms of a page need.
_OF_THE_PAGE: Final = frozenset({"plot", "formats", "lengths", "most", "longest", "most_below", "forms"})

API_PAGES: Final = {f"/api{'/overview' if page.path == '/' else page.path}": page for page in PAGES if page.about}
"""By path."""


def answer_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a program gets of a page's values; ``format`` grows when a key goes or changes its meaning."""
    return {name: _plain(value) for name, value in values.items() if name not in _OF_THE_PAGE} | {"format": 1}


def _plain(value: Any) -> Any:
    match value:
        case Markup():
            return unescape(_MARKUP.sub("", value))
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Verdict():
            return value.form()
        case Mapping():
            return {str(_plain(key)): _plain(each) for key, each in value.items()}
        case Iterable():
            return [_plain(each) for each in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def description() -> dict[str, Any]:
    """The API as an OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "qpubsub console", "version": VERSION, "description": "Each page of the console as JSON."},
        "paths": {path: {"get": _operation(path, page)} for path, page in API_PAGES.items()},
    }


def _operation(path: str, page: Page) -> dict[str, Any]:
    keys = {"format": {"const": 1}, **{name: {} for name in page.gives}}
    schema = {"type": "object", "properties": keys, "required": ["format"]}
    problem = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        "operationId": path.removeprefix("/api/").replace("/", "_").replace("-", "_"),
        "summary": page.title,
        "description": page.about,
        "parameters": [
            {"name": name, "in": "query", "description": PARAMETERS[name], "schema": {"type": "string"}}
            for name in page.asks
        ],
        "responses": {
            "200": _response(page.about, schema),
            "404": _response("What is asked for does not exist.", problem),
            "503": _response("The queue manager cannot be read at present.", problem),
        },
    }


def _response(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


PARAMETERS: Final = {
    "after": "where the page begins: what the answer before gave",
    "at": "the position of the message in the capture, from 0",
    "data": "the data of the publication",
    "explain": "given: what each message would cause on a new queue manager",
    "first": "the first row, a multiple of 100",
    "format": "the format of text: auto, or the name of a capture format",
    "id": "SubId of the subscription, in hex",
    "length": "seconds of a period: 5, 60 or 900",
    "list": "given: all topics as rows, instead of a level of the tree",
    "name": "the queue",
    "ask": "given: the question is answered",
    "publish": "the topic of a publication to explain; without it, what keeps publications from each subscription",
    "q": "text in one of the columns",
    "queue": "the queue",
    "seq": "the number of the message",
    "setup": "MQSC to run before, with explain",
    "sort": "a column, with - before it from high to low",
    "stream": "the stream queue",
    "sub": "the name of the subscription",
    "text": "a message in any form that qpubsub decode reads",
    "topic": "the topic string",
    "under": "the topic whose children are listed; without it, the root",
    "user": "who publishes",
    "where": "a condition, as for --where of qpubsub decode",
    "go": "on or back: to the next message for which where is true",
}
"""What each parameter of a page is."""
