"""Records of Kafka and publications of queue managers, both ways; which Kafka topic and key a topic string has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.config.settings import ConfigError, KafkaConfig, KafkaRoute
from commands.config.urls import parse_address
from commands.links.engine.properties import ForTree, native_of
from commands.links.kafka.cluster import Routes, record_of, records_for

NOW = 1_800_000_000_000
PLAIN = Routes(KafkaConfig())
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def _back(wanted: ForTree, at: int = 0, routes: Routes = PLAIN, now: int = NOW) -> Any:
    sent = records_for(wanted, "bridge", routes, NOW)[at]
    record = record_of(sent.topic, sent.key, sent.value, sent.headers, routes)
    assert (record.topic, record.bridge) == (wanted.topic, "bridge")
    return native_of(record, now / 1000)


@given(
    TEXT, st.binary(), st.lists(st.tuples(TEXT.filter(lambda name: not name.startswith("mq.")), TEXT)), st.booleans()
)
def test_a_publication_goes_there_and_back(
    topic: str, payload: bytes, properties: list[tuple[str, str]], persistent: bool
) -> None:
    given_ = tuple(properties)
    native = _back(ForTree(topic, payload=payload, persistent=persistent, priority=3, format="X", properties=given_))
    assert (native.payload, native.properties, native.persistent) == (payload, given_, persistent)
    assert (native.priority, native.format, native.retain) == (3, "X", False)


def test_what_is_retained_and_what_clears_it_are_two_records_with_one_value() -> None:
    kept, cleared = ForTree("a/b", payload=b"x", retain=True), ForTree("a/b", clear=True)
    for wanted, value in ((kept, b"x"), (cleared, None)):
        first, second = records_for(wanted, "bridge", PLAIN, NOW)
        assert [(each.topic, each.key, each.value) for each in (first, second)] == [
            ("qpubsub", b"a/b", value),
            ("qpubsub.retained", b"a/b", value),
        ]
        copy = record_of(second.topic, second.key, second.value, second.headers, PLAIN)
        assert (copy.bridge, copy.is_copy, copy.is_kept) == ("bridge", True, True)
    assert _back(kept).retain
    assert _back(cleared).clears


def test_an_empty_retained_publication_is_no_tombstone() -> None:
    record = records_for(ForTree("a", retain=True), "bridge", PLAIN, NOW)[1]
    assert record.value == b""
    native = native_of(record_of("qpubsub.retained", b"a", b"", (), PLAIN), NOW / 1000)
    assert native is not None
    assert not native.clears


def test_an_expiry_is_what_is_left_and_an_expired_record_is_none() -> None:
    wanted = ForTree("a", payload=b"x", expiry=600)
    assert _back(wanted, now=NOW + 20_000).expiry_s == 40.0
    assert _back(wanted, now=NOW + 60_000) is None


def test_headers_of_natives_that_are_no_text_can_be_read() -> None:
    headers: Any = [("schema", b"\x00\xff"), ("none", None)]
    native = native_of(record_of("qpubsub", b"a", b"x", headers, PLAIN), NOW / 1000)
    assert native is not None
    assert native.properties == (("schema", "\x00\\xff"), ("none", ""))


def test_the_first_of_headers_with_one_name_counts_and_the_others_are_properties() -> None:
    wanted = ForTree("a", payload=b"x", format="MQSTR", properties=(("content-type", "mine"), ("n", "1"), ("n", "2")))
    native = _back(wanted)
    assert native.format == "MQSTR"
    assert native.properties == (("content-type", "mine"), ("n", "1"), ("n", "2"))


ROUTES = Routes(
    KafkaConfig(
        topic="mq",
        routes=(
            KafkaRoute(pattern="Orders/+/new", topic="orders", key="{2}", native="Orders/{key}/new"),
            KafkaRoute(pattern="Orders/#", topic="orders-other", native="Orders"),
        ),
    )
)
PLACES = [
    ("Orders/7/new", "orders", b"7"),
    ("Orders/7/old", "orders-other", b"Orders/7/old"),
    ("Orders", "orders-other", b"Orders"),
    ("Sport/Käse", "mq", "Sport/Käse".encode()),
]


@pytest.mark.parametrize(("topic_string", "topic", "key"), PLACES, ids=[row[0] for row in PLACES])
def test_the_first_route_that_selects_a_topic_string_says_where_it_goes(
    topic_string: str, topic: str, key: bytes
) -> None:
    assert ROUTES.place_of(topic_string) == (topic, key)
    assert _back(ForTree(topic_string, payload=b"x"), routes=ROUTES).payload == b"x"


NATIVES = [
    ("orders", b"7", (), "Orders/7/new"),
    ("orders", None, (), None),
    ("orders", b"\xff", (), None),
    ("orders", b"7", (("mq.Topic", b"said/so"),), "said/so"),
    ("orders-other", None, (), "Orders"),
    ("mq", b"a/b", (), "a/b"),
    ("mq.retained", b"a/b", (("mq.Topic", b"other"),), "a/b"),
]


@pytest.mark.parametrize(("topic", "key", "headers", "wanted"), NATIVES)
def test_the_topic_string_of_a_native_record(topic: str, key: bytes | None, headers: Any, wanted: str | None) -> None:
    assert record_of(topic, key, b"x", headers, ROUTES).topic == wanted


WRONG = [
    ({"topic": "a b"}, "a b cannot be"),
    ({"routes": [{"pattern": "a", "topic": "qpubsub.state"}]}, "cannot be"),
    ({"routes": [{"pattern": "a", "topic": "a", "key": "{0}"}]}, "{0} is not part"),
    ({"routes": [{"pattern": "a", "topic": "a", "native": "{topic}"}]}, "{topic} is not part"),
]


@pytest.mark.parametrize(("config", "why"), WRONG, ids=[row[1] for row in WRONG])
def test_a_route_that_cannot_be_is_told(config: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as told:
        Routes(KafkaConfig.model_validate(config))
    assert why in str(told.value)


def test_a_url_may_name_several_brokers() -> None:
    address = parse_address("kafka://a:9000,b,c:9001/", "--topics")
    assert (address.host, address.port, address.more, address.secure) == ("a", 9000, ("b", "c:9001"), False)
    assert parse_address("kafkas://a", "--topics").secure
