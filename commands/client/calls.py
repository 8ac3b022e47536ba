"""The calls of IBM MQ's interface as bytes: what a client sends for each, and what its reply says.

A ``Form`` is the byte order and the codec in which a client writes, those of its queue manager. What it reads is in the
form of the segment in which that came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from commands.client.errors import ProtocolError
from commands.client.flow import Reply
from rfh2 import pcf_admin_names as c
from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.channel import layouts, segments
from rfh2.layouts import Layout
from rfh2.mqi_constants import MQCA_ALTERATION_DATE, MQCA_ALTERATION_TIME, MQGMO_WAIT
from rfh2.mqmd import read_mqmd

NO_HANDLE: Final = -1
CHARACTERS: Final = 2_001
"""Selectors from this number on are of attributes that are text (MQCA_FIRST)."""
_NAME_LENGTH: Final = 48
_LENGTHS: Final = {
    c.MQCA_CREATION_DATE: 12,
    c.MQCA_CREATION_TIME: 8,
    MQCA_ALTERATION_DATE: 12,
    MQCA_ALTERATION_TIME: 8,
    c.MQCA_Q_DESC: 64,
    c.MQCA_Q_MGR_DESC: 64,
    c.MQCA_NAMELIST_DESC: 64,
    c.MQCA_TRIGGER_DATA: 64,
    c.MQCA_CUSTOM: 128,
}
"""Of attributes that are text and not names, in bytes."""
_STRING_ROOM: Final = 10_240
_SPI_QUERY, _SPI_OPEN, _SPI_VERSION = 1, 12, 2
_PLAIN_CAUT: Final = 12
_JAVA: Final = 28
# FCNO by level: the bytes of it and of its version.
_FCNO: Final = ((17, 352, 4), (14, 340, 3), (13, 212, 2), (12, 140, 2), (7, 140, 1))
_CONNECT, _LATER, _GENERATE_TAG = 0x07, 0x0F, 0x0020_0000


class Form(NamedTuple):
    """How a client writes. charset: the codec of character fields. header_bytes: of its segments."""

    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    header_bytes: int = layouts.TSHM.size

    def long(self, *values: int) -> bytes:
        """Numbers of 4 bytes."""
        return b"".join([value.to_bytes(4, self.order, signed=True) for value in values])

    def structure(self, layout: Layout, struc_id: str, version: int, **fields: Any) -> segments.Structure:
        """A structure of zeros and blanks but for *fields*. Raises EncodeError for a name that is too long."""
        made = segments.Structure.new(layout, self.order, self.charset)
        made["StrucId"], made["Version"] = struc_id.encode(self.charset), version
        for name, value in fields.items():
            if isinstance(value, str):
                made.put_text(name, value)
            else:
                made[name] = value
        return made

    def call(self, body: bytes, handle: int = 0, *, extra: int = 0, comp_code: int = 0, reason: int = 0) -> bytes:
        """The payload of a call: the API header, and *body*. extra: how much longer than it the reply may be."""
        length = (self.header_bytes + layouts.API_HEADER.size + len(body) + extra).to_bytes(4, "big")
        return layouts.API_HEADER.fast[self.order].pack(length, comp_code, reason, handle) + body


# The connection


def user_id(form: Form, user: str, password: str = "") -> bytes:
    """USERID: the user of the operating system. password: of 12 characters, where old clients send it."""
    made = segments.Structure.new(layouts.UID_LONG, form.order, form.charset)
    made["StrucId"] = "UID ".encode(form.charset)
    made.put_text("UserIdentifier", user.upper()[:12])
    made.put_text("Password", password)
    made.put_text("LongUserIdentifier", user[:64])
    return bytes(made)


def credentials(form: Form, fap: int, user: str, password: str) -> bytes:
    """CONAUTH_INFO: user and password as they are. Raises EncodeError."""
    made = segments.Structure.new(layouts.CAUT, form.order, form.charset)
    name, secret = user.encode(), password.encode()
    made["StrucId"], made["AuthenticationType"] = "CAUT".encode(form.charset), 1
    made["UserMaxLength"] = made["UserLength"] = len(name)
    made["PasswordMaxLength"] = made["PasswordLength"] = len(secret)
    data = bytes(made) + (bytes(8) if fap > _PLAIN_CAUT else b"") + name + secret
    return data + bytes(-len(data) % 4)


def connect(form: Form, fap: int, qmgr: str, application: str, tag: bytes = b"", *, reconnects: bool = False) -> bytes:
    """MQCONN. tag: that of another conversation of the same connection. reconnects: as a JMS program says."""
    size, version = next(((size, version) for level, size, version in _FCNO if fap >= level), (0, 0))
    body = bytearray(layouts.MQCONN.size + size)
    fields = segments.Structure(layouts.MQCONN, body, 0, form.order, form.charset)
    fields.put_text("QMgrName", qmgr or "*")
    fields.put_text("ApplName", application[:28])
    fields["ApplType"], fields["Options"] = _JAVA, _LATER if tag else _CONNECT
    fields["ConnectOptions"] = (0 if tag else _GENERATE_TAG) | (0x0100_0000 if reconnects else 0)
    if size:
        fcno = segments.Structure(layouts.FCNO, body, layouts.MQCONN.size, form.order, form.charset)
        fcno["StrucId"], fcno["Version"] = "FCNO".encode(form.charset), version
        fcno["CapabilityFlags"] = 4 if reconnects else 0
        fcno["ConnTag"] = tag[:128].ljust(128, b"\0")
        if version >= 3:
            at = layouts.MQCONN.size + 140
            body[at : at + 128] = tag[:128].ljust(128, b"\0")
        if version >= 4:
            body[layouts.MQCONN.size + 272 : layouts.MQCONN.size + 276] = form.long(-1)
    return form.call(bytes(body))


def connection_tag(reply: Reply) -> tuple[bytes, bytes]:
    """The identifier of the connection (24 bytes), and its tag (128); empty where the reply has none."""
    body = reply.body[layouts.MQCONN.size :]
    return body[12:36], body[140:268] if len(body) >= 268 else b""


def action(form: Form, conversation: int, kind: int, first: int = 0, second: int = 0) -> bytes:
    """SOCKET_ACTION: 1 begins a conversation, 2 ends one."""
    assert layouts.SOCKET_ACTION.size == 20
    return form.long(conversation, 0, kind, first, second)


# Objects


@dataclass(frozen=True, slots=True)
class Target:
    """What MQOPEN or MQPUT1 names. kind: MQOT_*. topic: a topic string. version: of its MQOD."""

    name: str = ""
    kind: int = c.MQOT_Q
    qmgr: str = ""
    dynamic: str = "AMQ.*"
    alternate_user: str = ""
    topic: str = ""
    selector: str = ""
    version: int = 0

    def encode(self, form: Form) -> bytes:
        """The MQOD and its strings. Raises EncodeError."""
        has_strings = bool(self.topic or self.selector)
        version = self.version or (4 if has_strings or self.kind == c.MQOT_TOPIC else 2)
        made = form.structure(layouts.MQOD[version], "OD  ", version, ObjectType=self.kind, ObjectName=self.name)
        made.put_text("ObjectQMgrName", self.qmgr)
        made.put_text("DynamicQName", self.dynamic)
        made.put_text("AlternateUserId", self.alternate_user)
        if version < 4:
            return bytes(made)
        for name in ("ObjectString", "SelectionString", "ResObjectString"):
            made[f"{name}Offset"], made[f"{name}CodedCharSetId"] = made.layout.size, 1_208
            made[f"{name}BufferSize"] = 0 if name == "ObjectString" else _STRING_ROOM
        given = {"ObjectString": self.topic, "SelectionString": self.selector}
        strings = {name: text for name, text in given.items() if text}
        return segments.write_strings(made, strings, tuple(strings))


class Opened(NamedTuple):
    """What MQOPEN gives. name, qmgr: of the queue that a model made. persistent: DEFPSIST."""

    handle: int
    name: str
    qmgr: str


def open_object(form: Form, target: Target, options: int) -> bytes:
    """MQOPEN."""
    fopa = form.structure(
        layouts.FOPA2, "FOPA", 2, StrucLength=layouts.FOPA2.size, ErrorQName="", ExtraLength=_STRING_ROOM
    )
    fopa["DefPersistence"] = fopa["DefPutResponseType"] = -1
    return form.call(target.encode(form) + form.long(options) + bytes(fopa), extra=_STRING_ROOM)


def query_spi(form: Form) -> bytes:
    """The SPI call that asks which of these calls there are."""
    blocks = (
        bytes(form.structure(layouts.SPI_BLOCK, name, 1, StrucLength=layouts.SPI_BLOCK.size))
        for name in ("SPQU", "SPQI")
    )
    return form.call(form.long(_SPI_QUERY, 1, 256) + b"".join(blocks), extra=240)


def open_by_spi(form: Form, target: Target, options: int, longest: int = 0) -> bytes:
    """MQOPEN as a call of type SPI, which IBM's Java classes use for queues. longest: what they say of the reply."""
    od = target.encode(form)
    size = layouts.SPI_BLOCK.size + layouts.LPOO[3].size + len(od)
    lpoo = form.structure(layouts.LPOO[3], "LPOO", 3, Options=options, LpiOptions=0x20, ErrorQName="")
    for name in ("DefPersistence", "DefPutResponseType", "DefReadAhead", "PropertyControl"):
        lpoo[name] = -1
    lpoo["ExtraLength"] = _STRING_ROOM
    heads = form.structure(layouts.SPI_BLOCK, "SPOU", 1, StrucLength=layouts.SPI_BLOCK.size)
    block = form.structure(layouts.SPI_BLOCK, "SPOI", _SPI_VERSION, StrucLength=size)
    spi = form.long(_SPI_OPEN, _SPI_VERSION, longest or size - 4)
    extra = 2 * _STRING_ROOM if len(od) >= layouts.MQOD[4].size else 0
    return form.call(spi + bytes(heads) + bytes(block) + bytes(lpoo) + od, NO_HANDLE, extra=extra)


