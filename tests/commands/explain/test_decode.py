"""``qpubsub decode``: JSON for programs, a view for people, problems in the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from commands.explain.build import CommandSpec, command_message
from commands.explain.equivalents.records import MessageView, consequences, view
from commands.explain.problems import explained
from rfh2 import CapturedMessage, Folder, Message, Mqmd, Rfh2, encode
from rfh2.captures import read_captures
from rfh2.pcf import Cfgr, Cfin, Cfst, Pcf
from tests.commands.cli_runs import run
from tests.rfh2.explained import damaged

FIXTURES = Path(__file__).parents[3] / "fixtures"
COMMANDS = FIXTURES / "explain" / "commands.jsonl"
IBM = FIXTURES / "captures" / "ibm"
PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"


def line(*folders: str, data: bytes = b"", queue: str = "", **md: Any) -> str:
    header = Rfh2(tuple(map(Folder.of, folders)), coded_char_set_id=1208, format="MQSTR" if data else "")
    mqmd = Mqmd(**{"format": "MQHRF2", "coded_char_set_id": 819, **md})
    body = encode(Message(mqmd, (header,), data))
    return CapturedMessage(seq=1, queue=queue, md_hex=mqmd.encode().hex(), body_hex=body.hex()).model_dump_json() + "\n"


def decoded(stdin: str) -> dict[str, Any]:
    (only,) = run("decode", "--json", stdin=stdin).lines
    found: dict[str, Any] = json.loads(only)
    return found


def test_the_json_of_a_message() -> None:
    form = decoded(
        line(PSC, "<usr><Size dt='i4'>3</Size><On dt='boolean'>1</On><Raw dt='bin.hex'>0aFF</Raw></usr>", data=b"hi")
    )
    assert list(form) == ["format", "source", "index", "mqmd", "headers", "command", "body", "problems", "captured"]
    assert (form["source"], form["index"], form["problems"]) == ("stdin", 0, [])
    (header,) = form["headers"]
    assert (header["type"], header["offset"], header["length"]) == ("MQRFH2", 0, 184)
    assert header["fields"] == {
        "StrucId": "RFH ",
        "Version": 2,
        "StrucLength": 184,
        "Encoding": 546,
        "CodedCharSetId": 1208,
        "Format": "MQSTR",
        "Flags": 0,
        "NameValueCCSID": 1208,
    }
    psc, usr = header["folders"]
    assert psc == {
        "name": "psc",
        "offset": 40,
        "length": 56,
        "raw": PSC + " ",
        "values": {"Command": "Publish", "Topic": "a/b"},
    }
    assert usr["values"] == {"Size": 3, "On": True, "Raw": "0aff"}
    assert form["command"] | {"word": "Publish", "topics": ["a/b"], "options": []} == form["command"]
    assert form["body"] == {
        "offset": 184,
        "length": 2,
        "format": "MQSTR",
        "encoding": 546,
        "ccsid": 1208,
        "text": "hi",
        "hex": "6869",
    }


def test_the_mqmd_has_ibms_names_and_hex_for_bytes() -> None:
    form = decoded(line(PSC, reply_to_q="SUB.Q\0old", correl_id=b"\1" * 24, msg_type=1, version=2))
    mqmd = form["mqmd"]
    assert (mqmd["StrucId"], mqmd["Version"], mqmd["MsgType"]) == ("MD  ", 2, 1)
    assert (mqmd["ReplyToQ"], mqmd["CorrelId"], mqmd["OriginalLength"]) == ("SUB.Q", "01" * 24, -1)
    assert len(mqmd) == 29


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        pytest.param("<psc><Topic>a</Topic><Topic>b</Topic></psc>", {"Topic": ["a", "b"]}, id="repeated"),
        pytest.param("<usr><a dt='r8'>1.5</a><b xsi:nil='true'/></usr>", {"a": 1.5, "b": None}, id="typed"),
        pytest.param("<mq_usr><g><h>1</h></g></mq_usr>", {"g": {"h": "1"}}, id="a-group"),
        pytest.param("<own>", None, id="not-well-formed"),
    ],
)
def test_values(folder: str, values: object) -> None:
    assert decoded(line(folder))["headers"][0]["folders"][0]["values"] == values


def test_a_folder_that_is_no_text_is_hex() -> None:
    header = Rfh2((Folder(b"<a>\xff</a>"),))
    stdin = CapturedMessage(seq=1, queue="", body_hex=encode(Message(Mqmd(), (header,))).hex()).model_dump_json()
    folder = decoded(stdin)["headers"][0]["folders"][0]
    assert (folder["raw"], folder["values"], folder["hex"]) == (None, None, "3c613eff3c2f613e")


def test_an_mqrfh_has_pairs() -> None:
    (only,) = run("decode", "--json", str(FIXTURES / "rfh1" / "worked-example.bin")).lines
    (header,) = json.loads(only)["headers"]
    assert header["pairs"] == [["MQPSCommand", "Publish"], ["MQPSPubOpts", "RetainPub"], ["MQPSTopic", 'IBM "Q" Price']]
    assert "folders" not in header


def test_pcf_in_a_body_is_read() -> None:
    pcf = Pcf(63, (Cfst.of(3031, "a"), Cfin(1082, 2)))
    md = Mqmd(format="MQPCF", coded_char_set_id=1208)
    stdin = CapturedMessage(seq=1, queue="", md_hex=md.encode().hex(), body_hex=pcf.encode().hex()).model_dump_json()
    found = decoded(stdin)
    assert found["body"]["pcf"]["name"] == "MQCMD_PUBLISH"
    assert [(p["name"], p["value"]) for p in found["body"]["pcf"]["parameters"]] == [
        ("MQCACF_TOPIC", "a"),
        ("MQIACF_PUBLICATION_OPTIONS", 2),
    ]
    assert found["command"]["word"] == "Publish"


def test_pcf_is_shown_by_its_parameters() -> None:
    pcf = Pcf(63, (Cfst.of(3031, "a"), Cfin(1082, 2), Cfgr(3040, (Cfin(1, 5),))), rest=b"data")
    md = Mqmd(format="MQPCF", coded_char_set_id=1208)
    stdin = CapturedMessage(seq=1, queue="", md_hex=md.encode().hex(), body_hex=pcf.encode().hex()).model_dump_json()
    text = run("decode", stdin=stdin).out
    assert re.search(r"^    12 +Command +63 \[MQCMD_PUBLISH\]$", text, re.MULTILINE)
    assert re.search(r"^    36 +MQCACF_TOPIC +a$", text, re.MULTILINE)
    assert re.search(
        r"^    60 +MQIACF_PUBLICATION_OPTIONS 2 \[MQPUBO_RETAIN_PUBLICATION \(RetainPub\)\]$", text, re.MULTILINE
    )
    assert re.search(r"^    76 +MQCACF_CHILD_Q_MGR_NAME$\n^    92 +1 +5$", text, re.MULTILINE)
    assert re.search(r"^   108 +64617461 +data$", text, re.MULTILINE)


@pytest.mark.parametrize("end", range(0, 110, 7))
def test_a_message_cut_anywhere_gives_its_object(end: int) -> None:
    whole = json.loads(line(PSC, data=b"hello world"))
    cut = {**whole, "body_hex": whole["body_hex"][: 2 * end]}
    ran = run("decode", "--json", stdin=json.dumps(cut))
    form = json.loads(ran.out)
    assert form["mqmd"]["Format"] == "MQHRF2"
    assert form["headers"] or form["body"]["hex"] == cut["body_hex"]
    errors = [problem for problem in form["problems"] if problem["severity"] == "error"]
    assert bool(errors) == (end < 96)
    assert ran.code == (1 if errors else 0)


def test_a_record_that_is_no_message_is_reported_and_the_others_are_decoded() -> None:
    ran = run("decode", "--json", stdin=line(PSC) + "not JSON\n" + line(PSC))
    forms = [json.loads(text) for text in ran.lines]
    assert [[p["code"] for p in form["problems"]] for form in forms] == [[], ["unreadable-record"], []]
    assert forms[1]["body"] is None
    assert (ran.code, ran.talk) == (1, "3 messages, 1 with errors, 0 with warnings\n")


def test_warnings_do_not_change_the_exit_code() -> None:
    ran = run("decode", stdin=line(PSC.replace("a/b", "a & b")))
    assert (ran.code, ran.talk) == (0, "1 message, 0 with errors, 1 with warnings\n")
    assert "warning bare-ampersand at byte " in ran.out


def test_a_missing_file_is_told_before_anything_is_printed(tmp_path: Path) -> None:
    ran = run("decode", str(COMMANDS), str(tmp_path / "gone"))
    assert (ran.code, ran.out) == (2, "")
    assert "gone: no such file or directory" in ran.talk


def test_the_format_can_be_named() -> None:
    assert (
        run(
            "decode", "--brief", "--format", "hex", stdin="# pasted\n" + (IBM / "single_rfh2.dat").read_bytes().hex()
        ).code
        == 0
    )
    assert run("decode", "--format", "nonsense").code == 2


# The view for people


def test_the_view_of_a_capture() -> None:
    captured = [record.message for record in read_captures(COMMANDS) if record.message is not None]
    plain = MessageView(lambda _role, text: text)
    blocks = []
    for at, message in enumerate(captured):
        found = explained(message)
        title = f"commands.jsonl, message {at + 1}"
        blocks.append("\n".join(view(found.partial, title, found.command, found.problems, plain)))
    assert "\n\n".join(blocks) + "\n" == (COMMANDS.parent / "commands.txt").read_text(encoding="utf-8")


def test_the_json_of_a_capture() -> None:
    golden = [json.loads(text) for text in (COMMANDS.parent / "commands.decoded.jsonl").read_text().splitlines()]
    found = [json.loads(text) for text in run("decode", "--json", str(COMMANDS)).lines]
    assert [{**form, "source": "commands.jsonl"} for form in found] == golden


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        pytest.param(r"^    16 ffffffff +Expiry +-1 \[MQEI_UNLIMITED\]$", line(PSC), id="1-expiry"),
        pytest.param(r"Report +3 \[MQRO_PAN \+ MQRO_NAN\]$", line(PSC, report=3), id="1-report"),
        pytest.param(r"Report .*\[MQRO_COA_WITH_FULL_DATA\]$", line(PSC, report=0x700), id="1-report-of-several-bits"),
        pytest.param(r"Report .*\[unknown 0x00000010\]$", line(PSC, report=0x10), id="1-report-unknown"),
        pytest.param(
            r"PutDate +'20090128' \[2009-01-28 11:43:54.18 UTC\]",
            line(PSC, put_date="20090128", put_time="11435418"),
            id="1-time",
        ),
        pytest.param(r"MsgId .*\[made by queue manager QM1\]", line(PSC, msg_id=b"AMQ QM1".ljust(24)), id="1-msg-id"),
        pytest.param(r"PutApplType +26 \[MQAT_BROKER", line(PSC, put_appl_type=26), id="1-put-appl-type"),
        pytest.param(r"Topic +a/b$", line(PSC), id="3.2-tag"),
        pytest.param(r"Size \(i4\) +3$", line("<usr><Size dt='i4'>3</Size></usr>"), id="3.3-type"),
        pytest.param(r"RegOpt +Local \[MQREGO_LOCAL\]$", line("<psc><RegOpt>Local</RegOpt></psc>"), id="2.4-option"),
        pytest.param(
            r"Reason +3073 \[MQRCCF_NOT_REGISTERED: ",
            line("<pscr><Response><Reason>3073</Reason></Response></pscr>"),
            id="4.4-reason",
        ),
        pytest.param(r"Tms +0 \[JMSTimestamp\]", line("<jms><Tms>0</Tms></jms>"), id="3.2-jms"),
        pytest.param(
            r"Tms +1233142994180 \[JMSTimestamp, 2009-01-28 11:43:14.180 UTC\]",
            line("<jms><Tms>1233142994180</Tms></jms>"),
            id="3.2-jms-time",
        ),
        pytest.param(r"^MQMD 324 -> MQRFH2 96 -> MQSTR 2 bytes$", line(PSC, data=b"hi"), id="the-chain"),
        pytest.param(r"^MQMD 324 -> MQRFH2 96 -> no data$", line(PSC), id="the-chain-without-data"),
        pytest.param(r"^Publish: publishes 2 bytes on a/b$", line(PSC, data=b"hi"), id="the-sentence"),
        pytest.param(r"^Response: ok$", line("<pscr><Completion>ok</Completion></pscr>"), id="a-response"),
        pytest.param(
            r"NameValueData +<own> \[cannot be read: ",
            line("<own>"),
            id="a-folder-that-is-not-well-formed",
        ),
    ],
)
def test_what_a_person_reads(shown: str, text: str) -> None:
    assert re.search(shown, run("decode", stdin=text).out, re.MULTILINE)


def test_brief_leaves_the_fields_out() -> None:
    ran = run("decode", "--brief", stdin=line(PSC, data=b"hi"))
    assert ran.lines == [
        "== stdin, message 1 ==",
        "Publish: publishes 2 bytes on a/b",
        "MQMD 324 -> MQRFH2 96 -> MQSTR 2 bytes",
    ]


def test_long_data_is_cut_unless_all_is_asked_for() -> None:
    long = line(PSC, data=b"x" * 300)
    assert "… 44 more characters" in run("decode", stdin=long).out
    assert "x" * 300 in run("decode", "--all-bytes", stdin=long).out


def test_colour_is_for_terminals_only() -> None:
    assert "\x1b[" not in run("decode", stdin=line(PSC)).out
    assert "\x1b[" in run("decode", stdin=line(PSC), terminal=True).out


@given(damaged())
def test_nothing_in_a_message_reaches_the_terminal_as_control(message: CapturedMessage) -> None:
    found = explained(message)
    shown = list(view(found.partial, "title", found.command, found.problems, MessageView(lambda _role, text: text)))
    assert all(character.isprintable() for text in shown for character in text)


# What a message would lead to


def test_explain_says_what_would_happen() -> None:
    text = line("<psc><Command>RegSub</Command><Topic>a</Topic></psc>", reply_to_q="SUB.Q", msg_type=1)
    ran = run("decode", "--brief", "--explain", stdin=text)
    told = ran.out.split("On a new queue manager:\n")[1].splitlines()
    assert told[0] == "  completion ok"
    assert re.fullmatch(
        r"  operation Subscribe: 'QPS:QM1:SUB\.Q:-:-:a:[0-9a-f]{8}', topic string 'a', to SUB\.Q on QM1", told[1]
    )
    assert re.fullmatch(r"  put response: to SUB\.Q on QM1, \d+ bytes, ok", told[2])


def test_explain_in_json_gives_operations_and_puts() -> None:
    text = line("<psc><Command>DeregSub</Command><Topic>a</Topic></psc>", reply_to_q="SUB.Q", msg_type=1)
    form = json.loads(run("decode", "--json", "--explain", stdin=text).out)
    assert (form["explain"]["completion"], form["explain"]["reason"], form["explain"]["operations"]) == (
        "error",
        3073,
        [],
    )
    assert [put["kind"] for put in form["explain"]["puts"]] == ["response"]
    assert form["problems"] == []


def test_a_message_for_another_queue_leads_to_nothing() -> None:
    plain = CapturedMessage(seq=1, queue="APP.Q", md_hex=Mqmd(format="MQSTR").encode().hex(), body_hex="6869")
    assert consequences(plain).outcome.completion is None


@pytest.mark.parametrize("path", sorted(IBM.glob("*.dat")), ids=lambda path: path.name)
def test_messages_of_other_programs(path: Path) -> None:
    ran = run("decode", str(path))
    assert ran.code == 0
    assert "RegSub: PUBOUT on DebugQM subscribes to $topictree/topiccat/topic; options PersAsPub" in ran.out


STREAM_SETUP = """
DEFINE QLOCAL(SCORES)
DEFINE TOPIC(SCORES) TOPICSTR('Scores')
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SCORES)
"""


@pytest.mark.rule("STR-4")
def test_explain_says_that_nobody_reads_a_stream_that_the_namelist_lacks(tmp_path: Path) -> None:
    script = tmp_path / "streams.mqsc"
    script.write_text(STREAM_SETUP)
    text = line(PSC, queue="SCORES")
    without = run("decode", "--brief", "--explain", stdin=text).out
    with_setup = run("decode", "--brief", "--explain", "--setup", str(script), stdin=text).out
    assert "  not processed: SCORES is not in SYSTEM.QPUBSUB.QUEUE.NAMELIST" in without
    assert "On a new queue manager after --setup:\n  completion ok" in with_setup
    assert "topic string 'Scores/a/b'" in with_setup


def test_setup_is_for_explain(tmp_path: Path) -> None:
    script = tmp_path / "streams.mqsc"
    script.write_text(STREAM_SETUP)
    assert run("decode", "--setup", str(script), stdin=line(PSC)).code == 2


@pytest.mark.parametrize(
    ("wanted", "problems"),
    [
        ({"queue": "SCORES", "tags": {"StreamName": "SCORES"}}, []),
        ({"queue": "SCORES", "tags": {"StreamName": "OTHER"}}, ["refused-command"]),
        ({"queue": "", "tags": {"StreamName": "SCORES"}}, []),
        ({"queue": "SYSTEM.BROKER.CONTROL.QUEUE", "tags": {"StreamName": "SCORES"}}, ["wrong-queue"]),
    ],
    ids=["its-own", "of-another-queue", "no-queue-is-known", "on-the-control-queue"],
)
def test_6_7_7_3075_a_publication_is_looked_at_on_its_own_queue(wanted: dict[str, Any], problems: list[str]) -> None:
    """Which queues are streams no capture says; a program that names the stream that it puts to is right."""
    message = command_message(CommandSpec("Publish", ("a",), rfh1=True, data="x", **wanted))
    found = explained(message.model_copy(update={"queue": wanted["queue"]}))
    assert [problem.code for problem in found.problems] == problems


def test_the_data_of_a_publication_in_pcf_is_what_is_behind_its_parameters() -> None:
    message = command_message(CommandSpec("Publish", ("a/b",), pcf=True, data="fifteen letters"))
    assert "publishes 15 bytes on a/b" in run("decode", "--brief", stdin=message.model_dump_json() + "\n").out
