"""``qpubsub put``: messages that were captured on another queue manager, whose answers would go there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commands import parse
from commands.cli import main
from commands.headers.registry import other_qmgr, renamed
from rfh2.captured import CapturedMessage
from rfh2.folders import Folder
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


def psc(text: str, *, reply_to_qmgr: str = "PROD", qmgr: str | None = "PROD", ccsid: int = 1208) -> CapturedMessage:
    mqmd = Mqmd(format="MQHRF2", reply_to_q="R.Q", reply_to_qmgr=reply_to_qmgr, user_identifier="anne", msg_type=1)
    charset = {1208: "utf-8", 1200: "utf-16-le"}[ccsid]
    usr = Folder.of("<usr><a>PROD</a></usr>", charset)
    header = Rfh2((Folder.of(f"<psc>{text}</psc>", charset), usr), name_value_ccsid=ccsid)
    body = encode(Message(mqmd, (header,), b"data"))
    return CapturedMessage(seq=1, qmgr=qmgr, queue=CONTROL, md_hex=mqmd.encode().hex(), body_hex=body.hex())


def rfh1(pairs: list[tuple[str, str]]) -> CapturedMessage:
    mqmd = Mqmd(format="MQHRF", reply_to_q="R.Q", reply_to_qmgr="PROD", user_identifier="anne")
    body = encode(Message(mqmd, (Rfh1(coded_char_set_id=1208).with_pairs(pairs),)))
    return CapturedMessage(seq=1, qmgr="PROD", queue=CONTROL, md_hex=mqmd.encode().hex(), body_hex=body.hex())


REGISTER = "<Command>RegSub</Command><Topic>a</Topic><QName>A.Q</QName>"
HERE = psc(REGISTER, reply_to_qmgr="QM1", qmgr="QM1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert qpubsub(tmp_path, "create", "QM1").exit_code == 0
    return tmp_path


def qpubsub(home: Path, *args: str, stdin: str | None = None) -> Result:
    return CliRunner(env={"QPUBSUB_HOME": str(home)}).invoke(main, args, input=stdin)


def lines(*messages: CapturedMessage) -> str:
    return "".join(f"{message.model_dump_json()}\n" for message in messages)


NAMED = [
    ("both", psc(REGISTER), "PROD"),
    ("reply-to-alone", psc(REGISTER, qmgr=None), "PROD"),
    ("captured-on-alone", psc(REGISTER, reply_to_qmgr=""), "PROD"),
    ("answers-go-elsewhere", psc(REGISTER, reply_to_qmgr="FAR", qmgr="QM1"), "FAR"),
    ("own", HERE, None),
    ("not-said", psc(REGISTER, reply_to_qmgr="", qmgr=None), None),
]


@pytest.mark.parametrize(("message", "named"), [case[1:] for case in NAMED], ids=[case[0] for case in NAMED])
def test_put_counts_and_warns_of_another_queue_manager(home: Path, message: CapturedMessage, named: str | None) -> None:
    result = qpubsub(home, "put", "-m", "QM1", CONTROL, "--format", "jsonl", stdin=lines(HERE, message, message))
    assert "3 messages put on " in result.stderr
    assert result.exit_code == (0 if named is None else 1)
    told = (
        f"2 of the messages name queue manager {named}, not QM1: replies and publications for them go to transmission"
    )
    assert (told in result.stderr) is (named is not None)
    assert other_qmgr(message, "QM1") == named


def test_with_as_the_answers_come_here(home: Path) -> None:
    message = psc(f"{REGISTER}<QMgrName>PROD</QMgrName>")
    result = qpubsub(home, "put", "-m", "QM1", CONTROL, "--as", "QM1", "--format", "jsonl", stdin=lines(message))
    assert (result.exit_code, result.stderr) == (0, f"1 message put on {CONTROL}\n")
    publication = psc("<Command>Publish</Command><Topic>a</Topic>")
    qpubsub(home, "put", "-m", "QM1", STREAM, "--as", "QM1", "--format", "jsonl", stdin=lines(publication))
    assert qpubsub(home, "run", "-m", "QM1", "--once").exit_code == 0
    status = json.loads(qpubsub(home, "status", "-m", "QM1", "--json").stdout)
    depths = {name: queue["depth"] for name, queue in status["queues"].items() if queue["depth"]}
    assert depths == {"A.Q": 1, "R.Q": 2}


def test_without_it_they_go_to_a_transmission_queue(home: Path) -> None:
    message = psc(f"{REGISTER}<QMgrName>PROD</QMgrName>")
    qpubsub(home, "put", "-m", "QM1", CONTROL, "--format", "jsonl", stdin=lines(message))
    assert qpubsub(home, "run", "-m", "QM1", "--once").exit_code == 1
    status = json.loads(qpubsub(home, "status", "-m", "QM1", "--json").stdout)
    assert (status["queues"]["PROD"]["depth"], status["queues"]["PROD"]["stranded"]) == (1, True)


@pytest.mark.parametrize("ccsid", [1208, 1200])
@pytest.mark.parametrize(
    ("written", "wanted"), [("PROD", "QM1"), (" PROD ", "QM1"), ("FAR", "FAR"), ("PRODUCTION", "PRODUCTION")]
)
def test_the_queue_manager_of_a_command_in_mqrfh2(ccsid: int, written: str, wanted: str) -> None:
    message = psc(f"{REGISTER}<QMgrName>{written}</QMgrName>", ccsid=ccsid)
    found = renamed(message, "QM1")
    command = parse(found.decode())
    assert (command.qmgr_name or "").strip() == wanted
    assert found.decode().body == b"data"
    assert found.decode().rfh2 is not None
    assert found.decode().rfh2.folders[1] == message.decode().rfh2.folders[1], "other folders stay byte for byte"  # type: ignore[union-attr]


@pytest.mark.parametrize(("written", "wanted"), [("PROD", "QM1"), ("FAR", "FAR")])
def test_the_queue_manager_of_a_command_in_mqrfh(written: str, wanted: str) -> None:
    pairs = [("MQPSCommand", "RegSub"), ("MQPSTopic", "a"), ("MQPSQMgrName", written), ("MQPSQName", "A.Q")]
    assert parse(renamed(rfh1(pairs), "QM1").decode()).qmgr_name == wanted


@pytest.mark.parametrize(
    "message",
    [HERE, psc(REGISTER, reply_to_qmgr="FAR", qmgr="QM1"), psc(REGISTER, reply_to_qmgr="", qmgr=None)],
    ids=["own", "answers-go-elsewhere", "not-said"],
)
def test_what_is_not_anothers_stays_as_it_is(message: CapturedMessage) -> None:
    assert renamed(message, "QM1") == message


def test_what_cannot_be_read_is_renamed_in_its_descriptor_alone() -> None:
    damaged = psc(REGISTER).model_copy(update={"body_hex": "52464820"})
    found = renamed(damaged, "QM1")
    assert found.body_hex == damaged.body_hex
    assert found.descriptor() is not None
    assert found.descriptor().reply_to_qmgr == "QM1"  # type: ignore[union-attr]


def test_as_what_no_queue_manager_is_called(home: Path) -> None:
    result = qpubsub(home, "put", "-m", "QM1", "Q", "--as", "no name?", stdin=lines(HERE))
    assert (result.exit_code, "no queue manager can have this name" in result.stderr) == (2, True)
