"""What a shape finds on a pasted page, and the bytes with which a message can begin: what the shapes look for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.ccsid import EBCDIC_FIELDS


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of bytes on a page. start, end: where it stands in the text. shape: in words, for a person.

    data: the bytes, from the descriptor or the first header on; where the descriptor was listed by its fields, *md* is
    that, and *data* what follows it. why: what is missing of it, where something is. queue: where the page names one.
    """

    start: int
    end: int
    shape: str
    data: bytes
    md: bytes | None = None
    why: str | None = None
    queue: str = ""


Shape = Callable[[Page], Iterator[Piece]]
"""Gives the pieces of one shape on a page, in their order; takes time in proportion to the page."""

_STRUC_IDS: Final = ("MD  ", "RFH ", "DLH ", "XQH ", "MDE ", "TSH ", "TSHM", "TSHC")
_PCF: Final = tuple(
    number.to_bytes(4, order) + (36).to_bytes(4, order) for order in ("big", "little") for number in (1, 2, 7, 16)
)
BEGINNINGS: Final[tuple[bytes, ...]] = (
    *(struc_id.encode("ascii") for struc_id in _STRUC_IDS),
    *(struc_id.encode(EBCDIC_FIELDS) for struc_id in _STRUC_IDS),
    *_PCF,
)
"""StrucIds in ASCII and EBCDIC, and Type and StrucLength of an MQCFH."""


def begins_like_a_message(data: bytes) -> bool:
    """Whether *data* begins with one of BEGINNINGS."""
    return data.startswith(BEGINNINGS)
