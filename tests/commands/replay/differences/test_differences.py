"""``differences``: each rule of the migration sources, section 13, provoked; and nothing that differs goes untold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from markupsafe import escape

from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM
from commands.cli import main
from commands.explain.build import CommandSpec, command_message
from commands.replay import LocalReplay
from commands.replay.differences import FINDING, RULES, Change, DifferenceRule, PutDifference
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.differences.observe import ComparedMessage
from commands.replay.differences.report import Seen
from commands.replay.differences.text import lines_of, page
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_REQUEST
from rfh2.mqmd import Mqmd
from tests.commands.replay.spark.worlds import SETUP, captures
from tests.html_pages import check_page

DOCS = Path(__file__).parents[4] / "docs/differences.md"
NEWS = "NEWS"
DYNAMIC = "0123456789ABCDEF"
NOBODY_YET = SETUP.replace("DEFINE SUB(EVERYTHING) TOPICSTR('a/#') DEST(AUDIT)\n", "")
START = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = Mqmd(user_identifier="ann", reply_to_q="Q1", msg_type=MQMT_REQUEST)


def reg(*topics: str, options: tuple[str, ...] = (), user: str = "ann", q: str = "Q1", **more: Any) -> CommandSpec:
    tags = {name: more.pop(name) for name in list(more) if name[0].isupper()}
    mqmd = replace(ASKED, user_identifier=user, reply_to_q=q, correl_id=more.pop("correl_id", bytes(24)))
    return CommandSpec(more.pop("word", "RegSub"), topics, options, tags, mqmd=mqmd, queue=CONTROL_QUEUE, **more)


def pub(*topics: str, options: tuple[str, ...] = (), queue: str = DEFAULT_STREAM, **more: Any) -> CommandSpec:
    word = more.pop("word", "Publish")
    return CommandSpec(word, topics, options, more.pop("tags", {}), data=more.pop("data", "x"), queue=queue, **more)


def capture(*wanted: CommandSpec) -> list[CapturedMessage]:
    made = (command_message(each) for each in wanted)
    return [
        message.model_copy(update={"seq": seq, "time": START + timedelta(seconds=seq)})
        for seq, message in enumerate(made, 1)
    ]


def compared(messages: Sequence[CapturedMessage], setup: str = SETUP) -> tuple[LocalDifferences, list[PutDifference]]:
    differences = LocalDifferences(setup)
    return differences, [each for message in messages for each in differences.compare(message)]


G, L, S, A = Change.GAINED, Change.LOST, Change.SPLIT, Change.ANSWER

# id, commands, the differences as (seq, rule, since, change), the rules that commands are signs of
CASES: list[tuple[str, list[CommandSpec], list[tuple[int, str, int | None, Change]], set[str]]] = [
    ("D01", [reg("t"), pub("t", options=("Local",))], [(2, "D01", None, G)], set()),
    ("D02", [reg("t", options=("Local",)), pub("t")], [(2, "D02", None, G)], set()),
    ("D03", [reg("t", options=("Local",)), pub("t", options=("Local",)), reg("u"), pub("u")], [], set()),
    ("D04", [reg("MQ/x"), reg("MQ/x", word="DeregSub")], [(2, "D04", None, A)], {"D04"}),
    ("D08", [reg("#", q="Q2"), pub("a/y", queue=NEWS, rfh1=True)], [(2, "D08", None, G)], {"D31"}),
    ("D09", [reg("News/a", q="Q2"), pub("a", queue=NEWS, rfh1=True)], [(2, "D09", None, G)], {"D31"}),
    (
        "D10",
        [reg("t", SubName="one"), reg("u", SubName="one"), pub("t"), pub("u")],
        [(2, "D10", None, A), (3, "D10", 2, G), (4, "D10", 2, L)],
        set(),
    ),
    ("D11", [reg("t", "u"), pub("t", "u")], [(2, "D11", None, S)], set()),
    ("D12", [reg("t"), reg("+"), pub("t")], [(3, "D12", None, S)], set()),
    (
        "D12-DupsOK",
        [reg("t", rfh1=True, options=("DupsOK",)), reg("*", rfh1=True, options=("DupsOK",)), pub("t")],
        [],
        {"D31"},
    ),
    ("D13", [reg("t"), reg("t", user="bob"), pub("t")], [(2, "D13", None, A), (3, "D13", 2, G)], set()),
    (
        "D13-other-topic",
        [reg("t"), reg("u", user="bob"), pub("u"), reg("u", user="bob", word="DeregSub"), pub("u")],
        [(2, "D13", None, A), (3, "D13", 2, G), (4, "D13", 2, A)],
        set(),
    ),
    (
        "D15",
        [reg("t", rfh1=True, SubName="n"), reg("u", rfh1=True, SubName="n", StreamName=NEWS)],
        [(2, "D15", None, A)],
        set(),
    ),
    (
        "D15-3078-in-both",
        [reg("t", rfh1=True, SubName="n"), reg("u", rfh1=True, SubName="n", StreamName=NEWS, user="bob")],
        [(2, "D15", None, A)],
        set(),
    ),
    (
        "D15-DeregSub",
        [
            reg("t", rfh1=True, SubName="n"),
            reg("t", rfh1=True, SubName="n", StreamName=NEWS, word="DeregSub"),
            pub("t"),
        ],
        [(2, "D15", None, A), (3, "D15", 2, L)],
        set(),
    ),
    (
        "D15-ReqUpdate",
        [
            pub("t", options=("RetainPub",), rfh1=True),
            reg("t", rfh1=True, options=("PubOnReqOnly",), SubName="n"),
            reg("u", rfh1=True, SubName="n", StreamName=NEWS, word="ReqUpdate"),
        ],
        [(3, "D15", None, G), (3, "D15", None, A)],
        {"D28"},
    ),
    (
        "D33",
        [
            pub("t", options=("RetainPub",), rfh1=True),
            pub("t", word="DeletePub", options=("Local",), rfh1=True, data=""),
            reg("t", rfh1=True),
        ],
        [(3, "D33", None, L)],
        {"D28"},
    ),
    (
        "D33-not-of-MQRFH2",
        [pub("t", options=("RetainPub",)), pub("t", word="DeletePub", options=("Local",), data=""), reg("t")],
        [],
        {"D28"},
    ),
    (
        "D34",
        [
            reg("t", rfh1=True, StreamName="UNLISTED"),
            pub("t", queue="UNLISTED", rfh1=True),
            pub("t", word="DeletePub", queue="UNLISTED", rfh1=True, mqmd=ASKED),
        ],
        [(1, "D34", None, A), (2, "D34", 1, L), (3, "D34", None, A)],
        set(),
    ),
    (
        "D20",
        [reg("t", SubName="one"), reg("t", word="DeregSub"), pub("t")],
        [(2, "D20", None, A), (3, "D20", 2, G)],
        set(),
    ),
    (
        "D20-then-by-name",
        [reg("t", SubName="n"), reg("t", word="DeregSub"), reg("u", SubName="n"), pub("u"), reg("u", SubName="n")],
        [(2, "D20", None, A), (3, "D20", 2, A), (4, "D20", 3, L), (5, "D20", 3, A)],
        set(),
    ),
    (
        "D20-ReqUpdate",
        [
            pub("t", options=("RetainPub",)),
            reg("t", options=("PubOnReqOnly",), SubName="one"),
            reg("t", word="ReqUpdate"),
        ],
        [(3, "D20", None, L), (3, "D20", None, A)],
        {"D28"},
    ),
    (
        "D21",
        [reg("t", SubPoint="GBP"), pub("t", tags={"SubPoint": "GBP"})],
        [(1, "D21", None, A), (2, "D21", 1, L), (2, "D21", None, A)],
        set(),
    ),
    (
        "D23",
        [reg("t", rfh1=True), reg("News/t", q="Q2"), pub("t", queue=NEWS)],
        [(3, "D23", None, G), (3, "D23", None, L)],
        set(),
    ),
    ("D22", [reg("USD/t"), pub("t", tags={"SubPoint": "USD"})], [(2, "D22", None, G)], set()),
    (
        "D23-retained",
        [pub("t", queue=NEWS, options=("RetainPub",)), reg("t", q="Q2"), reg("News/t", q="Q3")],
        [(2, "D23", None, L), (3, "D23", None, G)],
        {"D28"},
    ),
    (
        "D23-DeletePub",
        [
            pub("t", options=("RetainPub",)),
            CommandSpec("DeletePub", ("t",), mqmd=ASKED, queue=NEWS),
            reg("t"),
        ],
        [(3, "D23", None, G)],
        {"D28"},
    ),
    (
        "D23-content",
        [
            pub("t", queue=NEWS, options=("RetainPub",), rfh1=True),
            pub("t", queue=NEWS, options=("RetainPub",), data="other"),
            reg("t", rfh1=True, StreamName=NEWS),
        ],
        [(3, "D23", None, Change.CONTENT)],
        {"D28"},
    ),
    (
        "D09-retained",
        [
            pub("t", queue=NEWS, options=("RetainPub",), rfh1=True),
            CommandSpec("DeletePub", ("News/t",), mqmd=ASKED, queue=DEFAULT_STREAM, rfh1=True),
            reg("t", rfh1=True, StreamName=NEWS),
        ],
        [(3, "D09", None, L)],
        {"D28"},
    ),
    (
        "D04-among-others",
        [reg("t", user="bob"), reg("MQ/x", "u"), pub("u")],
        [(2, "D13", None, A), (3, "D13", 2, G)],
        {"D04"},
    ),
    ("D24", [reg("$SYS/x"), reg("$SYS/x", word="DeregSub")], [(2, "D24", None, A)], {"D24"}),
    ("same", [reg("t", "#"), reg("t", word="ReqUpdate"), reg("#", word="DeregSub")], [], set()),
    ("D04-sign", [reg("MQ/x", "t")], [], {"D04"}),
    ("D05", [reg("t", rfh1=True, StreamName=ADMIN_STREAM)], [], {"D05"}),
    ("D06-RegPub", [reg("t", rfh1=True, word="RegPub")], [], {"D06"}),
    ("D06-DeregPub", [reg("t", rfh1=True, word="DeregPub")], [], {"D06"}),
    ("D10-another-queue", [reg("t", SubName="n"), reg("t", SubName="n", q="Q2")], [], {"D10"}),
    ("D10-the-same-queue", [reg("t", SubName="n"), reg("t", SubName="n")], [], set()),
    ("D10-no-alter", [reg("t", SubName="n"), reg("t", SubName="n", q="Q2", options=("NoAlter",))], [], set()),
    ("D14-MQRFH-is-read-as-before", [reg("t*", rfh1=True, word="DeregSub")], [], set()),
    ("D14-MQRFH2", [reg("t/#")], [], set()),
    ("D14-MQRFH2-by-character", [reg("t/*")], [], {"D14"}),
    ("D17-D18", [reg("t", q="AMQ.4D3F")], [], {"D17", "D18"}),
    ("D17-D18-another-prefix", [reg("t", q=f"AMQSPSDA.{DYNAMIC}")], [], {"D17", "D18"}),
    ("D17-D18-explorer", [reg("t", q=f"MQJ.{DYNAMIC}")], [], {"D17", "D18"}),
    ("D24-sign", [reg("$SYS/x")], [], {"D24"}),
    ("D25", [reg("t", SubName="n"), reg("t", SubName="m")], [], {"D25"}),
    ("D28", [pub("t", options=("RetainPub",))], [], {"D28"}),
    ("D28-persistent", [pub("t", options=("RetainPub",), mqmd=replace(ASKED, persistence=1))], [], set()),
    ("D30", [reg("t", Filter="n > 3")], [], {"D30"}),
    ("D31", [reg("t"), pub("t", rfh1=True, tags={"IntData": "7"})], [], {"D31"}),
    ("D31-the-other-way-round", [reg("t", rfh1=True), pub("t")], [], {"D31"}),
    ("D31-MQRFH-alone", [reg("t", rfh1=True), pub("t", rfh1=True)], [], set()),
    ("D31-nobody-subscribes", [pub("t", rfh1=True)], [], set()),
    ("D32", [reg("t", SubName="n", SubIdentity="A", options=("JoinShared",))], [], {"D32"}),
    (
        "D15-two-streams-and-two-queues-is-no-sign-of-D10",
        [reg("t", rfh1=True, SubName="n"), reg("t", rfh1=True, SubName="n", StreamName=NEWS, q="Q2")],
        [(2, "D15", None, A)],
        set(),
    ),
    ("same-both-local", [reg("t", options=("Local",)), pub("t", options=("Local",))], [], set()),
    (
        "same-wildcards-of-MQRFH",
        [reg("a*", rfh1=True), reg("?", rfh1=True, q="Q2"), pub("a/b", rfh1=True), pub("z", rfh1=True)],
        [],
        set(),
    ),
    (
        "same-two-CorrelIds",
        [
            reg("t", options=("CorrelAsId",), correl_id=b"A" * 24),
            reg("t", options=("CorrelAsId",), correl_id=b"B" * 24),
            pub("t"),
        ],
        [],
        set(),
    ),
    (
        "same-OtherSubsOnly",
        [reg("t"), reg("t", q="Q2", user="bob"), pub("t", options=("OtherSubsOnly",), mqmd=ASKED)],
        [],
        set(),
    ),
    (
        "same-VariableUserId",
        [reg("t", options=("VariableUserId",)), reg("t", options=("VariableUserId",), user="bob"), pub("t")],
        [],
        set(),
    ),
    (
        "same-name-again",
        [reg("t", SubName="n"), reg("t", SubName="n"), pub("t"), reg("t", SubName="n", word="DeregSub"), pub("t")],
        [],
        set(),
    ),
    ("same-deregistered", [reg("t"), reg("t", word="DeregSub"), pub("t")], [], set()),
    ("same-refused-in-both", [reg("t", word="DeregSub"), reg("t", word="ReqUpdate"), pub("a/#")], [], set()),
]


@pytest.mark.parametrize(
    ("commands", "expected", "signs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_capture(
    commands: list[CommandSpec], expected: list[tuple[int, str, int | None, Change]], signs: set[str]
) -> None:
    """What differs is found, with its rule, what may differ is a sign, and nothing else is told."""
    differences, found = compared(capture(*commands), NOBODY_YET)
    told = [(each.seq, each.rule, each.since, each.change) for each in found]
    assert sorted(told, key=str) == sorted(expected, key=str)
    assert {sign.name for sign in differences.report().signs} == signs


BY_CHARACTER = [
    ("a/*", "a/b", [(2, "D14", None, L)]),
    ("a/?", "a/b", [(2, "D14", None, L)]),
    ("a/#", "a/b", [(2, "D14", None, G)]),
    ("a/b", "a/b", []),
]


@pytest.mark.rule("D-14c")
@pytest.mark.parametrize(("topic", "published", "expected"), BY_CHARACTER)
def test_2_5_1_1_a_broker_whose_mqrfh2_wildcards_are_characters(
    topic: str, published: str, expected: list[tuple[int, str, int | None, Change]]
) -> None:
    """WebSphere MQ 6's own; Event Broker and Message Broker read levels, as version 7 does. MQRFH is alike in both."""
    messages = capture(reg(topic), pub(published), reg(topic, q="Q2", rfh1=True), pub("z"))
    differences = LocalDifferences(SETUP, "v6-broker")
    found = [each for message in messages for each in differences.compare(message)]
    assert [(each.seq, each.rule, each.since, each.change) for each in found] == expected
    assert [each for each in compared(messages)[1] if each.rule == "D14"] == []


