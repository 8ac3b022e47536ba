"""PCF commands and their responses byte for byte: ``fixtures/pcf-admin``.

Each file is a session with a new queue manager QM1: what is put on SYSTEM.ADMIN.COMMAND.QUEUE, and the bodies of what
is answered. ``python -m tests.commands.mqsc.test_pcf_golden`` writes them anew; read the difference before it is kept.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.ccsid import ByteOrder
from rfh2.pcf import Cfil, Cfin, Cfsf, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import MQCA_Q_NAME, MQCA_TOPIC_STRING
from tests.commands.mqsc.pcf_desk import NOW, Desk

FIXTURES = Path(__file__).parents[3] / "fixtures" / "pcf-admin"

Sent = tuple[ByteOrder, int, tuple[Parameter, ...]]
_TOPIC = Cfst.of(c.MQCA_TOPIC_NAME, f"{'SPORT':48}")
_SUB = Cfst.of(c.MQCACF_SUB_NAME, "RESULTS")
SESSIONS: dict[str, list[Sent]] = {
    "topics": [
        ("little", c.MQCMD_CREATE_TOPIC, (_TOPIC, Cfst.of(MQCA_TOPIC_STRING, "Sport"), Cfin(c.MQIA_DEF_PRIORITY, 5))),
        ("little", c.MQCMD_INQUIRE_TOPIC, (Cfst.of(c.MQCA_TOPIC_NAME, "SP*"),)),
        ("big", c.MQCMD_INQUIRE_TOPIC, (_TOPIC, Cfil(c.MQIACF_TOPIC_ATTRS, (MQCA_TOPIC_STRING,)))),
        ("little", c.MQCMD_DELETE_TOPIC, (_TOPIC,)),
        ("big", c.MQCMD_INQUIRE_TOPIC, (_TOPIC,)),
    ],
    "subscriptions": [
        (
            "little",
            c.MQCMD_CREATE_SUBSCRIPTION,
            (_SUB, Cfst.of(MQCA_TOPIC_STRING, "Sport/#"), Cfst.of(c.MQCACF_DESTINATION, "RESULTS.Q")),
        ),
        ("little", c.MQCMD_INQUIRE_SUBSCRIPTION, (Cfst.of(c.MQCACF_SUB_NAME, "*"),)),
        ("big", c.MQCMD_INQUIRE_SUB_STATUS, (_SUB,)),
        ("little", c.MQCMD_INQUIRE_TOPIC_STATUS, (Cfst.of(MQCA_TOPIC_STRING, "#"),)),
        ("little", c.MQCMD_CREATE_SUBSCRIPTION, (_SUB, Cfst.of(MQCA_TOPIC_STRING, "a"))),
    ],
    "queues": [
        (
            "little",
            c.MQCMD_CREATE_Q,
            (Cfst.of(MQCA_Q_NAME, "SMALL.Q"), Cfin(c.MQIA_Q_TYPE, c.MQQT_LOCAL), Cfin(c.MQIA_MAX_Q_DEPTH, 5)),
        ),
        (
            "little",
            c.MQCMD_INQUIRE_Q,
            (
                Cfst.of(MQCA_Q_NAME, "SMALL.Q"),
                Cfil(c.MQIACF_Q_ATTRS, (c.MQCA_Q_DESC, c.MQIA_MAX_Q_DEPTH, c.MQIA_DEF_PERSISTENCE)),
            ),
        ),
        ("big", c.MQCMD_INQUIRE_Q_NAMES, (Cfst.of(MQCA_Q_NAME, "SM*"), Cfin(c.MQIA_Q_TYPE, c.MQQT_LOCAL))),
        ("little", c.MQCMD_INQUIRE_Q_STATUS, (Cfst.of(MQCA_Q_NAME, "SMALL.Q"),)),
    ],
    "namelists-and-queue-manager": [
        (
            "little",
            c.MQCMD_CREATE_NAMELIST,
            (Cfst.of(c.MQCA_NAMELIST_NAME, "N"), Cfsl.of(c.MQCA_NAMES, ("ONE", "A.LONGER.NAME"))),
        ),
        ("little", c.MQCMD_INQUIRE_NAMELIST, (Cfst.of(c.MQCA_NAMELIST_NAME, "*"), Cfsf(c.MQCA_NAMES, 10, b"ONE"))),
        ("little", c.MQCMD_INQUIRE_Q_MGR, ()),
        ("big", c.MQCMD_INQUIRE_PUBSUB_STATUS, ()),
        ("big", c.MQCMD_PING_Q_MGR, ()),
    ],
}


def played(name: str) -> list[dict[str, Any]]:
    """The session on a new queue manager: each request and its responses."""
    with (
        tempfile.TemporaryDirectory() as home,
        QueueManagerStore.create(Path(home), QueueManager("QM1"), clock=lambda: NOW) as store,
    ):
        desk = Desk(store)
        return [
            {
                "command": c.COMMANDS[command],
                "request": Pcf(command, parameters, order=order).encode().hex(),
                "responses": [reply.body.hex() for reply in desk.ask(command, *parameters, order=order)],
            }
            for order, command, parameters in SESSIONS[name]
        ]


def test_there_is_a_file_for_each_session() -> None:
    assert {path.stem for path in FIXTURES.glob("*.json")} == set(SESSIONS)


@pytest.mark.rule("PCF-8")
@pytest.mark.parametrize("name", SESSIONS)
def test_the_bytes_are_the_same(name: str) -> None:
    assert played(name) == json.loads((FIXTURES / f"{name}.json").read_text())


@pytest.mark.parametrize("name", SESSIONS)
def test_every_response_is_whole_pcf_in_the_byte_order_of_its_request(name: str) -> None:
    for exchange in json.loads((FIXTURES / f"{name}.json").read_text()):
        asked = decode_pcf(bytes.fromhex(exchange["request"]))
        told = [decode_pcf(bytes.fromhex(body), 1208) for body in exchange["responses"]]
        assert {(pcf.order, pcf.command, pcf.rest) for pcf in told} == {(asked.order, asked.command, b"")}
        assert [(pcf.msg_seq_number, pcf.control) for pcf in told] == [
            (at, int(at == len(told))) for at in range(1, len(told) + 1)
        ]


if __name__ == "__main__":
    for each in SESSIONS:
        (FIXTURES / f"{each}.json").write_text(json.dumps(played(each), indent=1) + "\n")
