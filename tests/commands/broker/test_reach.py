"""What a command can find and change, by its message alone; and that it finds nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from commands.broker.reading import NOTHING, Reach, reach_of, reach_of_subscription
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.broker import Broker
from rfh2.mqmd import Mqmd

CORREL = b"C" * 24
PLAIN = Mqmd(reply_to_q="Q")
CORRELATED = Mqmd(reply_to_q="Q", correl_id=CORREL)


def _command(word: str, *options: str, mqmd: Mqmd = PLAIN, rfh1: bool = False, **tags: str | None) -> CommandSpec:
    return CommandSpec(word, ("a",), options, tags, rfh1=rfh1, mqmd=mqmd)


REACHES: list[Any] = [
    ("identity", _command("RegSub"), Reach((), "Q")),
    ("tags-before-the-descriptor", _command("RegSub", QName="OTHER", QMgrName="ELSEWHERE"), Reach((), "OTHER")),
    ("correl-id-is-none", _command("RegSub", mqmd=CORRELATED), Reach((), "Q")),
    ("correl-id-is-part", _command("RegSub", "CorrelAsId", mqmd=CORRELATED), Reach((), "Q", CORREL)),
    ("name", _command("DeregSub", SubName="N"), Reach(("N",), "Q")),
    ("name-without-a-queue", _command("DeregSub", SubName="N", mqmd=Mqmd()), Reach(("N",), "")),
    ("all-topics-of-an-identity", CommandSpec("DeregSub", (), ("DeregAll",), mqmd=PLAIN), Reach((), "Q")),
    ("request", _command("ReqUpdate", SubName="N"), Reach(("N",), "Q")),
    (
        "name-in-a-stream",
        _command("DeregSub", rfh1=True, StreamName="X", SubName="N"),
        Reach(("N", "N:X"), "Q"),
    ),
    ("moves-and-says-all", _command("RegSub", "Local", SubName="N"), Reach(("N",), "Q")),
    ("moves-without-a-queue", _command("RegSub", "Local", SubName="N", mqmd=Mqmd()), Reach(("N",), "", mixes=True)),
    ("moves-without-options", _command("RegSub", SubName="N"), Reach(("N",), "Q", mixes=True)),
    ("stays", _command("RegSub", "NoAlter", SubName="N", mqmd=Mqmd()), Reach(("N",), "")),
    ("publisher", CommandSpec("RegPub", ("a",), mqmd=PLAIN), NOTHING),
    ("publication", CommandSpec("Publish", ("a",), mqmd=PLAIN), NOTHING),
]


@pytest.mark.parametrize(("command", "reach"), [case[1:] for case in REACHES], ids=[case[0] for case in REACHES])
def test_reach(command: CommandSpec, reach: Reach) -> None:
    made = command_message(command)
    assert reach_of(made.md, made.body) == reach


@pytest.mark.parametrize("body", [b"", b"RFH \0\0\0\2", b"anything"])
def test_a_message_that_cannot_be_read_reaches_nothing(body: bytes) -> None:
    assert reach_of(None, body) == NOTHING
    assert reach_of(b"MD  ", body) == NOTHING


def test_what_the_setup_defines() -> None:
    broker = Broker("QM1", f"DEFINE SUB(S) TOPICSTR('a') DEST(AUDIT) DESTCORL({CORREL.hex()})")
    assert [reach_of_subscription(each) for each in broker.space.subscriptions()] == [Reach(("S",), "AUDIT", CORREL)]
