"""Forwarded publications (guide 6.6, 6.7.3, 6.7.9): a new descriptor, a new psc folder, and nothing else touched."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.forward import RenderedHeaders, remaining_expiry
from commands.broker.objects import (
    ADMIN_STREAM,
    CONTROL_QUEUE,
    DEFAULT_STREAM,
    AliasQueue,
    LocalQueue,
    Objects,
    QueueManager,
    new_queue,
)
from rfh2.constants import (
    MQAT_BROKER,
    MQFMT_DEAD_LETTER_HEADER,
    MQFMT_RF_HEADER_2,
    MQMT_DATAGRAM,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPRI_PRIORITY_AS_Q_DEF,
)
from rfh2.dlh import Dlh
from rfh2.folders import Folder
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from tests.commands.scenario import CORREL_ID, Received, Scenario, psc, rfh2_message


def sent(world: Scenario, *topics: str, **settings: Any) -> Received:
    """The one publication that comes of it."""
    (only,) = world.publish(*topics, **settings).publications
    return only


@pytest.mark.rule("FWD-1", "FWD-6")
def test_6_7_9_every_field(world: Scenario) -> None:
    world.register(
        "a",
        reply_to="SUB.Q",
        user="app1",
        user_identifier="app1",
        accounting_token=b"subscriber".ljust(32, b"\0"),
        appl_identity_data="subscriber",
    )
    got = sent(
        world,
        "a",
        user="app2",
        user_identifier="app2",
        accounting_token=b"publisher".ljust(32, b"\0"),
        appl_identity_data="publisher",
        appl_origin_data="orig",
        reply_to="PUB.Q",
        reply_to_qmgr="QM2",
        report=0x03000000,
        feedback=9,
        expiry=600,
        priority=5,
        persistence=1,
        put_appl_type=6,
        put_appl_name="publisher",
        version=2,
        msg_flags=8,
        group_id=b"g" * 24,
    ).mqmd
    assert got.report == 0
    assert got.msg_type == MQMT_DATAGRAM
    assert got.expiry == 600
    assert got.format == MQFMT_RF_HEADER_2
    assert got.msg_id not in (bytes(24), b"MSG".ljust(24, b"\0"))
    assert got.correl_id != bytes(24)
    assert (got.priority, got.persistence) == (5, 1)
    assert (got.reply_to_q, got.reply_to_qmgr) == ("", "QM1")
    assert (got.user_identifier, got.accounting_token, got.appl_identity_data) == (
        "app1",
        b"subscriber".ljust(32, b"\0"),
        "subscriber",
    )
    assert (got.put_appl_type, got.put_appl_name) == (MQAT_BROKER, "QM1")
    assert (got.put_date, got.put_time, got.appl_origin_data) == ("20090128", "11435618", "")
    assert (got.feedback, got.version, got.msg_flags, got.group_id) == (0, 1, 0, bytes(24))


@pytest.mark.rule("FWD-3")
def test_6_7_9_msgids_are_unique(world: Scenario) -> None:
    for queue in ("A.Q", "B.Q"):
        world.register("a", reply_to=queue)
    ids = [p.mqmd.msg_id for _ in range(3) for p in world.publish("a", "a").publications]
    assert len(set(ids)) == len(ids) == 12


@pytest.mark.rule("REG-8", "FWD-4")
def test_6_7_9_the_registered_correlid_is_on_each_publication(world: Scenario) -> None:
    world.register("a", options=["CorrelAsId"], correl_id=CORREL_ID)
    assert sent(world, "a", correl_id=b"publisher".ljust(24, b"\0")).mqmd.correl_id == CORREL_ID


@pytest.mark.rule("FWD-4")
def test_6_7_9_who_did_not_register_one_gets_the_queue_managers_always_the_same(world: Scenario) -> None:
    world.register("a", correl_id=CORREL_ID)
    first, second = (sent(world, "a", correl_id=CORREL_ID).mqmd.correl_id for _ in range(2))
    assert first == second
    assert first not in (CORREL_ID, bytes(24))


@pytest.mark.rule("FWD-6")
def test_6_7_9_the_context_stays_that_of_the_first_registration(world: Scenario) -> None:
    world.register("a", accounting_token=b"1" * 32, appl_identity_data="first")
    world.register("a", accounting_token=b"2" * 32, appl_identity_data="second")
    got = sent(world, "a").mqmd
    assert (got.accounting_token, got.appl_identity_data) == (b"1" * 32, "first")


PERSISTENCE = [
    # what the subscriber asked for, what the publisher said, DEFPSIST of the subscriber queue, what comes
    ("6.7.4-PersAsPub-persistent", "PersAsPub", 1, False, 1),
    ("6.7.4-PersAsPub-not", "PersAsPub", 0, True, 0),
    ("6.7.4-default", "None", 1, False, 1),
    ("6.7.4-Pers", "Pers", 0, False, 1),
    ("6.7.4-NonPers", "NonPers", 1, True, 0),
    ("6.7.4-PersAsQueue-persistent", "PersAsQueue", 0, True, 1),
    ("6.7.4-PersAsQueue-not", "PersAsQueue", 1, False, 0),
]


@pytest.mark.rule("APP-7", "REG-16", "FWD-5")
@pytest.mark.parametrize(
    ("option", "published", "queue_default", "delivered"), [r[1:] for r in PERSISTENCE], ids=[r[0] for r in PERSISTENCE]
)
def test_6_7_9_persistence(world: Scenario, option: str, published: int, queue_default: bool, delivered: int) -> None:
    world.objects.put(LocalQueue("REPLY.Q", def_persistent=queue_default))
    world.register("a", options=[option])
    assert sent(world, "a", persistence=published).mqmd.persistence == delivered


@pytest.mark.rule("FWD-5")
@pytest.mark.parametrize("queue_default", [False, True])
def test_6_7_4_persasqueue_asks_the_queue_behind_an_alias(world: Scenario, queue_default: bool) -> None:
    world.objects.put(LocalQueue("BEHIND", def_persistent=queue_default))
    world.objects.put(AliasQueue("REPLY.Q", "BEHIND"))
    world.register("a", options=["PersAsQueue"])
    assert sent(world, "a", persistence=1).mqmd.persistence == int(queue_default)


@pytest.mark.parametrize(("queue", "persistent"), [(DEFAULT_STREAM, 1), (ADMIN_STREAM, 1), (CONTROL_QUEUE, 0)])
def test_the_stream_queues_of_a_new_queue_manager_are_defpsist_yes(queue: str, persistent: int) -> None:
    assert new_queue(queue).def_persistent == bool(persistent)
    assert Objects(QueueManager("QM1")).queues[queue].def_persistent == bool(persistent)


@pytest.mark.rule("FWD-5")
@pytest.mark.parametrize(("persistent", "priority"), [(False, 3), (True, 8)])
def test_6_7_9_as_q_def_is_resolved_by_the_stream_queue(world: Scenario, persistent: bool, priority: int) -> None:
    world.objects.put(LocalQueue(DEFAULT_STREAM, def_persistent=persistent, def_priority=priority))
    world.register("a")
    got = sent(world, "a", persistence=MQPER_PERSISTENCE_AS_Q_DEF, priority=MQPRI_PRIORITY_AS_Q_DEF).mqmd
    assert (got.persistence, got.priority) == (int(persistent), priority)


# Expiry


@pytest.mark.rule("FWD-2")
def test_6_7_9_the_expiry_of_a_retained_publication_counts_down(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"], expiry=100)
    seconds_later = [world.register("a", reply_to=f"Q{n}").publications for n in range(10)]
    assert [p.mqmd.expiry for got in seconds_later for p in got] == [90, 80, 70, 60, 50, 40, 30, 20, 10]


@pytest.mark.rule("FWD-2")
def test_6_7_9_unlimited_stays_unlimited(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    assert [p.mqmd.expiry for p in world.register("a").publications] == [-1]


# Folders, headers, data


def test_field_psc_is_first_and_compact(world: Scenario) -> None:
    world.publish("a", options=["RetainPub"])
    (got,) = world.register("a", options=["InformIfRet"]).publications
    text = b"<psc><Command>Publish</Command><PubOpt>IsRetainedPub</PubOpt><Topic>a</Topic></psc>"
    assert got.header.folders[0].data.rstrip(b" ") == text
    assert len(got.header.folders[0].data) % 4 == 0


@pytest.mark.rule("PUB-13")
def test_6_7_3_the_subscriber_is_told_its_topic_and_what_the_publisher_numbered(world: Scenario) -> None:
    world.register("#")
    result = world.publish("a", "b", tags=[("PubTime", "2009012811435418"), ("SeqNum", "7")])
    numbered = [("PubTime", "2009012811435418"), ("SeqNum", "7")]
    assert [p.psc for p in result.publications] == [
        [("Command", "Publish"), ("Topic", "a"), *numbered],
        [("Command", "Publish"), ("Topic", "b"), *numbered],
    ]


FOLDERS: list[tuple[str, list[str | bytes], list[bytes]]] = [
    (
        "others-after-it",
        [psc("Publish", ("Topic", "a")), b"<usr> <x  a='1'/>\n</usr>\0\0\0 ", b"<mcd><Msd>none</Msd></mcd>  "],
        [b"<usr> <x  a='1'/>\n</usr>\0\0\0 ", b"<mcd><Msd>none</Msd></mcd>  "],
    ),
    (
        "others-before-it",
        [b"<mcd><Msd>none</Msd></mcd>  ", psc("Publish", ("Topic", "a"))],
        [b"<mcd><Msd>none</Msd></mcd>  "],
    ),
    (
        "odd-lengths-and-what-is-no-folder",
        [psc("Publish", ("Topic", "a")), b"", b"not xml & <", b"<jms><Dst>topic://a</Dst></jms>"],
        [b"", b"not xml & <", b"<jms><Dst>topic://a</Dst></jms>"],
    ),
    (
        "6.6.2-pscr-is-ignored",
        [psc("Publish", ("Topic", "a")), b"<pscr><Completion>ok</Completion></pscr>"],
        [b"<pscr><Completion>ok</Completion></pscr>"],
    ),
    (
        "several-roots-in-one-NameValueData",
        ["<mcd><Msd>none</Msd></mcd>" + psc("Publish", ("Topic", "a")) + "<usr><x>1</x></usr>"],
        [b"<mcd><Msd>none</Msd></mcd>  ", b"<usr><x>1</x></usr> "],
    ),
    (
        "several-roots-beside-it",
        [psc("Publish", ("Topic", "a")), b"<mcd><Msd>none</Msd></mcd><usr><x>1</x></usr>"],
        [b"<mcd><Msd>none</Msd></mcd><usr><x>1</x></usr>"],
    ),
]


@pytest.mark.rule("HDR-11", "HDR-12")
@pytest.mark.parametrize(("folders", "others"), [row[1:] for row in FOLDERS], ids=[row[0] for row in FOLDERS])
def test_other_folders_pass_untouched(world: Scenario, folders: list[str | bytes], others: list[bytes]) -> None:
    world.register("a")
    (got,) = world.send(*folders, queue=DEFAULT_STREAM, data=b"data", request=False).publications
    assert got.topic == "a"
    assert [folder.data for folder in got.header.folders[1:]] == others
    assert got.data == b"data"


BODIES = [
    ("text", b"hello\0", {"fmt": "MQSTR"}),
    ("empty", b"", {}),
    ("binary", bytes(range(256)), {"fmt": ""}),
    ("own-format", b"\x0c\x07", {"fmt": "MYDATA"}),
]


@pytest.mark.rule("PUB-14")
@pytest.mark.parametrize(("data", "wire"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_data_and_what_describes_it_pass_untouched(world: Scenario, data: bytes, wire: dict[str, Any]) -> None:
    world.register("a")
    got = sent(world, "a", data=data, wire=wire)
    assert got.data == data
    assert got.message.body_format == (wire["fmt"] if data else "")
    assert (got.message.body_encoding, got.message.body_ccsid) == (546, 1208)


@pytest.mark.rule("HDR-1")
def test_6_6_of_two_headers_the_first_has_the_command_and_the_second_passes_untouched(world: Scenario) -> None:
    inner_psc = psc("Publish", ("Topic", "inner"))
    inner = Rfh2((Folder.of(inner_psc), Folder(b"<usr/>\0\0", "utf-8")), 273, 37, "MQSTR", order="little")
    world.register("#")
    got = sent(world, "outer", data=b"\xc8\x85", wire={"more": (inner,)})
    assert got.topic == "outer"
    assert got.message.headers[1] == inner
    assert (got.message.body_format, got.message.body_encoding, got.message.body_ccsid) == ("MQSTR", 273, 37)
    assert got.data == b"\xc8\x85"


def test_a_header_before_the_mqrfh2_passes_too(world: Scenario) -> None:
    described, body = rfh2_message((psc("Publish", ("Topic", "a")),), Mqmd(coded_char_set_id=819), b"data")
    letter = Dlh(2053, "SOME.Q", "QM2", 546, 819, MQFMT_RF_HEADER_2)
    world.register("a")
    whole = encode(Message(described, (letter,), body))
    md = Mqmd(format=MQFMT_DEAD_LETTER_HEADER, coded_char_set_id=819).encode()
    (got,) = world.put(DEFAULT_STREAM, md, whole).publications
    assert got.mqmd.format == MQFMT_DEAD_LETTER_HEADER
    assert got.message.headers[0] == letter
    assert (got.topic, got.data) == ("a", b"data")


WIRES = [
    ("big-endian", {"order": "big"}, {}),
    ("UTF-16-little", {"nv_ccsid": 1200}, {}),
    ("UTF-16-big", {"nv_ccsid": 17584, "order": "big"}, {}),
    ("EBCDIC-500", {"charset": "cp500", "order": "big"}, {"coded_char_set_id": 500}),
    ("EBCDIC-1047", {"charset": "cp1047", "order": "big"}, {"coded_char_set_id": 1047}),
]


@pytest.mark.parametrize(("wire", "settings"), [row[1:] for row in WIRES], ids=[row[0] for row in WIRES])
def test_a_publication_stays_in_its_own_encoding(
    world: Scenario, wire: dict[str, Any], settings: dict[str, Any]
) -> None:
    world.register("Größe")
    got = sent(world, "Größe", wire=wire, **settings)
    assert got.topic == "Größe"
    assert (got.header.order, got.header.name_value_ccsid) == (wire.get("order", "little"), wire.get("nv_ccsid", 1208))
    assert got.header.charset == wire.get("charset", "latin-1")
    assert got.mqmd.coded_char_set_id == settings.get("coded_char_set_id", 1208)
    assert got.mqmd.encoding == (273 if got.header.order == "big" else 546)


def test_topics_are_escaped_again(world: Scenario) -> None:
    world.register("Stock/A & B")
    got = sent(world, "Stock/A & B")
    assert got.topic == "Stock/A & B"
    assert got.folders[0] == "<psc><Command>Publish</Command><Topic>Stock/A &amp; B</Topic></psc>"


_PUBLISHED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expiry", "after_s", "left"),
    [(-1, 10, -1), (600, 0, 600), (600, 1.55, 585), (600, 59.9, 1), (600, 60, 1), (600, 3600, 1), (600, -5, 600)],
    ids=["unlimited", "at-once", "part-of-a-tenth", "last-tenth", "run-out", "long-gone", "clock-set-back"],
)
def test_6_7_9_expiry_is_what_is_left_and_never_0(expiry: int, after_s: float, left: int) -> None:
    """MQPUT refuses an Expiry of 0 with 2013."""
    assert remaining_expiry(expiry, _PUBLISHED_AT, _PUBLISHED_AT + timedelta(seconds=after_s)) == left


_HEADERS = st.fixed_dictionaries(
    {
        "topics": st.sampled_from([("a",), ("b",), ("a", "b")]),
        "usr": st.sampled_from(["", "<usr><n>1</n></usr>", "<usr><n>2</n></usr>", f"<usr><n>{'x' * 5000}</n></usr>"]),
        "data": st.sampled_from([b"", b"1", b"2"]),
        "order": st.sampled_from(["little", "big"]),
        "ccsid": st.sampled_from([1208, 819]),
        "is_retained": st.booleans(),
    }
)
_STEPS = st.lists(st.one_of(_HEADERS, st.sampled_from(["QA", "QB"])), max_size=25)


@given(_STEPS)
def test_what_is_kept_of_headers_is_what_would_be_rendered(steps: list[Any]) -> None:
    """Cached and not, with subscriptions that come in between: the same puts, byte for byte."""
    kept, plain = Scenario(), Scenario()
    kept.broker._headers, plain.broker._headers = RenderedHeaders(640_000), RenderedHeaders(0)
    for queue in ("QA", "QB"):
        for world in (kept, plain):
            world.register("+", reply_to=queue, options=["InclStreamName"] if queue == "QB" else [])
    for step in steps:
        results = []
        for world in (kept, plain):
            if isinstance(step, str):
                results.append(world.register("a", reply_to=step, options=["InformIfRet", "FullResp"]))
                continue
            options = ["RetainPub"] if step["is_retained"] else []
            folder = psc("Publish", *(("PubOpt", each) for each in options), *(("Topic", t) for t in step["topics"]))
            results.append(
                world.send(
                    *filter(None, (folder, step["usr"])),
                    queue=DEFAULT_STREAM,
                    data=step["data"],
                    request=False,
                    wire={"order": step["order"]},
                    coded_char_set_id=step["ccsid"],
                )
            )
        assert results[0].outcome == results[1].outcome
    assert len(plain.broker._headers) == 0


def test_what_is_kept_of_headers_has_a_bound_in_bytes(world: Scenario) -> None:
    room = 4_000_000
    world.register("a", reply_to="SUB.Q")
    world.broker._headers = RenderedHeaders(room)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1500):
            usr = f"<usr><id>{number}</id><text>{'x' * (number % 20_000)}</text></usr>"
            assert world.send(psc("Publish", ("Topic", "a")), usr, queue=DEFAULT_STREAM, request=False).puts
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 100 < len(world.broker._headers) < 1500
    assert after - before < room


def test_a_large_header_is_not_kept(world: Scenario) -> None:
    world.register("a", reply_to="SUB.Q")
    world.publish("a")
    assert len(world.broker._headers) == 1
    usr = f"<usr><text>{'x' * 200_000}</text></usr>"
    assert world.send(psc("Publish", ("Topic", "a")), usr, queue=DEFAULT_STREAM, request=False).puts
    assert len(world.broker._headers) == 1
