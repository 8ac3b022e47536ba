"""The changes of a queue manager to a message descriptor when a message arrives, and when it is got.

Works on the descriptor's bytes: what is not named here stays as the program wrote it, byte for byte, in its own byte
order and character set. On arrival

* Priority -1 and Persistence 2 become the queue's defaults, and BackoutCount becomes 0;
* CodedCharSetId 0 (MQCCSI_Q_MGR) and -2 (MQCCSI_INHERIT) become the queue manager's own;
* a MsgId of zeros becomes ``AMQ ``, the queue manager's name in 12 bytes, and 8 bytes that no other message has;
* blank ReplyToQMgr beside a ReplyToQ becomes the queue manager's own name;
* blank UserIdentifier, PutApplName, and PutDate with PutTime (UTC) become the caller's and the clock's.

When the message is got, Expiry is what is left of it, and BackoutCount how often it came back. Source: MQMD field
descriptions, wire formats 1; guide 6.7.9 for the time outstanding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from rfh2 import constants as mq, mqi_constants as m
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, MQCCSI_OF_THE_QMGR, is_kept_body, order_of, qmgr_ccsid
from rfh2.errors import MessageRefusedError
from rfh2.layouts import MQMD1, MQMD2
from rfh2.message import sniffed
from rfh2.mqmd import Mqmd

# The fields that a queue manager sets in a message that it puts: identifiers, origin context, date and time.
#
# Identifiers are made from the arrival number of the command that causes them and a count within it. They are therefore
# unique in a queue manager, and the same whenever the same commands arrive in the same order.

CARRIED_IDS: Final = 1 << 22
"""The count of identifiers for what neighbours send begins here: a command never makes so many itself."""
_PRODUCT = b"AMQ "
_FIVE_BYTES = 0xFF_FFFF_FFFF
_BEYOND_A_NAME = 0x80_0000


def message_id(qmgr: str, seq: int, n: int) -> bytes:
    """24 bytes: ``AMQ ``, the queue manager's name cut to 12 characters, five bytes of *seq*, three of *n*.

    If *seq* needs more than five bytes, as a time stamp in a capture may, its higher bytes replace the end of the name,
    with the top bit set, so that such identifiers still sort after all with a lower *seq*.
    """
    head = _head(qmgr)
    if high := seq >> 40:
        head = head[:13] + (_BEYOND_A_NAME | high).to_bytes(3, "big")
    return head + (seq & _FIVE_BYTES).to_bytes(5, "big") + n.to_bytes(3, "big")


def is_of_a_put(msg_id: bytes, qmgr: str) -> bool:
    """Whether ``message_id`` made it for a put of *qmgr*; where a queue completes a program's, the top bit is set."""
    return msg_id.startswith(_head(qmgr)) and msg_id[16] < 0x80


@lru_cache(maxsize=64)
def _head(qmgr: str) -> bytes:
    return _PRODUCT + qmgr[:12].ljust(12).encode("ascii", "replace")


@lru_cache(maxsize=4096)
def fitting(name: str, size: int) -> str:
    """*name* cut to *size* characters, with a question mark for each that a character field cannot hold.

    A user or a queue in a capture may have a name that no queue manager allows; the message must still be put.
    """
    return name[:size].encode("latin-1", "replace").decode("latin-1")


