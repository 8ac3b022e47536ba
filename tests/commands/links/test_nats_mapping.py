"""Topics, filters and messages: what the queued interface's things are in NATS, and back. No server is needed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.links.engine.filters import FilterTree, selected
from commands.links.engine.inbound_writer import NativePublication
from commands.links.engine.log_adapter import filter_of
from commands.links.engine.properties import ForTree, native_of
from commands.links.nats.adapter import ConsumerPlace, NatsReader
from commands.links.nats.connection import MESSAGE_ID, cover, message_for, record_of, subject_of, topic_of, wildcards_of
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme

TOPIC, CHAR = WildcardScheme.TOPIC, WildcardScheme.CHAR

SUBJECTS = [
    # id, topic string, subject, key of the bucket
    ("plain", "Sport/Soccer", "Sport.Soccer", "Sport.Soccer"),
    ("a blank", "Newcastle Southampton", "Newcastle=20Southampton", "Newcastle=20Southampton"),
    ("a dot", "a.b/c", "a=2Eb.c", "a=2Eb.c"),
    ("wildcards of NATS", "a*/>", "a=2A.=3E", "a=2A.=3E"),
    ("whole levels that are wildcards of MQ", "+/#", "=2B.=23", "=2B.=23"),
    ("inside a level they are not", "c++/#1", "c++.#1", "c=2B=2B.=231"),
    ("empty levels", "/a//", "=.a.=.=", "=.a.=.="),
    ("nothing", "", "=", "="),
    ("the escape itself", "a=b/=", "a=3Db.=3D", "a=3Db.=3D"),
    ("beyond ASCII", "Käse/日", "Käse.日", "K=C3=A4se.=E6=97=A5"),
    ("blanks of Unicode", "a\u00a0b\u3000", "a=C2=A0b=E3=80=80", "a=C2=A0b=E3=80=80"),
    ("controls", "a\r\n\0", "a=0D=0A=00", "a=0D=0A=00"),
    ("metatopics", "$SYS/x", "$SYS.x", "=24SYS.x"),
]


@pytest.mark.parametrize(("topic", "subject", "key"), [row[1:] for row in SUBJECTS], ids=[row[0] for row in SUBJECTS])
def test_subjects_and_keys(topic: str, subject: str, key: str) -> None:
    assert (subject_of(topic), subject_of(topic, key=True)) == (subject, key)
    assert (topic_of(subject), topic_of(key, key=True)) == (topic, topic)


DOC = (Path(__file__).parents[3] / "docs" / "live-brokers.md").read_text()


def test_the_page_shows_subjects_and_keys_as_they_are() -> None:
    table = DOC.split("| topic string | subject | key |\n", 1)[1].split("\n\n", 1)[0]
    rows = [re.findall(r"`([^`]+)`", line) for line in table.splitlines()[1:]]
    assert len(rows) >= 6
    for topic, subject, key in rows:
        assert (subject, key) == ("mq." + subject_of(topic), subject_of(topic, key=True))


NO_TOPIC = ["a/b", "a=2eb", "a=41", "a=", "===", "=C3", "a=2B=", "+", "a.#", "=C3=28"]


@pytest.mark.parametrize("subject", NO_TOPIC)
def test_subjects_that_no_topic_string_becomes(subject: str) -> None:
    assert topic_of(subject) is None


def test_a_key_has_no_second_spelling() -> None:
    assert topic_of("Käse") == "Käse"
    assert topic_of("Käse", key=True) is None


ANY_TOPIC = st.text(max_size=60) | st.lists(
    st.sampled_from(["", "a", "+", "#", "*", ">", ".", "=", "=2E", " ", "ä", "a.b", "$x", "\ud800", "\x85"]), max_size=8
).map("/".join)
LONG = st.sampled_from(["x", "ä/", "日", "a b", "/", "=", "."]).map(lambda part: (part * 10_240)[:10_240])


@given(ANY_TOPIC | LONG, st.booleans())
def test_every_topic_string_has_a_subject_and_comes_back(topic: str, key: bool) -> None:
    subject = subject_of(topic, key)
    assert topic_of(subject, key) == topic
    assert all(token not in ("", "*", ">") for token in subject.split("."))
    assert re.search(r"[\s*>\x00-\x20]", subject) is None
    if key:
        assert re.fullmatch(r"[-/_=.a-zA-Z0-9]+", subject), "what clients of the key-value interface take"


@given(st.text(alphabet="ab=2E.+#/é%", min_size=1, max_size=12).filter(lambda s: all(s.split("."))), st.booleans())
def test_a_subject_belongs_to_one_topic_string_or_none(subject: str, key: bool) -> None:
    topic = topic_of(subject, key)
    assert topic is None or subject_of(topic, key) == subject


FILTERS = [
    ("2.5.1.1.1 one level", TOPIC, "Stock/+/IBM", ("mq.Stock.*.IBM",)),
    ("2.5.1.1.1 all below, and the topic itself", TOPIC, "Stock/#", ("mq.Stock", "mq.Stock.>")),
    ("2.5.1.1.1 everything", TOPIC, "#", ("mq.>",)),
    ("2.5.1.1.1 # before the end is cut after", TOPIC, "Sport/#/Arsenal", ("mq.Sport", "mq.Sport.>")),
    ("2.5.1.1.1 beside other characters they are not wild", TOPIC, "USA+/x", ("mq.USA+.x",)),
    ("2.5.1 empty levels", TOPIC, "/a//+", ("mq.=.a.=.*",)),
    ("3.1.3 widened", CHAR, "/aaa/bbb/c*d", ("mq.=.aaa.bbb", "mq.=.aaa.bbb.>")),
    ("3.1.3 from the first level", CHAR, "a?b", ("mq.>",)),
    ("2.5.1.1.2 escaped, so a topic", CHAR, "100%%/a%*", ("mq.100%.a=2A",)),
]


@pytest.mark.parametrize(("scheme", "pattern", "wanted"), [f[1:] for f in FILTERS], ids=[f[0] for f in FILTERS])
def test_filters(scheme: WildcardScheme, pattern: str, wanted: tuple[str, ...]) -> None:
    found = filter_of(pattern, scheme)
    assert found is not None
    assert wildcards_of(found, "mq.") == wanted


def test_a_level_that_is_a_wildcard_elsewhere_has_no_filter() -> None:
    assert filter_of("a/+/b", CHAR) is None


def _nats_selects(wildcards: str, subject: str) -> bool:
    """As a NATS server does."""
    wanted, tokens = wildcards.split("."), subject.split(".")
    for at, token in enumerate(wanted):
        if token == ">":
            return at < len(tokens)
        if at == len(tokens) or token not in ("*", tokens[at]):
            return False
    return len(wanted) == len(tokens)


LEVELS = st.lists(
    st.sampled_from(["a", "b", "", "ab", "+", "#", "a+", "$x", "*", "a*", "?", "%*", "a.b", ">"]),
    min_size=1,
    max_size=4,
)
TOPICS = st.lists(st.sampled_from(["a", "b", "", "ab", "aXb", "*", ">", "a.b", "$x", "="]), min_size=1, max_size=4)


@given(
    LEVELS.map("/".join).filter(bool), st.sampled_from([TOPIC, CHAR]), TOPICS.map("/".join).filter(bool), st.booleans()
)
def test_a_filter_selects_all_that_its_pattern_does(text: str, scheme: WildcardScheme, topic: str, key: bool) -> None:
    try:
        pattern = parse_pattern(text, scheme)
        found = filter_of(text, scheme)
    except Exception:
        return
    if found is None:
        return
    sent = any(_nats_selects(each, "p." + subject_of(topic, key)) for each in wildcards_of(found, "p.", key))
    assert sent or not pattern.matches(topic)
    tree = FilterTree()
    tree.add(found, 1)
    assert sent is bool(tree.match(selected(topic))), "the bridge and the server select the same"
    if scheme is TOPIC and text.count("#") <= text.endswith("#") and "#" not in text[:-1]:
        assert sent is pattern.matches(topic), "an equal filter selects nothing else"
    assert filter_of(found.removeprefix("/"), TOPIC) == found


@given(st.lists(LEVELS.map("/".join).filter(bool), max_size=6), TOPICS.map("/".join).filter(bool), st.booleans())
def test_the_cover_selects_all_and_never_overlaps(patterns: list[str], topic: str, key: bool) -> None:
    filters = []
    for each in patterns:
        try:
            filters.append(filter_of(each, TOPIC) or "")
        except Exception:
            continue
    filters = [each for each in filters if each]
    covering = cover(filters, "mq.", key)
    subject = "mq." + subject_of(topic, key)
    tree = FilterTree()
    for number, each in enumerate(filters):
        tree.add(each, number)
    hits = [each for each in covering if _nats_selects(each, subject)]
    assert len(hits) <= 1, "a consumer's subjects may not overlap"
    assert hits or not tree.match(selected(topic))


def test_many_first_levels_are_covered_by_everything() -> None:
    assert cover([f"/a{n}/b" for n in range(51)], "mq.") == ["mq.>"]
    assert cover([], "mq.") == ["mq.=="]
    assert topic_of("==") is None


def _round_trip(wanted: ForTree, age_s: float = 0.0) -> tuple[dict[str, str], NativePublication]:
    message = message_for(wanted, "bridge", 60)
    return message.headers, _native(message.headers, message.payload, age_s)


def _native(headers: dict[str, str], payload: bytes = b"x", age_s: float = 0.0, in_bucket: bool = False) -> Any:
    return native_of(record_of("a", payload, headers, 1_000.0, in_bucket), 1_000.0 + age_s)


FIELDS = [
    ("plain", {}, {"Content-Type": "application/octet-stream"}),
    ("text", {"format": "MQSTR"}, {"Content-Type": "text/plain; charset=utf-8", "mq.Format": "MQSTR"}),
    ("retained", {"retain": True}, {"mq.Retain": "1"}),
    ("not persistent", {"persistent": False}, {"mq.Persistence": "0"}),
    ("priority", {"priority": 7}, {"mq.Priority": "7"}),
    ("numbers", {"encoding": 273, "ccsid": 500}, {"mq.Encoding": "273", "mq.CodedCharSetId": "500"}),
    ("properties", {"properties": (("colour", "red"),)}, {"colour": "red"}),
]


@pytest.mark.parametrize(("fields", "wanted"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_fields_become_headers_and_come_back(fields: dict[str, object], wanted: dict[str, str]) -> None:
    sent = ForTree("a", payload=b"data", **fields)  # type: ignore[arg-type]
    headers, native = _round_trip(sent)
    assert {**headers, **wanted} == headers
    for name, value in fields.items():
        assert getattr(native, name) == value


def test_expiry_is_rounded_up_and_what_is_left_comes_back() -> None:
    headers, native = _round_trip(ForTree("a", payload=b"x", expiry=101), age_s=4.0)
    assert headers["Nats-TTL"] == "11s"
    assert native.expiry_s == 7.0


DURATIONS = [
    ("90", 90.0),
    ("1h30m", 5400.0),
    ("1.5s", 1.5),
    ("250ms", 0.25),
    ("never", None),
    ("", None),
    ("5 s", None),
]


@pytest.mark.parametrize(("ttl", "seconds"), DURATIONS)
def test_durations_as_natives_write_them(ttl: str, seconds: float | None) -> None:
    assert _native({"Nats-TTL": ttl}).expiry_s == seconds


def test_what_has_expired_is_no_publication() -> None:
    assert _native({"Nats-TTL": "5"}, age_s=5.0) is None


ODD = st.text(max_size=12)


@given(st.lists(st.tuples(ODD.filter(lambda name: not name.startswith("mq.")), ODD), max_size=4))
def test_any_properties_come_back_in_order(properties: list[tuple[str, str]]) -> None:
    sent = ForTree("a", payload=b"x", properties=tuple(properties))
    headers, native = _round_trip(sent)
    assert native.properties == tuple(properties)
    for name, value in headers.items():
        assert re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name)
        assert value == value.strip()
        assert not {"\n", "\r"} & set(value)


MARKERS = [{"KV-Operation": "DEL"}, {"KV-Operation": "PURGE"}, {"Nats-Marker-Reason": "MaxAge"}]


@pytest.mark.parametrize("headers", MARKERS, ids=["del", "purge", "expired"])
def test_what_clears_a_key_is_a_publication_that_clears(headers: dict[str, str]) -> None:
    assert _native(headers, b"", in_bucket=True).clears


def test_an_empty_value_is_no_clearing() -> None:
    native = _native({}, b"", in_bucket=True)
    assert not native.clears
    assert not native.retain


def test_what_a_bridge_retains_comes_by_the_stream_and_what_it_clears_by_the_bucket() -> None:
    kept = message_for(ForTree("a", payload=b"x", retain=True), "bridge", 60)
    cleared = message_for(ForTree("a", clear=True), "bridge", 60)
    for message, is_copy in ((kept, True), (cleared, False)):
        record = record_of("a", message.payload, message.headers, 0.0, in_bucket=True)
        assert (record.bridge, record.is_copy) == ("bridge", is_copy)


STREAM = "QPUBSUB"


def _message(stream: int, consumer: int) -> Any:
    metadata = SimpleNamespace(stream=STREAM, sequence=SimpleNamespace(stream=stream, consumer=consumer))
    return SimpleNamespace(subject="mq.a", headers=None, data=b"", metadata=metadata)


def _end(status: str, left: int, why: str = "") -> Any:
    headers = {"Status": status, "Description": why, "Nats-Pending-Messages": str(left)}
    return SimpleNamespace(subject=f"_INBOX.1.{STREAM}", headers=headers)


# What JetStream delivers as (sequence of the stream, of the consumer), and how the request for 10 ended; what is read
# as positions; whether something is lost.
DELIVERIES: list[tuple[str, list[Any], list[int], bool]] = [
    ("in order", [_message(3, 1), _message(4, 2), _message(9, 3)], [3, 4, 9], False),
    ("one was lost with a route", [_message(3, 1), _message(5, 3), _message(6, 4)], [3], True),
    ("the first was", [_message(4, 2)], [], True),
    ("nothing more", [_message(3, 1), _end("408", 9)], [3], False),
    ("the last was lost", [_message(3, 1), _end("408", 8)], [3], True),
    ("too long together", [_message(3, 1), _end("409", 9)], [3], False),
    ("the consumer is gone", [_message(3, 1), _end("409", 0, "Consumer Deleted")], [3], True),
    ("nobody answers", [_end("503", 10)], [], True),
]


@pytest.mark.parametrize(("came", "read", "lost"), [row[1:] for row in DELIVERIES], ids=[row[0] for row in DELIVERIES])
def test_nothing_is_read_behind_a_gap(came: list[Any], read: list[int], lost: bool) -> None:
    session: Any = SimpleNamespace(client=SimpleNamespace(new_inbox=lambda: "_INBOX.1"))
    reader = NatsReader(SimpleNamespace(), session)  # type: ignore[arg-type]
    reader.places[STREAM] = ConsumerPlace("log", "bridge", asked=10)
    for each in came:
        asyncio.run(reader._heard(each))
    assert [each.position for each in reader._came] == read
    assert bool(reader.lost) is lost


def test_the_length_of_the_headers_is_as_they_are_sent() -> None:
    """JetStream takes 65,535 bytes of them."""
    wanted = ForTree("a", properties=(("colour", "r\u00f6d"), ("size", "5")), retain=True, expiry=100)
    item = message_for(wanted, "bridge", 60)
    headers = {**item.headers, MESSAGE_ID: f"bridge-{bytes(range(1, 25)).hex()}"}
    lines = ["NATS/1.0", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    assert item.header_bytes == len("\r\n".join(lines).encode())
