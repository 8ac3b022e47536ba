"""CodedCharSetIds that stand for others, and what a queue manager writes in their place when a message is put.

| where | value | becomes |
|---|---|---|
| descriptor | 0 (MQCCSI_Q_MGR), -2 (MQCCSI_INHERIT) | that of the queue manager; 819 where an MQRFH is no UTF-8 |
| a header behind it | -2 (MQCCSI_INHERIT) | the CCSID in which the header itself is |
| either | -1 (MQCCSI_EMBEDDED) and anything else | itself; a queue manager does not look at it |

A program may put MQCCSI_INHERIT, and never gets it. A message whose PutApplType is MQAT_BROKER must not have it at all:
what is published has to be resolved before it is put on. 0 in a header says nothing (MQCCSI_UNDEFINED); it stays, and
is read as that of what precedes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rfh2.ccsid import ASCII_FIELDS, MQCCSI_OF_THE_QMGR, QMGR_CCSID, is_kept_body, order_of, qmgr_ccsid
from rfh2.chain import Header, ccsid_behind, describing
from rfh2.constants import MQCCSI_INHERIT
from rfh2.errors import DecodeError
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1

BYTES_CCSID: Final = 819
"""The queue manager's CCSID for an MQRFH whose string is not UTF-8: in this CCSID each byte is a character.

So no message is refused because of a CCSID that no program has named, and its bytes leave unchanged.
"""


_UNRESOLVED_BYTES: Final = (bytes(4), b"\xfe\xff\xff\xff", b"\xff\xff\xff\xfe")
_MQRFH: Final = (b"RFH \x01\x00\x00\x00", b"RFH \x00\x00\x00\x01")
_MQRFH2: Final = (b"RFH \x02\x00\x00\x00", b"RFH \x00\x00\x00\x02")
_ASCII_MD: Final = b"MD  "
_MQRFH_FIXED: Final = 32
_MQRFH_LENGTH, _MD_CCSID = slice(8, 12), slice(28, 32)


def put_descriptor(md: bytes, body: bytes, given: bytes | None) -> bytes:
    """*md*, the descriptor of what is put, with ``BYTES_CCSID`` where the string of an MQRFH in *body* needs it.

    given: the descriptor that the program gave, from which *md* was made; None is the default one.
    """
    if body[:8] not in _MQRFH or (given is not None and given[_MD_CCSID] not in _UNRESOLVED_BYTES):
        return md
    if _is_utf8(body[_MQRFH_FIXED : int.from_bytes(body[_MQRFH_LENGTH], order_of(body))]):
        return md
    return md[: _MD_CCSID.start] + BYTES_CCSID.to_bytes(4, order_of(md)) + md[_MD_CCSID.stop :]


def kept_descriptor(md: bytes, body: bytes) -> bytes:
    """*md* as a queue manager keeps it, where its own bytes and the first of *body* show that; elsewhere as it is.

    Messages that ``resolved`` changes for nothing but a program's CCSID of 0 need not be decoded twice so.
    """
    if body[:8] not in _MQRFH2 or md[:4] != _ASCII_MD or md[_MD_CCSID] not in _UNRESOLVED_BYTES:
        return md
    return md[: _MD_CCSID.start] + QMGR_CCSID.to_bytes(4, order_of(md)) + md[_MD_CCSID.stop :]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def is_resolved(message: Message) -> bool:
    """Whether ``resolved`` gives the message as it is."""
    if message.mqmd.coded_char_set_id in MQCCSI_OF_THE_QMGR:
        return False
    return MQCCSI_INHERIT not in [header.coded_char_set_id for header in message.headers]


def resolved(message: Message) -> Message:
    """*message* as a queue manager keeps it: without MQCCSI_Q_MGR and MQCCSI_INHERIT."""
    mqmd = _resolved_descriptor(message)
    ccsid = mqmd.coded_char_set_id
    headers: list[Header] = []
    for header in message.headers:
        inherits = header.coded_char_set_id == MQCCSI_INHERIT
        headers.append(describing(header, {"coded_char_set_id": ccsid}) if inherits else header)
        ccsid = ccsid_behind(header, ccsid)
    return Message(mqmd, tuple(headers), message.body)


def resolved_body(body: bytes, md: bytes) -> bytes:
    """What stands behind the descriptor *md*, as a queue manager keeps it; what cannot be decoded stays as it is."""
    if is_kept_body(body):
        return body
    try:
        message = decode(body, md)
    except DecodeError:
        return body
    return body if is_resolved(message) else encode(resolved(message))


def _resolved_descriptor(message: Message) -> Mqmd:
    mqmd = message.mqmd
    if mqmd.coded_char_set_id not in MQCCSI_OF_THE_QMGR:
        return mqmd
    ascii_fields = mqmd.charset == ASCII_FIELDS
    first = message.headers[0] if message.headers else None
    if ascii_fields and isinstance(first, Rfh1) and not _is_utf8(first.data):
        return replace(mqmd, coded_char_set_id=BYTES_CCSID)
    return replace(mqmd, coded_char_set_id=qmgr_ccsid(ascii_fields))
