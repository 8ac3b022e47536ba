"""Commands of a capture that version 6 refuses, and those that only the topic tree of version 7 cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate import strmqbrk
from migrate.ledger import Verdict
from migrate.legacy_state import LegacyState
from migrate.plan import PlanOptions
from migrate.readers.no_state import ranges
from migrate.readers.sources import read_sources
from migrate.target import Target
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from streams.topic_objects import DEFAULT_STREAM
from tests.migrate.legacy_messages import NOW, register, rfh1

LONG = "x" * 10_239


def state_of(tmp_path: Path, messages: list[CapturedMessage], fmt: str = "jsonl") -> LegacyState:
    path = tmp_path / f"capture.{fmt}"
    with path.open("wb") as stream:
        write_captures(messages, stream, fmt)
    return read_sources([str(path)], "QM1")


def deregister(seq: int, topic: str, stream: str = DEFAULT_STREAM) -> CapturedMessage:
    return rfh1(seq, [("Command", "DeregSub"), ("StreamName", stream), ("Topic", topic), ("QName", "SUB.Q")])


def test_identical_reasons_are_one_item_with_every_position(tmp_path: Path) -> None:
    messages = [register(1, "a"), *(deregister(n, f"never/{n}") for n in (2, 3, 4)), register(5, "b")]
    messages += [deregister(6, "no/more"), register(7, "x" * 10_241)]
    deregistered, registered = state_of(tmp_path, messages).unread
    assert deregistered.text == "4 DeregSub commands (records 2-4, 6)"
    why = "version 6 refuses them with reason 3073 (MQRCCF_NOT_REGISTERED), no matching registration exists"
    assert deregistered.why == f"{why}: nothing was changed"
    assert (deregistered.count, deregistered.is_state) == (4, False)
    assert registered.text == "RegSub command (record 7)"
    assert "3072 (MQRCCF_TOPIC_ERROR)" in registered.why
    assert str(registered.source).endswith("capture.jsonl, record 7")


@pytest.mark.parametrize(
    ("numbers", "text"), [([1], "1"), ([1, 2], "1-2"), ([9, 1, 2, 4], "1-2, 4, 9"), ([], "")], ids=str
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_a_topic_that_is_too_long_only_below_its_stream_is_an_item(tmp_path: Path) -> None:
    """Version 6 has no prefix and took it; version 7 cannot hold it, and the plan says so."""
    messages = [register(1, LONG, "Sport", name="long", user="anne"), register(2, LONG), register(3, "a", "Sport")]
    state = state_of(tmp_path, messages)
    assert state.unread == ()
    assert sorted((len(s.topic), s.stream) for s in state.subscriptions) == [
        (1, "Sport"),
        (10_239, "SYSTEM.BROKER.DEFAULT.STREAM"),
        (10_239, "Sport"),
    ]
    (long,) = (s for s in state.subscriptions if s.name == "long")
    assert (long.queue, long.user, str(long.source)[-8:]) == ("SUB.Q", "anne", "record 1")
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    (fate,) = (f for f in plan.fates if f.verdict is Verdict.REPORTED)
    assert "10245 characters, more than 10240" in fate.reasons[-1].text


def test_such_a_topic_that_was_deregistered_is_gone(tmp_path: Path) -> None:
    state = state_of(tmp_path, [register(1, LONG, "Sport"), deregister(2, LONG, "Sport")])
    assert (state.subscriptions, state.unread) == ((), ())


def test_the_order_of_arrival_does_not_depend_on_the_order_in_the_file(tmp_path: Path) -> None:
    """Sorted commands are carried out while they are read; others after all were read."""
    messages = [register(n, f"t{n}", queue_name=f"Q{n}") for n in range(1, 6)]
    messages += [rfh1(6, [("Command", "DeregSub"), ("Topic", "t2"), ("QName", "Q2")])]
    (tmp_path / "sorted").mkdir()
    expected = state_of(tmp_path / "sorted", messages)
    found = state_of(tmp_path, messages[::-1])
    topics = [[s.topic for s in state.subscriptions] for state in (expected, found)]
    assert topics == [["t1", "t3", "t4", "t5"]] * 2
    assert found.unread == ()
