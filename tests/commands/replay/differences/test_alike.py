"""What both versions put alike need not be processed again: the report, and every difference, are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from commands.broker.context import V6_BROKER, Semantics
from commands.explain.build import CommandSpec
from commands.replay.differences import DifferenceReport, PutDifference
from commands.replay.differences.deliveries import AlikePublications, LocalDifferences
from commands.replay.differences.observe import BothVersions
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from tests.commands.replay.differences.test_differences import ASKED, START, _delivered, capture, pub, reg
from tests.commands.replay.spark.worlds import SETUP, captures
from tests.examples import FEW

KNOBS = WorkloadOptions(
    messages=500, control=0.1, topics=15, subscribers=30, streams=2, filters=0.2, expiring=0.3, several=0.05
)


def judged(
    messages: Sequence[CapturedMessage], setup: str, old: str = "v6"
) -> tuple[list[PutDifference], DifferenceReport]:
    comparison = LocalDifferences(setup, old)
    found = [each for message in messages for each in comparison.compare(message)]
    return found, comparison.report()


def one_by_one(
    messages: Sequence[CapturedMessage], setup: str, old: str = "v6"
) -> tuple[list[PutDifference], DifferenceReport]:
    with patch.object(AlikePublications, "find", return_value=None):
        return judged(messages, setup, old)


def processed(messages: Sequence[CapturedMessage], setup: str, old: str = "v6") -> int:
    """How many messages the brokers process, with the same result as when they process all."""
    with patch.object(BothVersions, "step", autospec=True, side_effect=BothVersions.step) as step:
        assert judged(messages, setup, old) == one_by_one(messages, setup, old)
    return step.call_count - len(messages)


@pytest.mark.parametrize("old", [Semantics.V6.value, V6_BROKER])
def test_a_workload_with_captured_deliveries(old: str) -> None:
    setup = setup_script(KNOBS)
    messages = _delivered("v6", list(Workload(KNOBS).messages()), setup)
    assert processed(messages, setup, old) < len(messages)


@FEW
@given(capture=captures(1, 8), again=st.integers(2, 3))
def test_whatever_comes_again(capture: list[CapturedMessage], again: int) -> None:
    """With what the first round left in force, and with the expiries of it."""
    messages = [message.model_copy(update={"qmgr": None}) for message in capture] * again
    messages = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages)]
    assert judged(messages, SETUP) == one_by_one(messages, SETUP)


TO = [pub("t", data="1"), pub("t", data="2")]
CASES = {  # commands after two such publications, and how many of the two that follow the brokers process
    "nothing": ([], 0),
    "another subscription": ([reg("u")], 0),
    "another subscription to the topic": ([reg("t", q="Q2")], 1),
    "one that has a filter": ([reg("t", q="Q2", Filter="n > 3")], 2),
    "one with another header": ([reg("t", q="Q2", rfh1=True)], 2),
    "one that differs by version": ([reg("t", q="Q2", options=("Local",))], 2),
    "it ends": ([reg("t", word="DeregSub")], 1),
    "it is altered": ([reg("t", options=("PubOnReqOnly",))], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_publications_are_processed_until_one_shows_the_others(name: str) -> None:
    between, left = CASES[name]
    before: list[CommandSpec] = [reg("t"), *TO, *between]
    messages, first = capture(*before, *TO), capture(*before)
    assert processed(messages, SETUP) - processed(first, SETUP) == left


@pytest.mark.parametrize(
    "spec",
    [
        pub("t", options=("RetainPub",)),
        pub("t", "u"),
        pub("t", rfh1=True),
        pub("t", options=("OtherSubsOnly",)),
        pub("a/#"),
    ],
)
def test_what_is_always_processed(spec: CommandSpec) -> None:
    messages = capture(reg("t"), spec, spec, spec)
    assert processed(messages, SETUP) == len(messages)


def test_what_expires_is_noticed() -> None:
    for_ten_seconds = CommandSpec("RegSub", ("t",), mqmd=replace(ASKED, reply_to_q="Q2", expiry=100))
    messages = capture(reg("t"), for_ten_seconds, *TO, *TO)
    later = [m.model_copy(update={"time": START + timedelta(minutes=m.seq // 5, seconds=m.seq)}) for m in messages]
    assert processed(later, SETUP) - processed(messages, SETUP) == 2  # nothing is learned where something expires
