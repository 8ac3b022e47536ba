"""Publications that differ in topic, numbers, folders and data have the broker's own puts, byte for byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from commands.broker.outcome import Arrival
from commands.broker.puts import Put, PutKind
from commands.mqsc.broker import Broker
from commands.qmgr.processor import Processor
from commands.templates.parts import parts_of
from commands.templates.templates import PublicationTemplates
from rfh2.captured import CapturedMessage
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_PAN, MQRO_PASS_CORREL_ID, MQRO_PASS_MSG_ID
from rfh2.mqmd import Mqmd
from tests.commands.qmgr.test_processor_templates import Manager, by_template
from tests.commands.replay.spark.worlds import CONTROL, SETUP, START
from tests.examples import FEW

# Without the subscription to everything below a, which wants properties.
STREAMS = SETUP[: SETUP.index("DEFINE SUB")]
STREAM, NAMED = "SYSTEM.BROKER.DEFAULT.STREAM", "NEWS"
SUBSCRIBERS = """
DEFINE SUB(PLAIN) TOPICSTR('#') DEST(Q1) PSPROP(RFH2)
DEFINE SUB(OTHER) TOPICSTR('a/#') DEST(Q2) PSPROP(RFH2) DESTCORL(414D51) USERDATA('mine')
DEFINE SUB(BELOW) TOPICSTR('News/#') DEST(Q1) PSPROP(RFH2)
DEFINE SUB(PRIORITY) TOPICSTR('b') DEST(Q3) PSPROP(RFH2) PUBPRTY(7)
"""
SPECIAL = """
DEFINE SUB(EVERYTHING) TOPICSTR('a/y/#') DEST(AUDIT)
DEFINE SUB(FILTERED) TOPICSTR('a/x') DEST(Q4) PSPROP(RFH2) SELECTOR('n > 3')
DEFINE SUB(OLD) TOPICSTR('a/y') DEST(Q5) PSPROP(COMPAT)
DEFINE SUB(PROPERTIES) TOPICSTR('b') DEST(Q6) PSPROP(MSGPROP)
DEFINE TOPIC(CLOSED) TOPICSTR('b/closed') PUB(DISABLED)
"""


@dataclass(frozen=True)
class Program:
    """What one program always writes. psc: the folder with a place for each text."""

    psc: str
    order: ByteOrder = "little"
    queue: str = STREAM
    format: bytes = b"MQSTR   "
    ccsid: int = 1208
    mqmd: Mqmd = Mqmd(user_identifier="ann", coded_char_set_id=819, priority=0, persistence=0, format="MQHRF2")  # noqa: RUF009


PLAIN = Program("<psc><Command>Publish</Command><Topic>{topic}</Topic><SeqNum>{number}</SeqNum></psc>")
RETAINING = PLAIN.psc.replace("<Topic>", "<PubOpt>RetainPub</PubOpt><Topic>", 1)
ASKING = replace(PLAIN.mqmd, msg_type=MQMT_REQUEST, reply_to_q="REPLY", correl_id=b"C" * 24)
PROGRAMS = [
    PLAIN,
    replace(PLAIN, psc="<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>"),
    replace(PLAIN, psc="<psc><SeqNum>{number}</SeqNum><Topic>{topic}</Topic><Command>Publish</Command></psc>  "),
    replace(PLAIN, psc=PLAIN.psc.replace("</psc>", "<PubTime>20260101{number}</PubTime><own>x</own></psc>\0\0")),
    replace(PLAIN, psc=RETAINING),
    replace(PLAIN, psc=PLAIN.psc.replace("<Topic>", "<PubOpt>OtherSubsOnly</PubOpt><QName>Q1</QName><Topic>", 1)),
    replace(PLAIN, psc=PLAIN.psc.replace("<Topic>", "<SubPoint>USD</SubPoint><Topic>", 1)),
    replace(PLAIN, psc=PLAIN.psc.replace("<Topic>", "<Topic>b</Topic><Topic>", 1)),
    replace(PLAIN, psc=PLAIN.psc.replace("<SeqNum>", "<SeqNum>1</SeqNum><SeqNum>", 1)),
    replace(PLAIN, psc=PLAIN.psc.replace("<SeqNum>{number}</SeqNum>", "<own><SeqNum>{number}</SeqNum></own>")),
    replace(PLAIN, psc=PLAIN.psc.replace("</SeqNum>", "</PubTime>")),
    replace(
        PLAIN, psc=PLAIN.psc.replace("<SeqNum>", "<SeqNum></SeqNum><PubTime>", 1).replace("r}</SeqNum", "r}</PubTime")
    ),
    replace(PLAIN, psc="<psc><!-- <Topic>{topic}</Topic> --><Command>Publish</Command><Topic>b</Topic></psc>"),
    replace(PLAIN, psc=PLAIN.psc + "<psc2/>"),
    replace(PLAIN, psc=" " + PLAIN.psc),
    replace(PLAIN, order="big"),
    replace(PLAIN, queue=NAMED),
    replace(PLAIN, queue="NOT.A.STREAM"),
    replace(PLAIN, queue=CONTROL),
    replace(PLAIN, format=b"MQHRF2  "),
    replace(PLAIN, format=b"MQADMIN "),
    replace(PLAIN, format=b"        "),
    replace(PLAIN, ccsid=-2),
    replace(PLAIN, mqmd=replace(PLAIN.mqmd, coded_char_set_id=0)),
    replace(PLAIN, psc=RETAINING, ccsid=-2, mqmd=replace(PLAIN.mqmd, coded_char_set_id=-2)),
    replace(PLAIN, psc=RETAINING, ccsid=0, order="big", mqmd=replace(PLAIN.mqmd, coded_char_set_id=0)),
    replace(PLAIN, mqmd=replace(PLAIN.mqmd, priority=-1, persistence=2)),
    replace(PLAIN, mqmd=replace(PLAIN.mqmd, expiry=30, version=2)),
    replace(PLAIN, mqmd=replace(PLAIN.mqmd, order="big", user_identifier="bob")),
    replace(PLAIN, mqmd=ASKING),
    replace(PLAIN, mqmd=replace(ASKING, report=MQRO_PASS_CORREL_ID)),
    replace(PLAIN, mqmd=replace(ASKING, report=MQRO_PASS_MSG_ID, expiry=50), order="big"),
    replace(PLAIN, mqmd=replace(ASKING, msg_type=MQMT_DATAGRAM, report=MQRO_PAN, reply_to_qmgr="ELSEWHERE")),
]
TOPICS = [
    "a",
    "a/x",
    "a/y",
    "b",
    "a/é/☃",
    "a//b",
    "/a",
    "a ",
    " ",
    "a&amp;b",
    "a*",
    "#",
    "b/closed",
    "a/\ufffe",
    "a]b",
    "USD",
    "a\rb",
]
NUMBERS = ["1", "17", "0 9", "", "x", "&lt;", "é", "1]]", "\t", "a'b\"c"]
FOLDERS = [
    b"<mcd><Msd>jms_text</Msd></mcd>",
    b"<usr><n dt='i4'>2</n></usr>  ",
    b"<usr><n dt='i4'>5</n></usr>\0\0\0",
    b"<usr><n>no end",
    b"",
    b"\xff\xfe\xfd",
    b"<other><psc/></other>",
    b"<mqps><Top>x</Top></mqps>",
    b"<mqpse><Pts>1</Pts></mqpse>",
    b"<qps><Do>clear</Do></qps>",
    b"<psc><Command>Publish</Command><Topic>b</Topic></psc>",
]


@st.composite
def published(draw: st.DrawFn) -> tuple[Program, bytes]:
    """A program and the body of a message of its own; sometimes damaged."""
    program = draw(st.sampled_from(PROGRAMS))
    texts = {"topic": draw(st.sampled_from(TOPICS)), "number": draw(st.sampled_from(NUMBERS))}
    psc = program.psc.format(**texts).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 60)) == 0:
        psc = psc.replace(b"</Topic>", draw(st.sampled_from([b"\xff</Topic>", b"\0</Topic>", b"<x/></Topic>"])))
    if draw(st.booleans()):
        psc = psc.ljust(-(-len(psc) // 4) * 4)
    folders = draw(st.lists(st.sampled_from(FOLDERS), max_size=3))
    folders.insert(draw(st.integers(0, len(folders))) if draw(st.booleans()) else 0, psc)
    return program, _body(
        program, folders, draw(st.sampled_from([0] * 40 + [-4, -1, 1, 4])), draw(st.binary(max_size=9))
    )


def _body(program: Program, folders: list[bytes], wrong: int = 0, data: bytes = b"data") -> bytes:
    long = struct.Struct("<i" if program.order == "little" else ">i").pack
    following = b"".join(long(len(folder)) + folder for folder in folders)
    fixed = long(273) + long(program.ccsid) + program.format + long(0) + long(1208)
    return b"RFH " + long(2) + long(36 + len(following) + wrong) + fixed + following + data


def _arrival(program: Program, body: bytes, number: int, user: str | None = None) -> Arrival:
    now = START + timedelta(milliseconds=70 * number)
    md = replace(
        program.mqmd, msg_id=b"PUT " + number.to_bytes(20, "big"), put_date="20260101", put_time=f"{number:08}"
    )
    return Arrival(number, now, program.queue, md.encode(), body, user)


def _retained(broker: Broker) -> list[tuple[Any, ...]]:
    fields = ("message", "published_at", "expires_at", "local", "stream", "sub_point")
    all_of_them = broker.space.retained_publications()
    return [(each.topic_string, *(getattr(each.publication, name) for name in fields)) for each in all_of_them]


class Pair:
    """The same messages by either way. effects: whether the short way has to show what the broker changes, too."""

    def __init__(self, setup: str, semantics: str = "v7", effects: bool = True) -> None:
        self.whole, self.short = Broker("QM1", setup, semantics), Broker("QM1", setup, semantics)
        self.templates = PublicationTemplates(self.short, effects)
        self.again = 0
        self._effects = effects

    def check(self, arrival: Arrival) -> None:
        wanted = [Put.of(arrival.seq, "QM1", n, put) for n, put in enumerate(self.whole.process(arrival).puts)]
        outcome = self.templates.process(arrival)
        self.again += by_template(outcome)
        assert [Put.of(arrival.seq, "QM1", n, put) for n, put in enumerate(outcome.puts)] == wanted
        if self._effects:
            assert _retained(self.short) == _retained(self.whole)


@pytest.mark.parametrize("effects", [True, False], ids=["effects", "puts"])
@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_any_publications_in_any_order(semantics: str, effects: bool) -> None:
    @FEW
    @given(drawn=st.lists(published(), max_size=60), special=st.booleans(), user=st.sampled_from([None, "carl"]))
    def check(drawn: list[tuple[Program, bytes]], special: bool, user: str | None) -> None:
        pair = Pair(STREAMS + SUBSCRIBERS + (SPECIAL if special else ""), semantics, effects)
        for number, (program, body) in enumerate(drawn, 1):
            pair.check(_arrival(program, body, number, user))

    check()


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_each_program_after_it_was_seen_with_every_text(program: Program) -> None:
    """Twice an ordinary message, from which templates are learned; then all that a message could differ in."""
    pair = Pair(STREAMS + SUBSCRIBERS)
    ordinary = [{"topic": topic, "number": "1"} for topic in ("a", "a", "b", "b", "a/x/1", "a/x/1")]
    texts = [*ordinary, *({"topic": topic, "number": "2"} for topic in TOPICS)]
    texts += [{"topic": "a", "number": number} for number in NUMBERS]
    texts += [*({"topic": topic, "number": "3"} for topic in TOPICS)]
    for number, each in enumerate(texts, 1):
        psc = program.psc.format(**each).encode("utf-8", "surrogatepass")
        pair.check(_arrival(program, _body(program, [psc]), number))
    for number, folder in enumerate(FOLDERS, len(texts) + 1):
        psc = program.psc.format(topic="a", number="1").encode()
        pair.check(_arrival(program, _body(program, [psc, folder]), number))
        pair.check(_arrival(program, _body(program, [folder, psc, folder]), number + 100))


TWINS = [
    PLAIN.psc.replace("</SeqNum>", "</PubTime>"),
    PLAIN.psc.replace("<SeqNum>", "<SeqNum dt='i4'>"),
    PLAIN.psc.replace("SeqNum>", "PubTime>"),
    PLAIN.psc.replace("SeqNum>", "seqNum>"),
    PLAIN.psc.replace("</psc>", ""),
    PLAIN.psc.replace("</psc>", "</psc>x"),
    PLAIN.psc.replace("</psc>", "</psc><psc/>"),
    PLAIN.psc.replace("<psc>", "<psc >"),
    PLAIN.psc.replace("Publish", "publish"),
    PLAIN.psc.replace("</Command>", "\0</Command>"),
    PLAIN.psc.replace("{number}", "1</SeqNum><SeqNum>2"),
    PLAIN.psc.replace("{number}", "<!-- 1 -->"),
    PLAIN.psc.replace("{number}", "1\x7f"),
    PLAIN.psc.replace("{number}", "1\udcff"),
    PLAIN.psc.replace("{topic}", "a</Topic><Topic>b"),
    PLAIN.psc.replace("{topic}", "x" * 10_241),
    PLAIN.psc + " " * 9,
    PLAIN.psc + "\0" * 9,
]


@pytest.mark.parametrize("psc", TWINS, ids=range(len(TWINS)))
def test_what_looks_like_a_known_publication_is_not_taken_for_one(psc: str) -> None:
    """Each differs in one place from publications of which a template was learned."""
    pair = Pair(STREAMS + SUBSCRIBERS)
    for number in range(1, 9):
        ordinary = PLAIN.psc.format(topic="a", number=str(number)).encode()
        pair.check(_arrival(PLAIN, _body(PLAIN, [ordinary]), number))
    assert pair.again > 4
    for number in range(9, 15):
        twin = psc.format(topic="a", number=str(number)).encode("utf-8", "surrogateescape")
        pair.check(_arrival(PLAIN, _body(PLAIN, [twin]), number))
        pair.check(_arrival(PLAIN, _body(PLAIN, [twin, b"<usr><n>1</n></usr>"]), number + 100))


SHORT = [
    pytest.param(PROGRAMS[0], 8, id="number"),
    pytest.param(PROGRAMS[1], 8, id="topic-alone"),
    pytest.param(PROGRAMS[2], 8, id="another-order"),
    pytest.param(PROGRAMS[3], 8, id="time-and-own-tag"),
    pytest.param(PROGRAMS[4], 8, id="retained"),
    pytest.param(PROGRAMS[15], 8, id="big-endian"),
    pytest.param(PROGRAMS[16], 8, id="named-stream"),
    pytest.param(replace(PLAIN, mqmd=ASKING), 8, id="with-a-response"),
    pytest.param(replace(PLAIN, mqmd=replace(PLAIN.mqmd, expiry=30)), 8, id="that-expires"),
    pytest.param(replace(PLAIN, psc=RETAINING, ccsid=-2), 8, id="as-given-to-mqput"),
    pytest.param(PROGRAMS[5], 0, id="not-to-its-own-subscriptions"),
    pytest.param(PROGRAMS[7], 0, id="on-two-topics"),
]


@pytest.mark.parametrize(("program", "least"), SHORT)
def test_publications_without_an_equal_go_the_short_way(program: Program, least: int) -> None:
    pair = Pair(STREAMS + SUBSCRIBERS)
    for number in range(1, 11):
        psc = program.psc.format(topic="a" if number < 6 else f"a/{number}", number=str(number)).encode()
        pair.check(_arrival(program, _body(program, [psc, b"<usr><n>%d</n></usr>" % number]), number))
    assert pair.again == least


def test_a_subscription_that_is_altered_is_learned_again() -> None:
    pair = Pair(STREAMS + SUBSCRIBERS)
    publish = _body(PLAIN, [PLAIN.psc.format(topic="a", number="1").encode()])
    again = []
    for number in range(1, 20):
        if number in (5, 10, 15):
            word = "DeregSub" if number == 15 else "RegSub"
            option = "<RegOpt>NonPers</RegOpt>" if number == 10 else ""
            psc = f"<psc><Command>{word}</Command><Topic>a</Topic><QName>NEW</QName>{option}</psc>".encode()
            register = replace(PLAIN, queue=CONTROL)
            pair.check(_arrival(register, _body(register, [psc]), number))
        else:
            pair.check(_arrival(PLAIN, publish, number))
        again.append(pair.again)
    assert again == [0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 5, 6, 7, 8, 8, 9, 10, 11, 12]


def test_room_is_bounded() -> None:
    pair = Pair(STREAMS + SUBSCRIBERS)
    pair.templates = PublicationTemplates(pair.short, effects=True, most=30)
    for number in range(1, 200):
        program = replace(PLAIN, mqmd=replace(PLAIN.mqmd, user_identifier=f"user{number % 3}"))
        psc = program.psc.format(topic=f"a/{number % 7}", number=str(number)).encode()
        pair.check(_arrival(program, _body(program, [psc]), number))
        assert 0 <= pair.templates.room <= 30
        assert sum(len(each.plans) for each in pair.templates._shapes.values() if each) <= 15
    assert pair.again > 20


UNUSUAL = [
    pytest.param(b"", id="empty"),
    pytest.param(b"RFH \2\0\0\0", id="cut"),
    pytest.param(_body(PLAIN, []), id="no-folder"),
    pytest.param(_body(PLAIN, [b"<psc>" + b" " * 5000 + b"<Topic>a</Topic></psc>"]), id="a-large-psc"),
    pytest.param(_body(PLAIN, [b"<usr/>"] * 80 + [b"<psc><Topic>a</Topic></psc>"]), id="many-folders"),
]


@pytest.mark.parametrize("body", UNUSUAL)
def test_unusual_messages_have_no_parts(body: bytes) -> None:
    assert parts_of(_arrival(PLAIN, body, 1)) is None


@given(body=st.binary(max_size=80), front=st.sampled_from([b"", b"RFH \2\0\0\0", b"RFH \0\0\0\2"]))
def test_any_bytes_have_parts_or_none(body: bytes, front: bytes) -> None:
    parts_of(_arrival(PLAIN, front + body, 1))


# In a queue manager


def _message(program: Program, body: bytes, number: int) -> CapturedMessage:
    arrival = _arrival(program, body, number)
    assert arrival.md is not None
    return CapturedMessage(
        seq=number, time=arrival.now, queue=program.queue, md_hex=arrival.md.hex(), body_hex=body.hex()
    )


@pytest.mark.parametrize("records", [False, True], ids=["alone", "with-authority"])
def test_a_queue_manager_has_the_same_queues_counts_and_retained_publications(tmp_path: Path, records: bool) -> None:
    @settings(max_examples=12)
    @given(drawn=st.lists(published(), max_size=60))
    def check(drawn: list[tuple[Program, bytes]]) -> None:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        setup = STREAMS + SUBSCRIBERS + SPECIAL + "ALTER QLOCAL(Q2) MAXDEPTH(6)\nDEFINE QLOCAL(NOT.A.STREAM)\n"
        if records:
            grant = "SET AUTHREC PROFILE('SYSTEM.BASE.TOPIC') OBJTYPE(TOPIC) PRINCIPAL('ann') AUTHADD(PUB, SUB)\n"
            setup += grant + grant.replace("SYSTEM.BASE.TOPIC", "CLOSED").replace("'ann'", "'bob'")
        whole, short = Manager(home / "whole", setup, True), Manager(home / "short", setup, False)
        for start in range(0, len(drawn), 20):
            some = [_message(*each, number) for number, each in enumerate(drawn[start : start + 20], start + 1)]
            now = START + timedelta(seconds=start)
            for manager in (whole, short):
                manager.put(some)
                manager.drain(now)
        left, wanted = short.left(), whole.left()
        for each in (left, wanted):
            each["retained"] = [(r.topic_string, r.publication.message) for r in each["retained"]]
        assert left == wanted
        assert short.processor.tally == whole.processor.tally

    check()


def test_a_user_who_leaves_a_group_publishes_no_more(tmp_path: Path) -> None:
    """Groups are asked for each publication, on the short way too."""
    groups: dict[str, Any] = {"ann": {"writers"}}
    grant = "SET AUTHREC PROFILE('SYSTEM.BASE.TOPIC') OBJTYPE(TOPIC) GROUP('writers') AUTHADD(PUB, SUB)"
    manager = Manager(tmp_path / "qm", f"DEFINE SUB(S) TOPICSTR('#') DEST(Q1) PSPROP(RFH2)\n{grant}\n", False)
    manager.processor = Processor(manager.store, lambda: manager.now, groups_of=lambda user: groups.get(user, ()))
    body = _body(PLAIN, [PLAIN.psc.format(topic="a", number="1").encode()])
    depths = []
    for number in range(1, 8):
        if number == 5:
            groups.clear()
        manager.put([_message(PLAIN, body, number)])
        manager.drain(START)
        depths.append(manager.store.depth("Q1"))
    assert depths == [1, 2, 3, 4, 4, 4, 4]
    assert manager.processor.tally.dead_letters == 3


def test_the_kinds_of_puts_are_known() -> None:
    broker = Broker("QM1", SUBSCRIBERS)
    templates = PublicationTemplates(broker, effects=False)
    program = replace(PLAIN, mqmd=ASKING)
    for number in range(1, 4):
        body = _body(program, [PLAIN.psc.format(topic="a", number="1").encode()])
        outcome = templates.process(_arrival(program, body, number))
    assert by_template(outcome)
    kinds = [put.kind for put in outcome.puts]
    assert kinds == [PutKind.PUBLICATION, PutKind.PUBLICATION, PutKind.RESPONSE]