def test_a_sign_forbids_the_sentence_that_both_versions_are_the_same() -> None:
    differences, found = compared(capture(reg("a/*"), pub("a/b")))
    text = "\n".join(lines_of(differences.report()))
    assert (found, "the same" in text, "2 messages: no put differs" in text, "D14" in text) == ([], False, True, True)


def test_every_rule_that_shows_in_puts_is_provoked() -> None:
    provoked = {rule for _, _, expected, _ in CASES for _, rule, _, _ in expected}
    shown = {rule.id for rule in RULES.values() if rule.seen is Seen.PUTS}
    assert shown == provoked


def test_every_rule_that_a_capture_gives_a_sign_of_is_provoked() -> None:
    given_sign = set().union(*(signs for *_, signs in CASES))
    assert given_sign >= {rule.id for rule in RULES.values() if rule.seen is Seen.SIGN}


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_docs_say_where_each_rule_shows(rule: DifferenceRule) -> None:
    (row,) = [line for line in DOCS.read_text().splitlines() if line.startswith(f"| {rule.id} |")]
    told = {Seen.PUTS: "puts", Seen.SIGN: "signs", Seen.ELSEWHERE: "neither"}[rule.seen]
    assert row.startswith(f"| {rule.id} | {rule.title}: {rule.old} | {rule.new} | {told}")
    assert ("signs" in row) == any(rule.id in signs for *_, signs in CASES)


