"""CodedCharSetIds that stand for others, and what a queue manager writes in their place when a message is put.

| where | value | becomes |
|---|---|---|
| descriptor | 0 (MQCCSI_Q_MGR), -2 (MQCCSI_INHERIT) | the queue manager's own CCSID |
| a header behind it | -2 (MQCCSI_INHERIT) | the CCSID in which the header itself is |
| either | -1 (MQCCSI_EMBEDDED) and anything else | itself; a queue manager does not look at it |

A program may put MQCCSI_INHERIT, and never gets it. A message whose PutApplType is MQAT_BROKER must not have it at all:
what is published has to be resolved before it is put on. 0 in a header says nothing (MQCCSI_UNDEFINED); it stays, and
is read as that of what precedes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS
from rfh2.chain import Header, describing
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT
from rfh2.errors import DecodeError
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd

QMGR_CCSID: Final = 1208
"""CodedCharSetId of a queue manager here: that of one that was made in a UTF-8 locale."""

EBCDIC_QMGR_CCSID: Final = 500
"""The same for a descriptor in EBCDIC: its queue manager is on z/OS, where this is the default."""

MQCCSI_OF_THE_QMGR: Final = (MQCCSI_DEFAULT, MQCCSI_INHERIT)
"""In a descriptor: the queue manager's own."""

_CCSID, _FORMAT = slice(16, 20), slice(20, 28)
_INHERIT_BYTES: Final = (b"\xfe\xff\xff\xff", b"\xff\xff\xff\xfe")
# A header follows a header where its Format begins so, and is not text.
_OF_IBM: Final = ("MQ".encode(ASCII_FIELDS), "MQ".encode(EBCDIC_FIELDS))
_TEXT: Final = ("MQSTR   ".encode(ASCII_FIELDS), "MQSTR   ".encode(EBCDIC_FIELDS))


def qmgr_ccsid(ascii_fields: bool) -> int:
    """CodedCharSetId of the queue manager of a descriptor. ascii_fields: whether its characters are in ASCII."""
    return QMGR_CCSID if ascii_fields else EBCDIC_QMGR_CCSID


def is_resolved(message: Message) -> bool:
    """Whether ``resolved`` gives the message as it is."""
    if message.mqmd.coded_char_set_id in MQCCSI_OF_THE_QMGR:
        return False
    return MQCCSI_INHERIT not in [header.coded_char_set_id for header in message.headers]


def resolved(message: Message) -> Message:
    """*message* as a queue manager keeps it: without MQCCSI_Q_MGR and MQCCSI_INHERIT."""
    mqmd = _resolved_descriptor(message.mqmd)
    ccsid = mqmd.coded_char_set_id
    headers: list[Header] = []
    for header in message.headers:
        inherits = header.coded_char_set_id == MQCCSI_INHERIT
        headers.append(describing(header, {"coded_char_set_id": ccsid}) if inherits else header)
        if not inherits and header.coded_char_set_id != MQCCSI_DEFAULT:
            ccsid = header.coded_char_set_id
    return Message(mqmd, tuple(headers), message.body)


def resolved_body(body: bytes, md: bytes) -> bytes:
    """What stands behind the descriptor *md*, as a queue manager keeps it; what cannot be decoded stays as it is.

    The first header shows at fixed places whether anything needs to be looked at.
    """
    fmt = body[_FORMAT]
    if body[_CCSID] not in _INHERIT_BYTES and (fmt in _TEXT or fmt[:2] not in _OF_IBM):
        return body
    try:
        message = decode(body, md)
    except DecodeError:
        return body
    return body if is_resolved(message) else encode(resolved(message))


def _resolved_descriptor(mqmd: Mqmd) -> Mqmd:
    if mqmd.coded_char_set_id not in MQCCSI_OF_THE_QMGR:
        return mqmd
    return replace(mqmd, coded_char_set_id=qmgr_ccsid(mqmd.charset == ASCII_FIELDS))
