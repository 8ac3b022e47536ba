"""After a migration each subscriber gets what version 6 gave it, save what the report announced.

A workload of version 6 is cut in two. The first part is captured and migrated; the second is run on version 6, which
goes on, and on the migrated queue manager. Each subscription has a queue of its own, so that who received what shows.
A difference has to be announced: by a note on the subscription (D02, D20), or by the list of those that see more or
less. For that to be possible all topics of the second part are known at the migration: somebody registers as their
publisher.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.puts import PutKind
from commands.mqsc.broker import Broker
from migrate import source_checks, strmqbrk
from migrate.assemble import assemble
from migrate.cli.cutover import broker_of
from migrate.embedded import applied
from migrate.plan import MigrationPlan, PlanOptions
from migrate.readers import captures
from migrate.target import Target
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.message import decode
from tests.migrate.legacy_messages import psc, publish, register, rfh1

STREAMS = (DEFAULT_STREAM, "Sport", "Business")
PLAIN = ("a", "a/b", "a/b/c", "x/a", "x")
COLLIDING = (*PLAIN, "Sport/a", "Sport", "Business/a/b")
PATTERNS = ("*", "a*", "a/?", "Sport/*", "S*t/a", "a/b", "*/b", "?", "x")
# Version 6 read these by character too (guide 2.5.1.1): some are patterns, some are topics that look like patterns.
WITH_MQRFH2 = ("*", "a*", "a/?", "*/b", "S*t/a", "a/b", "#", "a/#", "+/b", "a/*/c", "x")


@dataclass(frozen=True)
class Subscriber:
    """One subscription, with a queue of its own."""

    number: int
    stream: str
    pattern: str
    rfh2: bool
    local: bool
    name: str | None

    @property
    def queue(self) -> str:
        return f"Q{self.number}"

    def registers(self, seq: int) -> CapturedMessage:
        user = f"user{self.number}"
        if self.rfh2:
            name = f"<SubName>{self.name}</SubName>" if self.name else ""
            local = "<RegOpt>Local</RegOpt>" if self.local else ""
            folder = f"<Command>RegSub</Command><Topic>{self.pattern}</Topic>{name}{local}"
            return psc(seq, folder, reply_to=self.queue, user=user)
        options = ["Local"] if self.local else []
        return register(
            seq, self.pattern, self.stream, name=self.name, options=options, queue_name=self.queue, user=user
        )

    def deregisters(self, seq: int) -> CapturedMessage:
        user = f"user{self.number}"
        if self.rfh2:
            return psc(seq, f"<Command>DeregSub</Command><Topic>{self.pattern}</Topic>", reply_to=self.queue, user=user)
        pairs = [("Command", "DeregSub"), ("StreamName", self.stream), ("Topic", self.pattern), ("QName", self.queue)]
        return rfh1(seq, pairs, user=user)

    def asks(self, seq: int) -> CapturedMessage:
        user = f"user{self.number}"
        if self.rfh2:
            return psc(
                seq, f"<Command>ReqUpdate</Command><Topic>{self.pattern}</Topic>", reply_to=self.queue, user=user
            )
        pairs = [("Command", "ReqUpdate"), ("StreamName", self.stream), ("Topic", self.pattern), ("QName", self.queue)]
        return rfh1(seq, pairs, user=user)


@st.composite
def subscribers(draw: st.DrawFn, number: int) -> Subscriber:
    rfh2 = draw(st.booleans())
    return Subscriber(
        number,
        DEFAULT_STREAM if rfh2 else draw(st.sampled_from(STREAMS)),
        draw(st.sampled_from(WITH_MQRFH2 if rfh2 else PATTERNS)),
        rfh2,
        draw(st.booleans()),
        draw(st.sampled_from((None, None, f"name{number}"))),
    )


@dataclass(frozen=True)
class Workload:
    """topics: those that are known at the migration. kept: what is retained before it; events: what comes after."""

    everyone: list[Subscriber]
    topics: tuple[str, ...]
    kept: list[tuple[str, str]]
    events: list[tuple[str, Any]]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    everyone = [draw(subscribers(number)) for number in range(draw(st.integers(1, 6)))]
    topics = draw(st.sampled_from((PLAIN, PLAIN, COLLIDING)))
    published = st.tuples(st.sampled_from(STREAMS), st.sampled_from(topics))
    kept = draw(st.lists(published, max_size=5))
    who = st.integers(0, len(everyone) - 1)
    event = st.one_of(
        st.tuples(st.just("publish"), published),
        st.tuples(st.just("retain"), published),
        st.tuples(st.just("deregister"), who),
        st.tuples(st.just("ask"), who),
    )
    return Workload(everyone, topics, kept, draw(st.lists(event, min_size=1, max_size=10)))


def first_part(workload: Workload) -> list[CapturedMessage]:
    messages = [one.registers(seq) for seq, one in enumerate(workload.everyone, 1)]
    for stream in STREAMS:
        for topic in workload.topics:
            pairs = [("Command", "RegPub"), ("StreamName", stream), ("Topic", topic), ("QName", "P.Q")]
            messages.append(rfh1(len(messages) + 1, pairs))
    for stream, topic in workload.kept:
        seq = len(messages) + 1
        messages.append(publish(seq, topic, stream, f"{stream}: {topic} {seq}".encode()))
    return messages


def message_of(workload: Workload, event: tuple[str, Any], seq: int) -> CapturedMessage:
    what, about = event
    if what in ("publish", "retain"):
        stream, topic = about
        return publish(seq, topic, stream, f"{stream}: {topic} {seq}".encode(), retain=what == "retain")
    one = workload.everyone[about]
    return one.deregisters(seq) if what == "deregister" else one.asks(seq)


def stream_of(message: CapturedMessage) -> str:
    if message.queue != CONTROL_QUEUE:
        return message.queue
    header = message.decode().rfh1
    return DEFAULT_STREAM if header is None else dict(header.pairs()).get("MQPSStreamName", DEFAULT_STREAM)


def received(broker: Broker, message: CapturedMessage) -> Counter[tuple[str, bytes]]:
    _, puts = broker.replay(message)
    return Counter(
        (put.queue, decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex)).body)
        for put in puts
        if put.kind is PutKind.PUBLICATION
    )


def migrated(messages: list[CapturedMessage]) -> tuple[captures.Legacy, MigrationPlan, Target]:
    """The version 6 brokers after *messages*, and what their state is migrated to."""
    records = [CaptureRecord("capture", n, message, None, n) for n, message in enumerate(messages)]
    legacy = captures.Legacy("QM1")
    items = [*captures.replayed(records, True, legacy), *captures.state_of(legacy)]
    target = Target.fresh("QM1")
    now = messages[-1].time
    assert now is not None
    plan = strmqbrk.plan(assemble(items, "QM1"), target, PlanOptions(), now)
    return legacy, plan, applied(plan, target)


@dataclass
class Announced:
    """What was said of one subscription: differences by their numbers, topics that it sees more or less of."""

    ids: set[str] = field(default_factory=set)
    more: set[str] = field(default_factory=set)
    less: set[str] = field(default_factory=set)


def announced(plan: MigrationPlan) -> dict[str, Announced]:
    """By queue. A retained publication that stayed behind is one that every subscription on its topic sees less of."""
    queues = {("subscription", n): s.queue for n, s in enumerate(plan.state.subscriptions, 1)}
    said = {queue: Announced() for queue in queues.values()}
    for fate in plan.fates:
        if fate.key in queues:
            assert fate.verdict != "reported", "in this workload all can be migrated"
            said[queues[fate.key]].ids.update(known for reason in fate.reasons for known in reason.ids)
    for view in plan.visibility:
        said[queues[view.key]].more.update(view.gained)
        said[queues[view.key]].less.update(view.lost)
    return said


def topic_of(data: bytes) -> str:
    """The topic that a publication of these tests was on, as the report shows topics."""
    stream, _, rest = data.decode().partition(": ")
    topic = rest.rpartition(" ")[0]
    return topic if stream == DEFAULT_STREAM else f"{stream}: {topic}"


@pytest.mark.rule("MIG-1")
@example(
    Workload(
        [Subscriber(0, DEFAULT_STREAM, "*", False, False, None), Subscriber(1, "Sport", "*", False, False, None)],
        COLLIDING,
        [],
        [("publish", (DEFAULT_STREAM, "Sport/a"))],
    )
)
@given(workloads())
def test_what_version_6_gave_or_what_was_announced(workload: Workload) -> None:
    before = first_part(workload)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source_checks, "EXAMPLES", 1_000)
        legacy, plan, target = migrated(before)
    after, said = broker_of(target), announced(plan)
    overlaid = {fate.label for fate in plan.fates if fate.key[0] == "retained" and fate.verdict == "reported"}
    ended: set[str] = set()
    for number, event in enumerate(workload.events):
        message = message_of(workload, event, len(before) + number + 1)
        old, new = received(legacy.broker(stream_of(message)), message), received(after, message)
        for queue, data in old - new:
            # Somebody who asks by his queue alone is not found under his name; what was overlaid was said to be.
            by_queue_alone = event[0] == "ask" and "D20" in said[queue].ids
            mixed = event[0] == "ask" and (overlaid or workload.topics == COLLIDING)
            assert by_queue_alone or mixed or topic_of(data) in said[queue].less, (queue, data, event)
        for queue, data in new - old:
            local = "D02" in said[queue].ids
            left = queue in ended and "D20" in said[queue].ids
            mixed = event[0] == "ask" and workload.topics == COLLIDING
            assert local or left or mixed or topic_of(data) in said[queue].more, (queue, data, event)
        if event[0] == "deregister":
            ended.add(workload.everyone[event[1]].queue)


def test_the_results_service_goes_on() -> None:
    """The guide's own example (6.1): version 6 applications on stream Sport work without change."""
    result = [register(1, "Soccer/Results", "Sport", queue_name="RESULTS.Q"), publish(2, "Soccer/Results", "Sport")]
    _, plan, target = migrated(result)
    broker = broker_of(target)
    (put,) = broker.handle(publish(3, "Soccer/Results", "Sport", b"3:1"))
    assert (put.queue, put.topic) == ("RESULTS.Q", "Sport/Soccer/Results")
    header = decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex)).rfh1
    assert header is not None
    assert ("MQPSTopic", "Soccer/Results") in header.pairs(), "the prefix is removed again"
    assert plan.visibility == ()


