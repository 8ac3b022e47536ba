"""Topics, filters and packets: what the queued interface's things are over MQTT, and back. No broker is needed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.headers.registry import parse
from commands.links.engine.filters import FilterTree
from commands.links.engine.inbound_writer import (
    LinkScope,
    NativePublication,
    TreeRetained,
    as_operation,
    command_for,
    differences,
    why_not_command,
)
from commands.links.engine.properties import ForTree, clearing, for_tree, publishing
from commands.links.mqtt.packets import FENCE, MqttPublication, filter_of, native_of, packet_for, why_not_topic
from commands.links.mqtt.sender import Filters
from rfh2 import DecodeError, Folder, Mqmd, Rfh1, Rfh2, decode
from rfh2.message import Message
from streams.operations import ClearRetained, Publication, PublishToTopic, RetainedPublication
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_objects import Scope, TopicObject, TopicObjects

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOPIC, CHAR = WildcardScheme.TOPIC, WildcardScheme.CHAR

FILTERS = [
    ("2.5.1.1.1 the same wildcards", TOPIC, "Stock/+/IBM", "Stock/+/IBM"),
    ("2.5.1.1.1 all below", TOPIC, "Stock/#", "Stock/#"),
    ("2.5.1.1.1 everything", TOPIC, "#", "#"),
    ("2.5.1.1.1 # before the end is cut after", TOPIC, "Sport/#/Arsenal", "Sport/#"),
    ("2.5.1.1.1 several # are one", TOPIC, "a/#/#", "a/#"),
    ("2.5.1.1.1 beside other characters they are not wild", TOPIC, "USA+/x", None),
    ("2.5.1.1.1 nor there", TOPIC, "a/#b/#", None),
    ("2.5.1 empty levels", TOPIC, "/a//b", "/a//b"),
    ("MQTT 4.8.2 a shared subscription is not a topic", TOPIC, "$share/g/x", None),
    ("MQTT 1.5.4 no null", TOPIC, "a\0b", None),
    ("3.1.3 widened", CHAR, "/aaa/bbb/c*d", "/aaa/bbb/#"),
    ("3.1.3 from the first level", CHAR, "a?b", "#"),
    ("2.5.1.1.2 escaped, so a topic", CHAR, "100%%/a%*", "100%/a*"),
    ("2.5.1.1.2 topic wildcards are not wild here", CHAR, "a/+/b", None),
    ("2.5.1.1.2 nor before a wildcard", CHAR, "a/#/b*", None),
]


@pytest.mark.parametrize(("scheme", "pattern", "wanted"), [f[1:] for f in FILTERS], ids=[f[0] for f in FILTERS])
def test_filters(scheme: WildcardScheme, pattern: str, wanted: str | None) -> None:
    assert filter_of(pattern, scheme) == wanted


def selects(topic_filter: str, topic: str) -> bool:
    """Whether an MQTT broker sends a publication on *topic* to a subscription with this filter."""
    if topic.startswith("$") and topic_filter[:1] in ("#", "+"):
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at == len(levels) or level not in ("+", levels[at]):
            return False
    return len(wanted) == len(levels)


LEVELS = st.lists(
    st.sampled_from(["a", "b", "", "ab", "+", "#", "a+", "$x", "*", "a*", "?", "%*"]), min_size=1, max_size=4
)
TOPICS = st.lists(st.sampled_from(["a", "b", "", "ab", "aXb", "*"]), min_size=1, max_size=4).map("/".join).filter(bool)


@given(LEVELS.map("/".join).filter(bool), st.sampled_from([TOPIC, CHAR]), TOPICS)
def test_a_filter_selects_all_that_its_pattern_does(text: str, scheme: WildcardScheme, topic: str) -> None:
    try:
        pattern = parse_pattern(text, scheme)
    except Exception:
        return
    topic_filter = filter_of(text, scheme)
    if pattern.matches(topic):
        assert topic_filter is not None
        assert selects(topic_filter, topic)


@given(st.lists(LEVELS.map("/".join).map(lambda t: filter_of(t, TOPIC) if t else None), max_size=8), TOPICS)
def test_the_tree_of_filters_agrees_with_looking_at_each(filters: list[str | None], topic: str) -> None:
    tree = FilterTree()
    there = {number: f for number, f in enumerate(filters) if f}
    for number, topic_filter in there.items():
        tree.add(topic_filter, number)
    assert tree.match(topic) == [number for number, f in there.items() if selects(f, topic)]
    for number, topic_filter in list(there.items())[::2]:
        tree.remove(topic_filter, number)
        del there[number]
    assert tree.match(topic) == [number for number, f in there.items() if selects(f, topic)]


NOT_TOPICS = [("a+b", "no + and no #"), ("$SYS/x", "begin with $"), ("a\0", "no null"), ("x" * 65_536, "65536 bytes")]


@pytest.mark.parametrize(("topic", "why"), NOT_TOPICS, ids=[t[:6] for t, _ in NOT_TOPICS])
def test_topics_that_mqtt_cannot_carry(topic: str, why: str) -> None:
    assert why in (why_not_topic(topic) or "")


def test_one_copy_of_several_is_taken_and_an_unknown_one_rather_twice_than_never(tmp_path: Path) -> None:
    filters = Filters(tmp_path / "mqtt.json")
    assert [filters.add(f) for f in ("a/#", "a/+", "b/#")] == [1, 2, 3]
    assert filters.takes("a/x", (1,))
    assert not filters.takes("a/x", (2,))
    assert filters.takes("a/x", (1, 2))
    assert filters.takes("a/x", (9,)), "under an identifier that is not known any more"
    assert filters.takes("a/x", ()), "from a broker without identifiers"
    filters.remove("a/#")
    assert filters.takes("a/x", (2,))
    assert filters.takes("a/x", (1,)), "one on its way when the filter went"
    filters.acknowledge("a/+")
    filters.save()
    again = Filters(tmp_path / "mqtt.json")
    assert (again.all(), again.acknowledged) == (("a/+", "b/#"), {"a/+"})
    assert again.add("c") > 3, "no identifier is given twice"


def test_filters_that_went_are_doubtful_at_each_new_connection_until_they_are_removed_again(tmp_path: Path) -> None:
    filters = Filters(tmp_path / "mqtt.json")
    for each in ("a", "b", "c"):
        filters.add(each)
        filters.remove(each)
    assert not filters.doubtful, "the broker has answered"
    filters.add("b")
    filters.save()
    filters = Filters(tmp_path / "mqtt.json")
    for _ in range(2):
        filters.connected(remembered=True)
        assert filters.doubtful == {"a", "c"}, "not what is there again"
        filters.remove("a")
        assert filters.doubtful == {"c"}
    filters.connected(remembered=False)
    filters.connected(remembered=True)
    assert not filters.doubtful, "a new session has none"


def test_only_the_last_filters_that_went_are_kept(tmp_path: Path) -> None:
    filters = Filters(tmp_path / "mqtt.json")
    for n in range(1_010):
        filters.add(f"t/{n}")
        filters.remove(f"t/{n}")
    filters.connected(remembered=True)
    assert filters.doubtful == {f"t/{n}" for n in range(10, 1_010)}


def _publish(message: Message, topic: str = "a", retain: bool = False) -> ForTree:
    operation = PublishToTopic(topic, Publication(message, NOW), retain)
    put = publishing(operation, "QM1", "OUT", local=False)
    return for_tree(put.message.mqmd.encode(), put.body)


def _legacy(psc: str, data: bytes = b"data", *folders: str, **mqmd: object) -> Message:
    header = Rfh2(tuple(Folder.of(f) for f in (f"<psc>{psc}</psc>", *folders)), 273, 819, "MQSTR")
    described = {"format": "MQHRF2", "persistence": 1, "priority": 5, **mqmd}
    return decode(header.encode() + data, Mqmd(**described))  # type: ignore[arg-type]


def test_a_publication_on_its_way_keeps_what_it_says() -> None:
    psc = "<Command>Publish</Command><Topic>a</Topic><PubTime>2026010112000000</PubTime><SeqNum>7</SeqNum>"
    wanted = _publish(_legacy(psc, b"data", "<usr><b>&lt;</b></usr>", "<jms><Dst>x</Dst></jms>", expiry=77), "a", True)
    assert wanted == ForTree(
        "a",
        payload=b"data",
        retain=True,
        expiry=77,
        priority=5,
        format="MQSTR",
        encoding=273,
        ccsid=819,
        properties=(("b", "<"),),
        stamps=(("Pts", "2026010112000000"), ("Seq", "7")),
        other=("folder jms",),
    )


def test_an_mqrfh_publication_is_carried_with_its_user_pairs() -> None:
    text = b"MQPSCommand Publish MQPSTopic a colour red"
    header = Rfh1(text + b"\0" * (-len(text) % 16), 546, 1208, "MQSTR")
    message = decode(header.encode() + b"data", Mqmd(format="MQHRF", persistence=1, priority=0))
    wanted = _publish(message)
    assert (wanted.payload, wanted.properties, wanted.format) == (b"data", (("colour", "red"),), "MQSTR")


@given(st.binary(max_size=200), st.text(max_size=20), st.booleans(), st.integers(-1, 10**6), st.sampled_from([0, 1]))
def test_any_payload_and_topic_go_and_come_back(body: bytes, text: str, retain: bool, expiry: int, pers: int) -> None:
    topic = "a/" + "".join(c for c in text if why_not_command(c) is None and c not in "+#\r")
    message = _legacy("<Command>Publish</Command><Topic>a</Topic>", body, persistence=pers, expiry=expiry or -1)
    wanted = _publish(message, topic, retain)
    packet, lost = packet_for(wanted, "mq/", "bridge-1")
    assert lost == ()
    assert native_of(packet, "mq/", "bridge-1") is None, "its own"
    native = native_of(packet, "mq/", "bridge-2")
    assert native is not None
    assert (native.topic, native.payload, native.retain) == (topic, body, retain)
    assert (native.format, native.encoding, native.ccsid, native.priority) == ("MQSTR", 273, 819, 5)
    assert native.persistent == bool(pers)


def test_what_comes_back_through_another_bridge_is_its_command() -> None:
    native = NativePublication("a", b"data", True, True, 1.5, 3, (("colour", "red"),), (("SeqNum", "7"),), "MQSTR")
    mqmd, body, lost = command_for(native, "native")
    message = decode(body, mqmd)
    command = parse(message)
    assert (command.word, command.topics, lost) == ("Publish", ("a",), ())  # type: ignore[attr-defined]
    assert (message.body, message.body_format, mqmd.expiry, mqmd.appl_origin_data) == (b"data", "MQSTR", 15, "TREE")
    assert [f.values() for f in message.rfh2.folders][1] == {"colour": "red"}  # type: ignore[union-attr]


def test_an_empty_retained_publication_clears() -> None:
    mqmd, body, _ = command_for(NativePublication("a", b"", retain=True), "native")
    assert parse(decode(body, mqmd)).word == "DeletePub"
    put = clearing("a", "QM1", "OUT")
    packet, _ = packet_for(for_tree(put.message.mqmd.encode(), put.body), "", "b")
    assert (packet.topic, packet.payload, packet.retain, packet.qos) == ("a", b"", True, 1)


CONTENT = [
    ("MQSTR", 1208, b"text", "text/plain; charset=utf-8", True),
    ("MQSTR", 1208, b"\xff", "text/plain; charset=utf-8", False),
    ("MQSTR", 819, b"text", "text/plain; charset=latin-1", False),
    ("MQSTR", 99_999, b"text", "text/plain", False),
    ("", 1208, b"text", "application/octet-stream", False),
    ("MYFMT", 1208, b"text", "application/x-ibm-mq; format=MYFMT", False),
]


@pytest.mark.parametrize(("fmt", "ccsid", "payload", "content_type", "is_text"), CONTENT)
def test_content_type_from_format(fmt: str, ccsid: int, payload: bytes, content_type: str, is_text: bool) -> None:
    packet, _ = packet_for(ForTree("a", payload=payload, format=fmt, ccsid=ccsid), "", "b")
    assert (packet.content_type, packet.is_text) == (content_type, is_text)


FORMATS = [
    (MqttPublication("a", b"x", is_text=True), "MQSTR"),
    (MqttPublication("a", b"x", content_type="text/plain"), "MQSTR"),
    (MqttPublication("a", b"x", content_type="text/csv; charset=UTF-8"), "MQSTR"),
    (MqttPublication("a", b"x", content_type="text/plain; charset=utf-16"), ""),
    (MqttPublication("a", b"{}", content_type="application/json"), "MQSTR"),
    (MqttPublication("a", b"x", content_type="image/png"), ""),
    (MqttPublication("a", b"x"), ""),
    (MqttPublication("a", b"x", properties=(("mq.Format", "MYFMT"),)), "MYFMT"),
    (MqttPublication("a", b"x", properties=(("mq.Format", "NINELONGS"),)), ""),
]


@pytest.mark.parametrize(("packet", "fmt"), FORMATS)
def test_format_from_content_type(packet: MqttPublication, fmt: str) -> None:
    native = native_of(packet, "", "b")
    assert native is not None
    assert native.format == fmt


def test_a_fence_and_what_is_outside_the_prefix_are_no_publications() -> None:
    assert native_of(MqttPublication("a", properties=((FENCE, "other"),)), "", "b") is None
    assert native_of(MqttPublication("other/a"), "mq/", "b") is None
    assert native_of(MqttPublication("mq/"), "mq/", "b") is None


def test_a_message_that_the_bridge_did_not_put_is_told_apart() -> None:
    with pytest.raises(DecodeError, match="not put by the bridge"):
        for_tree(Mqmd().encode(), b"stray")


# What the tree retains beside what is retained here.


def _retained(topic: str, data: bytes, native: bool) -> RetainedPublication:
    mqmd, body, _ = command_for(NativePublication(topic, data, True), "native")
    message = decode(body, mqmd) if native else _legacy("<Command>Publish</Command><Topic>a</Topic>", data)
    return RetainedPublication(topic, Publication(message, NOW))


NATIVE_X = NativePublication("x", b"new", True)
DIFFERENCES = [
    ("not known here", [NATIVE_X], {"x"}, [], [("x", b"new")]),
    ("another one is known", [NATIVE_X], {"x"}, [_retained("x", b"old", True)], [("x", b"new")]),
    ("a legacy one was replaced there", [NATIVE_X], {"x"}, [_retained("x", b"old", False)], [("x", b"new")]),
    ("the same", [NATIVE_X], {"x"}, [_retained("x", b"new", True)], []),
    ("cleared there", [], set(), [_retained("x", b"old", True)], [("x", b"")]),
    ("forgotten there: a legacy one stays", [], set(), [_retained("x", b"old", False)], []),
    ("ours is there", [], {"x"}, [_retained("x", b"old", True)], []),
]


@pytest.mark.parametrize(
    ("there", "topics", "known", "news"), [d[1:] for d in DIFFERENCES], ids=[d[0] for d in DIFFERENCES]
)
def test_differences(
    there: list[NativePublication], topics: set[str], known: list[RetainedPublication], news: list[tuple[str, bytes]]
) -> None:
    found = differences(TreeRetained(tuple(there), frozenset(topics)), known, LinkScope(keeps=False))
    assert [(n.topic, n.payload) for n in found] == news


STAYING = [
    ("Local", True, "", False, []),
    ("Local, but it came from the tree", True, "", True, [("x", b"new")]),
    ("PUBSCOPE(QMGR)", False, "QMGR", False, []),
    ("of scope ALL", False, "ALL", False, [("x", b"new")]),
]


# docs/conformance.md: DIS-28
@pytest.mark.parametrize(
    ("local", "pub_scope", "native", "news"), [row[1:] for row in STAYING], ids=[row[0] for row in STAYING]
)
def test_what_the_tree_retains_does_not_replace_what_is_retained_here_alone(
    local: bool, pub_scope: str, native: bool, news: list[tuple[str, bytes]]
) -> None:
    topics = TopicObjects()
    topics.define(TopicObject("X", "x", pub_scope=Scope(pub_scope) if pub_scope else None))
    held = _retained("x", b"old", native)
    held = replace(held, publication=replace(held.publication, local=local))  # type: ignore[type-var]
    scope = LinkScope(keeps=True)
    scope.load(topics)
    found = differences(TreeRetained((NATIVE_X,), frozenset("x")), [held], scope)
    assert [(n.topic, n.payload) for n in found] == news


def test_news_as_operations() -> None:
    published = as_operation(NATIVE_X, "native", NOW)
    assert isinstance(published, PublishToTopic)
    assert (published.retain, published.publication.message.body) == (True, b"new")
    assert as_operation(NativePublication("x", b"", True), "native", NOW) == ClearRetained("x")
