"""Messages that are sent to a program that shares its connection: REQUEST_MSGS, and the ASYNC_MESSAGE that answers it.

A Java program asks so for one message, also where it calls receive or get; or, where it reads ahead, for as many bytes
as it has room for. Then what is there is sent with the first message, as long as it is not persistent: it is off its
queue, and lost with a program that does not take it.

One conversation of a connection, as its session sees it: what is received for it, and whose turn it is.

A program waits for the reply before its next call, except where it asks for messages, and where it puts without an
answer. Of such calls only so many are read before their turn: what comes behind them waits in the socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from commands.listener.conversation import Conversation
from commands.listener.request import Request
from commands.listener.security import Credentials, Identity
from commands.listener.wire import Gate, Signal, give, new_signal
from commands.qmgr.mqi.getting import NO_DESCRIPTOR, NOTHING_AHEAD, Ahead, GetOptions, Got, size_of
from commands.qmgr.mqi.refusals import MqiError
from rfh2.ccsid import ENCODINGS
from rfh2.channel import segments as seg
from rfh2.channel.layouts import API_HEADER, ASYNC_CONTINUED_BYTES, ASYNC_MESSAGE, NOTIFICATION, REQUEST_MSGS, SELECTION
from rfh2.errors import DecodeError, QueueError
from rfh2.mqi_constants import MQGMO_WAIT, MQRC_NO_MSG_AVAILABLE, MQRC_Q_MGR_QUIESCING, MQWI_UNLIMITED

# What IBM's Java client asks for is 102,400.
_MOST_AHEAD_BYTES: Final = 1_048_576


@dataclass(slots=True)
class Selection:
    """What a program last said that it wants from one handle. index: of that. ccsid, encoding: for conversion."""

    index: int = 0
    mqmd_version: int = 2
    ccsid: int = 0
    encoding: int = 0
    match: int = 0
    msg_id: bytes = bytes(24)
    correl_id: bytes = bytes(24)
    group_id: bytes = bytes(24)
    token: bytes = bytes(16)


@dataclass(slots=True)
class Stream:
    """One handle's messages: how many were sent, and the selection in force.

    consumer: open while its conversation is started. call: open until the handle is closed. flying: the numbers and
    sizes of messages that the program has not said to have received. is_called: whether it calls for messages, and does
    not consume them: a request that only has room to read ahead more does not say it.
    """

    selection: Selection
    consumer: Gate
    call: Gate
    sent: int = 0
    flying: deque[tuple[int, int]] = field(default_factory=deque)
    is_called: bool = False

    def received(self, last: int) -> None:
        """The program has the messages up to the number *last*."""
        while self.flying and self.flying[0][0] <= last:
            self.flying.popleft()

    def room(self, wanted: Wanted) -> int:
        """For how many bytes it has room, of those that it *wanted*."""
        return min(wanted.room_bytes, _MOST_AHEAD_BYTES) - sum(size for _, size in self.flying)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A REQUEST_MSGS, read. room_bytes: to read ahead; 1 for one message. last: number of the last one received."""

    handle: int
    room_bytes: int
    options: int
    longest: int | None
    wait_ms: int
    selection: Selection | None
    checks: bool
    for_call: bool
    is_consumer: bool
    last: int


def read_request(request: Request) -> Wanted:
    """What a REQUEST_MSGS asks for. Raises DecodeError."""
    fields = request.structure(REQUEST_MSGS, 0)
    _, handle, _, room, longest, options, interval_ms, _, flags, last = fields.values()
    waits_ms = interval_ms if options & MQGMO_WAIT else 0
    return Wanted(
        handle,
        room,
        options,
        longest=None if longest < 0 else longest,
        wait_ms=waits_ms if flags & seg.CALL else MQWI_UNLIMITED,
        selection=_selection(request, fields.end) if flags & seg.HAS_SELECTION else None,
        checks=bool(flags & seg.CHECKS),
        for_call=bool(flags & seg.CALL),
        is_consumer=bool(flags & seg.CONSUMER),
        last=last,
    )


def _selection(request: Request, at: int) -> Selection:
    fields = request.structure(SELECTION, at)
    ids: dict[str, bytes] = {}
    at = fields.end
    for bit, name, size in seg.IDENTIFIERS:
        if fields["MatchOptions"] & bit:
            ids[name] = bytes(request.data[at : at + size])
            if len(ids[name]) < size:
                raise DecodeError(at, "REQUEST_MSGS", f"the {name} to match is cut")
            at += size
    none = bytes(24)
    return Selection(
        index=fields["SelectionIndex"],
        mqmd_version=fields["MqmdVersion"],
        ccsid=fields["CodedCharSetId"],
        encoding=fields["Encoding"],
        match=fields["MatchOptions"],
        msg_id=ids.get("msg_id", none),
        correl_id=ids.get("correl_id", none),
        group_id=ids.get("group_id", none),
        token=ids.get("token", bytes(16)),
    )


