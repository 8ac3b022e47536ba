"""Programs as the guide and IBM's samples have them: what they put, and what they are answered, has no error.

A publisher, a subscriber and a results service in each of the three headers, written by hand as such programs are: with
MQCCSI_INHERIT, with numbers for options, padded with blanks. They put and get on the stand-in; ``qpubsub run`` reads
the queues. All that was put is kept as captured messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.explain.problems import explained
from commands.headers.publication import COMMAND_IDS
from commands.links.ibmmq.manager import MqMessages
from commands.mqsc.broker import Broker
from commands.qmgr.store import QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2
from rfh2.captured import CapturedMessage
from rfh2.constants import MQAT_BROKER, MQCCSI_INHERIT
from rfh2.message import Message, decode, encode
from rfh2.pcf import Cfin, Cfst, Pcf
from rfh2.pcf_names import MQCACF_STREAM_NAME, MQCACF_TOPIC, MQIACF_PUBLICATION_OPTIONS, MQIACF_REGISTRATION_OPTIONS
from rfh2.rfh1 import Rfh1
from tests.commands.links.mqi.harness import CONTROL, StandIn, needs_mqi, stand_in

pytestmark = needs_mqi

URL = "ibmmq://127.0.0.1:1414/QM1?channel=APP"
SCORES, SERVICE_Q, TEAM_Q, BOARD_Q = "SCORES.STREAM", "RESULTS.SERVICE", "TEAM.Q", "BOARD.Q"
EVENTS, STATE = "Sport/Soccer/Event/", "Sport/Soccer/State/LatestScore/"
SETUP = f"""
DEFINE QLOCAL('{SCORES}')
DEFINE TOPIC('{SCORES}') TOPICSTR('Scores') WILDCARD(BLOCK)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) +
  NAMES('SYSTEM.BROKER.DEFAULT.STREAM', 'SYSTEM.BROKER.ADMIN.STREAM', '{SCORES}')
