"""Queues: their list, the messages of one, one message. Topics: the tree, level by level; their list; one topic."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.times import from_microseconds, to_microseconds
from commands.console.messages import LONGEST_BODY, in_one_sentence, shown_message
from commands.console.source import ROWS, NotThereError, Query, State, pager
from commands.explain.selection import Choosing, MessageSelection, compile_where
from commands.explain.why import Asked, Verdict
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listing import MOST_BELOW, SUBSCRIPTION_SORTS, TOPIC_SORTS, MessageRowOnQueue, Wanted
from commands.qmgr.store.port import EXPIRES_AT, message_of
from commands.qmgr.store.uncommitted import Match
from commands.replay.step.views import item_form
from commands.running.status import status_of
from commands.running.why import LiveWhy, MadeUp
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS
from rfh2.constants import reason_text
from rfh2.dlh import Dlh, decode_dlh
from rfh2.errors import DecodeError, QPubSubError
from rfh2.mqmd import Mqmd, name_of

MESSAGES: Final = 50
"""Messages of a queue that are shown at once; each is decoded."""

HEAD_BYTES: Final = 16_384
_SORTS: Final = ("name", "depth", "oldest", "puts", "gets")
_FROM_START: Final = (-1, -1)
_LOOKS: Final = 40
"""Times MESSAGES that a filter looks at for one page."""
_LONGEST_CONDITION: Final = 1_000
_PREVIEW: Final = 120


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
    selection, problem = _selection(query)
    rows, behind = _selected(state, definition, place_of(query), selection)
    shown = [{"row": row, "text": sentence_of(state, definition, row), "data": _preview(state, row)} for row in rows]
    return {
        "name": definition,
        "depth": state.store.depth(definition),
        "rows": shown,
        "behind": behind,
        "is_first": place_of(query) == _FROM_START,
        "where": query.text("where", _LONGEST_CONDITION),
        "problem": problem,
        "forms": tuple(_FORMS)[1:],
    }


def _selection(query: Query) -> tuple[MessageSelection, str]:
    """The condition of a filter, and what is wrong with it."""
    text = query.text("where", _LONGEST_CONDITION)
    try:
        return MessageSelection(where=compile_where(text) if text.strip() else None), ""
    except QPubSubError as error:
        return MessageSelection(), str(error)


def _selected(
    state: State, queue: str, place: tuple[int, int], selection: MessageSelection
) -> tuple[list[MessageRowOnQueue], str | None]:
    """Some messages after a place, and where the next ones begin; None for none. A filter looks at a part at most."""
    choosing, found = Choosing(selection), list[MessageRowOnQueue]()
    for _ in range(_LOOKS):
        rows = state.listing.messages(queue, place, MESSAGES + 1, HEAD_BYTES, state.now)
        for row in rows[:MESSAGES]:
            if len(found) == MESSAGES:
                return found, f"{place[0]}-{place[1]}"
            place = row.place
            if selection.is_all or choosing.chooses(_whole(state, queue, row)):
                found.append(row)
        if len(rows) <= MESSAGES:
            return found, None
    return found, f"{place[0]}-{place[1]}"


def message(state: State, query: Query) -> dict[str, Any]:
    """One message, decoded. Raises NotThereError."""
    name, seq = local_queue(state, query.text("queue", 48)), query.number("seq", most=1 << 62)
    size = state.listing.size_of(name, seq)
    found = None if size is None or size > LONGEST_BODY else state.listing.message(name, seq, state.now)
    if size is None:
        raise NotThereError(f"Message {seq} is not on {name} any more.")
    captured = None if found is None else found.captured(state.store.name)
    return {
        "name": name,
        "seq": seq,
        "size": size,
        "message": None if captured is None else shown_message(captured, f"{name}, seq {seq}"),
        "data": None if captured is None else captured.text,
        "hex": None if captured is None else captured.body_hex,
        "longest": LONGEST_BODY,
        "forms": tuple(_FORMS),
    }


# Messages as a file.

_FORMS: Final = {"raw": ".dat", "jsonl": ".jsonl", "hex": ".hex", "mqmd": ".mqmd", "qload": ".qload"}
"""Capture formats, and how the name of such a file ends; the first holds one message."""
_MOST_MESSAGES: Final = 10_000
_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the browser to keep."""

    name: str
    data: bytes


def download(state: State, query: Query) -> Download:
    """One message (*seq*), or those that the filter selects, 10,000 or 64 MiB at most. Raises NotThereError."""
    name = local_queue(state, query.text("name", 48))
    form = query.text("form") if query.text("form") in _FORMS else "jsonl"
    seqs = [query.number("seq", most=1 << 62)] if query.has("seq") else _seqs(state, name, query)
    if form == "raw" and len(seqs) != 1:
        form = "jsonl"
    written, held = io.BytesIO(), 0
    found = []
    for seq in seqs:
        stored = state.listing.message(name, seq, state.now)
        if stored is not None:
            found.append(stored.captured(state.store.name))
            held += len(found[-1].body)
        if held > _MOST_BYTES:
            break
    if not found:
        raise NotThereError(f"No such message is on {name} any more.")
    writer = FORMATS[form].writer
    assert writer is not None
    writer(found, written, lambda *_: None)
    part = f"-{seqs[0]}" if query.has("seq") else ""
    return Download(f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}{part}{_FORMS[form]}", written.getvalue())


