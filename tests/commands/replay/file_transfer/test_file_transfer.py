"""Managed File Transfer: the coordination queue manager's puts, and what is read of them, from hand-made messages."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet

from commands import Broker
from commands.qmgr.store import QueueManagerStore
from commands.replay.file_transfer import TABLES, Rows, columns_of, may_be_of_agent, rows_of
from commands.replay.file_transfer.rows import FORMATS, TransferTables, values_of
from rfh2.captured import CapturedMessage
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from tests.commands.cli_runs import run
from tests.commands.file_transfers import FIRST, FIXTURE, QMGR, SETUP, STREAM, capture

CAPTURE = FIXTURE / "capture.jsonl"
START = '<transaction version="6.00" ID="0A" agentRole="sourceAgent">'


def golden(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURE / name).read_text().splitlines()]


def published(document: str | bytes, topic: str = f"Log/PAYROLL/{FIRST}", queue: str = STREAM) -> CapturedMessage:
    """A Publish of an agent."""
    string = f" MQPSCommand Publish MQPSTopic {topic}\0".encode()
    header = Rfh1(string + bytes(-len(string) % 16), 546, -2, "MQSTR")
    mqmd = Mqmd(encoding=546, coded_char_set_id=1208, format="MQHRF", persistence=1, user_identifier="ftepay")
    body = header.encode() + (document if isinstance(document, bytes) else document.encode())
    return CapturedMessage(seq=7, queue=queue, md_hex=mqmd.encode().hex(), body_hex=body.hex())


# The scenario


def test_replay_gives_the_golden_puts(tmp_path: Path) -> None:
    target = tmp_path / "puts.jsonl"
    ran = run("replay", "--input", str(CAPTURE), "--setup", str(SETUP), "--output", str(target))
    assert ran.code == 0, ran.talk
    assert target.read_bytes() == (FIXTURE / "puts.jsonl").read_bytes()


def test_run_puts_the_same_as_the_replay(tmp_path: Path) -> None:
    home, record = tmp_path / "qmgrs", tmp_path / "puts.jsonl"
    assert run("create", QMGR, "--home", str(home)).code == 0
    assert run("mqsc", "-m", QMGR, "--home", str(home), str(SETUP)).code == 0
    with QueueManagerStore.open(home, QMGR) as store, store.unit_of_work() as unit:
        for message in capture():
            unit.put(message.queue, message.md, message.body, user=message.user)
    assert run("run", "-m", QMGR, "--home", str(home), "--once", "--record", str(record)).code == 0
    same = ("n", "kind", "queue", "topic", "completion", "reason", "body_hex")
    recorded = [json.loads(line) for line in record.read_text().splitlines()]
    assert [[row[key] for key in same] for row in recorded] == [
        [row[key] for key in same] for row in golden("puts.jsonl")
    ]


IBM_COORDINATION = """\
DEFINE TOPIC('SYSTEM.FTE') TOPICSTR('SYSTEM.FTE') REPLACE
ALTER TOPIC('SYSTEM.FTE') NPMSGDLV(ALLAVAIL) PMSGDLV(ALLAVAIL)
DEFINE QLOCAL(SYSTEM.FTE) LIKE(SYSTEM.BROKER.DEFAULT.STREAM) REPLACE
ALTER QLOCAL(SYSTEM.FTE) DESCR('Stream for FTE Pub/Sub interface')
DISPLAY NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) +
 NAMES(SYSTEM.BROKER.DEFAULT.STREAM+
 ,SYSTEM.BROKER.ADMIN.STREAM,SYSTEM.FTE)