async def sent_message(
    conversation: Conversation, request: Request, wanted: Wanted, stream: Stream, largest: int
) -> Iterable[bytes]:
    """The segments that answer a REQUEST_MSGS: a message, or that there is none."""
    chosen = stream.selection
    conversation.debug("REQUEST_MSGS: ", wanted)
    asked = GetOptions(
        options=wanted.options,
        match=chosen.match,
        msg_id=chosen.msg_id,
        correl_id=chosen.correl_id,
        group_id=chosen.group_id,
        longest=wanted.longest,
        seq=int.from_bytes(chosen.token, "big"),
        ccsid=chosen.ccsid,
        encoding=chosen.encoding,
    )
    stream.received(wanted.last)
    if wanted.for_call or wanted.is_consumer:
        stream.is_called = wanted.for_call
    elif stream.room(wanted) <= 0:
        return ()
    ahead = Ahead(lambda: stream.room(wanted), []) if wanted.room_bytes > 1 else NOTHING_AHEAD
    try:
        gate = stream.call if stream.is_called else stream.consumer
        got = await conversation.get(wanted.handle, asked, wanted.wait_ms, request.held, gate, ahead)
    except (MqiError, QueueError) as error:
        if error.reason == MQRC_NO_MSG_AVAILABLE:
            return [notification(request.header, wanted.handle, seg.CHECK_MSG, 0)]
        if wanted.checks:
            # What answers such a request is the notification behind it, and the failure comes as a message would.
            header = request.header._replace(request=seg.STREAM_REQUEST)
            return [
                _failure(header, wanted.handle, error.reason),
                notification(request.header, wanted.handle, seg.CHECK_MSG, 0),
            ]
        if wanted.for_call:
            return [_failure(request.header, wanted.handle, error.reason)]
        return [_failed(request, wanted.handle, stream, error.reason)]
    if got is None:
        return []
    segments: Iterable[bytes] = ()
    for each in (got, *ahead.messages):
        stream.sent += 1
        if ahead is not NOTHING_AHEAD:
            stream.flying.append((stream.sent, size_of(each)))
        segments = chain(segments, _message(request, wanted.handle, stream, stream.sent, each, largest))
    if wanted.checks:
        return chain(segments, (notification(request.header, wanted.handle, seg.CHECK_MSG, 0),))
    return segments


def _header(
    header: seg.SegmentHeader, kind: seg.SegmentType, flags: int = seg.WHOLE, request: int | None = None
) -> seg.SegmentHeader:
    request = header.request if request is None else request
    return header._replace(kind=int(kind), flags=flags, encoding=ENCODINGS[header.order], request=request)


def notification(header: seg.SegmentHeader, handle: int, code: int, value: int) -> bytes:
    """A NOTIFICATION that answers what came with *header*."""
    fields = seg.Structure.new(NOTIFICATION, header.order)
    fields["Version"], fields["ObjectHandle"], fields["Code"], fields["Value"] = 1, handle, code, value
    return _header(header, seg.SegmentType.NOTIFICATION, seg.FIRST).write(bytes(fields))


def _failure(header: seg.SegmentHeader, handle: int, reason: int) -> bytes:
    # IBM's client keeps in mind that a queue manager ends, and does not miss it while it begins to wait; it may forget
    # a failure that comes at that moment.
    code = seg.QUIESCING if reason == MQRC_Q_MGR_QUIESCING else seg.FAILURE
    return notification(header, handle, code, reason)


def _failed(request: Request, handle: int, stream: Stream, reason: int) -> bytes:
    fields = _fields(request, handle, stream, stream.sent, reason)
    described = request.in_own_terms(NO_DESCRIPTOR.data, stream.selection.mqmd_version)
    return _header(request.header, seg.SegmentType.ASYNC_MESSAGE).write(fields + _named("") + described)