def test_a_difference_says_who_what_and_why() -> None:
    _, (answer, gained) = compared(capture(reg("u"), reg("t", user="bob"), pub("t")), "")
    assert (answer.old, answer.new) == ("response error 3078 MQRCCF_DUPLICATE_IDENTITY", "response ok")
    assert (gained.queue, gained.topic, gained.old, gained.new, gained.since) == ("Q1", "t", "0", "1", 2)
    assert gained.why == "the identity belongs to another user"
    assert gained.time == START + timedelta(seconds=3)


def test_a_difference_names_the_program_and_the_subscribers_user() -> None:
    """The user and the program that put the message, and whose subscription it is that gets more or less."""
    by = replace(ASKED, user_identifier="pete", put_appl_name="scores.exe")
    _, (gained,) = compared(capture(reg("t", user="ann"), pub("t", options=("Local",), mqmd=by)), NOBODY_YET)
    assert (gained.user, gained.program, gained.sub_user) == ("pete", "scores.exe", "ann")
    differences, _ = compared(capture(reg("t", user="ann"), pub("t", options=("Local",), mqmd=by)), NOBODY_YET)
    text = " ".join(" ".join(lines_of(differences.report())).split())
    assert "(pete with scores.exe: Publish): Q1 of user ann gets" in text


