"""Transcripts of client channels, as text: a line for each segment's header, and its payload as a hex dump.

--- st3 C->S f115 t=34.990 TSH  len=268 type=01 INITIAL_DATA bo=1 cf1=31 cf2=00 ... enc=00000111 ccsid=0333 res=0000
      0 49 44 20 20 11 26 00 00 00 00 00 00 00 00 7f ec ID  .&..........
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rfh2.channel.segments import CONFIRM, SegmentHeader, SegmentType

_HEADER = re.compile(
    r"--- .*?(?P<id>TSH[ MC]) +len=(?P<length>\d+) type=(?P<kind>\w\w) .*bo=(?P<order>\d)"
    r" cf1=(?P<flags>\w\w) .*enc=(?P<encoding>\w{8}) ccsid=(?P<ccsid>\w{4})"
    r" res=\w+(?: conv=(?P<conv>\d+) req=(?P<req>\d+))?"
)
_OF_CLIENTS = {SegmentType.USERID, SegmentType.CONAUTH_INFO, SegmentType.REQUEST_MSGS}
_DUMP = re.compile(r" *\d+ ((?:[0-9a-f]{2} ){1,16})")


@dataclass(frozen=True)
class Said:
    """One segment. struc_id: ``TSH ``, ``TSHM`` or ``TSHC``."""

    by_client: bool
    struc_id: str
    header: SegmentHeader
    payload: bytes

    def encode(self) -> bytes:
        data = self.header.write(self.payload)
        return self.struc_id.encode() + data[4:]


def said(path: Path) -> Iterator[Said]:
    """The segments in the transcript at *path*, in order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found: re.Match[str] | None = None
    data = b""
    for line in [*lines, "--- "]:
        if line.startswith("--- "):
            if found is not None:
                yield _segment(found, data)
            found, data = _HEADER.match(line), b""
        elif (dump := _DUMP.match(line)) is not None:
            data += bytes.fromhex(dump[1])


def _segment(found: re.Match[str], data: bytes) -> Said:
    order = "big" if found["order"] == "1" else "little"
    header = SegmentHeader(
        kind=int(found["kind"], 16),
        flags=int(found["flags"], 16),
        order=order,  # type: ignore[arg-type]
        encoding=int.from_bytes(bytes.fromhex(found["encoding"]), order),  # type: ignore[arg-type]
        ccsid=int.from_bytes(bytes.fromhex(found["ccsid"]), order),  # type: ignore[arg-type]
        conversation=int(found["conv"]) if found["conv"] else None,
        request=int(found["req"] or 0),
    )
    by_client = header.kind in _OF_CLIENTS or 0x80 < header.kind < 0x90 or found["id"] == "TSHC"
    if header.kind == SegmentType.INITIAL_DATA:
        by_client = bool(header.flags & CONFIRM)
    return Said(by_client, found["id"], header, data)