def opened(reply: Reply) -> Opened:
    """What the reply to either of them says. Raises ProtocolError, DecodeError."""
    at = 0
    if reply.header.kind == segments.SegmentType.SPI + segments.REPLY:
        blocks = layouts.SPI.size + 2 * layouts.SPI_BLOCK.size
        at = blocks + layouts.LPOO[3].size
    fields = segments.Structure(layouts.MQOD[1], bytearray(reply.body), at, reply.header.order, reply.header.charset)
    if reply.handle in (0, NO_HANDLE):
        raise ProtocolError(f"MQOPEN gives the handle {reply.handle}")
    return Opened(reply.handle, fields.text("ObjectName"), fields.text("ObjectQMgrName"))


def close(form: Form, handle: int, options: int, last: int = 0) -> bytes:
    """MQCLOSE. last: the number of the last message that was sent to the handle."""
    return form.call(form.long(options), handle, comp_code=last)


# Puts


@lru_cache(maxsize=64)
def _pmo(form: Form, options: int, context: int, level: int | None) -> bytes:
    version = 2 if level is None else 3
    made = segments.Structure.new(layouts.MQPMO[version], form.order, form.charset)
    made["StrucId"], made["Version"] = "PMO ".encode(form.charset), version
    made["Options"], made["Context"] = options, context
    if level is not None:
        made["PubLevel"] = level
    return bytes(made)


