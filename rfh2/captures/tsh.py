"""Transmission segments of MQ channels in the bytes of one flow (wire formats 6.5; ``rfh2.channel.segments``).

A flow whose beginning was not captured, or that lost bytes, is searched for the next header; a flow that begins with
something else is none of ours.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from rfh2.ccsid import ByteOrder
from rfh2.channel.segments import FIRST, HEADER_BYTES, LAST, PREFIX_BYTES, SegmentHeader, read_header
from rfh2.errors import DecodeError

_ANY_ID = re.compile(b"|".join(map(re.escape, HEADER_BYTES)))
_SEGMENT_TYPES = frozenset({*range(0x01, 0x10), *range(0x80, 0xA0), *range(0xA0, 0xC0)})
# Segments are negotiated down to 32 KiB and never seen above; this leaves room and still refuses garbage.
_MAX_SEGMENT_BYTES = 1 << 20
_SEARCH_BYTES = 1 << 20


def begins_segment(data: bytes) -> bool:
    """Whether *data* begins with the StrucId of a segment, and is long enough for its header."""
    header = HEADER_BYTES.get(data[:4])
    return header is not None and len(data) >= header


class _State(Enum):
    NEW = auto()
    IN_STEP = auto()
    LOST = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment. position: that of the packet in which it begins."""

    position: int
    header: SegmentHeader
    payload: bytes

    @property
    def kind(self) -> int:
        """What the segment is: a SegmentType, or a reply or type beyond those."""
        return self.header.kind

    @property
    def order(self) -> ByteOrder:
        return self.header.order

    @property
    def conversation(self) -> int:
        """0 where the connection is not shared."""
        return self.header.conversation or 0

    @property
    def is_first(self) -> bool:
        return bool(self.header.flags & FIRST)

    @property
    def is_last(self) -> bool:
        return bool(self.header.flags & LAST)


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
        self._header: SegmentHeader | None = None  # of the segment that begins what is held, once it is there
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
            assert self._header is not None
            yield Segment(self.position, self._header, bytes(self._held[self._header.size : size]))
            self._drop(size)

    def lose(self) -> None:
        """Bytes are missing here: look for the next header."""
        self._drop(len(self._held))
        if self._state is not _State.FOREIGN:
            self._state = _State.LOST

    def _segment_size(self) -> int | None:
        """Length of the segment that begins here; None: too few bytes to know; 0: none does."""
        held = self._held
        if self._header is None:
            if len(held) < 4:
                return None if any(name.startswith(held) for name in HEADER_BYTES) else 0
            needed = HEADER_BYTES.get(bytes(held[:4]))
            if needed is None:
                return 0
            if len(held) < needed:
                return None
            try:
                self._header = read_header(held)
            except DecodeError:
                return 0
        size = int.from_bytes(held[4:PREFIX_BYTES], "big")
        is_plausible = self._header.size <= size <= _MAX_SEGMENT_BYTES and self._header.kind in _SEGMENT_TYPES
        return size if is_plausible else 0

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
        if count:
            self._header = None
        del self._held[:count]
        self._at += count
        while len(self._packets) > 1 and self._packets[1][0] <= self._at:
            self._packets.popleft()

    @property
    def position(self) -> int:
        """Position of the packet in which what is held begins."""
        return self._packets[0][1] if self._packets else 0