@given(capture=captures(most=2))
def test_nothing_that_differs_goes_untold(capture: list[CapturedMessage]) -> None:
    """There are differences at a message exactly where the two replays put something else, identifiers aside.

    Each version puts, byte for byte, what it puts alone.
    """
    steps: list[ComparedMessage] = []
    differences = LocalDifferences(SETUP, watch=lambda step, _: steps.append(step))
    found = [each for message in capture for each in differences.compare(message)]
    old, new = LocalReplay(SETUP, "v6"), LocalReplay(SETUP, "v7")
    differing = set()
    for message, step in zip(capture, steps, strict=True):
        alone = [replay.replay(message) for replay in (old, new)]
        assert [outcome.puts for outcome, _ in alone] == [side.outcome.puts for side in (step.old, step.new)]
        before, after = (sorted(_plain(put.model_dump()) for put in puts) for _, puts in alone)
        if before != after:
            differing.add(message.seq)
    assert {each.seq for each in found} == differing


_MADE_UP = re.compile("414d5120[0-9a-f]{40}")


def _plain(put: dict[str, Any]) -> str:
    """A put without the identifiers that each version counts for itself, and without where its topic lies."""
    text = json.dumps({**put, "n": 0, "topic": None}, default=str)
    return _MADE_UP.sub("", text)


