"""Laws of networks: exactly once in scope, whatever the order of flows; a network of one is the broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from commands.mqsc.broker import Broker
from commands.network.network import Channel
from commands.replay.network.local import NetworkReplay, NetworkSetup, QueueManagerSetup
from rfh2.captured import CapturedMessage
from streams.patterns import parse_topic_pattern
from tests.commands.guide_scenarios import GuideScenario, scenarios
from tests.commands.network.world import World, at

CLUSTERED = "a"
TOPICS = ["a", "a/x", "a/y/z", "b", "b/x"]
PATTERNS = [*TOPICS, "a/#", "a/+", "b/#", "+/x", "#"]


@dataclass(frozen=True)
class Plan:
    """A network without loops: of each queue manager its parent and its clusters."""

    parents: tuple[int | None, ...]
    clusters: tuple[str, ...]

    def setups(self) -> list[QueueManagerSetup]:
        hosts: dict[str, int] = {}
        for n, cluster in enumerate(self.clusters):
            hosts.setdefault(cluster, n)
        return [
            at(
                f"QM{n}",
                "" if parent is None else f"QM{parent}",
                *filter(None, [self.clusters[n]]),
                setup=f"DEFINE TOPIC(A) TOPICSTR('{CLUSTERED}') CLUSTER({self.clusters[n]})"
                if self.clusters[n] and hosts[self.clusters[n]] == n
                else "",
            )
            for n, parent in enumerate(self.parents)
        ]

    def reaches(self, publisher: int, subscriber: int, topic: str, pattern: str) -> bool:
        """Whether each connection on the one path is one that this publication and this subscription go by."""
        in_clusters = all(each == CLUSTERED or each.startswith(CLUSTERED + "/") for each in (topic, pattern))
        reached, waiting = {publisher}, [publisher]
        while waiting:
            here = waiting.pop()
            for there in range(len(self.parents)):
                by_hierarchy = self.parents[here] == there or self.parents[there] == here
                by_cluster = self.clusters[here] != "" and self.clusters[here] == self.clusters[there]
                if there not in reached and (by_hierarchy or (by_cluster and in_clusters)):
                    reached.add(there)
                    waiting.append(there)
        return subscriber in reached


@st.composite
def plans(draw: st.DrawFn, hierarchies_only: bool = False) -> Plan:
    """Each queue manager joins one before it: as its child, in its cluster, both, or not at all."""
    parents: list[int | None] = [None]
    clusters = [""]
    for n in range(1, draw(st.integers(1, 6))):
        other = draw(st.integers(0, n - 1))
        how = draw(st.sampled_from(["child"] if hierarchies_only else ["child", "cluster", "both", "apart"]))
        cluster = ""
        if how in ("cluster", "both"):
            clusters[other] = cluster = clusters[other] or f"CL{other}"
        parents.append(other if how in ("child", "both") else None)
        clusters.append(cluster)
    return Plan(tuple(parents), tuple(clusters))


@dataclass
class Subscriber:
    """A subscription, and what the law says it gets. sure, possible: publications, by number."""

    qmgr: int
    pattern: str
    local: bool
    sure: list[int] = field(default_factory=list)
    possible: set[int] = field(default_factory=set)

    def matches(self, topic: str) -> bool:
        return parse_topic_pattern(self.pattern).matches(topic)


def any_order(random: Random) -> Any:
    """Flows arrive in any order that keeps those of each channel."""

    def choose(waiting: Sequence[Channel]) -> Channel:
        return random.choice(waiting)

    return choose


# Once failures: a cluster's members that the hierarchy connects too.
CHILDREN_IN_THEIR_CLUSTER = Plan((None, 0, None, None, 2, 0), ("CL0", "", "CL0", "", "CL0", ""))
CHAIN_IN_ITS_CLUSTER = Plan((None, 0, 1, 0), ("CL0", "CL0", "CL0", ""))

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.integers(0, 5), st.sampled_from(PATTERNS), st.booleans()),
        st.tuples(st.just("deregister"), st.integers(0, 20), st.just(""), st.just(False)),
        st.tuples(st.just("publish"), st.integers(0, 5), st.sampled_from(TOPICS), st.booleans()),
        st.tuples(st.just("publish"), st.integers(0, 5), st.sampled_from(TOPICS), st.just(False)),
    ),
    max_size=20,
)


@pytest.mark.rule("DIS-1")
@given(plans(), ACTIONS, st.randoms(use_true_random=False))
@example(CHILDREN_IN_THEIR_CLUSTER, [("register", 0, "a/x", False), ("publish", 2, "a/x", False)], Random(0))
@example(CHAIN_IN_ITS_CLUSTER, [("register", 0, "a", False), ("publish", 2, "a", False)], Random(0))
def test_each_subscriber_in_scope_gets_each_publication_exactly_once(
    plan: Plan, actions: list[tuple[str, int, str, bool]], random: Random
) -> None:
    """Subscribers to local topics may also get what a cluster brings for others (3.1.3, table 3), but never twice."""
    world = World(*plan.setups(), next_channel=any_order(random))
    size = len(plan.parents)
    live: dict[str, Subscriber] = {}
    for number, (word, n, text, local) in enumerate(actions):
        options = ["Local"] if local else []
        if word == "register":
            queue = f"Q{number}"
            live[queue] = Subscriber(n % size, text, local)
            world.register(f"QM{n % size}", text, queue=queue, options=options)
        elif word == "deregister" and live:
            queue = sorted(live)[n % len(live)]
            gone = live.pop(queue)
            world.deregister(f"QM{gone.qmgr}", gone.pattern, queue=queue)
        elif word == "publish":
            world.publish(f"QM{n % size}", text, options=options)
            received = Counter(put.queue for put in world.puts)
            for queue, each in live.items():
                here, global_ = each.qmgr == n % size, not (local or each.local)
                if not each.matches(text) or not (here or global_):
                    assert received[queue] == 0, (queue, each)
                elif here or plan.reaches(n % size, each.qmgr, text, each.pattern):
                    assert received[queue] == 1, (queue, each)
                else:
                    assert received[queue] <= 1, (queue, each)
            assert set(received) <= set(live)


@pytest.mark.rule("DIS-8")
@given(plans(hierarchies_only=True), ACTIONS, st.randoms(use_true_random=False))
def test_each_subscriber_gets_what_is_retained_exactly_once(
    plan: Plan, actions: list[tuple[str, int, str, bool]], random: Random
) -> None:
    """Each topic is published by one queue manager alone, as guide 3.5 recommends."""
    world = World(*plan.setups(), next_channel=any_order(random))
    size = len(plan.parents)
    subscribers: dict[str, Subscriber] = {}
    retained: dict[str, int] = {}
    expected: Counter[tuple[str, int]] = Counter()
    received: Counter[tuple[str, int]] = Counter()
    for number, (word, n, text, retain) in enumerate(actions, 1):
        if word == "register":
            queue = f"Q{number}"
            subscribers[queue] = Subscriber(n % size, text, False)
            world.register(f"QM{n % size}", text, queue=queue)
            expected.update((queue, seq) for topic, seq in retained.items() if subscribers[queue].matches(topic))
        elif word == "publish":
            world.publish(f"QM{TOPICS.index(text) % size}", text, options=["RetainPub"] if retain else [])
            if retain:
                retained[text] = world.seq
            expected.update((queue, world.seq) for queue, each in subscribers.items() if each.matches(text))
        else:
            continue
        received.update((put.queue, _number(put.body_hex)) for put in world.puts)
    assert received == expected


def _number(body_hex: str) -> int:
    return int(bytes.fromhex(body_hex).rpartition(b"data ")[2])


ALL = [scenario for scenario in scenarios() if scenario.is_replay]


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_a_network_of_one_gives_the_puts_of_the_broker(scenario: GuideScenario) -> None:
    replay = NetworkReplay(NetworkSetup((at(scenario.qmgr, setup=scenario.setup, semantics=scenario.semantics),)))
    puts = [put.model_dump_json().encode() + b"\n" for put in replay.puts(scenario.messages)]
    assert b"".join(puts) == (scenario.path / "puts.jsonl").read_bytes()


CAPTURES = ["results-service", "results-service-rfh1"]


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_a_network_of_one_gives_the_puts_of_the_broker_for_a_capture(name: str, semantics: str) -> None:
    folder = Path(__file__).parents[3] / "fixtures" / name
    (capture,) = folder.glob("*capture*.jsonl")
    messages = [CapturedMessage(**json.loads(line)) for line in capture.read_text().splitlines()]
    (qmgr,) = {message.qmgr or "QM1" for message in messages}
    broker, replay = (
        Broker.of_capture(qmgr, "", semantics),
        NetworkReplay(NetworkSetup((at(qmgr, semantics=semantics),))),
    )
    for message in messages:
        assert replay.replay(message)[1] == broker.handle(message)
