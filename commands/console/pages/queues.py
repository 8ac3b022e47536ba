"""The list of queues, the messages of one, and one message."""

from __future__ import annotations

from typing import Any, Final

from commands.console.pages.messages import LONGEST_BODY, in_one_sentence, shown_message
from commands.console.pages.query import ROWS, NotThereError, Query, pager
from commands.console.reading.source import State
from commands.qmgr.store.listing import MessageRowOnQueue
from commands.running.status import status_of
from rfh2.captured import CapturedMessage

MESSAGES: Final = 50
"""Messages of a queue that are shown at once; each is decoded."""

HEAD_BYTES: Final = 16_384
_SORTS: Final = ("name", "depth", "oldest", "puts", "gets")
_FROM_START: Final = (-1, -1)


def queues(state: State, query: Query) -> dict[str, Any]:
    """A page of the list."""
    rows = status_of(state.store, state.now)["queues"]
    wanted = query.wanted(_SORTS, "-depth")
    search = wanted.search.lower()
    found = [{"name": name, **row} for name, row in rows.items() if search in name.lower()]
    found.sort(key=lambda row: row["name"])
    if wanted.sort != "name":
        key = {"oldest": "oldest_s"}.get(wanted.sort, wanted.sort)
        found.sort(key=lambda row: row[key] or 0, reverse=wanted.descending)
    elif wanted.descending:
        found.reverse()
    shown = found[wanted.first : wanted.first + ROWS]
    return {"rows": shown, "pager": pager(wanted, len(found), len(shown))}


def queue(state: State, query: Query) -> dict[str, Any]:
    """The messages of a queue behind the place that is asked for. Raises NotThereError."""
    definition = local_queue(state, query.text("name", 48))
    rows = state.listing.messages(definition, place_of(query), MESSAGES + 1, HEAD_BYTES, state.now)
    shown = [{"row": row, "text": sentence_of(state, definition, row)} for row in rows[:MESSAGES]]
    behind = rows[MESSAGES - 1].place if len(rows) > MESSAGES else None
    return {
        "name": definition,
        "depth": state.store.depth(definition),
        "rows": shown,
        "behind": None if behind is None else f"{behind[0]}-{behind[1]}",
        "is_first": place_of(query) == _FROM_START,
    }


def message(state: State, query: Query) -> dict[str, Any]:
    """One message, decoded. Raises NotThereError."""
    name, seq = local_queue(state, query.text("queue", 48)), query.number("seq", most=1 << 62)
    size = state.listing.size_of(name, seq)
    found = None if size is None or size > LONGEST_BODY else state.listing.message(name, seq, state.now)
    if size is None:
        raise NotThereError(f"Message {seq} is not on {name} any more.")
    shown = None if found is None else shown_message(found.captured(state.store.name), f"{name}, seq {seq}")
    return {"name": name, "seq": seq, "size": size, "message": shown, "longest": LONGEST_BODY}


def local_queue(state: State, name: str) -> str:
    """The local queue of that name, or behind that alias. Raises NotThereError."""
    found = state.store.find_queue(name)
    if found is None:
        raise NotThereError(f"There is no queue {name}.")
    return found.name


def place_of(query: Query) -> tuple[int, int]:
    """The place in a queue behind which a page begins."""
    rank, _, seq = query.text("after", 40).partition("-")
    return (int(rank), int(seq)) if rank.isdecimal() and seq.isdecimal() else _FROM_START


def sentence_of(state: State, queue: str, row: MessageRowOnQueue) -> str:
    """What a message is, by its first bytes."""
    captured = CapturedMessage(
        seq=row.seq,
        time=row.time,
        qmgr=state.store.name,
        queue=queue,
        user=row.user,
        md_hex=row.md.hex(),
        body_hex=row.head.hex(),
    )
    return in_one_sentence(captured)