@given(capture=captures(most=2))
def test_no_findings(capture: list[CapturedMessage]) -> None:
    """Whatever differs between the versions is one of the known differences."""
    _, found = compared(capture)
    assert [each for each in found if each.rule == FINDING] == []


KNOBS = WorkloadOptions(messages=1500, control=0.1, errors=0.02, several=0.05, topics=100, subscribers=60)


def test_the_report_sums_up() -> None:
    differences, found = compared(list(Workload(KNOBS).messages()), setup_script(KNOBS))
    report = differences.report()
    assert report.messages == KNOBS.messages
    assert report.differences == len(found) > 100
    assert report.differing == len({each.seq for each in found})
    assert sum(line.total for line in report.rules) == len(found)
    assert sum(line.total for line in report.subscribers) == len(found)
    assert sum(sum(period.changes.values()) for period in report.timeline) == len(found)
    assert [line.total for line in report.subscribers] == sorted(
        (line.total for line in report.subscribers), reverse=True
    )
    for line in report.rules:
        assert {example.change for example in line.examples} == set(line.changes)
        assert len(line.examples) == min(line.total, max(3, len(line.changes)))
        assert [example.seq for example in line.examples] == sorted(example.seq for example in line.examples)
        assert line.advice
    for who in report.subscribers:
        assert who.first == next(each for each in found if each.queue == who.name)
    assert {"D28", "D30", "D31"} <= {sign.name for sign in report.signs}