"""
REG_OPTIONS = {"CorrelAsId": 1, "Local": 4, "PubOnReqOnly": 32}
PUB_OPTIONS = {"RetainPub": 2, "NoReg": 8}


def in_mqrfh(word: str, topic: str, options: tuple[str, ...], stream: bool, data: bytes) -> Message:
    """With the sum of its options, as a C program has it, and padded with blanks."""
    pairs = [("MQPSCommand", word)]
    numbers = PUB_OPTIONS if word == "Publish" else REG_OPTIONS
    if options:
        name = "MQPSPubOpts" if word == "Publish" else "MQPSRegOpts"
        pairs.append((name, str(sum(numbers[option] for option in options))))
    pairs += [("MQPSStreamName", SCORES)] * stream + [("MQPSTopic", topic)]
    text = " ".join(f'{name} "{value}"' for name, value in pairs).encode()
    text = text.ljust(len(text) + -len(text) % 16)
    header = Rfh1(text, 546, MQCCSI_INHERIT, "MQSTR" if data else "")
    return Message(Mqmd(format="MQHRF", coded_char_set_id=1208), (header,), data)


def in_mqrfh2(word: str, topic: str, options: tuple[str, ...], stream: bool, data: bytes) -> Message:
    tag = "PubOpt" if word == "Publish" else "RegOpt"
    words = "".join(f"<{tag}>{option}</{tag}>" for option in options if option != "NoReg")
    psc = f"<psc><Command>{word}</Command>{words}<Topic>{topic}</Topic></psc>"
    folders = (Folder.of(psc), Folder.of("<mcd><Msd>jms_text</Msd></mcd>"))
    header = Rfh2(folders, 546, MQCCSI_INHERIT, "MQSTR" if data else "")
    return Message(Mqmd(format="MQHRF2", coded_char_set_id=1208), (header,), data)


def in_pcf(word: str, topic: str, options: tuple[str, ...], stream: bool, data: bytes) -> Message:
    """The topic, then the options, as a program adds them; data behind the parameters."""
    publishes = word == "Publish"
    numbers = PUB_OPTIONS if publishes else REG_OPTIONS
    parameters: list[Cfin | Cfst] = [Cfst.of(MQCACF_TOPIC, topic)]
    if options:
        kind = MQIACF_PUBLICATION_OPTIONS if publishes else MQIACF_REGISTRATION_OPTIONS
        parameters.append(Cfin(kind, sum(numbers[option] for option in options)))
    if stream:
        parameters.append(Cfst.of(MQCACF_STREAM_NAME, SCORES))
    pcf = Pcf(COMMAND_IDS[word], tuple(parameters), rest=data)
    return Message(Mqmd(format="MQPCF", coded_char_set_id=1208), (), pcf.encode())


HEADERS = {"mqrfh": in_mqrfh, "mqrfh2": in_mqrfh2, "pcf": in_pcf}


@dataclass
class Session:
    """The programs of one header on one queue manager. captured: all that was put, by programs and by the bridge."""

    home: Path
    header: str
    programs: MqMessages
    captured: list[CapturedMessage] = field(default_factory=list)

    def put(
        self, word: str, topic: str, *options: str, reply_to: str = "", data: bytes = b"", stream: bool = True
    ) -> None:
        """A request where it names a reply queue. stream: whether it is for SCORES.STREAM."""
        named = stream and self.header != "mqrfh2"
        message = HEADERS[self.header](word, topic, options, named, data)
        mqmd = Mqmd(
            msg_type=1 if reply_to else 8,
            format=message.mqmd.format,
            coded_char_set_id=message.mqmd.coded_char_set_id,
            reply_to_q=reply_to,
            persistence=1,  # what is retained has to be there when the bridge is started again
            correl_id=b"C" * 24 if "CorrelAsId" in options else bytes(24),
            put_appl_type=6,
            put_appl_name="a program",
        )
        queue = (SCORES if named else "SYSTEM.BROKER.DEFAULT.STREAM") if word in ("Publish", "DeletePub") else CONTROL
        body = encode(message)
        self._keep(queue, mqmd.encode(), body)
        with self.programs.unit_of_work() as unit:
            unit.put(queue, mqmd.encode(), body, user="app", application="a program")

    def run(self) -> None:
        """The bridge reads what is there."""
        words = ["run", "-m", "QM1", "--home", str(self.home), "--queues", URL, "--once"]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output

    def get(self, queue: str) -> list[Message]:
        """All messages on a queue."""
        found = []
        with self.programs.unit_of_work() as unit:
            while (message := unit.get(queue)) is not None:
                self._keep(queue, message.md, message.body)
                found.append(decode(message.body, message.md))
        return found

    def _keep(self, queue: str, md: bytes, body: bytes) -> None:
        seq = len(self.captured) + 1
        self.captured.append(CapturedMessage(seq=seq, qmgr="QM1", queue=queue, md_hex=md.hex(), body_hex=body.hex()))


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[StandIn]:
    with stand_in(tmp_path / "mq", {name: {} for name in (SCORES, SERVICE_Q, TEAM_Q, BOARD_Q)}) as running:
        yield running


@pytest.fixture(params=HEADERS)
def session(request: pytest.FixtureRequest, mq: StandIn, tmp_path: Path) -> Iterator[Session]:
    home = tmp_path / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    (tmp_path / "setup.mqsc").write_text(SETUP)
    assert (
        CliRunner().invoke(main, ["mqsc", "-m", "QM1", "--home", str(home), str(tmp_path / "setup.mqsc")]).exit_code
        == 0
    )
    programs = MqMessages(parse_address(URL, "--queues"), QueuesConfig())
    yield Session(home, request.param, programs)
    programs.close()


def a_match(session: Session) -> tuple[list[Message], list[Message]]:
    """A results service that keeps the score, and two programs that play a match; what service and board got."""
    wildcard = "#" if session.header == "mqrfh2" else "*"
    session.put("RegSub", STATE + wildcard, "CorrelAsId", "PubOnReqOnly", reply_to=SERVICE_Q)
    session.put("RegSub", EVENTS + wildcard, "CorrelAsId", reply_to=SERVICE_Q)
    session.put("RegSub", STATE + wildcard, reply_to=BOARD_Q)
    if session.header != "mqrfh2":  # which has no such command
        session.put("RegPub", EVENTS + wildcard, reply_to=TEAM_Q)
    session.run()
    for event in ("MatchStarted", "ScoreUpdate", "MatchEnded"):
        session.put("Publish", EVENTS + event, "NoReg", data=b"Home Away")
    session.run()
    session.put("Publish", STATE + "Home", "RetainPub", "NoReg", data=b"2")
    session.run()
    session.put("ReqUpdate", STATE + wildcard, "CorrelAsId", reply_to=SERVICE_Q)
    session.put("ReqUpdate", STATE + "nothing", "CorrelAsId", reply_to=SERVICE_Q)
    session.run()
    session.put("DeletePub", STATE + "Home", reply_to=TEAM_Q)
    for topic, *options in ((STATE + wildcard, "CorrelAsId"), (EVENTS + wildcard, "CorrelAsId"), (STATE + wildcard,)):
        session.put("DeregSub", topic, *options, reply_to=SERVICE_Q if options else BOARD_Q)
    if session.header != "mqrfh2":
        session.put("DeregPub", EVENTS + wildcard, reply_to=TEAM_Q)
    session.run()
    service, board = session.get(SERVICE_Q), session.get(BOARD_Q)
    session.get(TEAM_Q)
    return service, board


def test_6_7_a_results_service_gets_what_it_asks_for(session: Session) -> None:
    service, board = a_match(session)
    replies = [message for message in service if message.mqmd.msg_type == 2]
    publications = [message for message in service if message.mqmd.msg_type == 8]
    # Two RegSubs, two ReqUpdates of which one finds nothing, two DeregSubs; three events and the state.
    assert (len(replies), len(publications)) == (6, 4)
    assert [message.mqmd.msg_type for message in board] == [2, 8, 2]
    assert all(message.mqmd.correl_id == b"C" * 24 for message in publications)


def test_decode_finds_no_error_in_a_session(session: Session) -> None:
    """Neither in what programs put, nor in what they are answered, which names the CCSID that it is in."""
    a_match(session)
    found = [(message, problem) for message in session.captured for problem in explained(message).problems]
    errors = [(message.seq, problem.code, problem.message) for message, problem in found if problem.severity == "error"]
    assert errors == []
    ours = [message for message in session.captured if message.descriptor().put_appl_type == MQAT_BROKER]
    assert len(ours) >= 10
    assert all(MQCCSI_INHERIT not in [h.coded_char_set_id for h in message.decode().headers] for message in ours)
    assert "inherited-ccsid-from-broker" not in {problem.code for _, problem in found}


def test_a_session_replayed_comes_to_the_same(session: Session) -> None:
    """The capture of it, replayed, has the same publications and responses, queue by queue."""
    a_match(session)
    broker = Broker("QM1", SETUP)
    live: dict[str, list[bytes]] = {}
    replayed: dict[str, list[bytes]] = {}
    for message in session.captured:
        if message.descriptor().put_appl_type == MQAT_BROKER:
            live.setdefault(message.queue, []).append(message.body)
            continue
        for put in broker.handle(message):
            replayed.setdefault(put.queue, []).append(bytes.fromhex(put.body_hex))
    assert {queue: sorted(bodies) for queue, bodies in replayed.items()} == {q: sorted(b) for q, b in live.items()}
