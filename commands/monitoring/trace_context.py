"""The W3C trace context of a message: properties ``traceparent`` and ``tracestate`` of folder usr, as IBM MQ has them.

A message is changed in one place only: the value of traceparent is replaced by one of the same length. Folder lengths,
other folders and the data stay as they are. A message without traceparent is not changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.broker.reading import Reading
from rfh2.errors import DecodeError
from rfh2.message import Message

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
# Cheap to look for in each message; whoever writes its folders in UTF-16 is not traced.
_MARK: Final = b"<traceparent"
_LOOKED_AT_BYTES: Final = 16_384
_ELEMENT: Final = re.compile(rb"<traceparent[^<>]{0,80}>00-[0-9a-f]{32}-[0-9a-f]{16}-([0-9a-f]{2})<")
_VERSION_0: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The properties of one message. offset, size: of the folder in the body; charset: its codec."""

    traceparent: str
    tracestate: str
    offset: int
    size: int
    charset: str

    @property
    def is_sampled(self) -> bool:
        """Whether the publisher records its trace."""
        return bool(int(self.traceparent[-2:], 16) & 1)

    def replaced(self, body: bytes, traceparent: str) -> bytes:
        """*body*, the message in which this was found, with *traceparent*, a value of version 00."""
        old, new = self.traceparent.encode(self.charset), traceparent.encode(self.charset)
        begin = body.index("<traceparent".encode(self.charset), self.offset, self.offset + self.size)
        at = body.index(old, begin, self.offset + self.size)
        return body[:at] + new + body[at + len(old) :]


def seems_sampled(body: bytes) -> bool | None:
    """Whether the publisher of *body* seems to record its trace; None if it seems to have no trace context."""
    at = body.find(_MARK, 0, _LOOKED_AT_BYTES)
    if at < 0:
        return None
    found = _ELEMENT.match(body, at)
    return found is not None and bool(int(found[1], 16) & 1)


def context_of(reading: Reading) -> TraceContext | None:
    """The trace context of a message, None where it has none, or one of another version. Raises nothing."""
    message = reading.message
    if not isinstance(message, Message) or message.rfh2 is None:
        return None
    folder = message.rfh2.folder("usr")
    if folder is None:
        return None
    try:
        values = folder.values()
    except DecodeError:
        return None
    parent, state = values.get(TRACEPARENT), values.get(TRACESTATE)
    if not isinstance(parent, str) or not _VERSION_0.fullmatch(parent):
        return None
    return TraceContext(
        parent, state if isinstance(state, str) else "", folder.offset, len(folder.data), folder.charset
    )


# The steps of one command that was measured.

DECODE: Final = "decode"
MATCH: Final = "match"
DELIVER: Final = "deliver"
STAGES: Final = (DECODE, MATCH, DELIVER)


class Step(NamedTuple):
    """One step. begin_s, end_s: of ``time.perf_counter``."""

    stage: str
    begin_s: float
    end_s: float


Steps = tuple[Step, Step, Step]
"""Those of STAGES, in this order; the first begins when the command was got."""