def test_the_page_has_every_rule_subscriber_and_topic() -> None:
    differences, _ = compared(list(Workload(KNOBS).messages()), setup_script(KNOBS))
    report = differences.report()
    text = page(report, "a <capture>")
    parts = check_page(text)
    assert "a &lt;capture&gt;" in text
    for line in report.rules:
        assert escape(line.title) in text
    rows = {table["columns"][0]["head"]: table["rows"] for table in parts.tables}
    assert (rows["queue"], rows["topic"]) == (len(report.subscribers), len(report.topics))


def test_topics_cannot_break_the_page() -> None:
    differences, _ = compared(capture(reg("t"), reg("<script>", user="bob"), pub("<script>")), "")
    check_page(page(differences.report(), "c"))


def test_a_terminal_of_a_hundred_columns_is_enough() -> None:
    knobs = KNOBS.model_copy(update={"streams": 3})
    messages = _delivered("v6", list(Workload(knobs).messages()), setup_script(knobs))
    differences, _ = compared(messages, setup_script(knobs))
    report = differences.report()
    lines = list(lines_of(report))
    assert report.deliveries
    assert report.signs
    assert len(report.rules) > 3
    assert max(map(len, lines)) <= 100
    for line in report.rules:
        assert any(each.startswith(f"{line.name}  {line.title}") for each in lines)


def test_a_long_name_is_cut_in_its_middle() -> None:
    topic = "/".join(["a" * 20, "b" * 20, "c" * 10])
    differences, _ = compared(capture(reg(topic, options=("Local",)), pub(topic)), "")
    (line,) = [line for line in lines_of(differences.report()) if line.startswith("  aaaa")]
    assert "aaaa..." in line
    assert "/cccccccccc " in line


def test_the_terminal_says_who_would_notice_what() -> None:
    wanted = [reg("t", options=("Local",)), reg("t", q="Q2", SubName="n"), reg("u", q="Q2", SubName="n")]
    differences, _ = compared(capture(*wanted, pub("t"), pub("u")), "")
    assert (
        "1 queue would miss publications, 2 queues would get more, 1 queue would get other content or answers"
        in list(lines_of(differences.report()))
    )


def test_the_terminal_is_told_of_nothing_where_there_is_nothing() -> None:
    differences, _ = compared(capture(reg("t"), pub("t")), "")
    assert list(lines_of(differences.report())) == ["2 messages: both versions put the same"]


# Against captured deliveries


def _delivered(world: str, messages: list[CapturedMessage], setup: str = "") -> list[CapturedMessage]:
    """The capture with what *world* puts on subscriber queues captured, too."""
    replay = LocalReplay(setup, world)
    found = []
    for message in messages:
        found.append(message.model_copy(update={"seq": message.seq * 100}))
        for put in replay.replay(message)[1]:
            seq = message.seq * 100 + put.n + 1
            found.append(
                CapturedMessage(seq=seq, time=message.time, queue=put.queue, md_hex=put.md_hex, body_hex=put.body_hex)
            )
    return found


