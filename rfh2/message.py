"""A message: its descriptor, its headers, its body; ``decode`` and ``encode`` are exact inverses."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from rfh2.ccsid import text_codec
from rfh2.chain import RESERVING, Header, ccsid_behind, decode_chain, encoding_behind, sniffed
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT, MQFMT_STRING
from rfh2.mqmd import Mqmd, decode_mqmd, name_of
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


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
            if (ccsid := ccsid_behind(header, MQCCSI_INHERIT)) != MQCCSI_INHERIT:
                return ccsid
        return self.mqmd.coded_char_set_id

    @property
    def body_text(self) -> str | None:
        """The body as text, where its CCSID is known and holds it; nulls at its end are left out."""
        codec = text_codec(self.body_ccsid, self.body_encoding)
        if codec is None:
            codec = "ascii" if self.body_ccsid in (MQCCSI_DEFAULT, MQCCSI_INHERIT) else None
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
    if text is None or (message.body_format != MQFMT_STRING and _CONTROL.search(text)):
        return None
    return text
