"""Why publications reach a subscriber or not: the answers of ``qpubsub why -m QMGR`` as a page."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from commands.broker.objects import DEFAULT_STREAM
from commands.console.pages.query import Query
from commands.console.reading.source import State
from commands.explain.why import Asked, Verdict
from commands.running.why import LiveWhy, MadeUp
from rfh2.errors import QPubSubError

MOST_ANSWERS: Final = 500


def why(state: State, query: Query) -> dict[str, Any]:
    """The form, and the answers once something is asked: of a publication that nobody makes, or of the present."""
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
        "answers": answers[:MOST_ANSWERS],
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
