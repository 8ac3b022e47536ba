"""Small generated captures in which everything happens to everything: for comparing engines.

Few topics, few users and few queues, so that commands meet; clocks that stand, jump and go back; expiries of a second
or two; retained publications, and those who ask for them or delete them; broken messages; stray ones. One local queue
is not in the namelist: version 6 takes what programs publish there, version 7 does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from commands.explain.build import CommandSpec, command_message
from commands.replay import LocalReplay
from rfh2.captured import CapturedMessage
from rfh2.constants import MQAT_BROKER, MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN
from rfh2.mqmd import Mqmd

START = datetime(2026, 1, 1, tzinfo=UTC)
SETUP = """
DEFINE TOPIC(SPORT) TOPICSTR('a/x') WILDCARD(BLOCK)
DEFINE QLOCAL(NEWS)
DEFINE TOPIC(NEWS) TOPICSTR('News')
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, NEWS)
DEFINE QLOCAL(UNLISTED)
DEFINE TOPIC(USD) TOPICSTR('USD')
ALTER NAMELIST(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, USD)
DEFINE SUB(EVERYTHING) TOPICSTR('a/#') DEST(AUDIT)
"""
EXPIRING = SETUP + "DEFINE SUB(SOON) TOPICSTR('+/x') DEST(AUDIT) EXPIRY(30)\n"
PATTERNS = ("a", "a/x", "a/y", "a/x/1", "b", "a/#", "#", "+/x", "a/+/1", "News/a", "News/#")
TOPICS = ("a", "a/x", "a/y", "a/x/1", "b")
CHAR_PATTERNS = ("a*", "*", "a/?", "b", "a/x")
QUEUES = ("SYSTEM.BROKER.DEFAULT.STREAM", "NEWS", "UNLISTED")
CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
FILTERS = ("n > 3", "n <= 3")


def _tags(**given: Any) -> dict[str, str | None]:
    return {name: value for name, value in given.items() if value is not None}


USERS = st.sampled_from(["ann", "bob"])
REPLY_QUEUES = ["Q1", "Q2", ""]
EXPIRIES = st.sampled_from([-1, -1, -1, 8, 25])
MSG_TYPES = st.sampled_from([MQMT_DATAGRAM, MQMT_REQUEST])


@st.composite
def _descriptors(draw: st.DrawFn, mark: str) -> Mqmd:
    queue = draw(st.sampled_from(REPLY_QUEUES))
    return Mqmd(
        user_identifier=draw(USERS),
        reply_to_q=queue and queue + mark,
        expiry=draw(EXPIRIES),
        msg_type=draw(MSG_TYPES),
        report=draw(st.sampled_from([0, MQRO_NAN])),
        correl_id=draw(st.sampled_from([bytes(24), b"C" * 24])),
        persistence=draw(st.sampled_from([0, 1])),
        put_appl_type=draw(st.sampled_from([0, 0, 0, MQAT_BROKER])),
    )


@st.composite
def _subscriber_commands(draw: st.DrawFn, mark: str) -> CommandSpec:
    rfh1 = draw(st.booleans())
    word = draw(st.sampled_from(["RegSub", "RegSub", "RegSub", "DeregSub", "ReqUpdate"]))
    words = {
        "RegSub": [
            "NewPubsOnly",
            "PubOnReqOnly",
            "InformIfRet",
            "Local",
            "CorrelAsId",
            "VariableUserId",
            "None",
            "FullResp",
            "JoinShared",
            "AddName",
        ],
        "DeregSub": ["CorrelAsId", "DeregAll", "VariableUserId"],
        "ReqUpdate": ["CorrelAsId", "VariableUserId"],
    }[word]
    options = tuple(draw(st.lists(st.sampled_from(words), max_size=2, unique=True)))
    most = 1 if word == "ReqUpdate" else 2
    topics = st.sampled_from(CHAR_PATTERNS if rfh1 else PATTERNS)
    tags = _tags(
        SubName=draw(st.sampled_from([None, None, f"one{mark}", f"two{mark}"])),
        SubIdentity=draw(st.sampled_from([None, None, None, "A", "B"])) if word == "RegSub" else None,
        SubPoint=None if rfh1 else draw(st.sampled_from([None, None, None, "USD"])),
        Filter=None if rfh1 else draw(st.sampled_from([None, None, *FILTERS])),
        StreamName=draw(st.sampled_from([None, "NEWS", "UNLISTED"])) if rfh1 else None,
    )
    mqmd = draw(_descriptors(mark))
    return CommandSpec(
        word, tuple(draw(st.lists(topics, min_size=1, max_size=most))), options, tags, rfh1=rfh1, mqmd=mqmd
    )


@st.composite
def _publications(draw: st.DrawFn, mark: str) -> CommandSpec:
    rfh1 = draw(st.sampled_from([False, False, True]))
    options = draw(st.sampled_from([(), (), ("RetainPub",), ("RetainPub",), ("Local",), ("OtherSubsOnly",)]))
    return CommandSpec(
        draw(st.sampled_from(["Publish"] * 6 + ["DeletePub"])),
        tuple(draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=2))),
        options,
        {} if rfh1 else draw(st.sampled_from([{}, {}, {"SubPoint": "USD"}])),
        usr={} if rfh1 else draw(st.sampled_from([{}, {"n": 2}, {"n": 5}])),
        data="data",
        rfh1=rfh1,
        mqmd=draw(_descriptors(mark)),
        queue=draw(st.sampled_from([*QUEUES, QUEUES[0], CONTROL, "SOMEWHERE"])),
    )


def _deletion(wanted: CommandSpec) -> CommandSpec:
    """A DeletePub takes neither PubOpt nor data, but wildcards."""
    if wanted.word != "DeletePub":
        return wanted
    topics = tuple(f"{topic}/#" if at % 2 else topic for at, topic in enumerate(wanted.topics))
    return CommandSpec(wanted.word, topics, mqmd=wanted.mqmd, queue=wanted.queue, rfh1=wanted.rfh1)


def _entity(body: bytes) -> bytes:
    """The same psc for an XML parser, not for one who searches the bytes."""
    if b"RetainPub" not in body or not body.startswith(b"RFH \x02"):
        return body
    text = body.replace(b"RetainPub", b"&#82;etainPub")
    extra = len(text) - len(body)
    pad = -extra % 4
    length = int.from_bytes(body[8:12], "little") + extra + pad
    folder = int.from_bytes(body[36:40], "little") + extra + pad
    at = 40 + folder - pad
    return (
        text[:8]
        + length.to_bytes(4, "little")
        + text[12:36]
        + folder.to_bytes(4, "little")
        + text[40:at]
        + b" " * pad
        + text[at:]
    )


@st.composite
def messages(draw: st.DrawFn, qmgr: str | None, mark: str = "") -> list[CapturedMessage]:
    """One queue manager's part of a capture; seq is left for who puts the parts together.

    mark: ends the names of subscriber queues and subscriptions; with another mark they meet nobody.
    """
    commands = st.one_of(_subscriber_commands(mark), _publications(mark).map(_deletion))
    wanted = draw(st.lists(commands, max_size=40))
    if draw(st.sampled_from([True, True, False])):
        # Shows what is retained in the end.
        wanted.append(CommandSpec("RegSub", ("#",), mqmd=Mqmd(reply_to_q=f"LAST{mark}")))
    clock = draw(st.sampled_from(["even", "jumping", "back", "none", "some"]))
    now = START
    found = []
    for each in wanted:
        made = command_message(each)
        time: datetime | None = now
        if clock == "even":
            now += timedelta(milliseconds=300)
        elif clock == "jumping":
            now += timedelta(milliseconds=draw(st.sampled_from([0, 10, 2000])))
        elif clock == "back":
            now += timedelta(milliseconds=draw(st.sampled_from([-1500, 10, 1200])))
        elif clock == "some":
            now += timedelta(milliseconds=400)
            time = draw(st.sampled_from([now, None]))
        else:
            time = None
        body = made.body
        damage = draw(st.integers(0, 19))
        if damage == 0:
            body = body[: len(body) * 2 // 3]
        elif damage == 1:
            body = body.replace(b"</psc>", b"</psd>")
        elif damage in (2, 3):
            body = _entity(body)
        elif damage in (5, 6):
            body = body.replace(b"RetainPub", b"000000002")  # as long as the word
        md = None if damage == 4 else made.md_hex
        found.append(made.model_copy(update={"time": time, "qmgr": qmgr, "body_hex": body.hex(), "md_hex": md}))
    return found


def interleaved(parts: Sequence[list[CapturedMessage]], order: Iterable[int], step: int = 1) -> list[CapturedMessage]:
    """The messages of all *parts*, numbered; *order* says whose turn it is."""
    left = [list(part) for part in parts]
    merged = []
    turns = list(order) or [0]
    at = 0
    while any(left):
        part = left[turns[at % len(turns)] % len(left)] or next(part for part in left if part)
        merged.append(part.pop(0).model_copy(update={"seq": 7 + at * step}))
        at += 1
    return merged


@st.composite
def captures(draw: st.DrawFn, least: int = 1, most: int = 8) -> list[CapturedMessage]:
    """A capture of several queue managers."""
    count = draw(st.integers(least, most))
    parts = [draw(messages(None if number == 0 else f"QM{number + 1}")) for number in range(count)]
    return interleaved(parts, draw(st.lists(st.integers(0, most), max_size=20)), draw(st.sampled_from([1, 1, 1000])))


@st.composite
def captures_of_several_groups(draw: st.DrawFn) -> list[CapturedMessage]:
    """Two queue managers; in each, subscribers with one mark do not meet those with another."""
    marks = [draw(st.sampled_from(["", "X", "Y"])) for _ in range(draw(st.integers(1, 4)))]
    parts = [draw(messages(qmgr, mark)) for qmgr in (None, "QM2") for mark in marks]
    return interleaved(parts, draw(st.lists(st.integers(0, 7), max_size=20)))


def local_puts(capture: Iterable[CapturedMessage], setup: str = SETUP, semantics: str = "v7") -> list[tuple[Any, ...]]:
    """The puts of the local replay, as rows of PUTS."""
    rows = []
    for put in LocalReplay(setup, semantics).puts(capture):
        completion = None if put.completion is None else put.completion.value
        md, body = bytes.fromhex(put.md_hex), bytes.fromhex(put.body_hex)
        where = (put.qmgr, put.queue, put.topic, put.sub_name)
        rows.append((put.seq, put.n, put.at_qmgr, put.kind.value, *where, completion, put.reason, md, body))
    return rows