@pytest.mark.rule("MIG-14")
def test_7_6_1_a_program_registers_again_under_its_old_name() -> None:
    """Field notes: programs register again after a crash, and expect ok; nothing may be delivered twice then."""
    again = register(3, "Soccer/*", "Sport", name="evening", queue_name="E.Q", user="u")
    first = [register(1, "Soccer/*", "Sport", name="evening", queue_name="E.Q", user="u"), publish(2, "x", "Sport")]
    _, _, target = migrated(first)
    broker = broker_of(target)
    outcome, _ = broker.replay(again)
    assert outcome.completion == "ok"
    assert [s.name for s in broker.space.subscriptions()] == ["evening:Sport"]
    assert len(broker.handle(publish(4, "Soccer/Results", "Sport", retain=False))) == 1


def test_8_5_a_program_deregisters_by_its_queue() -> None:
    """A subscription without a name keeps its traditional identity, also on a stream, also with a CorrelId."""
    correl_id = b"C" * 24
    options = {"options": ["CorrelAsId"], "correl_id": correl_id, "queue_name": "E.Q", "user": "u"}
    _, _, target = migrated([register(1, "Soccer/*", "Sport", **options), register(2, "a", queue_name="F.Q", user="u")])
    broker = broker_of(target)
    pairs = [("Command", "DeregSub"), ("StreamName", "Sport"), ("Topic", "Soccer/*"), ("QName", "E.Q")]
    gone = rfh1(3, [*pairs, ("RegOpts", "CorrelAsId")], correl_id=correl_id, user="u")
    assert broker.replay(gone)[0].completion == "ok"
    assert [s.dest_queue for s in broker.space.subscriptions()] == ["F.Q"]
