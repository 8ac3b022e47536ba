"""The definitions of the queue manager as MQSC: to look at and to keep, and a script to apply."""

from __future__ import annotations

from typing import Any, Final

from commands.console.query import Query
from commands.console.queues import Download
from commands.console.source import State
from commands.qmgr.admin.definitions import definitions_of
from commands.running.mqsc_scripts import apply_script

_LONGEST: Final = 1_000_000
_MOST_SAID: Final = 3


def definitions(state: State, _query: Query) -> dict[str, Any]:
    """The script."""
    return {"script": definitions_of(state.store, state.now)}


def download(state: State, _query: Query) -> Download:
    """The script as a file."""
    return Download(f"{state.store.name}.mqsc", definitions_of(state.store, state.now).encode())


def apply(state: State, query: Query) -> str:
    """Apply the script of the form, as ``qpubsub mqsc`` does; what came of it."""
    count, refused = apply_script(state.store, query.text("script", _LONGEST), state.groups_of)
    said = f"{count:,} command{'' if count == 1 else 's'} read, {len(refused):,} refused"
    which = "; ".join(f"line {line}: {why}" for line, why in refused[:_MOST_SAID])
    return f"{said}: {which}" if refused else f"{said}."