DISPLAY QMGR PSMODE
ALTER QMGR PSMODE(ENABLED)
"""
"""The commands of the set-up script, names without quotes and a continued line as there."""


def test_6_5_4_the_commands_of_the_products_script_make_the_stream() -> None:
    broker = Broker(QMGR, IBM_COORDINATION)
    (published,) = [each for each in capture() if each.seq == 8]
    broker.handle(capture()[0])
    (put,) = broker.handle(published)
    assert (put.queue, put.topic) == ("FTE.LOG", f"SYSTEM.FTE/Log/PAYROLL/{FIRST}")


def test_6_1_what_is_retained_describes_agents_monitors_schedules_and_templates() -> None:
    broker = Broker(QMGR, SETUP.read_text())
    for message in capture():
        broker.handle(message)
    topics = sorted(retained.topic_string for retained in broker.space.retained_publications())
    assert topics == [
        "SYSTEM.FTE/Agents/PAYROLL",
        "SYSTEM.FTE/Scheduler/PAYROLL",
        "SYSTEM.FTE/Templates/0b5c2d",
        "SYSTEM.FTE/monitors/PAYROLL/OUTBOX",
    ]


def test_6_1_a_watch_that_comes_late_is_given_the_retained_status_of_each_agent() -> None:
    puts = [put for put in golden("puts.jsonl") if put["queue"] == "FTE.WATCH" and put["seq"] == 18]
    assert [put["topic"] for put in puts] == ["SYSTEM.FTE/Agents/HOST", "SYSTEM.FTE/Agents/PAYROLL", None]
    host = decode(bytes.fromhex(puts[0]["body_hex"]), bytes.fromhex(puts[0]["md_hex"]))
    assert host.body_ccsid == 500
    assert "Lohn &amp; Gehalt" in str(host.body_text)


# The tables


def table(name: str, rows: list[Rows]) -> list[tuple[Any, ...]]:
    return [values_of(row) for each in rows for row in getattr(each, name)]


def test_the_scenarios_tables_are_the_golden_ones(tmp_path: Path) -> None:
    target = tmp_path / "tables"
    words = ("--setup", str(SETUP), "--file-transfers", str(target), "--file-transfers-as", "jsonl")
    ran = run("analyse", "--input", str(CAPTURE), *words)
    assert ran.code == 1, ran.talk
    assert "8 transfers, 5 items, 4 agents; 2 of them with a problem" in ran.talk
    for name in TABLES:
        assert (target / f"{name}.jsonl").read_bytes() == (FIXTURE / "tables" / f"{name}.jsonl").read_bytes()


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_same_rows(form: str, tmp_path: Path) -> None:
    tables = TransferTables(tmp_path / "tables", form)
    for message in capture():
        tables.add(rows_of(message))
    tables.finish()
    for name in TABLES:
        path = tmp_path / "tables" / f"{name}.{form}"
        if form == "parquet":
            got = [tuple(row.values()) for row in parquet.read_table(path).to_pylist()]
            assert got == table(name, [rows_of(message) for message in capture()])
        elif form == "csv":
            with path.open(newline="") as file:
                texts = list(csv.DictReader(file))
            assert texts == [
                {key: "" if value is None else str(value) for key, value in row.items()}
                for row in golden(f"tables/{name}.jsonl")
            ]


def test_columns_have_types() -> None:
    columns = columns_of("transfers")
    chosen = {name: columns[name] for name in ("seq", "action_time", "bytes_sent", "seconds", "transfer_id")}
    assert chosen == {"seq": int, "action_time": datetime, "bytes_sent": int, "seconds": float, "transfer_id": str}


def test_what_a_subscriber_got_has_the_same_rows_as_what_the_agent_put() -> None:
    """Its queue is another, and its topic may lack SYSTEM.FTE: the document says what it is."""
    puts = [put for put in golden("puts.jsonl") if put["queue"] in ("FTE.LOG", "FTE.TRANSFERS")]
    got = [
        rows_of(CapturedMessage(seq=put["seq"], queue=put["queue"], md_hex=put["md_hex"], body_hex=put["body_hex"]))
        for put in puts
    ]
    put_by_agents = [rows_of(message.model_copy(update={"time": None, "qmgr": None})) for message in capture()]
    wanted = [row for rows in put_by_agents for row in rows.transfers]
    assert [replace(row, topic=None) for rows in got for row in rows.transfers] == [
        replace(row, topic=None) for row in wanted
    ]


def test_a_message_of_today_without_a_header_is_known_by_its_document() -> None:
    message = capture()[10]
    found = message.decode()
    mqmd = Mqmd(format="MQSTR", coded_char_set_id=1208, encoding=546).encode()
    bare = message.model_copy(update={"queue": "MY.Q", "md_hex": mqmd.hex(), "body_hex": found.body.hex()})
    assert rows_of(bare).items == rows_of(message).items != ()
    assert rows_of(bare).transfers == (replace(rows_of(message).transfers[0], topic=None),)


PROBLEMS = [
    ("cut off", f"{START}<action>started</act", "not well-formed XML"),
    ("empty", "", "not well-formed XML"),
    ("blanks, which take no more than their time", "x" + " " * 3_000_000, "not well-formed XML"),
    ("another document", "<reply/>", "the document is <reply>, not <transaction>"),
    ("no action", f"{START}</transaction>", "the transaction has no action"),
    ("no ID", "<transaction><action>started</action></transaction>", None),
    ("a number that is none", f'{START}<action>x</action><transferSet total="many"/></transaction>', "total is not"),
    ("a number too large", f'{START}<action>x</action><transferSet total="{"9" * 40}"/></transaction>', "total is not"),
    ("a time that is none", f'{START}<action time="soon">x</action></transaction>', "action time is not"),
    ("a time before time", f'{START}<action time="0001-01-01T00:00:00+23:59">x</action></transaction>', "action time"),
    (
        "entities",
        '<!DOCTYPE a SYSTEM "x>y" [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><transaction>&b;</transaction>',
        "the DOCTYPE has declarations of its own",
    ),
    ("not in its code page", b"<transaction>\xff\xfe\xfd</transaction>", "the text is not in CCSID 1208"),
    ("a null inside", f"{START}\0</transaction>", "not well-formed XML"),
    ("too deep", "<transaction>" * 400 + "</transaction>" * 400, "not well-formed XML"),
]


@pytest.mark.parametrize(("document", "problem"), [each[1:] for each in PROBLEMS], ids=[each[0] for each in PROBLEMS])
def test_what_cannot_be_read_is_a_row_with_the_problem(document: str | bytes, problem: str | None) -> None:
    (row,) = rows_of(published(document)).transfers
    assert (row.seq, row.topic, row.problem is None) == (7, f"SYSTEM.FTE/Log/PAYROLL/{FIRST}", problem is None)
    assert (problem or "") in (row.problem or "")
    if row.version is None:
        assert row.transfer_id == FIRST, "the topic has it"


def test_a_file_on_the_agents_machine_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    doctype = f'<!DOCTYPE transaction [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'
    (row,) = rows_of(published(f"{doctype}{START}<action>&s;</action></transaction>")).transfers
    assert "secret" not in str(row.action)
    assert row.problem == "the DOCTYPE has declarations of its own; they are not read"


OTHERS = [
    ("a monitor's log", "Log/PAYROLL/Monitors/A/1", "<monitorLog/>"),
    ("a schedule's log", "Log/PAYROLL/6", "<schedulelog/>"),
    ("a monitor", "monitors/PAYROLL/A", "<monitorList/>"),
    ("schedules", "Scheduler/PAYROLL", "<schedules/>"),
    ("a template", "Templates/1", "<transferTemplate/>"),
]


@pytest.mark.parametrize(("topic", "document"), [each[1:] for each in OTHERS], ids=[each[0] for each in OTHERS])
def test_what_is_about_no_transfer_and_no_agent_has_no_row(topic: str, document: str) -> None:
    assert rows_of(published(document, topic)) == Rows()


def test_another_applications_documents_have_no_row() -> None:
    for document in ("<transaction><action>pay</action></transaction>", "<properties/>", "<transaction", "text"):
        assert rows_of(published(document, "Log/x", "SYSTEM.BROKER.DEFAULT.STREAM")) == Rows()


def test_a_status_is_the_status_of_its_topic_where_the_properties_name_no_agent() -> None:
    (row,) = rows_of(published('<properties><entry key="a">1</entry></properties>', "Agents/HOST")).agents
    assert (row.agent, row.properties, row.problem) == ("HOST", '{"a": "1"}', None)


@given(st.binary(max_size=200), st.sampled_from(["Log/A/B", "Agents/A", "Transfers/A/B", "x"]))
def test_no_bytes_stop_the_analysis(document: bytes, topic: str) -> None:
    for queue in (STREAM, "ELSEWHERE"):
        rows = rows_of(published(document, topic, queue))
        assert len(rows.transfers) + len(rows.agents) <= 1
        assert rows == Rows() or may_be_of_agent(queue, published(document, topic, queue).body)
    assert rows_of(CapturedMessage(seq=1, queue=STREAM, body_hex=document.hex())).items == ()


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    ran = run("analyse", "--input", str(CAPTURE), "--setup", str(SETUP), "--file-transfers", str(tmp_path))
    assert ran.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
