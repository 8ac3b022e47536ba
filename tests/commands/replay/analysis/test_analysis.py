"""The analysis of a capture so small that every number in it is known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from commands.cli import main
from commands.explain.build import CommandSpec, command_message
from commands.replay.analysis import SECTIONS, TABLES, VIEWS, LocalAnalysis, Row
from commands.replay.analysis.html import page
from commands.replay.analysis.report import lines_of, report_of
from commands.replay.analysis.tables import Fact, TableCounts
from commands.replay.arrivals import OutOfOrderError
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.constants import MQMT_REQUEST
from rfh2.mqmd import Mqmd
from tests.html_pages import check_page

START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
SETUP = "DEFINE SUB(AUDITOR) TOPICSTR('Old/#') DEST(AUDIT)\n"


def _command(
    word: str, *topics: str, program: str, queue: str = "", options: Sequence[str] = (), data: str = ""
) -> CapturedMessage:
    mqmd = Mqmd(user_identifier=program[:3], put_appl_name=f"{program}.exe", reply_to_q=queue)
    if word == "ReqUpdate":
        mqmd = Mqmd(
            user_identifier=program[:3], put_appl_name=f"{program}.exe", reply_to_q=queue, msg_type=MQMT_REQUEST
        )
    return command_message(CommandSpec(word, topics, tuple(options), data=data, mqmd=mqmd))


def _capture() -> list[CapturedMessage]:
    made = [
        _command("RegSub", "a/#", program="board", queue="Q1"),
        _command("RegSub", "a/x", program="board", queue="Q1"),
        _command("Publish", "a/x", program="feed", data="12345"),
        _command("Publish", "a/y", program="feed", options=["RetainPub"], data="123"),
        _command("Publish", "b", program="feed", options=["RetainPub"], data="1234"),
        _command("Publish", "d", "a/x", program="other", data="1"),
        _command("RegSub", "a/y", program="late", queue="Q2"),
        _command("RegSub", "c/d", program="late", queue="Q2"),
        _command("ReqUpdate", "nothing", program="late", queue="Q2"),
        _command("DeregSub", "nothing", program="board", queue="Q1"),
        _command("Publish", "a/x", program="feed").model_copy(update={"queue": "SOMEWHERE", "body_hex": b"Hi".hex()}),
    ]
    return [
        message.model_copy(update={"seq": at + 1, "time": START + timedelta(seconds=20 * at)})
        for at, message in enumerate(made)
    ]


CAPTURE = _capture()


def rows(name: str, *columns: str, semantics: str = "v7") -> list[tuple[Any, ...]]:
    analysis = LocalAnalysis(SETUP, semantics)
    for message in CAPTURE:
        analysis.take(message)
    (of,) = (of for of in (*TABLES, *VIEWS) if of.name == name)
    return [tuple(row[column] for column in columns) for row in analysis.rows(of)]


def test_queue_managers() -> None:
    columns = ("qmgr", "messages", "publications", "deliveries", "responses", "dead_letters", "errors", "passed_over")
    # Of the two errors one is answered, and one is a dead letter.
    assert rows("qmgrs", *columns) == [("QM1", 11, 4, 6, 1, 1, 2, 1)]
    assert rows("qmgrs", "first_seq", "first_time", "last_time") == [(1, START, START + timedelta(seconds=200))]


def test_streams() -> None:
    assert rows("streams", "queue", "messages", "publications", "deliveries", "errors", "passed_over") == [
        ("SYSTEM.BROKER.CONTROL.QUEUE", 6, 0, 1, 2, 0),
        ("SYSTEM.BROKER.DEFAULT.STREAM", 4, 4, 5, 0, 0),
        ("SOMEWHERE", 1, 0, 0, 0, 1),
    ]


def test_topics() -> None:
    assert rows("topics", "topic", "publications", "bytes", "deliveries", "retained", "read", "first_seq") == [
        ("a/x", 2, 6, 4, 0, 0, 3),
        ("a/y", 1, 3, 1, 1, 1, 4),
        ("b", 1, 4, 0, 1, 0, 5),
        ("d", 1, 1, 0, 0, 0, 6),
    ]


def test_applications() -> None:
    columns = ("messages", "publications", "registrations", "deregistrations", "requests", "deletions", "others")
    assert rows("applications", "application", "user", *columns, "deliveries", "errors") == [
        ("feed.exe", "fee", 4, 3, 0, 0, 0, 0, 1, 3, 0),
        ("board.exe", "boa", 3, 0, 2, 1, 0, 0, 0, 0, 1),
        ("late.exe", "lat", 3, 0, 2, 0, 1, 0, 0, 1, 1),
        ("other.exe", "oth", 1, 1, 0, 0, 0, 0, 0, 2, 0),
    ]


def test_subscriptions() -> None:
    assert sorted(rows("subscriptions", "topic", "subscriber", "sub_name", "deliveries", "read", "first_seq")) == [
        ("Old/#", "AUDIT", "AUDITOR", 0, 0, -1),
        ("a/#", "Q1", "", 3, 0, 1),
        ("a/x", "Q1", "", 2, 0, 2),
        ("a/y", "Q2", "", 0, 1, 7),
        ("c/d", "Q2", "", 0, 0, 8),
    ]


def test_subscriptions_never_matched() -> None:
    assert sorted(rows("never_matched", "topic", "user")) == [("Old/#", ""), ("c/d", "lat")]


def test_topics_never_subscribed() -> None:
    assert rows("never_subscribed", "topic", "queue") == [
        ("b", "SYSTEM.BROKER.DEFAULT.STREAM"),
        ("d", "SYSTEM.BROKER.DEFAULT.STREAM"),
    ]


def test_duplicates() -> None:
    columns = ("subscriber", "subscriptions", "publications", "extra", "topic", "first_seq")
    assert rows("duplicates", *columns) == [("Q1", "a/# + a/x", 2, 2, "a/x", 3)]
    # Version 6 puts a subscriber one message: guide 7.5.
    assert rows("duplicates", *columns, semantics="v6") == []


def test_retained_that_nobody_reads() -> None:
    assert rows("unread_retained", "topic", "retained", "deliveries") == [("b", 1, 0)]


def test_errors_by_reason_and_program() -> None:
    columns = ("completion", "reason", "application", "command", "count", "answered", "dead_letters", "first_seq")
    assert rows("errors", *columns) == [
        ("error", 3073, "board.exe", "DeregSub", 1, 0, 1, 10),
        ("error", 3073, "late.exe", "ReqUpdate", 1, 1, 0, 9),
    ]


def test_errors_by_reason() -> None:
    assert rows("reasons", "reason", "command", "count", "answered", "dead_letters", "first_seq") == [
        (3073, "DeregSub", 1, 0, 1, 10),
        (3073, "ReqUpdate", 1, 1, 0, 9),
    ]


def test_traffic_by_the_minute() -> None:
    assert rows("minutes", "minute", "messages", "publications", "deliveries", "errors") == [
        (START, 3, 1, 2, 0),
        (START + timedelta(minutes=1), 3, 3, 3, 0),
        (START + timedelta(minutes=2), 3, 0, 1, 1),
        (START + timedelta(minutes=3), 2, 0, 0, 1),
    ]


def test_messages_without_a_time_have_no_minute() -> None:
    analysis = LocalAnalysis()
    analysis.take(CAPTURE[0].model_copy(update={"time": None}))
    (minutes,) = (table for table in TABLES if table.name == "minutes")
    assert analysis.rows(minutes) == []
    assert report_of(analysis.look, "v7", 10).first_time is None


def test_messages_come_in_order() -> None:
    analysis = LocalAnalysis()
    analysis.take(CAPTURE[1])
    with pytest.raises(OutOfOrderError, match="seq 1 comes after seq 2"):
        analysis.take(CAPTURE[0])


def test_counts_come_to_the_same_in_any_order() -> None:
    facts = [
        Fact("duplicates", ("QM1", "Q", "a + b"), (1, 2, 3), 7, None, ("a/x",)),
        Fact("duplicates", ("QM1", "Q", "a + b"), (1, 1, 1), 3, START, ("b",)),
        Fact("duplicates", ("QM1", "Q", "a + b"), (1, 1, 1), 3, START + timedelta(1), ("a",)),
    ]
    (table,) = (table for table in TABLES if table.name == "duplicates")
    found = []
    for order in (facts, facts[::-1]):
        counts = TableCounts()
        counts.add(order)
        found.append(list(counts.values(table)))
    assert found[0] == found[1]
    assert found[0] == [("QM1", "Q", "a + b", 3, 4, 5, 3, START, START + timedelta(1), "a")]


# What people see


@pytest.fixture
def report() -> Any:
    analysis = LocalAnalysis(SETUP)
    for message in CAPTURE:
        analysis.take(message)
    return report_of(analysis.look, "v7", 100)


def test_the_report_has_every_section(report: Any) -> None:
    assert [section.name for section in report.sections] == [asked.of.name for asked in SECTIONS]
    assert (report.messages, report.section("topics").count) == (11, 4)
    assert (report.period_s, [period.messages for period in report.timeline]) == (5, [1] * 11)
    with pytest.raises(KeyError):
        report.section("none")


def test_the_terminal(report: Any) -> None:
    lines = list(lines_of(report))
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 100
    assert "Subscriptions never matched: 2" in text
    assert re.search(r"AUDIT +Old/# +AUDITOR +no-match +setup", text)
    assert re.search(r"3073 MQRCCF_NOT_REGISTERED +late.exe +lat +ReqUpdate +1", text)


def test_the_page_shows_what_is_wrong_first(report: Any) -> None:
    parts = check_page(page(report, "captures/<today>"))
    assert "What is in captures/<today>" in parts.words
    titles = [asked.title for asked in SECTIONS]
    shown = [word.strip() for word in parts.words if word.strip() in titles]
    # In the contents, then as headings.
    assert sorted(shown) == sorted([*titles, *titles])
    assert shown[:3] == ["Errors and warnings by reason", "Errors and warnings by program", titles[4]]


def test_the_page_has_every_row_of_the_report(report: Any) -> None:
    tables = check_page(page(report, "c")).tables
    assert sorted(table["rows"] for table in tables) == sorted(len(s.rows) for s in report.sections if s.rows)


def test_long_names_leave_room_for_numbers() -> None:
    analysis = LocalAnalysis()
    for at in range(3):
        topic = "/".join(f"a long topic {at} {n}" for n in range(12))
        analysis.take(_command("RegSub", topic, program="p" * 24, queue="Q" * 48).model_copy(update={"seq": at}))
    lines = list(lines_of(report_of(analysis.look, "v7", 10)))
    assert 80 < max(map(len, lines)) <= 100
    assert any("a long topic 0 0" in line and line.endswith(" 0") for line in lines)


def test_nothing_is_a_report_too() -> None:
    report = report_of(LocalAnalysis().look, "v7", 10)
    assert next(iter(lines_of(report))) == "0 messages, under version 7"
    assert "Every retained publication was read." in check_page(page(report, "nothing")).words


# The verb


def _run(tmp_path: Path, *arguments: str) -> Any:
    (tmp_path / "setup.mqsc").write_text(SETUP)
    with (tmp_path / "capture.jsonl").open("wb") as file:
        write_captures(CAPTURE[::-1], file, "jsonl")
    given = ["analyse", "--input", str(tmp_path / "capture.jsonl"), "--setup", str(tmp_path / "setup.mqsc")]
    return CliRunner().invoke(main, [*given, *arguments])


def test_the_verb_tells(tmp_path: Path) -> None:
    result = _run(tmp_path, "--html", str(tmp_path / "page.html"))
    assert result.exit_code == 0
    assert "Duplicate deliveries from overlapping subscriptions: 1" in result.output
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_verb_has_json(tmp_path: Path) -> None:
    found = json.loads(_run(tmp_path, "--json").output)
    (unread,) = (section for section in found["sections"] if section["name"] == "unread_retained")
    row: Row = unread["rows"][0]
    assert (unread["count"], row["topic"], row["first_time"]) == (1, "b", "2026-01-01T09:01:20Z")


def test_the_verb_has_every_row_as_json_and_as_a_page(tmp_path: Path) -> None:
    capture, topics = tmp_path / "many.jsonl", 1_500
    with capture.open("wb") as file:
        made = (_command("Publish", f"a/{at}", program="feed").model_copy(update={"seq": at}) for at in range(topics))
        write_captures(made, file, "jsonl")
    result = CliRunner().invoke(main, ["-q", "analyse", str(capture), "--json", "--html", str(tmp_path / "page.html")])

    found = {section["name"]: section for section in json.loads(result.output)["sections"]}
    assert [(found[name]["count"], len(found[name]["rows"])) for name in ("topics", "never_subscribed")] == [
        (topics, topics),
        (topics, topics),
    ]
    tables = check_page((tmp_path / "page.html").read_text()).tables
    assert [table["rows"] for table in tables].count(topics) == 2


@pytest.mark.parametrize("verb", ["analyse", "differences"])
def test_a_page_on_stdout_is_alone_there(verb: str, tmp_path: Path) -> None:
    with (tmp_path / "capture.jsonl").open("wb") as file:
        write_captures(CAPTURE, file, "jsonl")
    result = CliRunner().invoke(main, ["-q", verb, str(tmp_path / "capture.jsonl"), "--html", "-", "--json"])

    assert result.stdout.startswith("<!DOCTYPE html>")
    assert result.stdout.rstrip().endswith("</html>")


def test_the_verb_writes_every_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert _run(tmp_path, "--output", str(tmp_path / "tables")).exit_code == 0
    assert _run(tmp_path, "--output", str(tmp_path / "tables")).exit_code == 0
    for of in (*TABLES, *VIEWS):
        assert parquet.read_table(tmp_path / "tables" / f"{of.name}.parquet").num_rows >= 1
    (tmp_path / "tables" / "letters.txt").touch()
    assert _run(tmp_path, "--output", str(tmp_path / "tables")).exit_code == 2
    assert (tmp_path / "tables" / "letters.txt").exists()


def test_a_bad_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("no JSON\n")
    assert CliRunner().invoke(main, ["analyse", "--input", str(tmp_path / "bad.jsonl")]).exit_code == 1
