"""The messages that the fuzz tests begin from: every header, byte order, code page and command; run this to write them.

Each line of the corpus is a captured message with one key more, ``case``, which readers of captures ignore.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from commands.headers.property_names import COMMAND_IDS
from rfh2 import Dlh, Eph, Folder, Header, Mde, Message, Mqmd, Pcf, Rfh1, Rfh2, SteppedHeader, Xqh, encode
from rfh2.ccsid import ByteOrder
from rfh2.pcf_names import (
    MQCA_Q_NAME,
    MQCACF_CORREL_ID,
    MQCACF_STREAM_NAME,
    MQCACF_TOPIC,
    MQIACF_REGISTRATION_OPTIONS,
    MQIACF_SEQUENCE_NUMBER,
)
from rfh2.pcf_parameters import Cfbf, Cfbs, Cfgr, Cfif, Cfil, Cfil64, Cfin, Cfin64, Cfsf, Cfsl, Cfst, UnknownParameter
from rfh2.prologue import STEPPED_OVER

FUZZ = Path(__file__).parents[2] / "fixtures" / "fuzz"
SEEDS = FUZZ / "seeds.jsonl"
FOUND = FUZZ / "found.jsonl"

FOLDERS = {
    "publish": "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>Sport/Soccer/Results</Topic></psc>",
    "register": "<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>PersAsPub</RegOpt>"
    "<Topic>Stock/#</Topic><QMgrName>QM1</QMgrName><QName>Q1</QName><SubName>s</SubName><SubIdentity>i</SubIdentity>"
    "<SubUserData>&amp;&lt;&#13;&#x20ac;</SubUserData><SubPoint>USD</SubPoint><Filter>x &gt; 1</Filter></psc>",
    "deregister": "<psc><Command>DeregSub</Command><RegOpt>DeregAll</RegOpt><Filter>x = 1</Filter></psc>",
    "delete": "<psc><Command>DeletePub</Command><Topic>a/b</Topic><Topic>c</Topic><DelOpt>Local</DelOpt></psc>",
    "request": "<psc><Command>ReqUpdate</Command><Topic>a/b</Topic><RegOpt>None</RegOpt></psc>",
    "pretty": "<psc>\n  <Command>Publish</Command>\n  <Topic>Straße/日本</Topic>\n</psc>",
    "response": "<pscr><Completion>warning</Completion><Response><Reason>3081</Reason><Topic>a</Topic></Response>"
    "</pscr>",
    "typed": "<usr><a dt='i4'>7</a><b dt=\"r8\">1.5e3</b><c dt='boolean'>1</c><d dt='bin.hex'>00ff</d>"
    "<e xsi:nil='true'></e><g><h dt='i8'>-1</h><h>2</h></g></usr>",
    "undeclared": "<mqext><p:Arm>5</p:Arm><x:y xmlns:x='urn:x'/></mqext>",
    "unknown": "<com.ours.thing><A.b-c_d>text</A.b-c_d><empty/></com.ours.thing>",
    "roots": "<mcd><Msd>jms_text</Msd></mcd><psc><Command>Publish</Command><Topic>a</Topic></psc>",
    "nested": "<a>" * 12 + "x" + "</a>" * 12,
    "bare": "<psc><Command>Publish</Command><Topic>A & B</Topic></psc>",
}
STRINGS = {
    "register": ' MQPSCommand RegSub  MQPSRegOpts  4097 MQPSTopic "IBM ""Q"" Price" MQPSStreamName S MQPSQName Q1',
    "publish": "MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic Stock/IBM MQPSIntData 5 MQPSStringData x own pair",
    "deregister": "MQPSCommand DeregSub MQPSTopic a* MQPSRegOpts None MQPSCorrelId 00ff\0behind the null",
    "publisher": "MQPSCommand RegPub MQPSTopic a MQPSRegOpts Anon MQPSQMgrName QM1",
    "response": "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR MQPSErrorPos 12 MQPSUserId app1",
    "other": 'OPT_APP_GRP XYZ OPT_MSG_TYPE "REQUEST" "" ""',
}


@dataclass(frozen=True)
class Seed:
    """One seed. mqmd: None where the decoder has to find out for itself."""

    case: str
    body: bytes
    mqmd: Mqmd | None


def seeds() -> Iterator[Seed]:
    """All seeds that are made; those that a failure left behind stand in ``FOUND``."""
    orders: tuple[ByteOrder, ...] = ("little", "big")
    for order in orders:
        for name, text in FOLDERS.items():
            for ccsid, charset in ((1208, "utf-8"), (1200, f"utf-16-{order[0]}e")):
                header = Rfh2((Folder.of(text, charset),), name_value_ccsid=ccsid, order=order, format="MQSTR")
                yield _seed(f"{name}-{ccsid}-{order}", order, header)
        for ccsid, charset in ((819, "latin-1"), (500, "cp500"), (1047, "cp1047"), (1208, "latin-1")):
            for name, text in STRINGS.items():
                data = text.encode(charset)
                string = Rfh1(data + bytes(-len(data) % 4), order=order, charset=charset, string_charset=charset)
                yield _seed(f"mqrfh-{name}-{ccsid}-{order}", order, string, ccsid=ccsid)
            psc = (Folder.of(FOLDERS["publish"]), Folder.of(FOLDERS["typed"]), Folder(b""))
            for each in other_headers(order, charset):
                yield _seed(f"{each.kind}-{ccsid}-{order}", order, each, Rfh2(psc, order=order), ccsid=ccsid)
        yield _seed(f"several-{order}", order, *(Rfh2((Folder.of(text),), order=order) for text in FOLDERS.values()))
        for word, number in COMMAND_IDS.items():
            yield _pcf(f"pcf-{word}-{order}", order, Pcf(number, _command_parameters(), order=order))
        yield _pcf(f"pcf-every-type-{order}", order, Pcf(1, _every_parameter(), order=order, rest=b"rest"))
    yield Seed("no-descriptor", encode(Message(Mqmd(), (Rfh2((Folder.of(FOLDERS["publish"]),)),), b"42.5")), None)
    yield Seed("no-descriptor-mqrfh", Rfh1(STRINGS["publish"].encode()).encode(), None)
    yield Seed("no-header", b"just text", Mqmd(format="MQSTR"))


def _seed(case: str, order: ByteOrder, *headers: Any, ccsid: int = 819) -> Seed:
    """Headers in a chain, each announced by the one before it."""
    chain: list[Header] = []
    following = "MQSTR"
    for header in reversed(headers):
        chain.insert(0, _announcing(header, following, ccsid))
        following = header.own_format
    md = Mqmd(2, format=following, coded_char_set_id=ccsid, encoding=273 if order == "big" else 546, order=order)
    return Seed(case, encode(Message(md, tuple(chain), b"42.5")), md)


def _announcing(header: Any, following: str, ccsid: int) -> Any:
    if isinstance(header, Xqh):
        return replace(header, mqmd=replace(header.mqmd, format=following, coded_char_set_id=ccsid))
    return replace(header, format=following, coded_char_set_id=ccsid)


def other_headers(order: ByteOrder, charset: str) -> Iterator[Any]:
    how: dict[str, Any] = {"order": order, "charset": charset}
    yield Dlh(2085, "DEAD.Q", "QM1", put_appl_name="amqrmppa", put_date="20090128", put_time="11435418", **how)
    yield Xqh(Mqmd(user_identifier="app1", reply_to_q="R", **how), "REMOTE.Q", "QM2", order, charset)
    yield Mde(bytes(range(24)), 3, 8, 1, 400, **how)
    yield Eph(Pcf(1, (Cfin(1, 2), Cfst.of(2, "abc")), order=order).encode(), **how)
    for kind in STEPPED_OVER:
        for version, size in kind.sizes.items():
            yield SteppedHeader(kind.name, bytes(size - 32), version, **how)


def _command_parameters() -> tuple[Any, ...]:
    return (
        Cfst.of(MQCACF_TOPIC, "Stock/IBM", 819),
        Cfst.of(MQCACF_STREAM_NAME, "SYSTEM.BROKER.DEFAULT.STREAM", 819),
        Cfst.of(MQCA_Q_NAME, "Q1", 819),
        Cfst.of(MQCACF_CORREL_ID, "00" * 24, 819),
        Cfin(MQIACF_REGISTRATION_OPTIONS, 1),
        Cfin(MQIACF_SEQUENCE_NUMBER, 7),
    )


def _every_parameter() -> tuple[Any, ...]:
    members = (Cfin(1, -1), Cfgr(2, (Cfst.of(3, "Ü", 1208),)))
    return (
        *(Cfin(1, 2), Cfin64(1, 2**40), Cfil(1, (1, 2, 3)), Cfil64(1, (1, -2)), Cfst.of(1, "text", 1208)),
        *(
            Cfsl.of(1, ("a", "bcd"), 500),
            Cfbs.of(1, b"\0\xff\1"),
            Cfif(1, 2, 3),
            Cfsf(1, 2, b"abcd"),
            Cfbf(1, 2, b"ab"),
        ),
        *(Cfgr(1, members), UnknownParameter(1, 99, b"abcd")),
    )


def _pcf(case: str, order: ByteOrder, pcf: Pcf) -> Seed:
    md = Mqmd(format="MQPCF", coded_char_set_id=819, encoding=273 if order == "big" else 546, order=order)
    return Seed(case, pcf.encode(), md)


def line(seq: int, seed: Seed) -> dict[str, Any]:
    """One line of the corpus."""
    md = None if seed.mqmd is None else seed.mqmd.encode().hex()
    queue = "SYSTEM.BROKER.CONTROL.QUEUE"
    return {"seq": seq, "queue": queue, "md_hex": md, "body_hex": seed.body.hex(), "case": seed.case}


def main() -> None:
    lines = [json.dumps(line(number, seed)) for number, seed in enumerate(seeds(), 1)]
    SEEDS.write_text("".join(each + "\n" for each in lines))


if __name__ == "__main__":
    main()