def put(
    form: Form, handle: int, md: bytes, body: bytes, options: int, *, context: int = 0, level: int | None = None
) -> bytes:
    """MQPUT. md: in the client's form. context: a handle from which it is passed on. level: PubLevel."""
    return form.call(md + _pmo(form, options, context, level) + form.long(len(body)) + body, handle)


def put1(
    form: Form, target: Target, md: bytes, body: bytes, options: int, *, context: int = 0, level: int | None = None
) -> bytes:
    """MQPUT1."""
    described = target.encode(form) + md + _pmo(form, options, context, level)
    return form.call(described + form.long(len(body)) + body)


# Gets


@dataclass(frozen=True, slots=True)
class Wanted:
    """What MQGET asks for. options: MQGMO_*. match: MQMO_*, and what to match by. longest: bytes, None for all.

    wait_ms: None for no wait, -1 for ever. ccsid, encoding: to convert to.
    """

    options: int = 0
    wait_ms: int | None = None
    longest: int | None = None
    match: int = 0
    msg_id: bytes = bytes(24)
    correl_id: bytes = bytes(24)
    group_id: bytes = bytes(24)
    token: bytes = bytes(16)
    number: int = 1
    ccsid: int = 1_208
    encoding: int = 273

    @property
    def selection(self) -> tuple[Any, ...]:
        """What stays in force on a shared connection until it changes."""
        chosen = (getattr(self, name) for bit, name, _ in segments.IDENTIFIERS if self.match & bit)
        return (self.match, self.ccsid, self.encoding, self.number, *chosen)

    @property
    def all_options(self) -> int:
        """With MQGMO_WAIT where it waits."""
        return self.options if self.wait_ms is None else self.options | MQGMO_WAIT


