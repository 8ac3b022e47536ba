"""Dead letters: why each is one, where it was to go, and the form that puts it there again."""

from __future__ import annotations

from typing import Any

from commands.console.pages.messages import in_one_sentence
from commands.console.pages.query import Query
from commands.console.pages.queues import HEAD_BYTES, MESSAGES, place_of, sentence_of
from commands.console.reading.source import State
from commands.qmgr.dead_letters import Revived, put_again, revived
from commands.qmgr.store.listing import MessageRowOnQueue
from commands.running.status import status_of
from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError
from rfh2.explain.reasons import reason_text
from rfh2.mqmd import name_of


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
