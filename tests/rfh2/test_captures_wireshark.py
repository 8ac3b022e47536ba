"""Packet captures read as Wireshark reads them: every field that both know (wire formats 6.6)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rfh2.captures import read_captures
from tests.rfh2.channel_wire import (
    CONTROL,
    MQGET_REPLY,
    MQPUT,
    MQPUT1,
    WIRE_IDS,
    WIRES,
    Session,
    Wire,
    mqmd,
    pcapng,
    rfh2,
)

TSHARK_FIELDS = {
    "mq.md.version": "version",
    "mq.md.report": "report",
    "mq.md.msgtype": "msg_type",
    "mq.md.expiry": "expiry",
    "mq.md.feedback": "feedback",
    "mq.md.encoding": "encoding",
    "mq.md.ccsid": "coded_char_set_id",
    "mq.md.format": "format",
    "mq.md.priority": "priority",
    "mq.md.persistence": "persistence",
    "mq.md.msgid": "msg_id",
    "mq.md.correlid": "correl_id",
    "mq.md.backount": "backout_count",
    "mq.md.replytoq": "reply_to_q",
    "mq.md.replytoqmgr": "reply_to_qmgr",
    "mq.md.userid": "user_identifier",
    "mq.md.acttoken": "accounting_token",
    "mq.md.appldata": "appl_identity_data",
    "mq.md.appltype": "put_appl_type",
    "mq.md.applname": "put_appl_name",
    "mq.md.date": "put_date",
    "mq.md.time": "put_time",
    "mq.md.origdata": "appl_origin_data",
    "mq.md.groupid": "group_id",
    "mq.md.msgseqnumber": "msg_seq_number",
    "mq.md.offset": "offset",
    "mq.md.msgflags": "msg_flags",
    "mq.md.origlength": "original_length",
}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("wire", WIRES[1:3], ids=WIRE_IDS[1:3])
def test_wireshark_reads_the_same_fields(wire: Wire, tmp_path: Path) -> None:
    body = rfh2("Stock/IBM", wire.order) + b"42.5"
    session = Session(mss=1000)
    for number, version in enumerate((1, 2, 2), 1):
        md = mqmd(number, version, wire.order, user="app1")
        session.client(wire.segment(MQPUT, wire.mqput(md, body)))
        session.client(
            wire.segments(MQPUT, wire.mqput(mqmd(10 + number, version, wire.order), body + b"x" * 4000), 3000)
        )
        session.client(wire.segment(MQPUT1, wire.mqput1(CONTROL, mqmd(20 + number, version, wire.order), body)))
        session.server(wire.segment(MQGET_REPLY, wire.mqget_reply(mqmd(30 + number, version, wire.order), body)))
    path = tmp_path / "net.pcapng"
    path.write_bytes(pcapng(session.frames))
    theirs = {}
    for row in tshark(path):
        for values in _occurrences(row):
            theirs[values["mq.md.msgid"]] = values
    ours = [r.message for r in read_captures(path) if r.message]
    assert len(ours) == len(theirs) == 12
    for message in ours:
        mqmd_ = message.descriptor()
        assert mqmd_ is not None
        values = theirs[mqmd_.msg_id.hex()]
        for name, attribute in TSHARK_FIELDS.items():
            if name in values:
                assert same(values[name], getattr(mqmd_, attribute)), (name, values[name], getattr(mqmd_, attribute))
        assert int(values["mq.put.length"], 0) == len(message.body)
        header = message.decode().rfh2
        assert header is not None
        assert values["mq.rfh.string"].rstrip() == header.folders[0].text.rstrip()
        assert int(values["mq.head.length"], 0) == header.length
    assert sum("mq.md.groupid" in values for values in theirs.values()) == 8


def tshark(path: Path) -> list[dict[str, list[str]]]:
    names = [*TSHARK_FIELDS, "mq.put.length", "mq.rfh.string", "mq.head.length"]
    known = {line.split("\t")[2] for line in run("tshark", "-G", "fields").splitlines() if "\tmq." in line}
    wanted = [name for name in names if name in known]
    options = [option for name in wanted for option in ("-e", name)]
    out = run("tshark", "-r", str(path), "-Y", "mq.md.version", "-T", "json", *options)
    return [packet["_source"]["layers"] for packet in json.loads(out)]


def _occurrences(row: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    # A packet that completes a reassembled call shows the last segment besides; there is one message a packet here.
    if "mq.md.msgid" in row and "mq.put.length" in row:
        yield {name: values[-1] for name, values in row.items()}


def same(theirs: str, ours: object) -> bool:
    if isinstance(ours, bytes):
        return theirs.replace(":", "") == ours.hex()
    if isinstance(ours, int):
        return int(theirs, 0) in (ours, ours % 2**32)
    return theirs.rstrip() == str(ours).rstrip()


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
