"""Guide 2.5.1.1: subscriptions made before version 7 always use the character-based wildcards, whatever their header.

The message brokers had the topic-based ones for MQRFH2 (guide 8.1), and keep them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.broker.objects import DEFAULT_STREAM
from migrate import migmbbrk, strmqbrk
from migrate.assemble import assemble, of_product
from migrate.cli.cutover import broker_of
from migrate.embedded import applied
from migrate.legacy_state import Item, LegacyState, LegacySubscription, Product, Source
from migrate.plan import Marker, MigrationPlan, Phase, PlanOptions, Tool
from migrate.readers import captures
from migrate.readers.sources import read_sources
from migrate.target import Target
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord, write_captures
from streams.subscriptions import PublicationFormat, WildcardScheme
from tests.migrate.legacy_messages import NOW, psc, publish, register

CHAR, TOPIC = WildcardScheme.CHAR, WildcardScheme.TOPIC
LISTED = (
    f"Subscribers\nStreamName: {DEFAULT_STREAM}\n Topic: Weather/*/Temp\n ApplCount: 1\n"
    " QMgrName: QM1\n QName: W.Q\n UserIdentifier: anne\n RegistrationOptions: PersAsPub\n"
)


def with_mqrfh2(seq: int, topic: str, command: str = "RegSub") -> CapturedMessage:
    return psc(seq, f"<Command>{command}</Command><Topic>{topic}</Topic>", reply_to="W.Q", user="anne")


def items(messages: list[CapturedMessage], product: Product = Product.MQ) -> list[Item]:
    records = [CaptureRecord("capture", n, message, None, n) for n, message in enumerate(messages)]
    return list(captures.read(records, True, "QM1", product))


def of_version_6(messages: list[CapturedMessage]) -> tuple[MigrationPlan, Target]:
    target = Target.fresh("QM1")
    plan = strmqbrk.plan(assemble(items(messages), "QM1"), target, PlanOptions(), NOW)
    return plan, applied(plan, target)


def of_message_broker(messages: list[CapturedMessage]) -> Target:
    target = Target.fresh("QM1")
    target.objects.put(Marker(Tool.MIGMBBRK, Phase.INITIAL, "20090128T114354Z", "0" * 40).namelist())
    state = of_product(assemble(items(messages, Product.WMB), "QM1"), "BRK1", Product.WMB)
    return applied(migmbbrk.plan(state, target, PlanOptions(accept_changed=True), NOW, Phase.COMPLETE), target)


def received(target: Target, topic: str) -> list[str]:
    """The queues that a publication on *topic* goes to."""
    return [put.queue for put in broker_of(target).handle(publish(90, topic, retain=False))]


PATTERNS = [
    ("Weather/*/Temp", "Weather/Tokyo/Temp", True, False),
    ("Weather/?", "Weather/x", True, False),
    ("Weather/#", "Weather/Tokyo", False, True),
    ("Weather/+/Temp", "Weather/Tokyo/Temp", False, True),
    ("Weather", "Weather", True, True),
]


@pytest.mark.rule("MIG-16")
@pytest.mark.parametrize(("pattern", "topic", "version_6", "message_broker"), PATTERNS, ids=[p[0] for p in PATTERNS])
def test_2_5_1_1_what_a_subscription_with_mqrfh2_receives(
    pattern: str, topic: str, version_6: bool, message_broker: bool
) -> None:
    messages = [with_mqrfh2(1, pattern)]
    _, migrated = of_version_6(messages)
    assert [s.wildcard for s in migrated.subscriptions] == [CHAR]
    assert (received(migrated, topic) == ["W.Q"]) is version_6
    brokers = of_message_broker(messages)
    assert [s.wildcard for s in brokers.subscriptions] == [TOPIC]
    assert (received(brokers, topic) == ["W.Q"]) is message_broker


def test_version_6_cleared_by_character_too() -> None:
    kept = [publish(1, "Weather/Tokyo"), publish(2, "News")]
    gone = psc(3, "<Command>DeletePub</Command><Topic>Weather/*</Topic>", queue=DEFAULT_STREAM)
    assert list(of_version_6([*kept, gone])[1].retained) == ["News"]
    assert sorted(of_message_broker([*kept, gone]).retained) == ["News", "Weather/Tokyo"]


def test_version_6_knew_a_pattern_in_both_headers_as_one() -> None:
    messages = [register(1, "a/*", queue_name="W.Q", user="anne"), with_mqrfh2(2, "a/*")]
    registered = {
        product: sum(isinstance(item, LegacySubscription) for item in items(messages, product)) for product in Product
    }
    assert registered == {Product.MQ: 1, Product.WMB: 2}


@pytest.mark.rule("MIG-16")
@pytest.mark.parametrize("command", ["RegSub", "ReqUpdate", "DeregSub"])
@pytest.mark.parametrize("pattern", ["Weather/*", "Weather/#", "Weather"])
def test_its_program_finds_it_again_with_mqrfh2(pattern: str, command: str) -> None:
    """Field notes: programs register again at each start; nothing may be delivered twice, and nothing be left over."""
    _, target = of_version_6([with_mqrfh2(1, pattern), publish(2, "Weather")])
    broker = broker_of(target)
    outcome, _ = broker.replay(with_mqrfh2(3, pattern, command))
    # Nothing is retained on a topic Weather/#.
    assert outcome.completion == "ok" or outcome.reason == 3077
    left = broker.space.subscriptions()
    assert [(s.topic_string, s.wildcard) for s in left] == ([] if command == "DeregSub" else [(pattern, CHAR)])


def test_another_header_means_another_subscription() -> None:
    """docs/conformance.md: the same text registered in MQRFH and in MQRFH2 is two where a scheme sees a wildcard."""
    _, target = of_version_6([register(1, "a/*", queue_name="W.Q", user="anne")])
    broker = broker_of(target)
    broker.replay(with_mqrfh2(2, "a/*"))
    assert [s.wildcard for s in broker.space.subscriptions()] == [CHAR, TOPIC]


@pytest.mark.parametrize("first", ["capture", "listing"])
def test_what_the_metatopics_tell_agrees(tmp_path: Path, first: str) -> None:
    capture, listing = tmp_path / "capture.jsonl", tmp_path / "amqspsd.txt"
    with capture.open("wb") as stream:
        write_captures([with_mqrfh2(1, "Weather/*/Temp")], stream, "jsonl")
    listing.write_text(LISTED)
    sources = [str(capture), str(listing)] if first == "capture" else [str(listing), str(capture)]
    plan = strmqbrk.plan(read_sources(sources, "QM1"), Target.fresh("QM1"), PlanOptions(), NOW)
    (made,) = plan.subscriptions
    assert (made.subscription.wildcard, made.subscription.format) == (CHAR, PublicationFormat.RFH2)
    said = [reason.text for fate in plan.fates for reason in fate.reasons]
    assert not any("the same registration with another" in text for text in said)


def test_a_state_that_says_otherwise_is_told_of() -> None:
    source = Source(file="state.json")
    told = [
        LegacySubscription(source=source, topic=topic, queue=f"Q{n}", user="anne", scheme=TOPIC)
        for n, topic in enumerate(("a/*", "a/+", "plain", "100%%"))
    ]
    state = LegacyState(qmgr="QM1", subscriptions=tuple(told))
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    assert {step.subscription.wildcard for step in plan.subscriptions} == {CHAR}
    said = [any("D14" in reason.ids for reason in fate.reasons) for fate in plan.fates if fate.key[0] == "subscription"]
    assert said == [True, True, False, True]


def test_the_scheme_in_a_state_file_is_kept_for_the_message_brokers(tmp_path: Path) -> None:
    item = {"source": {"file": "x"}, "topic": "a/+", "queue": "Q", "scheme": "topic", "format": "rfh2"}
    body = {"format": "qpubsub-legacy-state", "qmgr": "QM1", "subscriptions": [item]}
    (tmp_path / "state.json").write_text(json.dumps(body))
    (read,) = read_sources([str(tmp_path / "state.json")], "QM1", Product.WMB).subscriptions
    assert read.scheme is TOPIC
