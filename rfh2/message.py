"""A message: its descriptor, its headers, its body; ``decode`` and ``encode`` are exact inverses.

Each header's Format names the next; what remains is the body (wire formats, section 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, Protocol

from rfh2 import constants as mq, pcf, rfh1
from rfh2.ccsid import (
    ASCII_FIELDS,
    EBCDIC_FIELDS,
    ENCODINGS,
    MQCCSI_OF_THE_QMGR,
    QMGR_CCSID,
    is_kept_body,
    order_of,
    qmgr_ccsid,
    text_codec,
)
from rfh2.dlh import decode_dlh
from rfh2.errors import DecodeError
from rfh2.layouts import MQDLH, STEPPED_OVER, HeaderKind, decode_stepped
from rfh2.mqmd import MDE_KIND, XQH_KIND, Mqmd, Xqh, decode_mde, decode_mqmd, decode_xqh, name_of
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import FIXED_LENGTH, STRUC_ID, Rfh2, decode_rfh2


class Header(Protocol):
    """Any header in a chain: the description of what follows it, its length in bytes, and its bytes."""

    @property
    def kind(self) -> str:
        """IBM's name of the structure, such as ``MQRFH2``."""

    @property
    def own_format(self) -> str:
        """The Format by which the preceding header announces this one."""

    @property
    def encoding(self) -> int: ...
    @property
    def coded_char_set_id(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def length(self) -> int: ...
    def encode(self) -> bytes: ...


Decoder = Callable[[bytes, int, int], Header]

DECODERS: dict[str, Decoder] = {
    mq.MQFMT_RF_HEADER_1: rfh1.decode_rfh1,
    mq.MQFMT_RF_HEADER_2: decode_rfh2,
    "MQRFH2": decode_rfh2,  # what the guide prints for MQFMT_RF_HEADER_2 (6.6.1), and programs may have taken from it
    mq.MQFMT_DEAD_LETTER_HEADER: decode_dlh,
    mq.MQFMT_XMIT_Q_HEADER: decode_xqh,
    mq.MQFMT_MD_EXTENSION: decode_mde,
    pcf.EPH_KIND.format: pcf.decode_eph,
}

DECODERS |= {kind.format: partial(decode_stepped, kind) for kind in STEPPED_OVER}

_KINDS = (
    rfh1.KIND,
    HeaderKind("MQRFH2", "RFH ", mq.MQFMT_RF_HEADER_2, {2: FIXED_LENGTH}),
    HeaderKind("MQDLH", "DLH ", mq.MQFMT_DEAD_LETTER_HEADER, {1: MQDLH.size}),
    XQH_KIND,
    MDE_KIND,
    pcf.EPH_KIND,
    *STEPPED_OVER,
)
_BY_STRUC_ID: dict[bytes, tuple[HeaderKind, ...]] = {
    each.struc_id.encode(): tuple(kind for kind in _KINDS if kind.struc_id == each.struc_id) for each in _KINDS
}
_EBCDIC_CCSID = 500

_OF_WHAT_PRECEDES = (mq.MQCCSI_INHERIT, mq.MQCCSI_DEFAULT)
# Its Encoding and CodedCharSetId are reserved: what follows is written as the header itself is.
_SAYS_NOTHING = "MQIIH"
# IBM's documentation says the same of this one, but IBM's classes go by the values; 0, the initial value, says nothing.
_MAY_SAY_NOTHING = "MQCIH"
RESERVING = frozenset({_SAYS_NOTHING, _MAY_SAY_NOTHING})
"""Headers that do not always describe what follows them."""

# A message of 100 MB could chain a million headers of 100 bytes; real ones have three or four.
MAX_HEADERS = 1000


def describing(header: Header, described: Mapping[str, Any]) -> Header:
    """*header* with some of encoding, coded_char_set_id and format changed, by which it describes what follows it.

    An MQXQH says these in its embedded descriptor.
    """
    if isinstance(header, Xqh):
        return replace(header, mqmd=replace(header.mqmd, **described))
    return replace(header, **described)  # type: ignore[type-var]


def ccsid_behind(header: Header, own: int) -> int:
    """CodedCharSetId of what follows *header*, which itself is in *own*."""
    described = header.coded_char_set_id
    return own if described in _OF_WHAT_PRECEDES or header.kind == _SAYS_NOTHING else described


def encoding_behind(header: Header, own: int) -> int:
    """Encoding (MQENC_*) of what follows *header*, which itself is in *own*."""
    kind, encoding = header.kind, header.encoding
    return own if kind == _SAYS_NOTHING or (kind == _MAY_SAY_NOTHING and not encoding) else encoding


@lru_cache(maxsize=256)
def decoder_of(fmt: str) -> Decoder | None:
    """The function that decodes the header which a Format announces; None where the body follows."""
    return DECODERS.get(name_of(fmt))


def decode_chain(data: bytes, fmt: str, ccsid: int) -> tuple[tuple[Header, ...], int]:
    """The headers at the start of *data*, and the offset at which the body begins.

    fmt, ccsid: Format and CodedCharSetId of the descriptor before them. Raises DecodeError.
    """
    headers: list[Header] = []
    at = 0
    while (decoder := decoder_of(fmt)) is not None:
        if headers and (at == len(data) or len(headers) == MAX_HEADERS):
            break  # the body; it is empty where a Format has nothing behind it, as real queue managers leave it
        header = decoder(data, at, ccsid)
        headers.append(header)
        at += header.length
        fmt = header.format
        ccsid = ccsid_behind(header, ccsid)
    return tuple(headers), at


def headers_of(data: bytes, at: int, fmt: str, ccsid: int) -> Iterator[tuple[Header, int]]:
    """The headers from *at* on, one after the other, each with its offset: those before a faulty one are there.

    fmt, ccsid: Format and CodedCharSetId of what stands before them. Raises DecodeError. ``decode_chain`` has the same
    walk as a plain loop, since a generator costs it a quarter of its time.
    """
    begin = at
    for _ in range(MAX_HEADERS):
        decoder = decoder_of(fmt)
        if decoder is None or (at > begin and at == len(data)):
            return
        header = decoder(data, at, ccsid)
        yield header, at
        at += header.length
        fmt = header.format
        ccsid = ccsid_behind(header, ccsid)


def sniffed(data: bytes) -> tuple[str, int, int] | None:
    """(Format, Encoding, CodedCharSetId) that a lost MQMD must have had, by the first header's StrucId and Version.

    ``RFH `` alone makes a rules and formatting header, however damaged; other StrucIds need a Version that they have.
    """
    struc_id = data[:4]
    ebcdic = struc_id not in _BY_STRUC_ID
    if ebcdic:
        struc_id = struc_id.decode(EBCDIC_FIELDS).encode(ASCII_FIELDS, "replace")
    for kind in _BY_STRUC_ID.get(struc_id, ()):
        found = kind.versions.get(data[4:8])
        if found is not None:
            return kind.format, ENCODINGS[found[1]], _EBCDIC_CCSID if ebcdic else 0
    if struc_id == STRUC_ID:
        return mq.MQFMT_RF_HEADER_2, mq.MQENC_NATIVE, _EBCDIC_CCSID if ebcdic else 0
    return None


@dataclass(slots=True, unsafe_hash=True)
class Message:
    """A decoded message: what describes the body comes from the last header, all else from the first (guide 6.6)."""

    mqmd: Mqmd
    headers: tuple[Header, ...] = ()
    body: bytes = b""

    @property
    def rfh2(self) -> Rfh2 | None:
        """The first MQRFH2, which holds the command; headers of other kinds before it are stepped over."""
        for header in self.headers:
            if isinstance(header, Rfh2):
                return header
        return None

    @property
    def rfh1(self) -> Rfh1 | None:
        """The first MQRFH of version 1, wherever in the chain it stands."""
        for header in self.headers:
            if isinstance(header, Rfh1):
                return header
        return None

    @property
    def body_offset(self) -> int:
        """Where the body begins, in bytes from the start of the first header."""
        return sum(header.length for header in self.headers)

    @property
    def body_format(self) -> str:
        """Format of the body, from the last header; the name alone."""
        return name_of(self.headers[-1].format if self.headers else self.mqmd.format)

    @property
    def body_encoding(self) -> int:
        """Encoding (MQENC_*) of the body."""
        headers = self.headers
        if headers and headers[-1].kind not in RESERVING:
            return headers[-1].encoding  # as nearly always
        encoding = self.mqmd.encoding
        for header in headers:
            encoding = encoding_behind(header, encoding)
        return encoding

    @property
    def body_ccsid(self) -> int:
        """CodedCharSetId of the body; MQCCSI_INHERIT and 0 in a header stand for what precedes it."""
        for header in reversed(self.headers):
            if (ccsid := ccsid_behind(header, mq.MQCCSI_INHERIT)) != mq.MQCCSI_INHERIT:
                return ccsid
        return self.mqmd.coded_char_set_id

    @property
    def body_text(self) -> str | None:
        """The body as text, where its CCSID is known and holds it; nulls at its end are left out."""
        codec = text_codec(self.body_ccsid, self.body_encoding)
        if codec is None:
            codec = "ascii" if self.body_ccsid in (mq.MQCCSI_DEFAULT, mq.MQCCSI_INHERIT) else None
        try:
            return None if codec is None else self.body.decode(codec).rstrip("\0")
        except UnicodeDecodeError:
            return None


def decode(body: bytes, mqmd: bytes | Mqmd | None = None) -> Message:
    """Decode a message from the bytes behind its descriptor.

    mqmd: the descriptor's bytes, a decoded one, or None: then the defaults, with Format, Encoding and CodedCharSetId as
    the first header's StrucId and Version show them. The text of folders is not read here but when it is asked for.
    Raises DecodeError with the byte offset, in *body* or, for the descriptor, in *mqmd*; TypeError where an
    argument is of another type.

    >>> from rfh2 import Folder, Message, Mqmd, Rfh2, decode, encode
    >>> psc = Folder.of("<psc><Command>Publish</Command><Topic>Sport/Soccer</Topic></psc>")
    >>> message = decode(encode(Message(Mqmd(), (Rfh2((psc,), format="MQSTR"),), b"1 0")))
    >>> message.rfh2.folder("psc").values()
    {'Command': 'Publish', 'Topic': 'Sport/Soccer'}
    >>> message.body_format, message.body
    ('MQSTR', b'1 0')
    >>> decode(bytes.fromhex("52464820 02000000 24000000"))
    Traceback (most recent call last):
    rfh2.errors.DecodeError: MQRFH2 at byte 12: 36 bytes are needed for the fixed part, 12 are there
    """
    if not isinstance(body, bytes):
        raise _wrong_type(body, mqmd)
    if isinstance(mqmd, bytes):
        descriptor = decode_mqmd(mqmd)[0]
    elif isinstance(mqmd, Mqmd):
        descriptor = mqmd
    elif mqmd is None:
        found = sniffed(body)
        descriptor = Mqmd()
        if found is not None:
            descriptor = replace(descriptor, format=found[0], encoding=found[1], coded_char_set_id=found[2])
    else:
        raise _wrong_type(body, mqmd)
    headers, at = decode_chain(body, descriptor.format, descriptor.coded_char_set_id)
    return Message(descriptor, headers, body[at:])


def _wrong_type(body: object, mqmd: object) -> TypeError:
    if not isinstance(body, bytes):
        instead = "; of a CapturedMessage or a Put, take its property decoded" if hasattr(body, "body_hex") else ""
        return TypeError(f"decode: body must be bytes, the message data after the MQMD, not {_type(body)}{instead}")
    return TypeError(f"decode: mqmd must be the bytes of an MQMD, an rfh2.Mqmd or None, not {_type(mqmd)}")


def _type(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def encode(message: Message) -> bytes:
    """The bytes of *message* behind its descriptor: ``encode(decode(x)) == x``. Raises EncodeError."""
    headers = message.headers
    if len(headers) == 1:
        return headers[0].encode() + message.body  # as nearly all are
    return b"".join([*[header.encode() for header in headers], message.body])


# The data behind the headers as text, where it is text.

# Text may hold tabs and line ends. Data that holds other control characters is not text unless its Format says so.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def body_text(message: Message) -> str | None:
    """The body as text; None where it does not fit its CCSID, or holds control characters and no Format calls it text.

    Nulls at its end are left out.
    """
    text = message.body_text
    if text is None or (message.body_format != mq.MQFMT_STRING and _CONTROL.search(text)):
        return None
    return text


# CodedCharSetIds that stand for others, and what a queue manager writes in their place when a message is put.
#
# | where | value | becomes |
# |---|---|---|
# | descriptor | 0 (MQCCSI_Q_MGR), -2 (MQCCSI_INHERIT) | that of the queue manager; 819 where an MQRFH is no UTF-8 |
# | a header behind it | -2 (MQCCSI_INHERIT) | the CCSID in which the header itself is |
# | either | -1 (MQCCSI_EMBEDDED) and anything else | itself; a queue manager does not look at it |
#
# A program may put MQCCSI_INHERIT, and never gets it. A message whose PutApplType is MQAT_BROKER must not have it at
# all: what is published has to be resolved before it is put on. 0 in a header says nothing (MQCCSI_UNDEFINED); it
# stays, and is read as that of what precedes.

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
    return mq.MQCCSI_INHERIT not in [header.coded_char_set_id for header in message.headers]


def resolved(message: Message) -> Message:
    """*message* as a queue manager keeps it: without MQCCSI_Q_MGR and MQCCSI_INHERIT."""
    mqmd = _resolved_descriptor(message)
    ccsid = mqmd.coded_char_set_id
    headers: list[Header] = []
    for header in message.headers:
        inherits = header.coded_char_set_id == mq.MQCCSI_INHERIT
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
