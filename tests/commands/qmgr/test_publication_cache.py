"""Publications like one before come to the same puts, byte for byte, as on the whole way through the broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.context import Semantics
from commands.broker.outcome import Arrival
from commands.broker.puts import Put
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.broker import Broker
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.templates import cache as publication_cache
from commands.templates.cache import PublicationCache
from commands.templates.cached_puts import CachedPuts
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_REQUEST
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.selectors import message_properties
from streams.selectors.properties import _SYNONYMS, DERIVED, MQMD_FIELDS, MQMD_PREFIX, canonical_name
from tests.commands.replay.spark.worlds import CONTROL, EXPIRING, SETUP, START, messages

STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


class Pair:
    """The same messages by either way; what is retained is handed to those who look, as a replay on Spark does it."""

    def __init__(self, setup: str = SETUP, semantics: str = "v7") -> None:
        self.whole = Broker("QM1", setup, semantics)
        self.short = Broker("QM1", setup, semantics)
        self._space = self.short.space
        self.repeats = PublicationCache(self.short)
        self.again = 0

    def check(self, arrival: Arrival) -> None:
        wanted = list(_puts(arrival, self._whole(arrival)))
        assert list(_puts(arrival, self._short(arrival))) == wanted
        assert self._space.subscriptions() == self.whole.space.subscriptions()

    def _whole(self, arrival: Arrival) -> Any:
        self._held = self.whole.space.retained_publications()
        return self.whole.process(arrival)

    def _short(self, arrival: Arrival) -> Any:
        if arrival.queue == CONTROL:
            self._space.forget_retained()
            for each in self._held:
                self._space.retain(each)
            return self.short.process(arrival)
        made = self.repeats.process(arrival)
        self.again += isinstance(made, CachedPuts)
        return made


def _puts(arrival: Arrival, made: Any) -> Iterator[Put]:
    if isinstance(made, CachedPuts):
        return made.puts(arrival.seq)
    return (Put.of(arrival.seq, n, put) for n, put in enumerate(made.puts))


def _arrival(message: CapturedMessage, seq: int, **changed: Any) -> Arrival:
    given = Arrival(seq, message.time or START, message.queue, message.md, message.body, message.user)
    return replace(given, **changed)


def _stamped(md: bytes | None, number: int) -> bytes | None:
    """The descriptor of another put by the same program."""
    if md is None:
        return None
    return md[:48] + b"PUT " + number.to_bytes(20, "big") + md[72:304] + b"%016d" % number + md[320:]


@st.composite
def repeating(draw: st.DrawFn) -> list[Arrival]:
    """A few messages, each put again and again with other data, in any order, while a clock goes on."""
    pool = draw(messages(None))
    picked = draw(st.lists(st.sampled_from(pool), max_size=120)) if pool else []
    now = START
    arrivals = []
    for number, message in enumerate(picked, 1):
        now += timedelta(milliseconds=draw(st.sampled_from([0, 3, 400, 1500])))
        body = message.body + draw(st.sampled_from([b"", b"x", b"RFH \0\0\0\2"]))
        arrivals.append(_arrival(message, number, now=now, md=_stamped(message.md, number), body=body))
    return arrivals


@pytest.mark.parametrize(("setup", "semantics"), [(SETUP, "v7"), (SETUP, "v6"), (EXPIRING, "v7")])
def test_any_messages_put_again_and_again(setup: str, semantics: str) -> None:
    @given(arrivals=repeating())
    def check(arrivals: list[Arrival]) -> None:
        pair = Pair(setup, semantics)
        for arrival in arrivals:
            pair.check(arrival)

    check()


@pytest.mark.parametrize("semantics", list(Semantics))
def test_a_workload_is_mostly_repeats(semantics: Semantics) -> None:
    knobs = WorkloadOptions(
        messages=1500, topics=30, subscribers=40, control=0.03, errors=0.02, strays=0.01, expiring=0.2
    )
    pair = Pair(setup_script(knobs), semantics.value)
    for message in Workload(knobs).messages():
        pair.check(_arrival(message, message.seq))
    assert pair.again > 800


def _published(setup: str, count: int = 5, **changed: Any) -> Pair:
    wanted = CommandSpec("Publish", ("a",), data="data", mqmd=Mqmd(user_identifier="ann"), queue=STREAM)
    message = command_message(replace(wanted, **changed))
    pair = Pair(setup)
    for number in range(1, count + 1):
        now = START + timedelta(seconds=number)
        body = message.body + b"%d" % number
        pair.check(_arrival(message, number, now=now, md=_stamped(message.md, number), body=body))
    return pair


SUBSCRIBED = [
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(RFH2)", 3, id="in-mqrfh2"),
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(COMPAT)", 3, id="in-mqrfh"),
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(MSGPROP)", 0, id="in-properties"),
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(NONE)", 0, id="without-any"),
    pytest.param("DEFINE SUB(S) TOPICSTR('b') DEST(Q) PSPROP(RFH2)", 3, id="of-another-topic"),
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(RFH2) SELECTOR('x = 1')", 3, id="by-the-header"),
    pytest.param("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(RFH2) SELECTOR('JMSTimestamp > 1')", 0, id="by-the-time"),
    pytest.param(
        "DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(RFH2) SELECTOR('Root.MQMD.PutTime <> ''x''')", 0, id="by-put-time"
    ),
]


@pytest.mark.parametrize(("setup", "again"), SUBSCRIBED)
def test_what_a_subscriber_wants_decides_whether_it_can_be_kept(setup: str, again: int) -> None:
    assert _published(setup).again == again


PUBLISHED = [
    pytest.param({"options": ("RetainPub",)}, 3, id="retained"),
    pytest.param({"mqmd": Mqmd(msg_type=MQMT_REQUEST, reply_to_q="R")}, 3, id="with-an-answer"),
    pytest.param({"mqmd": Mqmd(expiry=30)}, 3, id="that-expires"),
    pytest.param({"topics": ("a", "b")}, 3, id="to-two-topics"),
    pytest.param({"topics": ()}, 0, id="in-error"),
    pytest.param({"queue": "SOME.QUEUE"}, 0, id="on-another-queue"),
    pytest.param({"rfh1": True}, 3, id="in-mqrfh"),
    pytest.param({"usr": {"x": 1}}, 3, id="with-properties"),
]


@pytest.mark.parametrize(("changed", "again"), PUBLISHED)
def test_what_is_published_decides_whether_it_can_be_kept(changed: dict[str, Any], again: int) -> None:
    assert _published("DEFINE SUB(S) TOPICSTR('a') DEST(Q) PSPROP(RFH2)", **changed).again == again


def test_a_format_that_announces_a_header_is_not_kept() -> None:
    """The data may be a header, or none: what is told depends on them."""
    message = command_message(
        CommandSpec("Publish", ("a",), data="data", mqmd=Mqmd(user_identifier="ann"), queue=STREAM)
    )
    body = message.body.replace(b"MQSTR   ", b"MQHRF2  ")
    assert body != message.body
    head = body[: int.from_bytes(body[8:12], "little")]
    second = command_message(CommandSpec("Publish", ("b",), mqmd=Mqmd(), queue=STREAM)).body
    pair = Pair("DEFINE SUB(S) TOPICSTR('#') DEST(Q) PSPROP(RFH2)")
    for number, data in enumerate([b"", b"", b"", second, b"no header", second, b""], 1):
        pair.check(_arrival(message, number, body=head + data))
    assert pair.again == 0


def test_what_subscribers_come_and_go_is_seen() -> None:
    pair = Pair("DEFINE QLOCAL(Q)")
    publish = command_message(
        CommandSpec("Publish", ("a",), data="data", mqmd=Mqmd(user_identifier="ann"), queue=STREAM)
    )
    come, go = (
        command_message(
            CommandSpec(word, ("a",), (), {}, mqmd=Mqmd(user_identifier="ann", reply_to_q="Q"), queue=CONTROL)
        )
        for word in ("RegSub", "DeregSub")
    )
    counts = []
    for number, message in enumerate([publish] * 4 + [come] + [publish] * 3 + [go] + [publish] * 3, 1):
        pair.check(_arrival(message, number, md=_stamped(message.md, number)))
        counts.append(pair.again)
    assert counts == [0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7]


def test_room_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication_cache, "_ROOM", 40)
    monkeypatch.setattr(publication_cache, "_MOST_SEEN", 10)
    knobs = WorkloadOptions(messages=800, topics=30, subscribers=20, control=0.02)
    pair = Pair(setup_script(knobs))
    for message in Workload(knobs).messages():
        pair.check(_arrival(message, message.seq))
        assert pair.repeats.room >= 0
    assert pair.again > 0


def test_more_subscribers_than_are_counted_beforehand() -> None:
    count = 1100
    setup = "\n".join(f"DEFINE SUB(S{n}) TOPICSTR('a') DEST(Q{n}) PSPROP(RFH2)" for n in range(count))
    assert _published(setup, count=3).again == 1


NAMES = [*(MQMD_PREFIX + field for field in MQMD_FIELDS), *DERIVED, *_SYNONYMS]


@pytest.mark.parametrize("name", NAMES)
def test_filters_by_what_each_put_has_of_its_own_are_known_by_their_names(name: str) -> None:
    own = {"msg_id": b"M" * 24, "put_date": "20260101", "put_time": "12000000"}
    canonical = canonical_name(name, 0)
    one, other = (message_properties(Message(mqmd))(canonical) for mqmd in (Mqmd(), replace(Mqmd(), **own)))
    assert (one != other) == (publication_cache._OF_EACH_PUT.search(name) is not None)
