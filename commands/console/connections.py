"""The programs that are connected by a listener, and the form that ends one."""

from __future__ import annotations

from typing import Any, Final

from commands.broker.connections import Order, programs
from commands.console.query import ROWS, NotThereError, Query, pager
from commands.console.source import State
from commands.qmgr.store.listeners import AskedListeners

_SORTS: Final = ("address", "channel", "user", "application", "since", "objects", "puts", "gets")
_SEARCHED: Final = ("address", "channel", "user", "asserted", "application")


def connections(state: State, query: Query) -> dict[str, Any]:
    """A page of the list."""
    reports = AskedListeners(state.store.database).reports()
    wanted = query.wanted(_SORTS, "since")
    search = wanted.search.lower()
    rows: list[dict[str, Any]] = [
        {"row": each, "port": instance.port, "objects": len(each.handles)}
        for report in reports
        for instance in report.instances
        for each in instance.programs
        if any(search in getattr(each, name).lower() for name in _SEARCHED)
    ]
    rows.sort(
        key=lambda row: row["objects"] if wanted.sort == "objects" else getattr(row["row"], wanted.sort),
        reverse=wanted.descending,
    )
    shown = rows[wanted.first : wanted.first + ROWS]
    listening = [str(place) for report in reports for place in report.places]
    return {"rows": shown, "pager": pager(wanted, len(rows), len(shown)), "listening": listening}


def stop(state: State, query: Query) -> str:
    """End the program that the form names: what was done. Raises NotThereError."""
    listeners, wanted = AskedListeners(state.store.database), query.text("id", 48)
    found = next((each for each in programs(listeners.reports()) if each.id == wanted), None)
    if found is None:
        raise NotThereError("That program is not connected any more.")
    listeners.obey(Order(connection=found.id))
    return f"Program {found.application or found.short_id} of user {found.user} at {found.address} was ended."
