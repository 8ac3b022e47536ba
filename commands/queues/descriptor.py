"""What a queue manager does to a message descriptor when a message arrives, and when it is got.

Works on the descriptor's bytes: what is not named here stays as the program wrote it, byte for byte, in its own byte
order and character set. On arrival

* Priority -1 and Persistence 2 become the queue's defaults, and BackoutCount becomes 0;
* a MsgId of zeros becomes ``AMQ ``, the queue manager's name in 12 bytes, and 8 bytes that no other message has;
* blank ReplyToQMgr beside a ReplyToQ becomes the queue manager's own name;
* blank UserIdentifier, PutApplName, and PutDate with PutTime (UTC) become the caller's and the clock's.

When the message is got, Expiry is what is left of it, and BackoutCount how often it came back. Source: MQMD field
descriptions, wire formats 1; guide 6.7.9 for the time outstanding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.queues.errors import (
    MQRC_EXPIRY_ERROR,
    MQRC_MD_ERROR,
    MQRC_PERSISTENCE_ERROR,
    MQRC_PRIORITY_ERROR,
    MessageRefusedError,
)
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS
from rfh2.chain import sniffed
from rfh2.constants import (
    MQ_MSG_ID_LENGTH,
    MQEI_UNLIMITED,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPER_PERSISTENT,
    MQPRI_PRIORITY_AS_Q_DEF,
)
from rfh2.layouts import MQMD1, MQMD2
from rfh2.mqmd import Mqmd

HIGHEST_PRIORITY: Final = 9
MQAT_UNIX: Final = 6
TENTH_US: Final = 100_000

# Where the fields stand that change; taken from the declared layout, so that there is one truth.
_SPANS: Final = {name: slice(offset, offset + length) for name, offset, length in MQMD1.spans()}
_EXPIRY, _PRIORITY, _PERSISTENCE = (_SPANS[name].start for name in ("Expiry", "Priority", "Persistence"))
_BACKOUT_COUNT, _PUT_APPL_TYPE = _SPANS["BackoutCount"].start, _SPANS["PutApplType"].start
_MSG_ID, _REPLY_TO_Q, _REPLY_TO_QMGR = _SPANS["MsgId"], _SPANS["ReplyToQ"], _SPANS["ReplyToQMgr"]
_USER, _APPLICATION = _SPANS["UserIdentifier"], _SPANS["PutApplName"]
_PUT_DATE, _PUT_TIME = _SPANS["PutDate"], _SPANS["PutTime"]

_LITTLE, _BIG = struct.Struct("<i"), struct.Struct(">i")
_NO_MSG_ID = bytes(MQ_MSG_ID_LENGTH)
_ASCII = (b"MD  ", ASCII_FIELDS)
_EBCDIC = ("MD  ".encode(EBCDIC_FIELDS), EBCDIC_FIELDS)
_VERSIONS: Final = {
    b"\1\0\0\0": (_LITTLE, MQMD1.size),
    b"\2\0\0\0": (_LITTLE, MQMD2.size),
    b"\0\0\0\1": (_BIG, MQMD1.size),
    b"\0\0\0\2": (_BIG, MQMD2.size),
}
# Ids made for responses and publications count from the command's number; the first bit keeps the two kinds apart.
_MADE_ON_ARRIVAL: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Arrived:
    """A descriptor as it is kept. priority: 0 to 9, the place in the queue. lifetime_us: None for unlimited."""

    md: bytes
    priority: int
    persistent: bool
    user: str | None
    lifetime_us: int | None


def default_descriptor(body: bytes) -> bytes:
    """The descriptor of a message that has none: the defaults, its Format as the first header in *body* shows it."""
    found = sniffed(body)
    if found is None:
        return Mqmd().encode()
    return Mqmd(format=found[0], encoding=found[1], coded_char_set_id=found[2]).encode()


def arrive(
    md: bytes,
    *,
    queue: str,
    def_priority: int,
    def_persistent: bool,
    qmgr: str,
    unique: int,
    time: datetime,
    user: str | None,
    application: str,
) -> Arrived:
    """*md* as queue manager *qmgr* keeps it for *queue*.

    def_priority, def_persistent: the queue's DEFPRTY and DEFPSIST. unique: a number that no other message of the queue
    manager has or had. time: of arrival, UTC. user, application: who puts; for the fields that *md* leaves blank.
    Raises MessageRefusedError with 2026, 2013, 2050 or 2047 for a descriptor that MQPUT would refuse.
    """
    long, charset = _reading(md, queue)
    kept = bytearray(md)
    blank = " ".encode(charset)

    (expiry,) = long.unpack_from(md, _EXPIRY)
    if expiry != MQEI_UNLIMITED and expiry <= 0:
        raise MessageRefusedError(MQRC_EXPIRY_ERROR, queue, f"Expiry {expiry} is neither -1 nor above 0")
    (priority,) = long.unpack_from(md, _PRIORITY)
    if priority == MQPRI_PRIORITY_AS_Q_DEF:
        priority = def_priority
        long.pack_into(kept, _PRIORITY, priority)
    elif priority < 0:
        raise MessageRefusedError(MQRC_PRIORITY_ERROR, queue, f"Priority {priority} is below 0")
    (persistence,) = long.unpack_from(md, _PERSISTENCE)
    if persistence == MQPER_PERSISTENCE_AS_Q_DEF:
        persistence = int(def_persistent)
        long.pack_into(kept, _PERSISTENCE, persistence)
    elif persistence not in (0, MQPER_PERSISTENT):
        raise MessageRefusedError(MQRC_PERSISTENCE_ERROR, queue, f"Persistence {persistence} is not 0, 1 or 2")
    long.pack_into(kept, _BACKOUT_COUNT, 0)

    if md[_MSG_ID] == _NO_MSG_ID:
        kept[_MSG_ID] = b"AMQ " + _field(qmgr, 12, ASCII_FIELDS) + (_MADE_ON_ARRIVAL | unique).to_bytes(8, "big")
    if _is_blank(md[_REPLY_TO_QMGR], blank) and not _is_blank(md[_REPLY_TO_Q], blank):
        kept[_REPLY_TO_QMGR] = _field(qmgr, 48, charset)
    named = md[_USER].split(b"\0", 1)[0].rstrip(blank)
    if not named and user:
        kept[_USER] = _field(user, 12, charset)
    elif named and user is None:
        user = str(named, charset)
    if application and _is_blank(md[_APPLICATION], blank):
        kept[_APPLICATION] = _field(application, 28, charset)
        if long.unpack_from(md, _PUT_APPL_TYPE)[0] == 0:
            long.pack_into(kept, _PUT_APPL_TYPE, MQAT_UNIX)
    # A date from the program with a time of day from this clock would be a moment that never was.
    if _is_blank(md[_PUT_DATE], blank) or _is_blank(md[_PUT_TIME], blank):
        kept[_PUT_DATE] = _field(f"{time:%Y%m%d}", 8, charset)
        kept[_PUT_TIME] = _field(f"{time:%H%M%S}{time.microsecond // 10_000:02}", 8, charset)
    lifetime_us = None if expiry == MQEI_UNLIMITED else expiry * TENTH_US
    return Arrived(bytes(kept), min(priority, HIGHEST_PRIORITY), persistence == MQPER_PERSISTENT, user, lifetime_us)


def leave(md: bytes, left_us: int | None, backout_count: int) -> bytes:
    """*md* as the program that gets the message sees it.

    left_us: what is left of its life, in microseconds, above 0; None for unlimited. Anything left is at least a tenth
    of a second: an Expiry of 0 would be refused when the message is put on.
    """
    if left_us is None and not backout_count:
        return md
    long = _VERSIONS[md[4:8]][0]
    seen = bytearray(md)
    if left_us is not None:
        long.pack_into(seen, _EXPIRY, -(-left_us // TENTH_US))
    long.pack_into(seen, _BACKOUT_COUNT, backout_count)
    return bytes(seen)


def _reading(md: bytes, queue: str) -> tuple[struct.Struct, str]:
    struc_id, charset = _ASCII if md[:4] == _ASCII[0] else _EBCDIC
    found = _VERSIONS.get(md[4:8])
    if md[:4] != struc_id or found is None or len(md) < found[1]:
        raise MessageRefusedError(MQRC_MD_ERROR, queue, "what stands before the message is no MQMD of version 1 or 2")
    return found[0], charset


def _is_blank(field: bytes, blank: bytes) -> bool:
    return not field.split(b"\0", 1)[0].strip(blank)


def _field(value: str, size: int, charset: str) -> bytes:
    return value.encode(charset, "replace")[:size].ljust(size, " ".encode(charset))
