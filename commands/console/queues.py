"""The list of queues, the messages of one, and one message."""

from __future__ import annotations

from typing import Any, Final

from commands.console.messages import LONGEST_BODY, in_one_sentence, shown_message
from commands.console.query import ROWS, NotThereError, Query, pager
from commands.console.source import State
from commands.qmgr.dead_letters import Revived, put_again, revived
from commands.qmgr.store.listing import MessageRowOnQueue
from commands.running.status import status_of
from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError
from rfh2.mqmd import name_of
from rfh2.reasons import reason_text

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


# Dead letters: why each is one, where it was to go, and the form that puts it there again.


def dead_letters(state: State, query: Query) -> dict[str, Any]:
    """A page of the dead-letter queue, and how many there are for each reason."""
    status = status_of(state.store, state.now)
    dead = status["dead_letters"]
    name = dead["queue"]
    found = None if name is None else state.store.find_queue(name)
    if found is None:
        return {"name": name, "rows": [], "depth": 0, "behind": None, "reasons": [], "looked_into": 0}
    rows = state.listing.messages(found.name, place_of(query), MESSAGES + 1, HEAD_BYTES, state.now)
    behind = rows[MESSAGES - 1].place if len(rows) > MESSAGES else None
    reasons = [{**row, "text": "" if row["reason"] is None else reason_text(row["reason"])} for row in dead["reasons"]]
    return {
        "name": found.name,
        "rows": [_shown(state, found.name, row) for row in rows[:MESSAGES]],
        "depth": state.store.depth(found.name),
        "behind": None if behind is None else f"{behind[0]}-{behind[1]}",
        "reasons": reasons,
        "looked_into": dead["looked_into"],
    }


def _shown(state: State, queue: str, row: MessageRowOnQueue) -> dict[str, Any]:
    try:
        letter = revived(row.md, row.head)
    except DecodeError:
        return {"row": row, "reason": None, "text": sentence_of(state, queue, row), "can": False}
    header = letter.header
    destination, qmgr = name_of(header.dest_q_name), name_of(header.dest_qmgr_name)
    return {
        "row": row,
        "reason": header.reason,
        "reason_text": reason_text(header.reason),
        "destination": destination,
        "qmgr": qmgr,
        "text": _inside(row, letter),
        "can": bool(destination) and destination != queue and qmgr in ("", state.store.name),
    }


def _inside(row: MessageRowOnQueue, letter: Revived) -> str:
    """What the message behind the dead-letter header is."""
    bytes_of = {"md_hex": letter.mqmd.encode().hex(), "body_hex": letter.body.hex()}
    return in_one_sentence(CapturedMessage(seq=row.seq, time=row.time, queue="", user=row.user, **bytes_of))


def again(state: State, query: Query) -> str:
    """Put the dead letter that the form names again: what was done. Raises QPubSubError where it stays."""
    seq = query.number("seq", most=1 << 62)
    queue = put_again(state.store, query.text("queue", 48), seq, state.now)
    return f"Message {seq} was put on {queue}."
