"""The pages of the console: their paths, templates, and the function from state and query to a template's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from commands.console import connections, messages, overview, queues, topics
from commands.console.query import Query
from commands.console.source import State


@dataclass(frozen=True, slots=True)
class Page:
    """A page. read: what its template shows, by names. key: typed after ``g``, leads to it; "" for none.

    slow: whether it may take seconds. live_s: seconds until its parts that change are shown anew; 0 for never. takes:
    whether a form is sent to it, which changes nothing.
    """

    path: str
    title: str
    template: str
    read: Callable[[State, Query], dict[str, Any]]
    key: str = ""
    slow: bool = False
    live_s: int = 0
    takes: bool = False


PAGES: Final = (
    Page("/", "Overview", "overview.html", overview.overview, "o", live_s=5),
    Page("/topics", "Topics", "topics.html", topics.topics, "t", live_s=5),
    Page("/subscriptions", "Subscriptions", "subscriptions.html", topics.subscriptions, "s", live_s=10),
    Page("/queues", "Queues", "queues.html", queues.queues, "q", live_s=5),
    Page("/connections", "Connections", "connections.html", connections.connections, "n", live_s=5),
    Page("/streams", "Streams", "streams.html", overview.streams, "r", live_s=10),
    Page("/links", "Links", "links.html", overview.links, "l", live_s=5),
    Page("/dead-letters", "Dead letters", "dead-letters.html", queues.dead_letters, "d", live_s=10),
    Page("/errors", "Errors", "errors.html", overview.errors, "e", live_s=5),
    Page("/flow", "Flow", "flow.html", overview.flow, "f", live_s=5),
    Page("/decode", "Decode", "decode.html", messages.decoding, "c", slow=True, takes=True),
    Page("/why", "Why", "why.html", topics.why, "w", slow=True),
    Page("/time-travel", "Time travel", "time-travel.html", messages.time_travel, "i", slow=True),
    Page("/topics/level", "Topics", "level.html", topics.level),
    Page("/topic", "Topic", "topic.html", topics.topic, live_s=10),
    Page("/subscription", "Subscription", "subscription.html", topics.subscription, live_s=10),
    Page("/queue", "Queue", "queue.html", queues.queue, live_s=10),
    Page("/message", "Message", "message.html", queues.message, slow=True),
)

ACTIONS: Final = {
    "/dead-letters/again": (queues.again, "/dead-letters"),
    "/connections/stop": (connections.stop, "/connections"),
}
"""The forms that change something: what each does, and says, and the page that it is on."""

MENU: Final = tuple(page for page in PAGES if page.key)
"""The pages that each page leads to, in order."""