@pytest.mark.parametrize(("world", "old", "new"), [("v6", (0, 0), (0, 2)), ("v7", (2, 0), (0, 0))])
def test_captured_deliveries(world: str, old: tuple[int, int], new: tuple[int, int]) -> None:
    commands = capture(reg("t", options=("Local",), q="Q7"), pub("t", options=("Local",)), pub("t"), pub("t"))
    differences, _ = compared(_delivered(world, commands), "")
    (line,) = differences.report().deliveries
    assert (line.qmgr, line.queue, line.old, line.new) == ("QM1", "Q7", 1, 3)
    assert (line.missing_in_old, line.only_in_old) == old
    assert (line.missing_in_new, line.only_in_new) == new
    assert line.captured == (1 if world == "v6" else 3)
    assert line.as_captured == (world == "v7")


def test_a_dead_letter_is_no_delivery() -> None:
    commands = _delivered("v7", capture(replace(pub("t"), word="Publis")))
    assert [message.queue for message in commands] == [DEFAULT_STREAM, "SYSTEM.DEAD.LETTER.QUEUE"]
    differences, _ = compared(commands, "")
    assert differences.report().deliveries == ()


def test_queues_of_one_name_on_two_queue_managers_are_two() -> None:
    commands = capture(reg("t", options=("Local",)), pub("t"))
    both = [
        message.model_copy(update={"seq": message.seq + at * 10, "qmgr": qmgr})
        for at, qmgr in enumerate(["QM1", "QM2"])
        for message in commands
    ]
    differences, _ = compared(both, "")
    assert [line.name for line in differences.report().subscribers] == ["Q1 on QM1", "Q1 on QM2"]


def test_a_delivery_that_no_version_makes_is_missing() -> None:
    commands = _delivered("v7", capture(reg("t"), pub("t")))
    differences, _ = compared(commands[:1] + commands[-1:], "")
    (line,) = differences.report().deliveries
    assert (line.captured, line.new, line.missing_in_new) == (1, 0, 1)


# The verb


def _written(path: Path, messages: list[CapturedMessage]) -> Path:
    path.write_text("".join(message.model_dump_json() + "\n" for message in messages))
    return path


def test_the_verb(tmp_path: Path) -> None:
    source = _written(tmp_path / "c.jsonl", capture(reg("t", options=("Local",)), pub("t"))[::-1])
    arguments = ["differences", "--input", str(source), "--html", str(tmp_path / "r.html")]
    result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "d.jsonl")])
    assert result.exit_code == 0
    assert "2 messages, 1 of which version 7 treats differently\n1 difference for 1 queue:" in result.stdout
    assert "D02  global publication, local subscription: 1 gained" in result.stdout
    assert "<svg" in (tmp_path / "r.html").read_text()
    (line,) = (tmp_path / "d.jsonl").read_text().splitlines()
    assert json.loads(line)["rule"] == "D02"


def test_the_verb_writes_parquet_and_json(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    source = _written(tmp_path / "c.jsonl", capture(reg("t", options=("Local",)), pub("t")))
    arguments = ["differences", "--input", str(source), "--json", "--output", str(tmp_path / "d.parquet")]
    result = CliRunner().invoke(main, arguments)
    assert json.loads(result.stdout)["differences"] == 1
    (row,) = parquet.read_table(tmp_path / "d.parquet").to_pylist()
    assert (row["rule"], row["change"], row["queue"]) == ("D02", "gained", "Q1")


def test_what_cannot_be_read_makes_exit_code_1(tmp_path: Path) -> None:
    source = _written(tmp_path / "c.jsonl", capture(reg("t")))
    source.write_text(source.read_text() + "nonsense\n")
    result = CliRunner().invoke(main, ["differences", "--input", str(source)])
    assert result.exit_code == 1
    assert "line 2" in result.stderr


def test_a_wrong_ending_is_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["differences", "--input", str(tmp_path), "--output", "x.csv"])
    assert result.exit_code == 2
