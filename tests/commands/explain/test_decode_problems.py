"""Problems: each code with the message that has it, and where (docs/problems.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.explain import problems
from commands.explain.problems import MOST_REFUSALS, explained
from rfh2 import CapturedMessage, Dlh, Folder, Message, Mqmd, Rfh2, encode
from rfh2.captures import CaptureRecord
from rfh2.errors import CaptureError
from rfh2.explain.describe import describe_unreadable
from rfh2.explain.form import CODES
from rfh2.explain.problems import of_record
from rfh2.explain.rebuild_header import DecodedMessage
from rfh2.folders import write
from rfh2.message import Header
from rfh2.mqmd import Xqh
from rfh2.pcf import Cfin, Cfst, Pcf
from rfh2.rfh1 import Rfh1
from tests.rfh2.explained import damaged, fixture_messages, messages

DOCS = Path(__file__).parents[3] / "docs" / "problems.md"
MD = Mqmd(format="MQHRF2", coded_char_set_id=1208, reply_to_q="SUB.Q", msg_type=1)
PSC = 40  # where the first folder of an MQRFH2 begins


def psc(word: str = "RegSub", *tags: str) -> str:
    return f"<psc><Command>{word}</Command>{''.join(tags) or '<Topic>a</Topic>'}</psc>"


def put(*folders: str | bytes, data: bytes = b"", queue: str = "", mqmd: Mqmd = MD, **header: Any) -> CapturedMessage:
    """A message with one MQRFH2, on the queue where its command belongs."""
    datas = tuple(Folder(f) if isinstance(f, bytes) else Folder.of(f) for f in folders)
    described = {"coded_char_set_id": 1208, "format": "MQSTR" if data else "", **header}
    at = queue or (DEFAULT_STREAM if any("Publish" in str(f) for f in folders) else CONTROL_QUEUE)
    return chained(mqmd, Rfh2(datas, **described), data=data, queue=at)


def chained(mqmd: Mqmd | None, *headers: Header, data: bytes = b"", queue: str = CONTROL_QUEUE) -> CapturedMessage:
    body = encode(Message(Mqmd(), headers, data))
    md = None if mqmd is None else mqmd.encode().hex()
    return CapturedMessage(seq=1, queue=queue, md_hex=md, body_hex=body.hex())


def bare(folder: str) -> CapturedMessage:
    """A command as a log prints it, without its MQMD."""
    return chained(None, Rfh2((Folder.of(folder),), coded_char_set_id=1208))


def rfh1(text: str) -> CapturedMessage:
    return chained(md(format="MQHRF"), Rfh1(text.encode() + bytes(4 - len(text) % 4), coded_char_set_id=1208))


def pcf(message: Pcf) -> CapturedMessage:
    queue = DEFAULT_STREAM if message.command == 63 else CONTROL_QUEUE
    return chained(md(format="MQPCF"), data=message.encode(), queue=queue)


def cut(message: CapturedMessage, end: int) -> CapturedMessage:
    return message.model_copy(update={"body_hex": message.body_hex[: 2 * end]})


def patched(message: CapturedMessage, offset: int, data: bytes) -> CapturedMessage:
    body = message.body[:offset] + data + message.body[offset + len(data) :]
    return CapturedMessage(seq=1, queue=message.queue, md_hex=message.md_hex, body_hex=body.hex())


def md(**fields: Any) -> Mqmd:
    return replace(MD, **fields)


PUB = psc("Publish")
NAMED = psc("RegSub", "<Topic>a</Topic><QName>Q</QName>")
PCF = Pcf(63, (Cfst.of(3031, "a"), Cfin(1082, 2)))

CASES: list[tuple[str, Callable[[], CapturedMessage], list[tuple[str, int]]]] = [
    # Nothing wrong
    ("6.7.4-regsub", lambda: put(psc()), []),
    ("6.7.3-publish", lambda: put(PUB, "<usr><a>1</a></usr>", data=b"x"), []),
    ("6.7.6-a-response-is-no-command", lambda: put("<pscr><Completion>ok</Completion></pscr>"), []),
    ("6.7.6-with-the-command-behind", lambda: put("<pscr><Completion>error</Completion></pscr>", psc("Frob")), []),
    (
        "6.7.9-a-publication-to-a-subscriber",
        lambda: put(psc("Publish", "<PubOpt>IsRetainedPub</PubOpt>"), queue="SUB.Q", mqmd=md(put_appl_type=26)),
        [],
    ),
    (
        "3-no-mqmd-nothing-to-contradict",
        lambda: chained(None, Rfh2((Folder.of(NAMED),), order="big", coded_char_set_id=1208), queue=""),
        [],
    ),
    (
        "6.7.4-no-mqmd-for-the-correl-id",
        lambda: bare(psc("RegSub", "<Topic>a/*</Topic><QName>Q</QName><RegOpt>CorrelAsId</RegOpt>")),
        [("unknown-descriptor", 40), ("other-wildcards", 70)],
    ),
    ("6.7.4-no-mqmd-for-the-queue", lambda: bare(psc()), [("unknown-descriptor", 40)]),
    ("6.7.2-no-mqmd-for-the-queue", lambda: bare(psc("DeregSub")), [("unknown-descriptor", 40)]),
    (
        "6.7.4-no-mqmd-but-a-fault-of-its-own",
        lambda: bare(psc("RegSub", "<Topic>a</Topic><RegOpt>CorrelAsId</RegOpt><Filter>a =</Filter>")),
        [("unknown-descriptor", 40), ("refused-command", 113)],
    ),
    ("0-a-format-with-nothing-behind-it", lambda: put(psc(), format="MQSTR"), []),
    ("plain-text-on-an-application-queue", lambda: chained(md(format="MQSTR"), data=b"hi", queue="APP.Q"), []),
    # Structures
    (
        "1-mqmd-short",
        lambda: CapturedMessage(seq=1, queue="", md_hex="4d4420200100", body_hex=put(NAMED).body_hex),
        [("unknown-version", 4)],
    ),
    ("3.1-struc-id", lambda: patched(put(psc()), 0, b"XXXX"), [("bad-struc-id", 0)]),
    ("3.1-version", lambda: patched(put(psc()), 4, b"\x07\0\0\0"), [("unknown-version", 4)]),
    (
        "3.1-short",
        lambda: CapturedMessage(seq=1, queue="", md_hex=MD.encode().hex(), body_hex=put(psc()).body_hex[:40]),
        [("short-header", 20)],
    ),
    ("3.1-struc-length", lambda: patched(put(psc()), 8, b"\xff\0\0\0"), [("bad-struc-length", 8)]),
    ("3.1-name-value-ccsid", lambda: patched(put(psc()), 32, b"\x33\3\0\0"), [("bad-name-value-ccsid", 32)]),
    ("3.1-name-value-length", lambda: patched(put(psc()), 36, b"\xff\0\0\0"), [("bad-name-value-length", 36)]),
    ("3.1-left-over", lambda: patched(put(b"<psc/>  12"), 36, b"\x08\0\0\0"), [("stray-bytes", 48)]),
    ("3.2-not-utf-8", lambda: put(b"<psc>\xff</psc>"), [("bad-character", 45)]),
    (
        "2.2-quote",
        lambda: chained(md(format="MQHRF"), Rfh1(b'MQPSCommand "RegSub ', coded_char_set_id=819)),
        [("bad-name-value-string", 44)],
    ),
    # Fields
    (
        "1-behind-mqmd",
        lambda: CapturedMessage(seq=1, queue="", md_hex=MD.encode().hex() + "00", body_hex=put(psc()).body_hex),
        [("bytes-behind-mqmd", 324)],
    ),
    (
        "3.1-length-odd",
        lambda: put(b"<psc><Command>RegSub</Command><Topic>a</Topic></psc>x"[:-1] + b"   "),
        [("length-not-multiple-of-4", 8), ("length-not-multiple-of-4", 36)],
    ),
    ("3.1-flags", lambda: put(psc(), flags=0x10000), [("reserved-flags", 28)]),
    ("1-null-in-format", lambda: put(psc(), mqmd=md(format="MQHRF2\0\0")), [("null-in-format", 38)]),
    ("field-notes-behind-null", lambda: put(psc(), mqmd=md(reply_to_q="SUB.Q\0junk")), [("bytes-behind-null", 105)]),
    ("1-format-of-ibm", lambda: put(PUB, data=b"x", format="MQNOPE"), [("unknown-format", 20)]),
    ("1-encoding", lambda: put(PUB, data=b"x", encoding=0), [("unknown-encoding", 12)]),
    ("7-ccsid", lambda: put(PUB, data=b"x", coded_char_set_id=4711), [("unknown-ccsid", 16)]),
    ("1-msg-type", lambda: put(psc(), mqmd=md(msg_type=7)), [("unknown-msg-type", 12)]),
    ("1-msg-type-of-an-application", lambda: put(psc(), mqmd=md(msg_type=70_000)), []),
    ("1-report", lambda: put(psc(), mqmd=md(report=0x10)), [("unknown-report-option", 8)]),
    ("1-persistence", lambda: put(psc(), mqmd=md(persistence=3)), [("unknown-persistence", 44)]),
    ("1-priority", lambda: put(psc(), mqmd=md(priority=10)), [("unknown-priority", 40)]),
    ("1-expiry", lambda: put(psc(), mqmd=md(expiry=0)), [("bad-expiry", 16)]),
    ("3.1-ccsid-0", lambda: put(PUB, data=b"x", coded_char_set_id=0), [("default-ccsid", 16)]),
    (
        "3.1-inherit-from-broker",
        lambda: put(PUB, data=b"x", coded_char_set_id=-2, mqmd=md(put_appl_type=26)),
        [("inherited-ccsid-from-broker", 16)],
    ),
    ("0-encoding-of-the-mqmd", lambda: put(psc(), mqmd=md(encoding=273)), [("encoding-contradicts", 4)]),
    ("0-ccsid-of-the-mqmd", lambda: put(psc(), mqmd=md(coded_char_set_id=500)), [("ccsid-contradicts", 0)]),
    (
        "5-embedded-mqmd",
        lambda: chained(md(format="MQXMIT"), Xqh(md(format="MQSTR", msg_type=7), "Q"), data=b"x", queue="XMIT.Q"),
        [("unknown-msg-type", 116)],
    ),
    # Folders
    ("3.1-padded-with-nulls", lambda: put(psc().encode() + b"\0\0\0\0"), [("null-padding", PSC + len(psc()))]),
    ("3.1-empty", lambda: put(psc(), b"    "), [("empty-folder", 92)]),
    ("3.2-two-in-one", lambda: put(psc() + "<usr></usr>"), [("several-roots", PSC)]),
    ("field-notes-ampersand", lambda: put(psc("RegSub", "<Topic>A & B</Topic>")), [("bare-ampersand", 79)]),
    ("3.2-own-folder", lambda: put(psc(), "<own><a></own>"), [("opaque-folder", 104)]),
    ("3.2-two-usr", lambda: put(psc(), "<usr></usr>", "<usr></usr>"), [("repeated-folder", 112)]),
    ("3.2-pscr", lambda: put(psc(), "<pscr></pscr>"), [("pscr-in-command", 96)]),
    ("3.2-xml-declaration", lambda: put('<?xml version="1.0"?>' + psc()), [("xml-not-allowed", PSC)]),
    ("3.2-comment-first", lambda: put("<!-- c -->" + PUB), [("xml-not-allowed", PSC)]),
    ("3.2-name-in-another-case", lambda: put(psc(), "<USR></USR>"), [("folder-name", 96)]),
    ("3.2-name-with-a-prefix", lambda: put(psc(), "<m:mcd></m:mcd>"), [("folder-name", 96)]),
    ("3.2-psc-unclosed", lambda: put("<psc><Command>RegSub</psc>"), [("bad-folder", 60)]),
    ("3.2-text-behind", lambda: put(psc() + "junk"), [("text-after-folder", PSC + len(psc()))]),
    # The body
    ("7-not-in-its-ccsid", lambda: put(PUB, data=b"a\xff"), [("undecodable-text", 97)]),
    (
        "7-beyond-ascii-without-a-ccsid",
        lambda: put(PUB, data=b"\xe9", coded_char_set_id=-2, mqmd=md(coded_char_set_id=0)),
        [("undecodable-text", 96)],
    ),
    ("7-mark", lambda: put(PUB, data=b"\xfe\xff\0a", coded_char_set_id=1200), [("byte-order-mark-contradicts", 96)]),
    (
        "0-a-header-that-no-format-names",
        lambda: put(PUB, data=put(psc()).body, format=""),
        [("unannounced-header", 96)],
    ),
    ("0-nothing-known", lambda: chained(None, data=b"hello", queue="Q"), [("unrecognised-data", 0)]),
    ("0-a-folder-alone", lambda: chained(md(format="MQSTR"), data=PUB.encode(), queue="Q"), [("lost-header", 0)]),
    ("0-text", lambda: chained(md(format="MQSTR"), data=b"hello <psc>", queue="Q"), []),
    ("5.1-pcf", lambda: chained(md(format="MQADMIN"), data=PCF.encode()[:-1], queue="ADMIN.Q"), [("bad-pcf", 64)]),
    *(
        (
            f"5.1-pcf-of-type-{kind}-and-version-{version}-without-an-mqmd",
            lambda kind=kind, version=version, order=order: chained(
                None,
                data=Pcf(44, (Cfst.of(2015, "QM1"),), type=kind, version=version, order=order).encode(),
                queue="Q",
            ),
            [("assumed-pcf", 0)],
        )
        for kind, version, order in ((7, 3, "big"), (7, 1, "little"), (16, 3, "big"), (21, 3, "little"), (27, 1, "big"))
    ),
    ("5.1-pcf-without-an-mqmd", lambda: chained(None, data=PCF.encode(), queue="Q"), [("assumed-pcf", 0)]),
    # Behind a fault
    (
        "3.1-folders-behind-a-wrong-length",
        lambda: patched(put(psc(), "<usr>a</usr", "<USR></USR>"), 36, b"\xff\xff\0\0"),
        [("bad-name-value-length", 36), ("opaque-folder", 102), ("folder-name", 112)],
    ),
    # What surprises
    ("2.5.1-star", lambda: put(psc("RegSub", "<Topic>a/*</Topic>")), [("other-wildcards", 70)]),
    ("2.5.1-question-mark", lambda: put(psc("DeregSub", "<Topic>a/?</Topic>")), [("other-wildcards", 72)]),
    ("2.5.1-star-of-a-publisher", lambda: put(psc("Publish", "<Topic>a/*</Topic>")), []),
    ("2.5.1-hash-in-an-mqrfh", lambda: rfh1("MQPSCommand RegSub MQPSTopic a/#"), [("other-wildcards", 51)]),
    ("2.5.1-plus-in-pcf", lambda: pcf(Pcf(65, (Cfst.of(3031, "a/+"),))), [("other-wildcards", 36)]),
    ("2.5.1-hash-in-a-level", lambda: put(psc("RegSub", "<Topic>a/b#</Topic>")), [("wildcard-in-level", 70)]),
    ("2.5.1-wildcards", lambda: put(psc("RegSub", "<Topic>a/#/b/+</Topic>")), []),
    ("2.5-blank-in-front", lambda: put(psc("RegSub", "<Topic> a/b</Topic>")), [("topic-blanks", 70)]),
    ("2.5-blank-in-the-middle", lambda: put(psc("RegSub", "<Topic>a b/c d</Topic>")), []),
    ("2.5-tab", lambda: put(psc("Publish", "<Topic>a\tb</Topic>")), [("topic-blanks", 71)]),
    ("2.5-slash-in-front", lambda: put(psc("RegSub", "<Topic>/a</Topic>")), [("topic-slashes", 70)]),
    ("2.5-slash-at-the-end", lambda: put(psc("Publish", "<Topic>a/</Topic>")), [("topic-slashes", 71)]),
    ("2.5-two-slashes", lambda: put(psc("RegSub", "<Topic>a//b</Topic>")), [("topic-slashes", 70)]),
    ("2.5-case", lambda: put(psc("RegSub", "<Topic>A</Topic><Topic>a</Topic>")), [("topic-case", 86)]),
    (
        "2.4.3-never-true",
        lambda: put(psc("RegSub", "<Topic>a</Topic><Filter>x = 1 AND x = 2</Filter>")),
        [("filter-never-true", 86)],
    ),
    (
        "2.4.3-never-true-of-a-list",
        lambda: put(psc("RegSub", "<Topic>a</Topic><Filter>'r' = x AND y > 1 AND x IN ('a', 'b')</Filter>")),
        [("filter-never-true", 86)],
    ),
    (
        "2.4.3-maybe-true",
        lambda: put(psc("RegSub", "<Topic>a</Topic><Filter>x = 1 AND (y = 2 OR x = 2) AND z = 1</Filter>")),
        [],
    ),
    (
        "6.7.4-the-last-persistence-counts",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>Pers</RegOpt><RegOpt>NonPers</RegOpt>")),
        [("option-without-effect", 86)],
    ),
    (
        "6.7.4-new-publications-on-request",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>NewPubsOnly</RegOpt><RegOpt>PubOnReqOnly</RegOpt>")),
        [("option-without-effect", 86)],
    ),
    (
        "6.7.4-a-full-response-to-nobody",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>FullResp</RegOpt>"), mqmd=md(msg_type=8)),
        [("option-without-effect", 86)],
    ),
    (
        "6.7.4-a-full-response",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>FullResp</RegOpt>"), mqmd=md(msg_type=8, report=1)),
        [],
    ),
    # The command
    ("2.5-regsub", lambda: rfh1("MQPSCommand RegSub MQPSTopic a MQPSRegOpts 33"), [("refused-command", 32)]),
    ("2.5-command-not-first", lambda: rfh1("MQPSTopic a MQPSCommand RegSub"), [("misplaced-tag", 32)]),
    ("2.5-no-command", lambda: rfh1("MQPSTopic a"), [("missing-command", 32)]),
    (
        "2.5-unknown-names-twice",
        lambda: rfh1("MQPSCommand RegSub MQPSNope 1 MQPSSubPoint 2 MQPSTopic a"),
        [("unknown-tag", 51), ("unknown-tag", 62)],
    ),
    ("2.4-unknown-bit", lambda: rfh1("MQPSCommand RegSub MQPSTopic a MQPSRegOpts 16777216"), [("unknown-option", 63)]),
    (
        "2.5-misplaced-option",
        lambda: rfh1("MQPSCommand RegSub MQPSTopic a MQPSRegOpts LeaveOnly"),
        [("misplaced-option", 63)],
    ),
    ("5.1-publish", lambda: pcf(PCF), []),
    ("5.1-unknown-command", lambda: pcf(replace(PCF, command=99)), [("unknown-command", 0)]),
    (
        "5.1-misplaced",
        lambda: pcf(Pcf(65, (Cfst.of(3031, "a"), Cfst.of(3034, "1"), Cfin(1, 1)))),
        [("unknown-tag", 84), ("misplaced-tag", 60)],
    ),
    ("5.1-no-topic", lambda: pcf(Pcf(63)), [("missing-tag", 0)]),
    ("6.7-second-psc", lambda: put(psc(), psc()), [("second-psc", 96)]),
    ("6.7-none", lambda: put("<usr></usr>"), [("no-command", 0)]),
    ("6.7-no-header", lambda: chained(md(format="MQSTR"), data=b"x"), [("no-command", 0)]),
    ("6.7-unknown-command", lambda: put(psc("Frob")), [("unknown-command", 45)]),
    ("6.7-no-command-tag", lambda: put("<psc><Topic>a</Topic></psc>"), [("missing-command", PSC)]),
    ("6.7-unknown-tag", lambda: put(psc("RegSub", "<Topic>a</Topic><Colour>1</Colour>")), [("unknown-tag", 86)]),
    (
        "6.7-tag-of-a-program",
        lambda: put(PUB.replace("</psc>", "<UNIQUE_CONNECTION_ID>41</UNIQUE_CONNECTION_ID></psc>")),
        [],
    ),
    (
        "6.7-tag-that-is-a-slip",
        lambda: put(PUB.replace("</psc>", "<PubOpts>2</PubOpts></psc>")),
        [("passed-on-tag", 87)],
    ),
    ("6.7-sum-of-options", lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>66560</RegOpt>")), []),
    (
        "6.7-unknown-bit",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>4194304</RegOpt>")),
        [("unknown-option", 86)],
    ),
    ("6.7-misplaced-tag", lambda: put(psc("RegSub", "<Topic>a</Topic><PubTime>1</PubTime>")), [("misplaced-tag", 86)]),
    (
        "6.7-repeated-tag",
        lambda: put(psc("RegSub", "<Topic>a</Topic><SubName>a</SubName><SubName>b</SubName>")),
        [("repeated-tag", 106)],
    ),
    ("6.7-no-topic", lambda: put(psc("RegSub", "<QName>Q</QName>")), [("missing-tag", PSC)]),
    (
        "6.7-unknown-option",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>Foo</RegOpt>")),
        [("unknown-option", 86)],
    ),
    (
        "6.7-misplaced-option",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>LeaveOnly</RegOpt>")),
        [("misplaced-option", 86)],
    ),
    ("6.7.7-3079", lambda: put(psc(), queue=DEFAULT_STREAM), [("wrong-queue", PSC)]),
    ("6.7.7-3150", lambda: put(psc("RegSub", "<Topic>a</Topic><Filter>x =</Filter>")), [("refused-command", 86)]),
    (
        "6.7.7-3080",
        lambda: put(psc("RegSub", "<Topic>a</Topic><RegOpt>CorrelAsId</RegOpt>")),
        [("refused-command", 86)],
    ),
    ("6.7.7-3072", lambda: put(psc("Publish", "<Topic>a/#</Topic>")), [("refused-command", 71)]),
    ("6.7.7-3076", lambda: put(psc(), mqmd=md(reply_to_q="")), [("refused-command", PSC)]),
    ("6.7.7-3073-is-no-fault-of-the-message", lambda: put(psc("DeregSub")), []),
    ("6.2-a-subscription-point-may-exist", lambda: put(psc("RegSub", "<Topic>a</Topic><SubPoint>USD</SubPoint>")), []),
    (
        "all-at-once",
        lambda: put(psc("RegSub", "<Colour/><RegOpt>Foo</RegOpt><PubTime/>")),
        [("unknown-tag", 70), ("unknown-option", 79), ("misplaced-tag", 99), ("missing-tag", PSC)],
    ),
]


@pytest.mark.parametrize(("make", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_problems(make: Callable[[], CapturedMessage], expected: list[tuple[str, int]]) -> None:
    assert [(problem.code, problem.offset) for problem in explained(make()).problems] == expected


# Codes that need more than one message with one fault: where each is tested.
ELSEWHERE = {
    "unreadable-record": "test_a_record_that_could_not_be_read",
    "more-refusals": "test_the_faults_of_a_command_are_listed_up_to_a_number",
    "too-many-folders": "test_chain.py",
    "malformed-header": "for what other decoders may raise",
    "bad-parameter-count": "test_pcf.py",
    "bad-string-length": "test_pcf.py",
    "bad-count": "test_pcf.py",
    "too-deep": "test_pcf.py",
}


def test_every_code_has_a_case() -> None:
    shown = {code for _, _, expected in CASES for code, _ in expected}
    assert shown | ELSEWHERE.keys() == CODES.keys()
    assert not shown & ELSEWHERE.keys()


def test_every_code_is_documented_with_its_severity() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (error|warning) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == CODES
    assert len(rows) == len(CODES)


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        pytest.param(put(psc("RegSub", "<Topic>a</Topic><RegOpt>CorrelAsID</RegOpt>")), "CorrelAsId", id="case"),
        pytest.param(put(psc("RegSub", "<Topic>a</Topic><RegOpt>InformIfRetaind</RegOpt>")), "InformIfRet", id="near"),
        pytest.param(put(psc("Subscribe")), None, id="nothing-near"),
        pytest.param(put(psc("Regsub")), "RegSub", id="command"),
        pytest.param(put(psc("RegSub", "<topic>a</topic>")), "Topic", id="tag"),
        pytest.param(put(psc("RegSub", "<Topic>a</Topic><QMgr>Q</QMgr>")), "QMgrName", id="tag-near"),
        pytest.param(rfh1("MQPSCommand RegSub MQPSTopik a"), "MQPSTopic", id="name"),
        pytest.param(rfh1("MQPSCommand RegSub MQPSTopic a MQPSRegOpts Lokal"), "Local", id="option-of-an-mqrfh"),
    ],
)
def test_what_may_have_been_meant(message: CapturedMessage, meant: str | None) -> None:
    told = [found for each in explained(message).problems for found in re.findall(r"\(perhaps (\w+)\)", each.message)]
    assert told == ([] if meant is None else [meant])


def test_pcf_that_cannot_be_decoded() -> None:
    found = explained(chained(md(format="MQADMIN"), data=PCF.encode()[:-1], queue="ADMIN.Q")).problems
    assert [(problem.code, problem.severity, problem.part) for problem in found] == [("bad-pcf", "error", "body")]


def test_a_record_that_could_not_be_read() -> None:
    record = CaptureRecord("x.jsonl", 2, None, CaptureError("x.jsonl", 3, "not JSON"), 3)
    assert record.problem is not None
    problem = of_record(record.position, record.problem)
    form = DecodedMessage.model_validate(describe_unreadable(record.source, record.index, problem))
    assert [(p.code, p.offset, p.message) for p in form.problems] == [
        ("unreadable-record", 3, "x.jsonl, line 3: not JSON")
    ]
    assert (form.mqmd, form.headers, form.body, form.captured) == (None, [], None, None)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(put(psc("Frob")), 2336, id="2336"),
        pytest.param(put(psc("RegSub", "<Colour/>")), 2337, id="2337"),
        pytest.param(put(psc(), psc()), 2338, id="2338"),
        pytest.param(put("<psc></psc>"), 2339, id="2339"),
        pytest.param(put("<psc><Command>"), 2421, id="2421"),
        pytest.param(put(psc("RegSub", "<Topic>a</Topic><RegOpt>Foo</RegOpt>")), 3083, id="3083"),
        pytest.param(put(psc("Publish", "<Topic>a</Topic><PubOpt>Foo</PubOpt>")), 3084, id="3084"),
        pytest.param(
            put(psc("DeletePub", "<Topic>a</Topic><DelOpt>Foo</DelOpt>"), queue=DEFAULT_STREAM), 3087, id="3087"
        ),
    ],
)
def test_problems_with_a_command_name_the_reason_that_answers_it(message: CapturedMessage, reason: int) -> None:
    assert explained(message).problems[0].reason == reason


@pytest.mark.parametrize(("count", "more"), [(MOST_REFUSALS - 1, []), (MOST_REFUSALS + 5, ["more-refusals"])])
def test_the_faults_of_a_command_are_listed_up_to_a_number(count: int, more: list[str]) -> None:
    found = explained(put(psc("RegSub", "<Topic>a</Topic>" + "<Colour/>" * count))).problems
    assert [problem.code for problem in found] == ["unknown-tag"] * min(count, MOST_REFUSALS) + more


def test_offsets_of_a_command_behind_another_header_count_from_the_first() -> None:
    header = Rfh2((Folder.of(psc("RegSub", "<Colour/>")),), coded_char_set_id=1208)
    found = explained(chained(md(format="MQDEAD"), Dlh(2085, coded_char_set_id=1208, format="MQHRF2"), header)).problems
    assert [(p.code, p.offset) for p in found] == [("unknown-tag", 172 + 70), ("missing-tag", 172 + 40)]


def test_offsets_in_utf_16_count_bytes() -> None:
    folder = Folder.of(psc("RegSub", "<Topic>a</Topic><Colour/>"), "utf-16-le")
    found = explained(chained(MD, Rfh2((folder,), name_value_ccsid=1200, coded_char_set_id=1208))).problems
    assert [(p.code, p.offset) for p in found] == [("unknown-tag", 40 + 2 * (86 - 40))]


@given(damaged())
def test_any_bytes_give_known_problems_with_offsets_inside_the_message(message: CapturedMessage) -> None:
    for problem in explained(message).problems:
        assert CODES[problem.code] == problem.severity
        assert 0 <= problem.offset <= len(message.body if problem.part == "body" else message.md or b"")


@given(messages())
def test_a_message_with_an_error_in_its_bytes_is_not_one_that_decodes_cleanly(message: CapturedMessage) -> None:
    codes = {problem.code for problem in explained(message).problems}
    unreadable = {"bad-struc-id", "short-header", "bad-struc-length", "stray-bytes", "bad-name-value-length"}
    if message.md is None or len(message.md) >= 324:
        assert not codes & unreadable


def test_fixtures_are_explained() -> None:
    for source, message in fixture_messages():
        form = DecodedMessage.model_validate(explained(message).form(source, 0))
        assert form.headers or form.body is not None, source


_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Topic", ("b", "a/b", "#", "a/+", "a*", "", " a", "a//b", "é", "t" * 10_240, "t" * 10_241)),
    ("QName", ("Q", "not a name")),
    ("QMgrName", ("QM2", "not a name")),
    ("StreamName", ("FLIGHTS", DEFAULT_STREAM, "not a name")),
    ("SubPoint", ("", "metric")),
    ("PubOpt", ("RetainPub", "CorrelAsId", "OtherSubsOnly", "NoReg", "Local")),
    ("SeqNum", ("7", "seven")),
    ("Colour", ("red",)),
)


def _publishes() -> Iterator[CapturedMessage]:
    """One with each text of each tag, in either header, on each queue, with and without what identifies its program."""
    described = (MD, replace(MD, correl_id=b"c" * 24), replace(MD, reply_to_q=""), None)
    for tag, text in ((tag, text) for tag, texts in _PARTS for text in texts):
        pairs = [("Command", "Publish"), *([] if tag == "Topic" else [("Topic", "a")]), (tag, text)]
        string = " ".join(f'MQPS{tag} "{text}"' for tag, text in pairs).encode()
        older = Rfh1(string + bytes(4 - len(string) % 4), coded_char_set_id=1208)
        newer = Rfh2((Folder.of(write("psc", pairs)),), coded_char_set_id=1208)
        for queue, mqmd in product(("", CONTROL_QUEUE, DEFAULT_STREAM, "FLIGHTS"), described):
            yield chained(mqmd, newer, queue=queue)
            yield chained(None if mqmd is None else replace(mqmd, format="MQHRF"), older, queue=queue)


def test_a_publish_that_need_not_be_translated_has_the_problems_of_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [explained(message).problems for message in _publishes()]
    monkeypatch.setattr(problems, "_asks_for_topics_alone", lambda _command: False)
    assert found == [explained(message).problems for message in _publishes()]
