"""The MQRFH header of version 1: a fixed part of 32 bytes, then a string of names and values (wire formats, section 2).

    0        4        8            12        16              20      28     32
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  NameValueString

It shares its StrucId with the MQRFH2. Integers and characters, those of the string too, are in the Encoding and CCSID
of the *preceding* header; this header's own describe what follows. The string is kept as the bytes that StrucLength
leaves for it; its text is read only when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from rfh2.ccsid import ASCII_FIELDS, ByteOrder, text_codec
from rfh2.constants import (
    MQCCSI_INHERIT,
    MQENC_NATIVE,
    MQFMT_RF_HEADER_1,
    MQRC_RFH_ERROR,
    MQRC_RFH_STRING_ERROR,
)
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQRFH
from rfh2.name_values import NameValue, parse, write
from rfh2.prologue import HeaderKind, decode_prologue, prologue_fields

FIXED_LENGTH: Final = MQRFH.size
KIND: Final = HeaderKind("MQRFH", "RFH ", MQFMT_RF_HEADER_1, {1: FIXED_LENGTH}, MQRC_RFH_ERROR)


@dataclass(slots=True, unsafe_hash=True)
class Rfh1:
    """One MQRFH. *data*: the NameValueString area as on the wire, nulls and whatever stands behind them included.

    ``order`` and ``charset`` are those of its own fixed part, ``string_charset`` is the codec of the string: the same,
    but for code pages of more than one byte to the character. offset: where *data* stood in the message that it was
    decoded from; it does not take part in comparison.
    """

    data: bytes = b""
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = MQCCSI_INHERIT
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
        return DecodeError(self.offset + position, "MQRFH", why, code, MQRC_RFH_STRING_ERROR)


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
    exact = text_codec(ccsid, MQENC_NATIVE)
    same_family = exact is not None and " ".encode(exact) == " ".encode(charset)
    return exact if exact is not None and same_family else charset
