"""The football results service in MQRFH, on a stream of its own: run this file to write its capture and golden puts.

As in ``results_service``, but as the programs of 1999 spoke: options as decimal sums, blanks before and between names,
a simulator on an EBCDIC machine, one whose string fills its area to the last byte. Two observers have other headers: a
scoreboard with an MQRFH2, which names the stream's topic string, and an archive in PCF, which wants the stream's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from rfh2.captured import CapturedMessage
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN, MQRO_PASS_CORREL_ID
from rfh2.folders import Folder
from rfh2.mqmd import Mqmd
from rfh2.pcf import Pcf
from rfh2.pcf_names import (
    MQCACF_STREAM_NAME,
    MQCACF_TOPIC,
    MQCMD_REGISTER_SUBSCRIBER,
    MQIACF_REGISTRATION_OPTIONS,
)
from rfh2.pcf_parameters import Cfin, Cfst
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from tests.commands.results_service import CONTROL, EVENT, KICK_OFF, SCORES, as_lines

FIXTURE = Path(__file__).parents[2] / "fixtures" / "results-service-rfh1"
SETUP = FIXTURE / "setup.mqsc"
GOLDEN = {"v7": FIXTURE / "puts.jsonl", "v6": FIXTURE / "puts-v6.jsonl"}
STREAM = "SYSTEM.BROKER.RESULTS.STREAM"
SERVICE_ID = b"AMQSRES".ljust(24, b"\0")

Message = tuple[Mqmd, bytes]


@dataclass(frozen=True)
class Program:
    """One program of the scenario, and its habits. charset, ccsid: of its machine. multiple: what it rounds up to."""

    user: str
    reply_to: str = ""
    order: ByteOrder = "little"
    charset: str = "latin-1"
    ccsid: int = 819
    multiple: int = 16
    null: bool = True

    def message(self, text: str, data: str = "", **mqmd: object) -> Message:
        string = (text + ("\0" if self.null else "")).encode(self.charset)
        string += bytes(-len(string) % self.multiple)
        encoding = 546 if self.order == "little" else 273
        fmt = "MQSTR" if data else ""
        header = Rfh1(string, encoding, -2, fmt, 0, self.order, self.charset)
        return self.descriptor(**mqmd), header.encode() + data.encode(self.charset)

    def descriptor(self, fmt: str = "MQHRF", **mqmd: object) -> Mqmd:
        described = Mqmd(
            encoding=546 if self.order == "little" else 273,
            coded_char_set_id=self.ccsid,
            format=fmt,
            priority=0,
            persistence=1,
            reply_to_q=self.reply_to,
            reply_to_qmgr="QM1" if self.reply_to else "",
            user_identifier=self.user,
            put_appl_type=6,
            put_appl_name=self.user,
            order=self.order,
        )
        return replace(described, **mqmd)  # type: ignore[arg-type]


SERVICE = Program("amqsres", "RESULTS.SERVICE")
HOME_SIM = Program("gamhome", order="big", charset="cp500", ccsid=500)
AWAY_SIM = Program("gamaway", null=False)
BOARD = Program("board", "SCOREBOARD")
ARCHIVE = Program("archive", "ARCHIVE", order="big")
# CorrelAsId, and with PubOnReqOnly, as AMQSRESA writes them.
IDENTITY, ON_REQUEST = " MQPSRegOpts  1", " MQPSRegOpts  33"


def script() -> Iterator[tuple[Program, str, Message]]:
    """(program, queue, (descriptor, body)) of each message, in order."""
    yield from _service_starts()
    yield BOARD, CONTROL, _board(f"<Command>RegSub</Command><Topic>{STREAM}/{SCORES}/#</Topic>")
    yield ARCHIVE, CONTROL, _archive()
    for sim, match in ((HOME_SIM, "Newcastle Southampton"), (AWAY_SIM, "Liverpool ManUtd")):
        yield sim, STREAM, _event(sim, "MatchStarted", match)
        yield SERVICE, STREAM, _score(match, "0", "0")
    yield HOME_SIM, STREAM, _event(HOME_SIM, "ScoreUpdate", "Newcastle")
    yield SERVICE, STREAM, _score("Newcastle Southampton", "1", "0")
    yield AWAY_SIM, STREAM, _event(AWAY_SIM, "ScoreUpdate", "ManUtd")
    yield SERVICE, STREAM, _score("Liverpool ManUtd", "0", "1")
    yield from _service_starts()  # it crashed, and was started again
    late = replace(BOARD, user="late", reply_to="LATE.BOARD")
    inform = f" MQPSCommand RegSub MQPSRegOpts InformIfRet MQPSRegOpts InclStreamName MQPSStreamName {STREAM}"
    yield late, CONTROL, late.message(f"{inform} MQPSTopic {SCORES}/*", msg_type=MQMT_REQUEST)
    for sim, match in ((AWAY_SIM, "Liverpool ManUtd"), (HOME_SIM, "Newcastle Southampton")):
        yield sim, STREAM, _event(sim, "MatchEnded", match)
        yield SERVICE, STREAM, _delete(match)
    everything = f" MQPSCommand DeregSub MQPSRegOpts DeregAll MQPSStreamName {STREAM}"
    yield late, CONTROL, late.message(everything, msg_type=MQMT_REQUEST)
    for topic in (f"{EVENT}/*", f"{SCORES}/*"):
        yield SERVICE, CONTROL, _asks(f" MQPSCommand DeregSub{IDENTITY} MQPSStreamName {STREAM} MQPSTopic {topic}")
    # The topic-based wildcard is none in an MQRFH, and a publication on the wrong stream's queue is refused.
    wrong = f" MQPSCommand DeregSub MQPSStreamName {STREAM} MQPSTopic {SCORES}/#"
    yield SERVICE, CONTROL, _asks(wrong)
    yield SERVICE, STREAM, SERVICE.message(" MQPSCommand Publish MQPSStreamName X MQPSTopic a", report=MQRO_NAN)


def _service_starts() -> Iterator[tuple[Program, str, Message]]:
    stream = f" MQPSStreamName {STREAM} MQPSTopic "
    yield SERVICE, CONTROL, _asks(f" MQPSCommand RegSub{IDENTITY}{stream}{EVENT}/*")
    yield SERVICE, CONTROL, _asks(f" MQPSCommand RegSub{ON_REQUEST}{stream}{SCORES}/*")
    yield SERVICE, CONTROL, _asks(f" MQPSCommand ReqUpdate{IDENTITY}{stream}{SCORES}/*")


def _asks(text: str) -> Message:
    return SERVICE.message(text, msg_type=MQMT_REQUEST, correl_id=SERVICE_ID, report=MQRO_PASS_CORREL_ID)


def _event(program: Program, event: str, data: str) -> Message:
    return program.message(f" MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic {EVENT}/{event}", data)


def _score(match: str, home: str, away: str) -> Message:
    text = f' MQPSCommand Publish MQPSPubOpts  10 MQPSTopic "{SCORES}/{match}" MQPSIntData {home} MQPSIntData {away}'
    return SERVICE.message(text, f"{home} {away}", msg_type=MQMT_DATAGRAM, report=MQRO_NAN)


def _delete(match: str) -> Message:
    text = f' MQPSCommand DeletePub MQPSDelOpts Local MQPSTopic "{SCORES}/{match}"'
    return SERVICE.message(text, msg_type=MQMT_DATAGRAM, report=MQRO_NAN)


def _board(psc: str) -> Message:
    header = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), coded_char_set_id=1208)
    return BOARD.descriptor("MQHRF2", msg_type=MQMT_REQUEST), header.encode()


def _archive() -> Message:
    parameters = (
        Cfin(MQIACF_REGISTRATION_OPTIONS, 0x80),
        Cfst.of(MQCACF_STREAM_NAME, f"{STREAM:48}", 819),
        Cfst.of(MQCACF_TOPIC, "Sport/*", 819),
    )
    body = Pcf(MQCMD_REGISTER_SUBSCRIBER, parameters, order="big").encode()
    return ARCHIVE.descriptor("MQPCF", msg_type=MQMT_REQUEST), body


def capture() -> list[CapturedMessage]:
    """The whole scenario."""
    messages = []
    for seq, (program, queue, (mqmd, body)) in enumerate(script(), 1):
        described = replace(mqmd, msg_id=b"AMQ QM1".ljust(16) + seq.to_bytes(8, "big"))
        messages.append(
            CapturedMessage(
                seq=seq,
                time=KICK_OFF + timedelta(seconds=7 * seq),
                qmgr="QM1",
                queue=queue,
                user=program.user,
                md_hex=described.encode().hex(),
                body_hex=body.hex(),
            )
        )
    return messages


if __name__ == "__main__":
    from commands import Broker

    (FIXTURE / "capture.jsonl").write_text(as_lines(capture()))
    for semantics, name in GOLDEN.items():
        broker = Broker("QM1", SETUP.read_text(), semantics)
        puts = [put.model_dump_json() + "\n" for message in capture() for put in broker.handle(message)]
        name.write_text("".join(puts))
