"""Where a message begins in bytes that hold several, and the descriptor that it begins with (wire formats 6.1, 6.2)."""

from __future__ import annotations

from dataclasses import replace

from rfh2.captured import CapturedMessage
from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.chain import sniffed
from rfh2.mqmd import Mqmd

START_BYTES = 8
"""A StrucId and a Version: enough of a message to know that it is one."""

_MQMD_IDS = (b"MD  ", "MD  ".encode(EBCDIC_FIELDS))
_HEADER_IDS = tuple(name.encode(charset) for name in ("RFH ", "DLH ") for charset in ("ascii", EBCDIC_FIELDS))
_VERSION_1 = (b"\0\0\0\1", b"\1\0\0\0")
_VERSION_2 = (b"\0\0\0\2", b"\2\0\0\0")


def descriptor_length(data: bytes | bytearray, at: int = 0) -> int | None:
    """Length in bytes of the MQMD at *at*, by its StrucId and Version; None where there is none."""
    if data[at : at + 4] not in _MQMD_IDS:
        return None
    version = data[at + 4 : at + 8]
    if version in _VERSION_1:
        return 324
    return 364 if version in _VERSION_2 else None


def starts_header(data: bytes | bytearray, at: int = 0) -> bool:
    """Whether a header (MQRFH2, MQRFH, MQDLH) begins at *at*, by its StrucId and Version."""
    version = data[at + 4 : at + 8]
    return data[at : at + 4] in _HEADER_IDS and (version in _VERSION_1 or version in _VERSION_2)


def split_descriptor(data: bytes) -> tuple[bytes | None, bytes]:
    """The MQMD at the start of *data*, or None, and what follows it. Raises ValueError for a broken MQMD."""
    length = descriptor_length(data)
    if length is None:
        if data[:4] in _MQMD_IDS:
            raise ValueError("the MQMD has a Version that is neither 1 nor 2")
        return None, data
    if len(data) < length:
        raise ValueError(f"the MQMD ends after {len(data)} of {length} bytes")
    return data[:length], data[length:]


def split_what_is_there(data: bytes) -> tuple[bytes | None, bytes]:
    """The same for a message that is not whole: an MQMD that was cut is given as far as it goes."""
    length = descriptor_length(data)
    return (None, data) if length is None else (data[:length], data[length:])


def explicit_descriptor(message: CapturedMessage) -> bytes:
    """The descriptor of *message*, made explicit where it was left out: the defaults, Format from the first header."""
    if message.md is not None:
        return message.md
    found = sniffed(message.body)
    if found is None:
        return Mqmd().encode()
    return replace(Mqmd(), format=found[0], encoding=found[1], coded_char_set_id=found[2]).encode()
