"""Characters in another character set: exactly, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2.ccsid import ByteOrder, byte_order, is_ebcdic, text_codec
from rfh2.constants import MQRC_SOURCE_CCSID_ERROR
from rfh2.errors import QPubSubError
from rfh2.mqi_constants import (
    MQRC_NOT_CONVERTED,
    MQRC_TARGET_CCSID_ERROR,
    MQRC_TARGET_INTEGER_ENC_ERROR,
)

_EBCDIC_NEWLINE: Final = "\x85"


class ConversionError(QPubSubError):
    """Data that cannot be converted. reason: MQRC_*, with which MQGET says so."""

    def __init__(self, reason: int, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why

    def __str__(self) -> str:
        return f"{self.why} (reason {self.reason})"


@dataclass(frozen=True, slots=True)
class Representation:
    """How data is written. ccsid: of its characters. encoding: of its numbers (MQENC_*)."""

    ccsid: int
    encoding: int

    @property
    def order(self) -> ByteOrder:
        """The byte order of integers. Raises ConversionError."""
        order = byte_order(self.encoding)
        if order is None:
            raise ConversionError(MQRC_TARGET_INTEGER_ENC_ERROR, f"encoding {self.encoding} has no order of integers")
        return order

    @property
    def codec(self) -> str | None:
        """Python's codec of the characters; None for a CCSID that is not known here."""
        return text_codec(self.ccsid, self.encoding)


def convert_text(data: bytes, source: Representation, target: Representation) -> bytes:
    """*data* in the character set of *target*. Raises ConversionError: 2111, 2115, 2119.

    A character that *target* lacks is an error: nothing is put in its place. The newline of EBCDIC (X'15') becomes a
    line feed.
    """
    if source.ccsid == target.ccsid and source.codec == target.codec:
        return data
    if source.codec is None:
        raise ConversionError(MQRC_SOURCE_CCSID_ERROR, f"CCSID {source.ccsid} is not known")
    if target.codec is None:
        raise ConversionError(MQRC_TARGET_CCSID_ERROR, f"CCSID {target.ccsid} is not known")
    try:
        text = data.decode(source.codec)
        if is_ebcdic(source.ccsid) and not is_ebcdic(target.ccsid):
            text = text.replace(_EBCDIC_NEWLINE, "\n")
        return text.encode(target.codec)
    except UnicodeError as error:
        raise ConversionError(MQRC_NOT_CONVERTED, f"from CCSID {source.ccsid} to {target.ccsid}: {error}") from error
