"""Errors of commands: by reason and program, and the last ones as they were logged."""

from __future__ import annotations

from typing import Any, Final

from commands.console.pages.query import ROWS, Query, pager
from commands.console.reading.source import State
from commands.running.journal import last_status
from rfh2.explain.reasons import reason_text

_SORTS: Final = ("count", "reason", "program", "last")


def errors(state: State, query: Query) -> dict[str, Any]:
    """The table of causes since the processor was started, and the last errors."""
    status = last_status(state.store.directory)
    wanted = query.wanted(_SORTS, "-count")
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
