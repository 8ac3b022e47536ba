"""Transmission segments of MQ channels in the bytes of one flow (wire formats 6.5).

    TSH   0        4          8          9        10         11         12     20        24     26
    TSHC  as TSH
    TSHM  0        4  conv request 16    17       18         19         20     28        32     34
          StrucId  SegLength  ByteOrder  SegType  CtlFlags1  CtlFlags2  LUWID  Encoding  CCSID  Reserved

SegLength, ConversationId and RequestId are big-endian always. IBM's clients end a conversation with a TSHC. A flow
whose beginning was not captured, or that lost bytes, is searched for the next header; a flow that begins with something
else is none of ours.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from rfh2.ccsid import EBCDIC_FIELDS, ByteOrder

FIRST_SEGMENT, LAST_SEGMENT = 0x10, 0x20
HEADER_COMPRESSED, MESSAGE_COMPRESSED = 0x01, 0x02

_HEADER_BYTES = {"TSH ": 28, "TSHC": 28, "TSHM": 36}
_ASCII_IDS = frozenset(name.encode("ascii") for name in _HEADER_BYTES)
_IDS = {name.encode(charset): size for charset in ("ascii", EBCDIC_FIELDS) for name, size in _HEADER_BYTES.items()}
_ANY_ID = re.compile(b"|".join(map(re.escape, _IDS)))
_SEGMENT_TYPES = frozenset({*range(0x01, 0x10), *range(0x80, 0xA0), *range(0xA0, 0xC0)})
# Segments are negotiated down to 32 KiB and never seen above; this leaves room and still refuses garbage.
_MAX_SEGMENT_BYTES = 1 << 20
_SEARCH_BYTES = 1 << 20


def begins_segment(data: bytes) -> bool:
    """Whether *data* begins with the StrucId of a segment, and is long enough for its header."""
    header = _IDS.get(data[:4])
    return header is not None and len(data) >= header


class _State(Enum):
    NEW = auto()
    IN_STEP = auto()
    LOST = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment. position: that of the packet in which it begins. conversation: 0 where there is no multiplexing."""

    position: int
    kind: int
    control: int
    control2: int
    order: ByteOrder
    conversation: int
    is_ebcdic: bool
    payload: bytes

    @property
    def is_first(self) -> bool:
        return bool(self.control & FIRST_SEGMENT)

    @property
    def is_last(self) -> bool:
        return bool(self.control & LAST_SEGMENT)


@dataclass(frozen=True, slots=True)
class OutOfStep:
    """A place where a header was due and there was none."""

    position: int


class TshStream:
    """Finds the segments in the bytes of one flow, as they come."""

    def __init__(self, *, from_start: bool) -> None:
        self._state = _State.NEW if from_start else _State.LOST
        self._held = bytearray()
        self._at = 0  # offset in the flow of the first byte held
        self._packets: deque[tuple[int, int]] = deque()  # (offset in the flow, position of the packet)
        self._searched = 0
        self._seen = False

    @property
    def is_mq(self) -> bool:
        """Whether there was a segment in this flow, or the header of one."""
        return self._seen or self._state is _State.IN_STEP

    @property
    def is_foreign(self) -> bool:
        """Whether this flow is not MQ."""
        return self._state is _State.FOREIGN

    @property
    def is_partial(self) -> bool:
        """Whether part of a segment waits for its rest."""
        return self._state is _State.IN_STEP and bool(self._held)

    def feed(self, data: bytes, position: int) -> Iterator[Segment | OutOfStep]:
        """Take the next bytes of the flow, from the packet at *position*; give the segments that they complete."""
        if self._state is _State.FOREIGN:
            return
        self._packets.append((self._at + len(self._held), position))
        self._held += data
        while True:
            if self._state is _State.LOST and not self._search():
                return
            size = self._segment_size()
            if size is None:
                return
            if size == 0:
                if self._state is _State.NEW:
                    self._become_foreign()
                    return
                yield OutOfStep(self.position)
                self._state = _State.LOST
                self._drop(1)
                continue
            if len(self._held) < size:
                self._state = _State.IN_STEP
                return
            self._state, self._seen, self._searched = _State.IN_STEP, True, 0
            yield self._segment(size)
            self._drop(size)

    def lose(self) -> None:
        """Bytes are missing here: look for the next header."""
        self._drop(len(self._held))
        if self._state is not _State.FOREIGN:
            self._state = _State.LOST

    def _segment_size(self) -> int | None:
        """Length of the segment that begins here; None: too few bytes to know; 0: none does."""
        held = self._held
        if len(held) < 4:
            return None if any(name.startswith(held) for name in _IDS) else 0
        header = _IDS.get(bytes(held[:4]))
        if header is None:
            return 0
        if len(held) < header:
            return None
        size = int.from_bytes(held[4:8], "big")
        order, kind = held[header - 20], held[header - 19]
        plausible = header <= size <= _MAX_SEGMENT_BYTES and order in (1, 2) and kind in _SEGMENT_TYPES
        return size if plausible else 0

    def _segment(self, size: int) -> Segment:
        held = self._held
        struc_id = bytes(held[:4])
        header = _IDS[struc_id]
        return Segment(
            position=self.position,
            kind=held[header - 19],
            control=held[header - 18],
            control2=held[header - 17],
            order="big" if held[header - 20] == 1 else "little",
            conversation=int.from_bytes(held[8:12], "big") if header == 36 else 0,
            is_ebcdic=struc_id not in _ASCII_IDS,
            payload=bytes(held[header:size]),
        )

    def _search(self) -> bool:
        """Drop what precedes the next header; whether there is one, or may be."""
        while True:
            found = _ANY_ID.search(self._held)
            skipped = found.start() if found else max(0, len(self._held) - 3)
            self._drop(skipped)
            self._searched += skipped
            if not self._seen and self._searched > _SEARCH_BYTES:
                self._become_foreign()
                return False
            size = self._segment_size()
            if found is None or size is None:
                return False
            if size:
                return True
            self._drop(1)

    def _become_foreign(self) -> None:
        self._state = _State.FOREIGN
        self._held.clear()
        self._packets.clear()

    def _drop(self, count: int) -> None:
        del self._held[:count]
        self._at += count
        while len(self._packets) > 1 and self._packets[1][0] <= self._at:
            self._packets.popleft()

    @property
    def position(self) -> int:
        """Position of the packet in which what is held begins."""
        return self._packets[0][1] if self._packets else 0
