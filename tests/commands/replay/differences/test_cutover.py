"""``differences --cutover``: version 7 begins with what the migration makes of version 6 at that time."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM
from commands.explain.build import CommandSpec
from commands.replay.differences import FINDING, Change, PutDifference
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.differences.observe import Cutover
from migrate.cli.cutover import migrated
from rfh2.captured import CapturedMessage
from tests.commands.cli_runs import run
from tests.commands.replay.differences.test_differences import NEWS, START, capture, compared, pub, reg
from tests.commands.replay.spark.worlds import SETUP as WORLD, captures

SETUP = f"""DEFINE QLOCAL({NEWS})
DEFINE TOPIC({NEWS}) TOPICSTR('News') WILDCARD(BLOCK)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES({DEFAULT_STREAM}, {ADMIN_STREAM}, {NEWS})
"""


def cut(messages: list[CapturedMessage], after: int, old: str = "v6-broker") -> list[PutDifference]:
    """What differs if the migration takes place after so many messages."""
    cutover = Cutover(START + timedelta(seconds=after + 0.5), migrated)
    differences = LocalDifferences(SETUP, old, cutover=cutover)
    found = [each for message in messages for each in differences.compare(message)]
    report = differences.report()
    assert (differences.before_cutover, report.messages) == (after, len(messages) - after)
    return found


ON_TWO_STREAMS = [reg("t", rfh1=True, SubName="n"), reg("t", rfh1=True, SubName="n", StreamName=NEWS, q="Q2")]
BOTH = [pub("t", rfh1=True), pub("t", queue=NEWS, rfh1=True)]
DYNAMIC = "AMQ.0123456789ABCDEF"

# id, version 6, before, after, the differences as (seq, rule, since, change)
CASES: list[tuple[str, str, list[CommandSpec], list[CommandSpec], list[tuple[int, str, int | None, Change]]]] = [
    ("one-name-on-two-streams", "v6-broker", ON_TWO_STREAMS, BOTH, []),
    ("registered-again-by-its-name", "v6-broker", ON_TWO_STREAMS, [*ON_TWO_STREAMS, *BOTH], []),
    ("by-character-with-MQRFH2", "v6-broker", [reg("a/*")], [pub("a/b"), pub("b")], []),
    ("by-character-registered-anew", "v6-broker", [], [reg("a/*"), pub("a/b")], [(2, "D14", None, Change.LOST)]),
    ("by-level-of-a-message-broker", "v6", [reg("a/#")], [pub("a/b"), pub("b")], []),
    ("retained", "v6-broker", [pub("t", options=("RetainPub",), rfh1=True)], [reg("t", rfh1=True, q="Q7")], []),
    (
        "dynamic-queue-is-gone",
        "v6-broker",
        [reg("t", q=DYNAMIC)],
        [pub("t")],
        [(2, "D17", 1, Change.LOST)],
    ),
    ("metatopic", "v6-broker", [reg("MQ/x")], [reg("MQ/x", word="DeregSub")], [(2, "D04", None, Change.ANSWER)]),
    ("local", "v6-broker", [reg("t", options=("Local",))], [pub("t")], [(2, "D02", None, Change.GAINED)]),
    (
        "a-point-with-MQRFH",
        "v6",
        [reg("t", SubPoint="GBP")],
        [pub("t", tags={"SubPoint": "GBP"})],
        [],
    ),
]


@pytest.mark.parametrize(
    ("old", "before", "after", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_after_the_cutover(
    old: str,
    before: list[CommandSpec],
    after: list[CommandSpec],
    expected: list[tuple[int, str, int | None, Change]],
) -> None:
    found = cut(capture(*before, *after), len(before), old)
    assert [(each.seq, each.rule, each.since, each.change) for each in found] == expected


def test_without_a_cutover_both_announcements_are_made() -> None:
    """What a program that registers anew meets: the name is refused, and the wildcards are levels."""
    assert {each.rule for each in compared(capture(*ON_TWO_STREAMS, *BOTH), SETUP)[1]} == {"D15"}


@given(messages=captures(most=2), share=st.floats(0, 1), old=st.sampled_from(["v6", "v6-broker"]))
def test_what_differs_after_the_cutover_has_a_rule(messages: list[CapturedMessage], share: float, old: str) -> None:
    at = messages[int((len(messages) - 1) * share)].time or START
    differences = LocalDifferences(WORLD, old, cutover=Cutover(at, migrated))
    found = [each for message in messages for each in differences.compare(message) if each.rule == FINDING]
    assert found == []


def test_the_verb_cuts_over(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text("".join(f"{each.model_dump_json()}\n" for each in capture(reg("a/*"), pub("a/b"))))
    asked = ["differences", str(file), "--old", "v6-broker", "--json", "--cutover"]
    ran = run(*asked, "2026-01-01T00:00:02")
    assert (ran.code, json.loads(ran.out)["messages"]) == (0, 1), ran.talk
    assert "1 message before 2026-01-01 00:00:02 UTC: version 6 alone processed them" in ran.talk
    ran = run(*asked, "2026-01-02")
    assert (ran.code, "none is that late" in ran.talk) == (0, True)
    ran = run(*asked, "2026-01-02", "--engine", "spark")
    assert (ran.code, "--cutover needs the local engine" in ran.talk) == (2, True)
