"""The worked examples of guide 6.6 and 6.7 (and 6.1, 6.2) as captures; run this file to write them again.

NameValueData is as the guide prints it, line ends and indentation included; descriptors are what 6.7.8 asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage, iso
from rfh2.constants import MQAT_BROKER, MQMT_REPLY, MQMT_REQUEST, MQRO_PASS_CORREL_ID
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from tests.commands.scenario import KICK_OFF, rfh2_message

FIXTURE = Path(__file__).parents[2] / "fixtures" / "guide"
SERVICE = b"RESULTS.SERVICE".ljust(24, b"\0")


@dataclass(frozen=True)
class Example:
    """One message. section: where the guide has it."""

    section: str
    folders: tuple[str, ...]
    queue: str = DEFAULT_STREAM
    user: str = "simulator"
    data: bytes = b""
    inner: tuple[str, ...] = ()
    mqmd: Mqmd = field(default_factory=Mqmd)


def _asking(number: int) -> Mqmd:
    """The results service's descriptor: its CorrelId is part of its identity, and is to come back (guide 6.7.8)."""
    return Mqmd(
        msg_type=MQMT_REQUEST,
        report=MQRO_PASS_CORREL_ID,
        msg_id=f"EXAMPLE {number}".encode().ljust(24, b"\0"),
        correl_id=SERVICE,
        reply_to_q="RESULTS.Q",
    )


REG_SUB = """<psc>
<Command>RegSub</Command>
<RegOpt>PubOnReqOnly</RegOpt>
<RegOpt>CorrelAsId</RegOpt>
<Topic>Sport/Soccer/State/LatestScore/#</Topic>
</psc>"""
MATCH_STARTED = """<psc>
  <Command>Publish</Command>
  <Topic>Sport/Soccer/Event/MatchStarted</Topic>
</psc>"""
LATEST_SCORE = """<psc>
  <Command>Publish</Command>
  <PubOpt>RetainPub</PubOpt>
  <Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic>
</psc>"""
REQ_UPDATE = """<psc>
  <Command>ReqUpdate</Command>
  <RegOpt>CorrelAsId</RegOpt>
  <Topic>Sport/Soccer/State/LatestScore/#</Topic>
</psc>"""
DELETE_PUB = """<psc>
  <Command>DeletePub</Command>
  <Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic>
  <DelOpt>Local</DelOpt>
</psc>"""
DEREG_SUB = """<psc>
<Command>DeregSub</Command>
<RegOpt>CorrelAsId</RegOpt>
<Topic>Sport/Soccer/State/LatestScore/#</Topic>
</psc>"""

# In an order in which they make sense: the numbers of their sections are in the other.
COMMANDS = (
    Example("6.7.4", (REG_SUB,), CONTROL_QUEUE, "results", mqmd=_asking(1)),
    Example("6.7.3 first", (MATCH_STARTED,), data=b"Team1 Team2"),
    Example("6.7.3 second", (LATEST_SCORE,), data=b"2:1"),
    Example("6.7.5", (REQ_UPDATE,), CONTROL_QUEUE, "results", mqmd=_asking(2)),
    Example("6.7.1", (DELETE_PUB,)),
    Example("6.7.2", (DEREG_SUB,), CONTROL_QUEUE, "results", mqmd=_asking(3)),
)


def _reply(number: int) -> Mqmd:
    """A descriptor as 6.7.10 has it."""
    return Mqmd(
        msg_type=MQMT_REPLY,
        correl_id=f"EXAMPLE {number}".encode().ljust(24, b"\0"),
        put_appl_type=MQAT_BROKER,
        put_appl_name="QM1",
    )


FILTER_ERROR = """<pscr>
  <Completion>error</Completion>
  <Response>
    <Reason>3150</Reason>
  </Response>
</pscr>"""
UNAUTHORIZED = """<pscr>
  <Completion>warning</Completion>
  <Response>
    <Reason>3081</Reason>
    <Topic>topic1</Topic>
  </Response>
  <Response>
    <Reason>3081</Reason>
    <Topic>topic2</Topic>
  </Response>
</pscr>"""
RESPONSES = (
    Example("6.7.6 ok", ("<pscr>\n  <Completion>ok</Completion>\n</pscr>",), "RESULTS.Q", "results", mqmd=_reply(1)),
    Example(
        "6.7.6 error",
        (FILTER_ERROR, "<psc><Command>RegSub</Command><Topic>a</Topic><Filter>x = </Filter></psc>"),
        "RESULTS.Q",
        "results",
        mqmd=_reply(2),
    ),
    Example(
        "6.7.6 warning",
        (
            UNAUTHORIZED,
            "<psc><Command>RegSub</Command><Topic>topic1</Topic><Topic>topic2</Topic><Topic>t</Topic></psc>",
        ),
        "RESULTS.Q",
        "results",
        mqmd=_reply(3),
    ),
)

