"""The MQRFH header of version 1: a fixed part of 32 bytes, then a string of names and values (wire formats, section 2).

    0        4        8            12        16              20      28     32
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  NameValueString

It shares its StrucId with the MQRFH2. Integers and characters, those of the string too, are in the Encoding and CCSID
of the *preceding* header; this header's own describe what follows. The string is kept as the bytes that StrucLength
leaves for it; its text is read only when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from rfh2 import constants as mq
from rfh2.ccsid import ASCII_FIELDS, ByteOrder, text_codec
from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import repeated
from rfh2.layouts import MQRFH, HeaderKind, decode_prologue, prologue_fields

# NameValueString: the text of an MQRFH (wire formats 2.2).
#
#     string  :=  blank* [ token ( blank+ token )* ] blank* [ null anything ]
#     token   :=  quoted | plain
#     quoted  :=  '"' ( any but quote and null | '""' )* '"'
#     plain   :=  ( any but blank, quote and null )+
#     pairs   :=  name value name value ...
#
#     'MQPSCommand RegSub MQPSTopic "IBM ""Q"" Price"'  ->  (MQPSCommand, RegSub), (MQPSTopic, IBM "Q" Price)
#
# The blank alone separates: tabs and newlines are characters like others. Names and values keep their case, and
# either may be quoted. ``""`` is an empty token.

_DOUBLED = repeated(r'""[^"\0]*+')
_TOKEN = re.compile(rf'([^ "\0]+)|"([^"\0]*+{_DOUBLED})"')


class NameValue(NamedTuple):
    """One name and its value. position: of the name in the string, 0-based, as MQPSErrorPos counts."""

    name: str
    value: str
    position: int


def parse(text: str) -> list[NameValue]:
    """The pairs of *text*, up to its first null.

    Raises DecodeError (2335) with the position of the fault, counted in characters from the start of *text*.
    """
    end = text.find("\0")
    end = len(text) if end < 0 else end
    tokens: list[tuple[str, int]] = []
    at = _next(text, 0, end)
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            raise _refused(at, "the quote is never closed")
        plain, quoted = token.groups()
        tokens.append((plain if quoted is None else quoted.replace('""', '"'), at))
        at = token.end()
        if at < end and text[at] != " ":
            raise _refused(at, "a quoted token needs a blank on either side, and a quote within one must be doubled")
        at = _next(text, at, end)
    if len(tokens) % 2:
        raise _refused(tokens[-1][1], f"{tokens[-1][0]!r} has no value")
    return [NameValue(name, value, at) for (name, at), (value, _) in zip(tokens[::2], tokens[1::2], strict=True)]


def write(pairs: Iterable[tuple[str, str]]) -> str:
    """The string of *pairs*: one blank between tokens, quotes only where a token needs them.

    Raises EncodeError for a token with a null in it, which has no form.
    """
    return " ".join(_quoted(token) for pair in pairs for token in pair)


def _next(text: str, at: int, end: int) -> int:
    while at < end and text[at] == " ":
        at += 1
    return at


def _quoted(token: str) -> str:
    if "\0" in token:
        raise EncodeError(f"NameValueString: {token!r} holds a null")
    if token and " " not in token and '"' not in token:
        return token
    return '"' + token.replace('"', '""') + '"'


def _refused(position: int, why: str) -> DecodeError:
    return DecodeError(position, "NameValueString", why, "bad-name-value-string", mq.MQRC_RFH_STRING_ERROR)


# The names and commands of an MQRFH's NameValueString, under IBM's own names (cmqpsc.h; wire formats 2.3).

MQPS_COMMAND: Final = "MQPSCommand"
MQPS_COMP_CODE: Final = "MQPSCompCode"
MQPS_CORREL_ID: Final = "MQPSCorrelId"
MQPS_DELETE_OPTIONS: Final = "MQPSDelOpts"
MQPS_ERROR_ID: Final = "MQPSErrorId"
MQPS_ERROR_POS: Final = "MQPSErrorPos"
MQPS_INTEGER_DATA: Final = "MQPSIntData"
MQPS_PARAMETER_ID: Final = "MQPSParmId"
MQPS_PUBLICATION_OPTIONS: Final = "MQPSPubOpts"
MQPS_PUBLISH_TIMESTAMP: Final = "MQPSPubTime"
MQPS_Q_MGR_NAME: Final = "MQPSQMgrName"
MQPS_Q_NAME: Final = "MQPSQName"
MQPS_REASON: Final = "MQPSReason"
MQPS_REASON_TEXT: Final = "MQPSReasonText"
MQPS_REGISTRATION_OPTIONS: Final = "MQPSRegOpts"
MQPS_SEQUENCE_NUMBER: Final = "MQPSSeqNum"
MQPS_STREAM_NAME: Final = "MQPSStreamName"
MQPS_STRING_DATA: Final = "MQPSStringData"
MQPS_SUBSCRIPTION_IDENTITY: Final = "MQPSSubIdentity"
MQPS_SUBSCRIPTION_NAME: Final = "MQPSSubName"
MQPS_SUBSCRIPTION_USER_DATA: Final = "MQPSSubUserData"
MQPS_TOPIC: Final = "MQPSTopic"
MQPS_USER_ID: Final = "MQPSUserId"

NAMES: Final = frozenset(
    value for name, value in globals().items() if name.startswith("MQPS_") and isinstance(value, str)
)

MQPS_DELETE_PUBLICATION: Final = "DeletePub"
MQPS_DEREGISTER_PUBLISHER: Final = "DeregPub"
MQPS_DEREGISTER_SUBSCRIBER: Final = "DeregSub"
MQPS_PUBLISH: Final = "Publish"
MQPS_REGISTER_PUBLISHER: Final = "RegPub"
MQPS_REGISTER_SUBSCRIBER: Final = "RegSub"
MQPS_REQUEST_UPDATE: Final = "ReqUpdate"

COMMANDS: Final = (
    MQPS_DELETE_PUBLICATION,
    MQPS_DEREGISTER_PUBLISHER,
    MQPS_DEREGISTER_SUBSCRIBER,
    MQPS_PUBLISH,
    MQPS_REGISTER_PUBLISHER,
    MQPS_REGISTER_SUBSCRIBER,
    MQPS_REQUEST_UPDATE,
)


FIXED_LENGTH: Final = MQRFH.size
KIND: Final = HeaderKind("MQRFH", "RFH ", mq.MQFMT_RF_HEADER_1, {1: FIXED_LENGTH}, mq.MQRC_RFH_ERROR)


@dataclass(slots=True, unsafe_hash=True)
class Rfh1:
    """One MQRFH. *data*: the NameValueString area as on the wire, nulls and whatever stands behind them included.

    ``order`` and ``charset`` are those of its own fixed part, ``string_charset`` is the codec of the string: the same,
    but for code pages of more than one byte to the character. offset: where *data* stood in the message that it was
    decoded from; it does not take part in comparison.
    """

    data: bytes = b""
    encoding: int = mq.MQENC_NATIVE
    coded_char_set_id: int = mq.MQCCSI_INHERIT
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    string_charset: str = ASCII_FIELDS
    offset: int = field(default=0, compare=False)

    kind = KIND.name
    own_format = KIND.format
    version = 1

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, the string included."""
        return FIXED_LENGTH + len(self.data)

    @property
    def text(self) -> str:
        """The string up to its first null. Raises DecodeError (2335) where it is not in its code page."""
        data = self.data.split("\0".encode(self.string_charset), 1)[0]
        try:
            return data.decode(self.string_charset)
        except UnicodeDecodeError as error:
            why = f"not {self.string_charset}: {error.reason}"
            raise self._refused(error.start, why, "bad-character") from error

    def name_values(self) -> list[NameValue]:
        """Names, values and the positions of the names, in bytes from the start of the string.

        Raises DecodeError (2335) for a string outside the grammar; its offset less ``self.offset`` is MQPSErrorPos.
        """
        text = self.text
        try:
            found = parse(text)
        except DecodeError as error:
            raise self._refused(self._bytes_before(text, error.offset), error.why, error.code) from error
        if self.string_charset == self.charset:
            return found
        counted: list[NameValue] = []
        at = size = 0
        for pair in found:
            size += len(text[at : pair.position].encode(self.string_charset))
            at = pair.position
            counted.append(pair._replace(position=size))
        return counted

    def pairs(self) -> list[tuple[str, str]]:
        """(name, value) in order. Raises DecodeError (2335)."""
        text = self.text
        if '"' not in text:
            tokens = [token for token in text.split(" ") if token]
            if len(tokens) % 2 == 0:
                return list(zip(tokens[::2], tokens[1::2], strict=True))
        return [(name, value) for name, value, _ in self.name_values()]

    def with_pairs(self, pairs: Iterable[tuple[str, str]], *, blanks: bool = False) -> Rfh1:
        """This header with another string: null terminated, padded with nulls to a multiple of four bytes.

        blanks: padded with blanks instead, and without a null. Raises EncodeError for text that the code page lacks.
        """
        text = write(pairs)
        try:
            data = (text if blanks else text + "\0").encode(self.string_charset)
            padding = (" " if blanks else "\0").encode(self.string_charset)
        except UnicodeEncodeError as error:
            raise EncodeError(f"NameValueString: {text!r} cannot be written in {self.string_charset}") from error
        return replace(self, data=data + padding * (-len(data) % 4))

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        return MQRFH.pack(self.order, *prologue_fields(KIND, self)) + self.data

    def _bytes_before(self, text: str, index: int) -> int:
        return index if self.string_charset == self.charset else len(text[:index].encode(self.string_charset))

    def _refused(self, position: int, why: str, code: str) -> DecodeError:
        return DecodeError(self.offset + position, "MQRFH", why, code, mq.MQRC_RFH_STRING_ERROR)


def decode_rfh1(data: bytes, offset: int, ccsid: int) -> Rfh1:
    """The MQRFH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(KIND, data, offset, ccsid)
    string, start = data[offset + FIXED_LENGTH : offset + p.length], offset + FIXED_LENGTH
    described = (p.encoding, p.coded_char_set_id, p.format, p.flags)
    return Rfh1(string, *described, p.order, p.charset, string_codec(ccsid, p.charset), start)


@lru_cache(maxsize=256)
def string_codec(ccsid: int, charset: str) -> str:
    """The codec of a NameValueString: *charset*, save where that only stands in for the exact one, as for UTF-8.

    ccsid: CodedCharSetId of the preceding header. charset: the codec of the fixed part.
    """
    exact = text_codec(ccsid, mq.MQENC_NATIVE)
    same_family = exact is not None and " ".encode(exact) == " ".encode(charset)
    return exact if exact is not None and same_family else charset
