"""The topic tree, level by level; the list of topics; and the page of one topic."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from commands.broker.objects import DEFAULT_STREAM
from commands.console.messages import shown_message
from commands.console.query import NotThereError, Query, pager
from commands.console.source import State
from commands.explain.why import Asked, Verdict
from commands.qmgr.store.listing import MOST_BELOW, SUBSCRIPTION_SORTS, TOPIC_SORTS, Wanted
from commands.replay.step.views import item_form
from commands.running.why import LiveWhy, MadeUp
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

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
    return {"under": under, "nodes": nodes, "behind": behind, "most_below": MOST_BELOW}


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


# The list of subscriptions with their counters, and the page of one.


def subscriptions(state: State, query: Query) -> dict[str, Any]:
    """A page of the list."""
    wanted = query.wanted(SUBSCRIPTION_SORTS, "topic")
    rows, count = state.listing.subscriptions(wanted)
    return {"rows": rows, "pager": pager(wanted, count, len(rows))}


def subscription(state: State, query: Query) -> dict[str, Any]:
    """All attributes of one. Raises NotThereError."""
    text = query.text("id", 48)
    try:
        found = state.listing.subscription(bytes.fromhex(text))
    except ValueError:
        found = None
    if found is None:
        raise NotThereError(f"There is no subscription {text}. It may have ended.")
    known, row = found
    attributes = item_form(known) or {}
    shown = [(name.replace("_", " "), _shown(value)) for name, value in attributes.items()]
    return {"known": known, "row": row, "attributes": shown}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else str(value)


# Why publications reach a subscriber or not: the answers of ``qpubsub why -m QMGR`` as a page.

MOST_ANSWERS: Final = 500


def why(state: State, query: Query) -> dict[str, Any]:
    """The form, and the answers once something is asked: of a publication (a dry run), or of the present."""
    names = ("publish", "data", "stream", "queue", "sub", "topic", "user")
    asked = {name: query.text(name) for name in names}
    answers: list[Verdict] = []
    problem = ""
    if query.has("ask"):
        try:
            answers = list(islice(_answers(state, query), MOST_ANSWERS + 1))
        except QPubSubError as error:
            problem = str(error)
    return {
        "asked": asked,
        "default_stream": DEFAULT_STREAM,
        "kept_back": [each for each in answers[:MOST_ANSWERS] if not each.delivered],
        "delivered": [each for each in answers[:MOST_ANSWERS] if each.delivered],
        "more": len(answers) > MOST_ANSWERS,
        "most": MOST_ANSWERS,
        "problem": problem,
        "is_asked": query.has("ask"),
    }


def _answers(state: State, query: Query) -> Any:
    about = Asked(query.optional("queue"), query.optional("topic"), query.optional("sub"))
    live = LiveWhy(state.store, state.groups_of, about)
    topic = query.optional("publish")
    if topic is None:
        return live.present()
    stream = query.text("stream", 48) or DEFAULT_STREAM
    return live.publication(MadeUp(topic, query.text("data"), stream, {}, query.text("user", 12)))
