"""INITIAL_DATA: what both ends of a client channel know of it (docs/wire-formats.md)."""

from __future__ import annotations

from typing import Final

from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_SHARING
from rfh2.channel.segments import Structure

CCSID: Final = 819
HIGHEST_FAP: Final = 17
FAP_OF_PLAIN_PASSWORDS: Final = 12
"""The highest level at which clients send passwords as they are: above it they protect them in a way not known here."""
TRANSMISSION_SIZE: Final = 0x7FEC
# Capability flags 1: the end is a client. Flags 2: distribution lists, fast messages, dual units of work, SPI.
IS_CLIENT: Final = 0x20
HAS_SPI: Final = 0x40
CAPABILITIES1: Final = 0x26
CAPABILITIES2: Final = 0x51
NO_HEADER_COMPRESSION: Final = b"\0\xff"
NO_MESSAGE_COMPRESSION: Final = b"\0" + b"\xff" * 15


def turned(offer: bytes, order: ByteOrder, wanted: ByteOrder) -> bytes:
    """*offer*, whose numbers are in *order*, with its numbers in *wanted*. Raises DecodeError."""
    if order == wanted:
        return offer
    before, after, at = bytearray(offer), bytearray(offer), 0
    for layout in (ID_BEGIN, ID_MORE, ID_SHARING):
        if at > 0 and len(offer) < at + layout.size:
            break
        read, written = Structure(layout, before, at, order), Structure(layout, after, at, wanted)
        for name in layout.names:
            written[name] = read[name]
        at += layout.size
    return bytes(after)
