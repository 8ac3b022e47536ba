"""Publications that are sent on without the broker of each queue manager: the same puts, retained, traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.outcome import Outcome
from commands.broker.puts import Put
from commands.replay.network.local import NetworkReplay, NetworkSetup, QueueManagerSetup
from commands.replay.put_columns import PutLines
from commands.templates.templates import PublicationTemplates
from rfh2.captured import CapturedMessage
from tests.commands.network.test_network_properties import PATTERNS, TOPICS, Plan, plans
from tests.commands.network.world import World, at
from tests.commands.network_scenarios import NetworkScenario, network_scenarios

LINE = (at("QM1"), at("QM2", parent="QM1"), at("QM3", parent="QM2"))


def compare(setups: Sequence[QueueManagerSetup], messages: Sequence[CapturedMessage]) -> int:
    """Replay both ways, which have to be equal; how many outcomes at other queue managers no broker has seen."""
    plain, quick = NetworkReplay(NetworkSetup(tuple(setups))), NetworkReplay(NetworkSetup(tuple(setups)))
    repeated = 0
    make = PublicationTemplates.outcome

    def counted(*given: Any) -> Outcome:
        nonlocal repeated
        repeated += 1
        return make(*given)

    for message in messages:
        written = BytesIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PublicationTemplates, "outcome", counted)
            quick.put_all(message, PutLines(written))
        wanted: list[Put] = plain.replay(message)[1]
        assert written.getvalue() == b"".join(put.model_dump_json().encode() + b"\n" for put in wanted)
    assert asdict(quick.counts) == asdict(plain.counts)
    assert quick.network.traffic == plain.network.traffic
    for qmgr, here in plain.network.queue_managers.items():
        there = quick.network.queue_managers[qmgr]
        assert retained(there.broker.space) == retained(here.broker.space)
        assert there.proxies_here == here.proxies_here
    return repeated


def retained(space) -> list[tuple[object, ...]]:  # type: ignore[no-untyped-def]
    found = [(each.topic_string, each.publication) for each in space.retained_publications()]
    return [(topic, held.message, held.published_at, held.expires_at, held.local, held.stream) for topic, held in found]


SCENARIOS = list(network_scenarios())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_figures_of_the_guide_twice_and_three_times(scenario: NetworkScenario) -> None:
    """What was published is published again and again, as programs do."""
    messages = scenario.messages
    published = [each for each in messages if each.queue != "SYSTEM.BROKER.CONTROL.QUEUE"]
    last = messages[-1].seq
    again = [each.model_copy(update={"seq": last + n}) for n, each in enumerate(published * 3, 1)]
    compare(scenario.setup.queue_managers, [*messages, *again])


def test_brokers_see_the_first_two_of_a_kind() -> None:
    world = World(*LINE)
    world.register("QM3", "a/#", queue="BOARD")
    world.register("QM2", "a/x", queue="OTHER", options=["Local"])
    for n in range(10):
        world.publish("QM1", f"a/{n}")
    assert compare(LINE, world.messages) == 2 * 8


SETUPS = ["", "DEFINE TOPIC(A) TOPICSTR('a') SUBSCOPE(QMGR)", "DEFINE TOPIC(B) TOPICSTR('b') PUBSCOPE(QMGR)"]
PUBLISHING = st.sampled_from([[], [], ["RetainPub"], ["Local"], ["RetainPub", "Local"]])
REGISTERING = st.sampled_from([[], [], ["Local"], ["NewPubsOnly"], ["PubOnReqOnly"], ["PersAsQueue"], ["NonPers"]])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.integers(0, 5), st.sampled_from(PATTERNS), REGISTERING),
        st.tuples(st.just("deregister"), st.integers(0, 20), st.just(""), st.just([])),
        st.tuples(st.just("delete"), st.integers(0, 5), st.sampled_from(TOPICS), st.just([])),
        st.tuples(st.just("publish"), st.integers(0, 5), st.sampled_from(TOPICS), PUBLISHING),
        st.tuples(st.just("publish"), st.integers(0, 5), st.sampled_from(TOPICS), st.just([])),
    ),
    max_size=25,
)


@given(plans(), ACTIONS, st.sampled_from(SETUPS), st.sampled_from([bytes(24), b"C" * 24]), st.booleans())
def test_any_workload_gives_the_same(
    plan: Plan, actions: list[tuple[str, int, str, list[str]]], setup: str, correl_id: bytes, in_a_loop: bool
) -> None:
    setups = [each if each.setup else at(each.position.qmgr, setup=setup) for each in plan.setups()]
    setups = [QueueManagerSetup(own.position, each.setup) for own, each in zip(plan.setups(), setups, strict=True)]
    if in_a_loop and len(setups) > 2:
        first, *others, last = setups
        setups = [
            at(first.position.qmgr, last.position.qmgr, *first.position.clusters, setup=first.setup),
            *others,
            last,
        ]
    world, size = World(*setups, correl_id=correl_id), len(setups)
    live: dict[str, tuple[str, str]] = {}
    for number, (word, n, text, options) in enumerate(actions * 2):
        qmgr = f"QM{n % size}"
        if word == "register":
            live[f"Q{number}"] = (qmgr, text)
            world.register(qmgr, text, queue=f"Q{number}", options=options)
        elif word == "deregister" and live:
            queue = sorted(live)[n % len(live)]
            world.deregister(*live.pop(queue), queue=queue)
        elif word == "publish":
            for _ in range(3):
                world.publish(qmgr, text, options=options)
        elif word == "delete":
            world.delete(qmgr, text)
    compare(setups, world.messages)
