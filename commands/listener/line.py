"""One conversation of a connection, as its session sees it: what is received for it, and whose turn it is.

A program waits for the reply before its next call, except where it asks for messages, and where it puts without an
answer. Of such calls only so many are read before their turn: what comes behind them waits in the socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from commands.listener.conversation import Conversation
from commands.listener.gate import Signal, give, new_signal
from commands.listener.request import Request
from commands.listener.security import Credentials, Identity
from commands.listener.streaming import Stream
from rfh2.channel.layouts import API_HEADER
from rfh2.errors import DecodeError

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
