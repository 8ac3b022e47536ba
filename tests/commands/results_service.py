"""The football results service of IBM's slides, as a capture: run this file to write it and its golden puts again.

Two match simulators publish events; the results service subscribes to them, keeps the latest scores as retained
publications, and, started again after a crash, asks for them with ReqUpdate; a scoreboard follows the scores. The
programs differ as real ones do: one simulator is big-endian, one pads its folders with nulls and leaves rubbish behind
its names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN, MQRO_PASS_CORREL_ID
from rfh2.folders import Folder
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2

FIXTURE = Path(__file__).parents[2] / "fixtures" / "results-service"
CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
EVENT = "Sport/Soccer/Event"
SCORES = "Sport/Soccer/State/LatestScore"
KICK_OFF = datetime(2009, 1, 28, 19, 45, tzinfo=UTC)


@dataclass(frozen=True)
class Program:
    """One program of the scenario, and its habits."""

    user: str
    mqmd: Mqmd
    padding: bytes = b" "

    def message(self, psc: str, data: str = "", **mqmd: object) -> tuple[Mqmd, bytes]:
        order = self.mqmd.order
        text = f"<psc>{psc}</psc>".encode()
        folder = Folder(text + self.padding * (-len(text) % 16 if self.padding == b"\0" else -len(text) % 4))
        header = Rfh2(
            (folder,),
            encoding=self.mqmd.encoding,
            coded_char_set_id=1208,
            format="MQSTR" if data else "",
            order=order,
        )
        return replace(self.mqmd, **mqmd), header.encode() + data.encode()  # type: ignore[arg-type]


def _mqmd(user: str, order: str, reply_to: str = "") -> Mqmd:
    return Mqmd(
        encoding=546 if order == "little" else 273,
        coded_char_set_id=819,
        format="MQHRF2",
        priority=0,
        persistence=1,
        reply_to_q=reply_to,
        reply_to_qmgr="QM1" if reply_to else "",
        user_identifier=user,
        put_appl_type=6,
        put_appl_name=user,
        order=order,  # type: ignore[arg-type]
    )


SERVICE = Program("results", _mqmd("results", "little", "RESULTS.SERVICE"))
SERVICE_ID = b"RESULTS.SERVICE.1".ljust(24, b"\0")
HOME_SIM = Program("gamehome", _mqmd("gamehome", "big"))
AWAY_SIM = Program("gameaway", _mqmd("gameaway", "little", "\0rubbish"), padding=b"\0")
BOARD = Program("board", _mqmd("board", "little", "SCOREBOARD"))


def script() -> Iterator[tuple[Program, str, tuple[Mqmd, bytes]]]:
    """(program, queue, (descriptor, body)) of each message, in order."""
    yield from _service_starts()
    yield (
        BOARD,
        CONTROL,
        _asks(BOARD, f"<Command>RegSub</Command><Topic>{SCORES}/#</Topic><RegOpt>InformIfRet</RegOpt>"),
    )
    for sim, match in ((HOME_SIM, "Newcastle Southampton"), (AWAY_SIM, "Liverpool ManUtd")):
        yield sim, STREAM, _event(sim, "MatchStarted", match)
        yield SERVICE, STREAM, _score(match, "0", "0")
    yield HOME_SIM, STREAM, _event(HOME_SIM, "ScoreUpdate", "Newcastle")
    yield SERVICE, STREAM, _score("Newcastle Southampton", "1", "0")
    yield AWAY_SIM, STREAM, _event(AWAY_SIM, "ScoreUpdate", "ManUtd")
    yield SERVICE, STREAM, _score("Liverpool ManUtd", "0", "1")
    yield from _service_starts()  # it crashed, and was started again
    yield HOME_SIM, STREAM, _event(HOME_SIM, "ScoreUpdate", "Southampton")
    yield SERVICE, STREAM, _score("Newcastle Southampton", "1", "1")
    late = replace(BOARD, user="late", mqmd=replace(BOARD.mqmd, user_identifier="late", reply_to_q="LATE.BOARD"))
    psc = f"<Command>RegSub</Command><RegOpt>InformIfRet</RegOpt><Topic>{SCORES}/+</Topic>"
    yield late, CONTROL, _asks(late, psc)
    for sim, match in ((AWAY_SIM, "Liverpool ManUtd"), (HOME_SIM, "Newcastle Southampton")):
        yield sim, STREAM, _event(sim, "MatchEnded", match)
        yield SERVICE, STREAM, _delete(match)
    yield late, CONTROL, _asks(late, "<Command>DeregSub</Command><RegOpt>DeregAll</RegOpt>")
    for topic in (f"{EVENT}/+", f"{SCORES}/#"):
        psc = f"<Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><Topic>{topic}</Topic>"
        yield SERVICE, CONTROL, _asks(SERVICE, psc)
    yield BOARD, CONTROL, _asks(BOARD, f"<Command>DeregSub</Command><Topic>{SCORES}/*</Topic>")  # the wrong wildcard


def _service_starts() -> Iterator[tuple[Program, str, tuple[Mqmd, bytes]]]:
    correl = "<RegOpt>CorrelAsId</RegOpt>"
    register = f"<Command>RegSub</Command>{correl}<Topic>{EVENT}/+</Topic>"
    yield SERVICE, CONTROL, _asks(SERVICE, register)
    scores = f"<Command>RegSub</Command><RegOpt>PubOnReqOnly</RegOpt>{correl}<Topic>{SCORES}/#</Topic>"
    yield SERVICE, CONTROL, _asks(SERVICE, scores)
    yield SERVICE, CONTROL, _asks(SERVICE, f"<Command>ReqUpdate</Command>{correl}<Topic>{SCORES}/#</Topic>")


def _asks(program: Program, psc: str) -> tuple[Mqmd, bytes]:
    own = {"correl_id": SERVICE_ID, "report": MQRO_PASS_CORREL_ID} if program is SERVICE else {}
    return program.message(psc, msg_type=MQMT_REQUEST, **own)


def _event(program: Program, event: str, data: str) -> tuple[Mqmd, bytes]:
    return program.message(f"<Command>Publish</Command><Topic>{EVENT}/{event}</Topic>", data)


def _score(match: str, home: str, away: str) -> tuple[Mqmd, bytes]:
    psc = f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{SCORES}/{match}</Topic>"
    return SERVICE.message(psc, f"{home} {away}", msg_type=MQMT_DATAGRAM, report=MQRO_NAN)


def _delete(match: str) -> tuple[Mqmd, bytes]:
    psc = f"<Command>DeletePub</Command><Topic>{SCORES}/{match}</Topic><DelOpt>Local</DelOpt>"
    return SERVICE.message(psc, msg_type=MQMT_DATAGRAM, report=MQRO_NAN)


def capture() -> list[CapturedMessage]:
    """The whole scenario."""
    messages = []
    for seq, (program, queue, (mqmd, body)) in enumerate(script(), 1):
        time = KICK_OFF + timedelta(seconds=7 * seq)
        described = replace(mqmd, msg_id=b"AMQ QM1".ljust(16) + seq.to_bytes(8, "big"))
        messages.append(
            CapturedMessage(
                seq=seq,
                time=time,
                qmgr="QM1",
                queue=queue,
                user=program.user,
                md_hex=described.encode().hex(),
                body_hex=body.hex(),
            )
        )
    return messages


def as_lines(messages: list[CapturedMessage]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(json.loads(m.model_dump_json())) + "\n" for m in messages)


if __name__ == "__main__":
    from commands import Broker

    FIXTURE.mkdir(parents=True, exist_ok=True)
    (FIXTURE / "capture.jsonl").write_text(as_lines(capture()))
    broker = Broker("QM1")
    puts = [put.model_dump_json() + "\n" for message in capture() for put in broker.handle(message)]
    (FIXTURE / "puts.jsonl").write_text("".join(puts))