def get(form: Form, handle: int, wanted: Wanted, md: bytes, longest: int) -> bytes:
    """MQGET, where the connection is not shared. md: with what to match by. longest: bytes of the data."""
    gmo = form.structure(layouts.MQGMO[3], "GMO ", 3, Options=wanted.all_options, MatchOptions=wanted.match)
    gmo["WaitInterval"], gmo["MsgToken"] = wanted.wait_ms or 0, wanted.token
    return form.call(md + bytes(gmo) + form.long(longest), handle, extra=longest)


class GotParts(NamedTuple):
    """What the reply to MQGET says. length: of all of the data."""

    md: bytes
    body: bytes
    length: int
    token: bytes


def got(reply: Reply) -> GotParts:
    """Raises DecodeError, ProtocolError."""
    md = read_mqmd(reply.body)
    gmo = segments.Structure(
        layouts.MQGMO[3], bytearray(reply.body), len(md.data), reply.header.order, reply.header.charset
    )
    length = int.from_bytes(reply.body[gmo.end : gmo.end + 4], reply.header.order, signed=True)
    body = reply.body[gmo.end + 4 :]
    if length < len(body):
        body = body[: max(0, length)]
    return GotParts(md.data, body, length, gmo["MsgToken"])


def request_message(
    form: Form, handle: int, wanted: Wanted, *, received: int, last: int, selection: int, selects: bool, checks: bool
) -> bytes:
    """REQUEST_MSGS for one message. received: bytes since the request before. last: the number of the last message.

    selection: the number of what is wanted. selects: whether it is said again. checks: whether there is only to be a
    message that is there now.
    """
    waits = 0 if checks else wanted.wait_ms or 0
    flags = segments.CALL | (segments.HAS_SELECTION if selects else 0) | (segments.CHECKS | 0x04 if checks else 0)
    longest = -1 if wanted.longest is None else wanted.longest
    numbers = (1, handle, received, 1, longest, wanted.all_options, waits, 0, flags, last)
    data = layouts.REQUEST_MSGS.fast[form.order].pack(*numbers)
    if not selects:
        return data
    chosen = (selection & 0xFFFF, 2, wanted.ccsid, wanted.encoding, 0, 0, wanted.match)
    ids = b"".join(getattr(wanted, name) for bit, name, _ in segments.IDENTIFIERS if wanted.match & bit)
    return data + layouts.SELECTION.fast[form.order].pack(*chosen) + ids


# Attributes


def inquire(form: Form, handle: int, selectors: Sequence[int], characters: int | None = None) -> bytes:
    """MQINQ. characters: the room for text; None for what the selectors need."""
    integers = sum(1 for each in selectors if each < CHARACTERS)
    if characters is None:
        lengths = (_LENGTHS.get(each, _NAME_LENGTH) for each in selectors if each >= CHARACTERS)
        characters = sum(lengths)
    body = form.long(len(selectors), integers, characters, *selectors)
    return form.call(body, handle, extra=4 * integers + characters + 1)


def inquired(reply: Reply, selectors: Sequence[int]) -> dict[int, int | str]:
    """The values by selector; texts are trimmed. Raises ProtocolError, DecodeError."""
    head = segments.Structure(layouts.MQINQ, bytearray(reply.body), 0, reply.header.order)
    integers, characters = head["IntAttrCount"], head["CharAttrLength"]
    at = head.end + 4 * len(selectors)
    text_at = at + 4 * integers
    wanted = [each for each in selectors if each < CHARACTERS]
    if integers < len(wanted) or characters < 0 or len(reply.body) < text_at + characters:
        raise ProtocolError(
            f"MQINQ gives {integers} numbers and {characters} characters for {len(selectors)} selectors"
        )
    values: dict[int, int | str] = {}
    for n, selector in enumerate(wanted):
        values[selector] = int.from_bytes(reply.body[at + 4 * n : at + 4 * n + 4], reply.header.order, signed=True)
    text = reply.body[text_at : text_at + characters].decode(reply.header.charset, "replace")
    names = [each for each in selectors if each >= CHARACTERS]
    for selector in names:
        size = len(text) if len(names) == 1 else _LENGTHS.get(selector, _NAME_LENGTH)
        values[selector] = text[:size].split("\0", 1)[0].rstrip()
        text = text[size:]
    return values


