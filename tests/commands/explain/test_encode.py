"""``qpubsub encode``: from decode's JSON back to captures, and messages from options."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.cli.encode import command as encode_command
from commands.headers.registry import parse
from commands.model import Publish, PubOpt, RegisterSubscriber, RegOpt
from rfh2 import CapturedMessage, Mqmd, decode_pcf
from rfh2.captures import FORMATS, read_captures
from rfh2.rfh1 import COMMANDS, Rfh1
from tests.commands.cli_runs import run

FIXTURES = Path(__file__).parents[3] / "fixtures"


def captures(path: Path) -> list[CapturedMessage]:
    return [record.message for record in read_captures(path) if record.message is not None]


@pytest.mark.parametrize("name", ["results-service/capture.jsonl", "jms/v1.jsonl", "fuzz/seeds.jsonl"])
def test_decode_and_encode_give_a_capture_back(name: str) -> None:
    path = FIXTURES / name
    back = run("encode", stdin=run("decode", "--json", str(path)).out)
    messages = [CapturedMessage.model_validate_json(text) for text in back.lines]
    assert messages == captures(path)


@pytest.mark.parametrize("form", [name for name, entry in FORMATS.items() if entry.writer is not None])
def test_any_format_that_can_be_written(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    import io

    from commands.cli import main
    from commands.terminal.console import Console

    source = FIXTURES / "captures" / "ibm" / "single_rfh2.dat"
    decoded = tmp_path / "decoded.jsonl"
    decoded.write_text(run("decode", "--json", str(source)).out)
    console = Console(io.BytesIO(), io.StringIO())
    with pytest.raises(SystemExit, match="0"):
        main(["encode", "--to", form, str(decoded)], obj=console)
    assert isinstance(console.stdout, io.BytesIO)
    target = tmp_path / "made"
    target.write_bytes(console.stdout.getvalue())
    (message,) = captures(target)
    assert message.body == source.read_bytes()


def test_what_cannot_be_encoded_is_reported_and_the_rest_is_encoded() -> None:
    good = run("decode", "--json", str(FIXTURES / "captures" / "ibm" / "single_rfh2.dat")).out
    bad = json.loads(good)
    bad["headers"][0]["fields"]["Nope"] = 1
    ran = run("encode", stdin=good + "\n" + json.dumps(bad) + "\nnot JSON\n" + good)
    assert (ran.code, len(ran.lines)) == (1, 2)
    assert "stdin, line 3: MQRFH2 has no field Nope" in ran.talk
    assert "stdin, line 4: " in ran.talk
    assert "2 messages encoded" in ran.talk


def test_a_missing_file() -> None:
    assert run("encode", "no-such-file").code == 2


def made(*args: str, warned: str = "") -> CapturedMessage:
    ran = run("encode", *args)
    assert ran.code == 0
    assert warned in ran.talk if warned else ran.talk == ""
    return CapturedMessage.model_validate_json(ran.out)


def test_a_registration_from_options() -> None:
    message = made(
        *("--command", "RegSub", "--topic", "a/#", "--topic", "b", "--option", "CorrelAsId", "--option", "Local"),
        *("--q-name", "Q", "--sub-name", "S", "--filter", "x < 1", "--reply-to-q", "R", "--msg-type", "request"),
        *("--correl-id", "0102", "--expiry", "600", "--report", "PAN", "--report", "NAN", "--user", "app1"),
        *("--qmgr", "QM1", "--time", "2009-01-28T11:43:54", "--seq", "9"),
        warned="a queue manager answers 3153 MQRCCF_SUB_NAME_ERROR",
    )
    decoded = message.decode()
    assert (message.seq, message.qmgr, message.queue, message.user) == (9, "QM1", "SYSTEM.BROKER.CONTROL.QUEUE", "app1")
    assert message.time == datetime(2009, 1, 28, 11, 43, 54, tzinfo=UTC)
    assert decoded.mqmd == Mqmd(
        report=3,
        msg_type=1,
        expiry=600,
        coded_char_set_id=1208,
        format="MQHRF2",
        correl_id=b"\1\2".ljust(24, b"\0"),
        reply_to_q="R",
        user_identifier="app1",
    )
    assert decoded.rfh2 is not None
    assert decoded.rfh2.folders[0].pairs() == [
        ("Command", "RegSub"),
        ("RegOpt", "CorrelAsId"),
        ("RegOpt", "Local"),
        ("Topic", "a/#"),
        ("Topic", "b"),
        ("Filter", "x < 1"),
        ("QName", "Q"),
        ("SubName", "S"),
    ]


def test_a_publication_from_options() -> None:
    message = made(
        *(
            "--command",
            "Publish",
            "--topic",
            "a",
            "--option",
            "RetainPub",
            "--property",
            "Colour=red",
            "--property",
            "Size:int=3",
        ),
        *("--property", "On:boolean=true", "--property", "Rate:float=1.5", "--data", "grüß", "--big-endian"),
    )
    decoded = message.decode()
    assert message.queue == "SYSTEM.BROKER.DEFAULT.STREAM"
    assert (decoded.body_text, decoded.body_format, decoded.body_encoding) == ("grüß", "MQSTR", 273)
    assert decoded.rfh2 is not None
    assert decoded.rfh2.order == "big"
    assert decoded.rfh2.folders[0].pairs()[1] == ("PubOpt", "RetainPub")
    assert decoded.rfh2.folders[1].values() == {"Colour": "red", "Size": 3, "On": True, "Rate": 1.5}


def test_folders_from_options() -> None:
    decoded = made(
        *(
            "--command",
            "Publish",
            "--topic",
            "a",
            "--property",
            "n:int=1",
            "--jms",
            "Dst=topic://a",
            "--jms",
            "Pri:int=4",
        ),
        *("--mcd", "Msd=jms_text"),
    ).decode()
    assert decoded.rfh2 is not None
    found = [(folder.name, folder.values()) for folder in decoded.rfh2.folders[1:]]
    assert found == [("mcd", {"Msd": "jms_text"}), ("jms", {"Dst": "topic://a", "Pri": 4}), ("usr", {"n": 1})]


@pytest.mark.parametrize("order", ["--big-endian", None])
def test_pcf_from_options(order: str | None) -> None:
    message = made(
        *("--command", "RegSub", "--topic", "a/*", "--topic", "b", "--option", "CorrelAsId", "--option", "Local"),
        *("--q-name", "Q", "--stream-name", "S", "--sub-name", "N", "--pcf", *filter(None, [order])),
        warned="a queue manager answers 3080 MQRCCF_CORREL_ID_ERROR",
    )
    decoded = message.decode()
    assert (decoded.mqmd.format, message.queue) == ("MQPCF", "SYSTEM.BROKER.CONTROL.QUEUE")
    command = parse(decoded)
    assert isinstance(command, RegisterSubscriber)
    assert command.topics == ("a/*", "b")
    assert (command.q_name, command.stream_name, command.sub_name) == ("Q", "S", "N")
    assert command.options == (RegOpt.CORREL_AS_ID, RegOpt.LOCAL)


def test_a_publication_as_pcf() -> None:
    message = made(
        "--command", "Publish", "--topic", "a", "--seq-num", "7", "--option", "RetainPub", "--pcf", "--data", "x"
    )
    pcf = decode_pcf(message.body)
    assert (pcf.command, pcf.rest) == (63, b"x")
    command = parse(message.decode())
    assert isinstance(command, Publish)
    assert (command.options, command.seq_num) == ((PubOpt.RETAIN_PUB,), "7")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        pytest.param(("--pcf", "--filter", "a=1"), "Filter does not exist in PCF", id="tag"),
        pytest.param(("--pcf", "--property", "a=1"), "PCF has no usr folder", id="folder"),
        pytest.param(("--pcf", "--option", "Odd"), "Odd is not an option", id="option"),
        pytest.param(("--pcf", "--seq-num", "x"), "SeqNum: 'x' is not a number", id="number"),
        pytest.param(("--rfh1", "--jms", "a=1"), "an MQRFH has no jms folder", id="jms"),
        pytest.param(("--rfh1", "--pcf"), "cannot be used together", id="both"),
    ],
)
def test_what_a_header_has_no_place_for(args: tuple[str, ...], why: str) -> None:
    ran = run("encode", "--command", "Publish", "--topic", "a", *args)
    assert ran.code == 2
    assert why in ran.talk


def test_an_mqrfh_from_options() -> None:
    decoded = made(
        *("--command", "DeletePub", "--topic", "a b", "--option", "Local", "--stream-name", "S", "--rfh1"),
        warned="a queue manager answers 3075 MQRCCF_INCORRECT_STREAM",
    ).decode()
    (header,) = decoded.headers
    assert isinstance(header, Rfh1)
    expected = [("MQPSCommand", "DeletePub"), ("MQPSDelOpts", "Local"), ("MQPSTopic", "a b"), ("MQPSStreamName", "S")]
    assert header.pairs() == expected


@pytest.mark.parametrize("word", COMMANDS)
def test_every_command_can_be_made_and_read(word: str) -> None:
    ran = run("encode", "--command", word, "--topic", "a", "--reply-to-q", "Q", "--rfh1")
    assert json.loads(run("decode", "--json", stdin=ran.out).out)["command"]["word"] == word


@pytest.mark.parametrize(
    ("args", "why"),
    [
        pytest.param(("--topic", "a"), "need --command", id="options-without-command"),
        pytest.param(("--command", "RegSub", "x.jsonl"), "reads no FILE", id="command-and-file"),
        pytest.param(("--command", "RegSub", "--correl-id", "xyz"), "is not hex", id="not-hex"),
        pytest.param(("--command", "RegSub", "--msg-id", "00" * 25), "more than 24", id="too-long"),
        pytest.param(("--command", "RegSub", "--property", "x"), "not NAME=VALUE", id="no-property"),
        pytest.param(("--command", "RegSub", "--property", "x:int=a"), "is not a valid int", id="not-of-its-type"),
        pytest.param(
            ("--command", "RegSub", "--rfh1", "--filter", "x"),
            "Filter does not exist in an MQRFH",
            id="no-filter-in-mqrfh",
        ),
        pytest.param(
            ("--command", "RegSub", "--stream-name", "x"),
            "StreamName does not exist in an MQRFH2",
            id="no-stream-in-mqrfh2",
        ),
        pytest.param(("--command", "RegSub", "--ccsid", "4711"), "CCSID 4711 is not known", id="no-such-ccsid"),
        pytest.param(
            ("--command", "RegSub", "--data", "€", "--ccsid", "819"), "cannot be written in CCSID 819", id="not-in-it"
        ),
        pytest.param(("--command", "RegSub", "--reply-to-q", "x" * 49), "longer than 48 bytes", id="too-long-a-name"),
    ],
)
def test_options_that_make_no_message(args: tuple[str, ...], why: str) -> None:
    ran = run("encode", *args)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.talk


def test_the_examples_in_the_help_work() -> None:
    import shlex

    text = (encode_command.epilog or "").replace("\\\n", " ")
    examples = [shlex.split(one) for one in text.splitlines() if one.strip().startswith("qpubsub encode --command")]
    assert len(examples) == 3
    for example in examples:
        message = made(*example[2:])
        problems = json.loads(run("decode", "--json", stdin=message.model_dump_json()).out)["problems"]
        assert problems == []
