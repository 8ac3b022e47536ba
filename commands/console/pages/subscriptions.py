"""The list of subscriptions with their counters, and the page of one."""

from __future__ import annotations

from typing import Any

from commands.console.pages.query import NotThereError, Query, pager
from commands.console.reading.source import State
from commands.qmgr.store.listing import SUBSCRIPTION_SORTS
from commands.replay.step.views import item_form


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