def _seqs(state: State, queue: str, query: Query) -> list[int]:
    selection, problem = _selection(query)
    if problem:
        raise NotThereError(problem)
    seqs, place = list[int](), _FROM_START
    while len(seqs) < _MOST_MESSAGES:
        rows, behind = _selected(state, queue, place, selection)
        seqs += [row.seq for row in rows]
        if behind is None:
            break
        place = place_of(Query({"after": behind}))
    return seqs[:_MOST_MESSAGES]


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
    return in_one_sentence(_captured(state, queue, row))


def _captured(state: State, queue: str, row: MessageRowOnQueue) -> CapturedMessage:
    return CapturedMessage(
        seq=row.seq,
        time=row.time,
        qmgr=state.store.name,
        queue=queue,
        user=row.user,
        md_hex=row.md.hex(),
        body_hex=row.head.hex(),
    )


def _whole(state: State, queue: str, row: MessageRowOnQueue) -> CapturedMessage:
    stored = state.listing.message(queue, row.seq, state.now) if row.size_bytes > HEAD_BYTES else None
    return _captured(state, queue, row) if stored is None else stored.captured(state.store.name)


def _preview(state: State, row: MessageRowOnQueue) -> str:
    """The beginning of the data: as text, or as hex if it is not text."""
    captured = _captured(state, "", row)
    text = captured.text
    if text is not None:
        return text[:_PREVIEW]
    try:
        return captured.decoded.body[: _PREVIEW // 4].hex(" ")
    except DecodeError:
        return row.head[: _PREVIEW // 4].hex(" ")


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


# A dead letter, put again to where it was to go, as a dead-letter handler's ACTION(RETRY) does.
#
# The message that follows the MQDLH goes to DestQName, with the Format, CodedCharSetId and Encoding that the MQDLH
# keeps for it; it keeps MsgId, CorrelId, user and persistence. Get and put are one unit of work: where the queue
# refuses the message, the dead letter stays as it is.


class NotPutAgainError(QPubSubError):
    """A dead letter cannot be put again. why: one clause."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(seq, why)
        self.seq, self.why = seq, why

    def __str__(self) -> str:
        return f"message {self.seq} was not put again: {self.why}"


@dataclass(frozen=True, slots=True)
class Revived:
    """What is behind the MQDLH of a dead letter."""

    header: Dlh
    mqmd: Mqmd
    body: bytes


def revived(md: bytes, body: bytes) -> Revived:
    """The message of a dead letter. Raises DecodeError where *body* does not begin with an MQDLH."""
    mqmd = Mqmd.decode(md)
    header = decode_dlh(body, 0, mqmd.coded_char_set_id)
    own = replace(mqmd, format=header.format, encoding=header.encoding, coded_char_set_id=header.coded_char_set_id)
    return Revived(header, own, body[header.length :])


def put_again(store: QueueManagerStore, queue: str, seq: int, now: datetime) -> str:
    """Move message *seq* of dead-letter queue *queue* to where it was to go; the name of that queue. now: UTC.

    Raises NotPutAgainError, UnknownQueueError; QueueError and MessageRefusedError where the queue does not take it.
    """
    with store.unit_of_work() as unit:
        found = unit.find_queue(queue)
        now_us = to_microseconds(now)
        row = None if found is None else unit.uncommitted.find(found.name, now_us, Match(seq=seq))
        if found is None or row is None:
            raise NotPutAgainError(seq, f"it is not on {queue} any more")
        message = message_of(store.database, row, now_us)
        try:
            letter = revived(message.md, message.body)
        except DecodeError as error:
            raise NotPutAgainError(seq, f"it does not begin with a dead-letter header ({error})") from error
        wanted, qmgr = name_of(letter.header.dest_q_name), name_of(letter.header.dest_qmgr_name)
        if qmgr and qmgr != store.name:
            raise NotPutAgainError(seq, f"it was for queue {wanted} of queue manager {qmgr}, not of this one")
        if not wanted or wanted == found.name:
            raise NotPutAgainError(seq, "its dead-letter header names no other queue")
        expires_at = row[EXPIRES_AT]
        unit.put(
            wanted,
            letter.mqmd.encode(),
            letter.body,
            user=message.user,
            expires_at=None if expires_at is None else from_microseconds(expires_at),
        )
        unit.uncommitted.remove(found.name, seq)
    return wanted


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
    shown = [(name.replace("_", " "), _topic_shown(value)) for name, value in attributes.items()]
    return {"known": known, "row": row, "attributes": shown}


def _topic_shown(value: Any) -> str:
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