PUBLISH = "<psc><Command>Publish</Command><Topic>Sport/Soccer/Event/MatchStarted</Topic></psc>"
HEADERS = (
    Example(
        "6.6.2",
        (
            "<mcd><Msd>mrm</Msd><Set>Sports</Set><Type>{namespace-uri}:name</Type><Fmt>XML1</Fmt></mcd>",
            PUBLISH,
            "<usr><Colour>red</Colour></usr>",
            "<jms><Dst>topic://Sport/Soccer/Event/MatchStarted</Dst><Tms>1233142914000</Tms><Dlv>1</Dlv></jms>",
            "<com.ourcompany.xxx><a>1</a></com.ourcompany.xxx>",
        ),
        data=b"<name/>",
    ),
    Example("6.6", (PUBLISH,), data=b"<name/>", inner=("<psc><Command>Publish</Command><Topic>inner</Topic></psc>",)),
)

SPOT = "<Topic>NYSE/IBM/SPOT</Topic>"
SUB_POINTS = (
    *(
        Example(
            "6.2",
            (f"<psc><Command>RegSub</Command>{SPOT}<SubPoint>{point}</SubPoint></psc>",),
            CONTROL_QUEUE,
            "trader",
            mqmd=Mqmd(msg_type=MQMT_REQUEST, reply_to_q=f"{point}.Q"),
        )
        for point in ("USD", "GBP", "EUR")
    ),
    *(
        Example("6.2", (f"<psc><Command>Publish</Command>{SPOT}<SubPoint>{point}</SubPoint></psc>",), data=price)
        for point, price in (("USD", b"91.51"), ("GBP", b"64.36"))
    ),
)
SUB_POINTS_SETUP = """* Guide 6.5.6, example
DEFINE TOPIC(USD) TOPICSTR(USD) WILDCARD(BLOCK)
DEFINE TOPIC(GBP) TOPICSTR(GBP) WILDCARD(BLOCK)
ALTER NL(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, USD, GBP)
"""

STREAMS = (
    Example(
        "6.1",
        ("<psc><Command>RegSub</Command><Topic>xyz/Soccer/Results</Topic></psc>",),
        CONTROL_QUEUE,
        "reader",
        mqmd=Mqmd(msg_type=MQMT_REQUEST, reply_to_q="READER.Q"),
    ),
    Example("6.1", ("<psc><Command>Publish</Command><Topic>Soccer/Results</Topic></psc>",), "Sport", data=b"2:1"),
    Example("6.1", ("<psc><Command>Publish</Command><Topic>Soccer/Results</Topic></psc>",), data=b"0:0"),
)
STREAMS_SETUP = """* Guide 6.1, figure 1
DEFINE QLOCAL('Sport')
DEFINE TOPIC('Sport') TOPICSTR('xyz') WILDCARD(BLOCK)
ALTER NL(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, 'Sport')
"""

# Name of the capture: its messages, and the MQSC that a replay of them starts with; None where they are not replayed.
CAPTURES: dict[str, tuple[tuple[Example, ...], str | None]] = {
    "commands": (COMMANDS, ""),
    "headers": (HEADERS, ""),
    "responses": (RESPONSES, None),
    "streams": (STREAMS, STREAMS_SETUP),
    "subscription-points": (SUB_POINTS, SUB_POINTS_SETUP),
}


def captured(examples: tuple[Example, ...]) -> Iterator[dict[str, Any]]:
    """The lines of a capture; ``section`` is a key that readers ignore."""
    for seq, each in enumerate(examples, 1):
        inner = decode(rfh2_message(each.inner, Mqmd())[1]).headers if each.inner else ()

        asked = replace(each.mqmd, coded_char_set_id=1208, user_identifier=each.user, priority=0, persistence=0)
        described, body = rfh2_message(each.folders, asked, each.data, more=inner)
        yield {
            "seq": seq,
            "time": iso(KICK_OFF + timedelta(seconds=seq)),
            "qmgr": "QM1",
            "queue": each.queue,
            "user": each.user,
            "md_hex": described.encode().hex(),
            "body_hex": body.hex(),
            "section": each.section,
        }


def files() -> dict[str, bytes]:
    """Every file of the fixture but its README, by name."""
    found: dict[str, bytes] = {}
    for name, (examples, setup) in CAPTURES.items():
        lines = list(captured(examples))
        found[f"{name}.jsonl"] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        if setup is None:
            continue
        if setup:
            found[f"{name}.mqsc"] = setup.encode()
        broker = Broker("QM1", setup)
        puts = [put for line in lines for put in broker.handle(CapturedMessage.model_validate(line))]
        found[f"{name}.puts.jsonl"] = b"".join(put.model_dump_json().encode() + b"\n" for put in puts)
    return found


if __name__ == "__main__":
    for file_name, content in files().items():
        (FIXTURE / file_name).write_bytes(content)