def _fields(
    request: Request,
    handle: int,
    stream: Stream,
    number: int,
    reason: int,
    part: tuple[int, int] = (0, 0),
    lengths: tuple[int, int] = (0, 0),
    seq: int = 0,
) -> bytes:
    """All fields of ASYNC_MESSAGE but the last. number: of the message. part: length and index of its segment.

    lengths: what is sent of the message, and how long it is on its queue. IBM's classes give the second to the program.
    They ask for ever for a message that is cut (2080), if the first is more than their buffer holds.
    """
    index, token, order = stream.selection.index, seq.to_bytes(16, "big"), request.header.order
    return ASYNC_MESSAGE.pack(order, 1, handle, number, number, *part, index, reason, *lengths, token, 1, 0)[:-1]


def _named(queue: str) -> bytes:
    """The last field and what follows: the queue's name with its padding."""
    name = queue.encode("ascii", "replace")
    name += b" " * (-(3 + len(name)) % 4) if name else b""
    return bytes((len(name),)) + name + bytes(-(ASYNC_MESSAGE.size + len(name)) % 4)


def _message(request: Request, handle: int, stream: Stream, number: int, got: Got, largest: int) -> Iterator[bytes]:
    described = request.in_own_terms(got.mqmd.data, stream.selection.mqmd_version)
    behind = _named(got.queue if number == 1 else "") + described
    lengths, size = (len(got.body), got.length), request.header.size
    room = largest - size - ASYNC_CONTINUED_BYTES & ~3
    # The first segment has the other fields of ASYNC_MESSAGE and the descriptor too.
    end = largest - size - (ASYNC_MESSAGE.size - 1 + len(behind)) & ~3
    at = index = 0
    data = memoryview(got.body)
    while at < len(data) or not index:
        part = data[at:end]
        fields = _fields(request, handle, stream, number, got.reason, (len(part), index & 0xFFFF), lengths, got.seq)
        flags = (0 if index else seg.FIRST) | (seg.LAST if end >= len(data) else 0)
        header = _header(request.header, seg.SegmentType.ASYNC_MESSAGE, flags, seg.STREAM_REQUEST)
        front = fields[:ASYNC_CONTINUED_BYTES] if index else fields + behind
        yield seg.padded(header, front + part)
        at, end, index = end, end + room, index + 1


MOST_WAITING: Final = 64
"""Calls that are read before their turn; also requests for messages that may wait."""
_MOST_WAITING_BYTES: Final = 4 * 1024 * 1024


@dataclass(slots=True)
class Line:
    """partial: what is half received. requests: the calls that wait for their turn. streams: by handle.

    sending: held while a message or a reply is sent, so that their segments do not come between each other.
    came, taken: given when the next call comes, and when it has its turn, if somebody waits for that. credentials: what
    the program has sent for this conversation alone.
    """

    conversation: Conversation
    requests: deque[Request] = field(default_factory=deque)
    came: Signal | None = None
    waiting_bytes: int = 0
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    taken: Signal | None = None
    streams: dict[int, Stream] = field(default_factory=dict)
    partial: Request | None = None
    task: asyncio.Task[None] | None = None
    pulls: set[asyncio.Task[None]] = field(default_factory=set)
    is_started: bool = False
    credentials: Credentials | None = None

    def identify(self, identity: Identity) -> None:
        """Who the program is: *identity*, of the connection. A password of its own counts, whatever came last."""
        own = self.credentials
        if own is not None:
            identity = replace(identity, user=identity.user or own.user, credentials=own)
        self.conversation.identity = identity

    @property
    def is_behind(self) -> bool:
        """Whether so much waits that nothing more should be read."""
        return len(self.requests) >= MOST_WAITING or self.waiting_bytes >= _MOST_WAITING_BYTES

    def add(self, request: Request) -> None:
        """Let a call wait for its turn. Raises DecodeError where it is cut."""
        if len(request.data) < API_HEADER.size:
            raise DecodeError(len(request.data), "API header", "it is cut")
        self.waiting_bytes += len(request.data)
        self.requests.append(request)
        if self.came is not None:
            give(self.came)

    async def next(self) -> Request:
        """The call whose turn it is."""
        if not self.requests:
            self.came = new_signal()
            await self.came
            self.came = None
        request = self.requests.popleft()
        self.waiting_bytes -= len(request.data)
        if self.taken is not None:
            give(self.taken)
            self.taken = None
        return request

    async def catch_up(self) -> None:
        """Wait until less of it waits, or until it is served no more."""
        if self.taken is None:
            self.taken = new_signal()
        if self.task is not None:
            await asyncio.wait((self.taken, self.task), return_when=asyncio.FIRST_COMPLETED)

    def release(self) -> None:
        """Hold no memory for calls that are not answered any more."""
        if self.partial is not None:
            self.partial.held.release()
        while self.requests:
            self.requests.popleft().held.release()