def set_attributes(form: Form, handle: int, values: Mapping[int, int]) -> bytes:
    """MQSET of attributes that are numbers."""
    body = form.long(len(values), len(values), 0, *values, *values.values())
    return form.call(body, handle)


# Topics


@dataclass(frozen=True, slots=True)
class Subscribing:
    """What MQSUB asks for. options: MQSO_*. topic: a topic string; topic_object: the object before it.

    expiry: tenths of a second, -1 for ever. priority: -3 as published.
    """

    options: int
    topic: str = ""
    topic_object: str = ""
    name: str = ""
    user_data: str = ""
    selector: str = ""
    correl_id: bytes = bytes(24)
    expiry: int = -1
    priority: int = -3
    level: int = 1
    alternate_user: str = ""
    accounting_token: bytes = bytes(32)
    identity_data: str = ""

    def encode(self, form: Form) -> bytes:
        """The MQSD and its strings. Raises EncodeError."""
        made = form.structure(layouts.MQSD, "SD  ", 1, Options=self.options, ObjectName=self.topic_object)
        made.put_text("AlternateUserId", self.alternate_user)
        made.put_text("PubApplIdentityData", self.identity_data)
        made["SubExpiry"], made["PubPriority"], made["SubLevel"] = self.expiry, self.priority, self.level
        made["SubCorrelId"], made["PubAccountingToken"] = self.correl_id, self.accounting_token
        for name in ("SubUserData", "SelectionString", "ResObjectString"):
            made[f"{name}BufferSize"] = _STRING_ROOM
        strings = {"ObjectString": self.topic, "SubName": self.name}
        more = {"SubUserData": self.user_data, "SelectionString": self.selector}
        return segments.write_strings(made, strings | more, tuple(strings | more))


class Subscribed(NamedTuple):
    """What MQSUB gives: the handle of the subscription, that of its queue, and the MQSD."""

    hsub: int
    hobj: int
    descriptor: segments.Structure

    def string(self, name: str) -> str:
        """One of its strings. Raises DecodeError."""
        return segments.read_string(self.descriptor, name)


def subscribe(form: Form, asked: Subscribing, queue: int = 0) -> bytes:
    """MQSUB. queue: the handle of a queue; 0 for a managed one."""
    return form.call(form.long(NO_HANDLE, 0) + asked.encode(form), queue, extra=4 * _STRING_ROOM)


def subscribed(reply: Reply) -> Subscribed:
    """Raises DecodeError."""
    hsub = int.from_bytes(reply.body[:4], reply.header.order, signed=True)
    return Subscribed(
        hsub,
        reply.handle,
        segments.Structure(layouts.MQSD, bytearray(reply.body), 8, reply.header.order, reply.header.charset),
    )


def request_retained(form: Form, hsub: int, what: int = 1) -> bytes:
    """MQSUBRQ."""
    return form.call(form.long(what) + bytes(form.structure(layouts.MQSRO, "SRO ", 1)), hsub)


def retained_sent(reply: Reply) -> int:
    """How many publications are sent. Raises DecodeError."""
    return int(segments.Structure(layouts.MQSRO, bytearray(reply.body), 4, reply.header.order)["NumPubs"])


class AsyncPuts(NamedTuple):
    """What MQSTAT says of puts whose answers were not waited for: the first failure, and how many there were."""

    reason: int
    done: int
    failed: int
    name: str


def status(form: Form, kind: int = 0) -> bytes:
    """MQSTAT."""
    return form.call(form.long(kind) + bytes(form.structure(layouts.MQSTS, "STAT", 1)))


def status_of(reply: Reply) -> AsyncPuts:
    """Raises DecodeError."""
    sts = segments.Structure(layouts.MQSTS, bytearray(reply.body), 4, reply.header.order, reply.header.charset)
    return AsyncPuts(sts["Reason"], sts["PutSuccessCount"], sts["PutFailureCount"], sts.text("ObjectName"))
