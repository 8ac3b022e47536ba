"""Converts publications for MQPUT to a topic, and from messages of a subscription's queue.

Pure. Properties travel in an MQRFH2: ``usr`` is the program's, ``mqps`` what the queue manager says of a publication
(guide 4.4, table 1). Publications of the bridge have their own property, ``QPSBridge``, which a selector can name.

    to the tree         from                            from the tree
    topic               topic string                    mqps.Top
    MQPMO_RETAIN        RetainPub                       mqps.Pub, or mqps.Ret of one that was asked for
    MQPMO_SCOPE_QMGR    Local                           -
    Persistence,        the publication's               the same
      Priority, Expiry
    Format, Encoding,   of the body                     of the body
      CodedCharSetId
    mqpse.Pts, .Seq     PubTime, SeqNum                 psc
    usr                 usr                             usr
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.message_for_tree import ForTree
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQENC_NATIVE, MQFMT_RF_HEADER_2, MQPER_PERSISTENT
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.message import decode
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2

MARK: Final = "QPSBridge"
SYNCPOINT, RETAIN, SCOPE_QMGR = 0x0000_0002, 0x0020_0000, 0x0400_0000
_STAMPS: Final = {"Pts": "PubTime", "Seq": "SeqNum"}
_NUMBER: Final = re.compile("[0-9]{1,10}", re.ASCII)


def put_for(wanted: ForTree, qmgr: str) -> tuple[bytes, bytes, int]:
    """The MQMD, the body and the MQPMO_* of the MQPUT that publishes it. qmgr: whose bridge publishes."""
    usr = write("usr", ((MARK, qmgr), *wanted.properties))
    folders = [Folder.of(usr)]
    if wanted.stamps:
        folders.insert(0, Folder.of(write("mqpse", wanted.stamps)))
    header = Rfh2(tuple(folders), wanted.encoding, wanted.ccsid, wanted.format)
    mqmd = Mqmd(
        version=2,
        expiry=wanted.expiry if wanted.expiry > 0 else MQEI_UNLIMITED,
        encoding=MQENC_NATIVE,
        coded_char_set_id=UTF8_CCSID,
        format=MQFMT_RF_HEADER_2,
        priority=wanted.priority,
        persistence=int(wanted.persistent),
    )
    options = SYNCPOINT | (RETAIN if wanted.retain else 0) | (SCOPE_QMGR if wanted.local else 0)
    return mqmd.encode(), header.encode() + wanted.payload, options


def native_of(md: bytes, body: bytes, default_format: str = "") -> tuple[NativePublication, str | None]:
    """The publication in a message off a subscription's queue, and whose bridge published it, if one did.

    Raises DecodeError where it is none.
    """
    message = decode(body, md)
    header = message.rfh2
    if header is None or not message.headers or message.headers[0] is not header:
        raise DecodeError(0, "message", "it has no MQRFH2 with the properties of a publication", "no-command-header")
    said = header.folder("mqps")
    properties = {} if said is None else dict(said.pairs())
    topic = properties.get("Top", "")
    if not topic:
        raise DecodeError(0, "message", "it has no property mqps.Top, which names its topic", "no-command-header")
    user: list[tuple[str, str]] = []
    stamps: list[tuple[str, str]] = []
    for folder in header.folders:
        if folder.name == "usr":
            user += folder.pairs()
        elif folder.name == "mqpse":
            stamps += [(_STAMPS[tag], value) for tag, value in folder.pairs() if tag in _STAMPS]
    bridge = next((value for name, value in user if name == MARK), None)
    put_options = properties.get("Pub", "0")
    retained = properties.get("Ret") == "1" or (
        _NUMBER.fullmatch(put_options) is not None and bool(int(put_options) & RETAIN)
    )
    mqmd = message.mqmd
    within = replace(message, headers=message.headers[:1])
    payload = b"".join([*(after.encode() for after in message.headers[1:]), message.body])
    native = NativePublication(
        topic,
        payload,
        retained,
        mqmd.persistence == MQPER_PERSISTENT,
        mqmd.expiry / 10 if mqmd.expiry > 0 else None,
        max(mqmd.priority, 0),
        tuple((name, value) for name, value in user if name != MARK),
        tuple(stamps),
        name_of(header.format) or default_format,
        header.encoding,
        within.body_ccsid,
    )
    return native, bridge
