"""The topic tree, level by level; the list of topics; and the page of one topic."""

from __future__ import annotations

from typing import Any, Final

from commands.console.pages.messages import shown_message
from commands.console.pages.query import NotThereError, Query, pager
from commands.console.reading.source import State
from commands.qmgr.store.listing import TOPIC_SORTS, Wanted
from rfh2.captured import CapturedMessage

CHILDREN: Final = 200
"""Topics of one level that are shown at once."""
_MOST_SUBSCRIPTIONS: Final = 200


def topics(state: State, query: Query) -> dict[str, Any]:
    """The tree from its root or from a topic; with a search, a page of the list."""
    if query.text("q") or query.text("sort") or query.has("list"):
        wanted = query.wanted(TOPIC_SORTS, "topic")
        rows, count = state.listing.topics(wanted)
        return {"rows": rows, "pager": pager(wanted, count, len(rows))}
    return {"rows": None, "pager": pager(Wanted(), 0, 0), **level(state, query)}


def level(state: State, query: Query) -> dict[str, Any]:
    """What is below a topic, or below the root."""
    under = query.text("under") if query.has("under") else None
    nodes, behind = state.levels.below(under, query.text("after"), CHILDREN)
    return {"under": under, "nodes": nodes, "behind": behind}


def topic(state: State, query: Query) -> dict[str, Any]:
    """Who subscribes to exactly this topic string, and what it retains. Raises NotThereError."""
    name = query.text("topic")
    node = state.levels.at(name)
    subscribed = state.listing.subscriptions_at(name, _MOST_SUBSCRIPTIONS)
    kept = state.listing.retained(name)
    if not (kept or subscribed or node.published or node.objects or node.has_children):
        raise NotThereError(f"There is nothing at topic {name}.")
    message = None
    if kept is not None:
        at, md, body = kept
        captured = CapturedMessage(
            seq=1, time=at, qmgr=state.store.name, queue="", md_hex=md.hex(), body_hex=body.hex()
        )
        message = shown_message(captured, "retained publication")
    return {"node": node, "subscribed": subscribed, "kept_at": kept[0] if kept else None, "message": message}