class Ids:
    """The identifiers of one command: MsgIds for its puts and sub_ids for what it registers, from one count.

    begin: where the count begins. That of a network's publications is far behind those of the queue manager's own.
    """

    def __init__(self, qmgr: str, seq: int, begin: int = 0) -> None:
        self._qmgr, self._seq, self._n = qmgr, seq, begin

    def __call__(self) -> bytes:
        """The next identifier."""
        self._n += 1
        return message_id(self._qmgr, self._seq, self._n)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin context of all messages that the queue manager puts at one time (guide 6.7.9, 6.7.10)."""

    put_appl_name: str
    put_date: str
    put_time: str
    put_appl_type: int = mq.MQAT_BROKER
    appl_origin_data: str = ""

    @classmethod
    def of(cls, qmgr: str, now: datetime) -> Origin:
        """PutDate and PutTime are UTC, to hundredths of a second."""
        date = f"{now.year:04}{now.month:02}{now.day:02}"
        time = f"{now.hour:02}{now.minute:02}{now.second:02}{now.microsecond // 10_000:02}"
        return cls(fitting(qmgr, 28), date, time)


HIGHEST_PRIORITY: Final = 9
TENTH_US: Final = 100_000

# The offsets of the fields that change, from the declared layout.
_SPANS: Final = MQMD1.slices()
_NUMBERS: Final = ("Expiry", "CodedCharSetId", "Priority", "Persistence", "BackoutCount", "PutApplType")
_CHARACTERS: Final = ("MsgId", "ReplyToQ", "ReplyToQMgr", "UserIdentifier", "PutApplName", "PutDate", "PutTime")


def _reader(order: str) -> struct.Struct:
    """Reads the fields above, in the order in which they stand, and passes over all others."""
    kinds = dict.fromkeys(_NUMBERS, "i") | dict.fromkeys(_CHARACTERS, "s")
    parts = ((kinds.get(name, "x"), length) for name, _, length in MQMD1.spans())
    return struct.Struct(order + "".join("i" if kind == "i" else f"{length}{kind}" for kind, length in parts))


_LITTLE, _BIG = struct.Struct("<i"), struct.Struct(">i")
_NO_MSG_ID = bytes(mq.MQ_MSG_ID_LENGTH)
_ASCII = (b"MD  ", ASCII_FIELDS, b" ")
_EBCDIC = ("MD  ".encode(EBCDIC_FIELDS), EBCDIC_FIELDS, " ".encode(EBCDIC_FIELDS))
_VERSIONS: Final = {
    b"\1\0\0\0": (_LITTLE, _reader("<"), MQMD1.size),
    b"\2\0\0\0": (_LITTLE, _reader("<"), MQMD2.size),
    b"\0\0\0\1": (_BIG, _reader(">"), MQMD1.size),
    b"\0\0\0\2": (_BIG, _reader(">"), MQMD2.size),
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


class Accepted(NamedTuple):
    """The columns of messages whose descriptor every queue keeps as it is. lifetime_us: None for unlimited."""

    rank: int
    persistent: bool
    user: str | None
    lifetime_us: int | None


class _Completed(NamedTuple):
    """Such messages, without a MsgId and without PutDate and PutTime. charset: of these two.

    before, between, behind: the descriptor as it is kept, before MsgId, between CorrelId and PutDate, behind PutTime.
    """

    fields: _Fields
    charset: str
    before: bytes
    between: bytes
    behind: bytes

    def kept(self, md: bytes, qmgr: str, unique: int, time: datetime) -> bytes:
        """What is kept of *md*."""
        made, stamp = _made_id(qmgr, unique), _stamp(time, self.charset)
        return b"".join((self.before, made, md[_SPANS["CorrelId"]], self.between, stamp, self.behind))


# The same descriptor arrives many times, except for MsgId, CorrelId, PutDate and PutTime. The result for a descriptor
# that needs no edit is cached; the key is the rest of it, the user and the application.
_Key = tuple[bytes, bytes, bytes, str | None, str]
_Fields = tuple[int, bool, str | None, int | None]
_ENTRY_BYTES: Final = 800
_ACCEPTED_BYTES: Final = 4 << 20
_ACCEPTED: Final[BoundedCache[_Key, _Fields]] = BoundedCache(_ACCEPTED_BYTES)
# The same for a descriptor without MsgId, PutDate and PutTime, the edits of which depend on nothing else but the number
# of the message, the time and the queue manager.
_CompletedKey = tuple[bytes, bytes, str | None, str, str]
_COMPLETED_BYTES: Final = 4 << 20
_COMPLETED: Final[BoundedCache[_CompletedKey, _Completed]] = BoundedCache(_COMPLETED_BYTES)
_BEFORE_IDS: Final = slice(0, _SPANS["MsgId"].start)
_BETWEEN: Final = slice(_SPANS["CorrelId"].stop, _SPANS["PutDate"].start)
_BEHIND: Final = slice(_SPANS["PutTime"].stop, None)
_BEHIND_IDS: Final = slice(_SPANS["CorrelId"].stop, None)
_FIRST_OF_DATE, _FIRST_OF_TIME = _SPANS["PutDate"].start, _SPANS["PutTime"].start
# The first byte tells that these two are not blank, in ASCII and in EBCDIC.
_DIGITS: Final = frozenset(b"0123456789" + "0123456789".encode(EBCDIC_FIELDS))


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
    key = (md[_BEFORE_IDS], md[_BETWEEN], md[_BEHIND], user, application)
    accepted = _ACCEPTED.get(key)
    if accepted is not None and _is_stamped(md):
        return Arrived(md, *accepted)
    has_id = md[_SPANS["MsgId"]] != _NO_MSG_ID
    completed_key = (md[_BEFORE_IDS], md[_BEHIND_IDS], user, application, qmgr)
    completed = None if has_id else _COMPLETED.get(completed_key)
    if completed is not None:
        return Arrived(completed.kept(md, qmgr, unique, time), *completed.fields)
    arrived = _normalised(md, queue, def_priority, def_persistent, qmgr, unique, time, user, application)
    if arrived.md is md and _is_stamped(md):
        fields = (arrived.priority, arrived.persistent, arrived.user, arrived.lifetime_us)
        _ACCEPTED.keep(key, fields, _ENTRY_BYTES + len(md) + 4 * (len(user or "") + len(application)))
    elif not has_id and not _depends_on_queue(md):
        completed = _completed(md, arrived)
        # It does not hold for a descriptor with a PutDate of its own.
        if completed.kept(md, qmgr, unique, time) == arrived.md and not _has_time(md):
            names = len(user or "") + len(application) + len(qmgr)
            _COMPLETED.keep(completed_key, completed, _ENTRY_BYTES + 2 * len(md) + 4 * names)
    return arrived


def accepted(md: bytes, body: bytes, application: str) -> Accepted | None:
    """The columns of messages like this one, if every queue keeps their descriptor and header as they are.

    Like it are those with another MsgId, CorrelId, PutDate, PutTime, and others bytes behind the first header's fixed
    part. application: who puts; the user is the one in *md*.
    """
    try:
        arrived = arrive(
            md,
            queue="",
            def_priority=0,
            def_persistent=False,
            qmgr="",
            unique=0,
            time=datetime(1970, 1, 1, tzinfo=UTC),
            user=None,
            application=application,
        )
    except MessageRefusedError:
        return None
    if arrived.md != md or not is_kept_body(body):
        return None
    return Accepted(HIGHEST_PRIORITY - arrived.priority, arrived.persistent, arrived.user, arrived.lifetime_us)


def _normalised(
    md: bytes,
    queue: str,
    def_priority: int,
    def_persistent: bool,
    qmgr: str,
    unique: int,
    time: datetime,
    user: str | None,
    application: str,
) -> Arrived:
    struc_id, charset, blank = _ASCII if md[:4] == _ASCII[0] else _EBCDIC
    found = _VERSIONS.get(md[4:8])
    if md[:4] != struc_id or found is None or len(md) < found[2]:
        why = "what stands before the message is not an MQMD of version 1 or 2"
        raise MessageRefusedError(m.MQRC_MD_ERROR, queue, why)
    long, reader, _ = found
    fields = reader.unpack_from(md)
    expiry, ccsid, priority, persistence, msg_id, backout_count, reply_to_q, reply_to_qmgr, named, *_put = fields
    put_appl_type, put_appl_name, put_date, put_time = _put
    _check(expiry, priority, persistence, queue)
    edits: list[tuple[str, bytes]] = []

    if ccsid in MQCCSI_OF_THE_QMGR:
        edits.append(("CodedCharSetId", long.pack(qmgr_ccsid(charset == ASCII_FIELDS))))
    if priority == mq.MQPRI_PRIORITY_AS_Q_DEF:
        priority = def_priority
        edits.append(("Priority", long.pack(priority)))
    if persistence == mq.MQPER_PERSISTENCE_AS_Q_DEF:
        persistence = int(def_persistent)
        edits.append(("Persistence", long.pack(persistence)))
    if backout_count:
        edits.append(("BackoutCount", long.pack(0)))

    if msg_id == _NO_MSG_ID:
        edits.append(("MsgId", _made_id(qmgr, unique)))
    if _is_blank(reply_to_qmgr, blank) and not _is_blank(reply_to_q, blank):
        edits.append(("ReplyToQMgr", _field(qmgr, 48, charset)))
    if _is_blank(named, blank):
        if user:
            edits.append(("UserIdentifier", _field(user, 12, charset)))
    elif user is None:
        user = str(named.split(b"\0", 1)[0].rstrip(blank), charset)
    if application and _is_blank(put_appl_name, blank):
        edits.append(("PutApplName", _field(application, 28, charset)))
        if put_appl_type == 0:
            edits.append(("PutApplType", long.pack(m.MQAT_UNIX)))
    # The program's date together with this clock's time of day would be a wrong time.
    if _is_blank(put_date, blank) or _is_blank(put_time, blank):
        stamp = _stamp(time, charset)
        edits += (("PutDate", stamp[:8]), ("PutTime", stamp[8:]))
    if edits:
        kept = bytearray(md)
        for name, value in edits:
            kept[_SPANS[name]] = value
        md = bytes(kept)
    lifetime_us = None if expiry == mq.MQEI_UNLIMITED else expiry * TENTH_US
    return Arrived(md, min(priority, HIGHEST_PRIORITY), persistence == mq.MQPER_PERSISTENT, user, lifetime_us)


def _completed(md: bytes, arrived: Arrived) -> _Completed:
    charset, kept = (ASCII_FIELDS if md[:4] == _ASCII[0] else EBCDIC_FIELDS), arrived.md
    return _Completed(
        (arrived.priority, arrived.persistent, arrived.user, arrived.lifetime_us),
        charset,
        kept[_BEFORE_IDS],
        kept[_BETWEEN],
        kept[_BEHIND],
    )


def _has_time(md: bytes) -> bool:
    blank = _ASCII[2] if md[:4] == _ASCII[0] else _EBCDIC[2]
    return not (_is_blank(md[_SPANS["PutDate"]], blank) or _is_blank(md[_SPANS["PutTime"]], blank))


def _depends_on_queue(md: bytes) -> bool:
    long = _VERSIONS[md[4:8]][0]
    (priority,), (persistence,) = (long.unpack_from(md, _SPANS[name].start) for name in ("Priority", "Persistence"))
    return bool(priority == mq.MQPRI_PRIORITY_AS_Q_DEF or persistence == mq.MQPER_PERSISTENCE_AS_Q_DEF)


def _made_id(qmgr: str, unique: int) -> bytes:
    return b"AMQ " + _field(qmgr, 12, ASCII_FIELDS) + (_MADE_ON_ARRIVAL | unique).to_bytes(8, "big")


def _stamp(time: datetime, charset: str) -> bytes:
    """PutDate and PutTime."""
    day, clock = f"{time.year:04}{time.month:02}{time.day:02}", f"{time.hour:02}{time.minute:02}{time.second:02}"
    return f"{day}{clock}{time.microsecond // 10_000:02}".encode(charset)


def _is_stamped(md: bytes) -> bool:
    """Whether MsgId, PutDate and PutTime are there, at first sight."""
    return md[_FIRST_OF_DATE] in _DIGITS and md[_FIRST_OF_TIME] in _DIGITS and md[_SPANS["MsgId"]] != _NO_MSG_ID


def reports_expiration(md: bytes) -> bool:
    """Whether a message asks for a report when it expires. md: its descriptor, or the beginning of it."""
    return bool(int.from_bytes(md[8:12], order_of(md)) & m.MQRO_EXPIRATION)


def leave(md: bytes, left_us: int | None, backout_count: int) -> bytes:
    """*md* as the program that gets the message sees it.

    left_us: what is left of its life, in microseconds, above 0; None for unlimited. Anything left is at least a tenth
    of a second: an Expiry of 0 would be refused when the message is put on. A clock that was set back gives no message
    more than it was put with.
    """
    if left_us is None and not backout_count:
        return md
    long = _VERSIONS[md[4:8]][0]
    seen = bytearray(md)
    if left_us is not None:
        (whole,) = long.unpack_from(md, _SPANS["Expiry"].start)
        seen[_SPANS["Expiry"]] = long.pack(min(-(-left_us // TENTH_US), whole if whole > 0 else mq.LARGEST_MQLONG))
    seen[_SPANS["BackoutCount"]] = long.pack(backout_count)
    return bytes(seen)


def _check(expiry: int, priority: int, persistence: int, queue: str) -> None:
    if expiry != mq.MQEI_UNLIMITED and expiry <= 0:
        raise MessageRefusedError(m.MQRC_EXPIRY_ERROR, queue, f"Expiry {expiry} is neither -1 nor above 0")
    if priority < mq.MQPRI_PRIORITY_AS_Q_DEF:
        raise MessageRefusedError(m.MQRC_PRIORITY_ERROR, queue, f"Priority {priority} is below 0")
    if persistence not in (0, mq.MQPER_PERSISTENT, mq.MQPER_PERSISTENCE_AS_Q_DEF):
        raise MessageRefusedError(m.MQRC_PERSISTENCE_ERROR, queue, f"Persistence {persistence} is not 0, 1 or 2")


def _is_blank(field: bytes, blank: bytes) -> bool:
    # Usually the first byte is enough.
    return field[:1] in (blank, b"\0") and not field.split(b"\0", 1)[0].strip(blank)


def _field(value: str, size: int, charset: str) -> bytes:
    return value.encode(charset, "replace")[:size].ljust(size, " ".encode(charset))
