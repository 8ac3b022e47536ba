"""One connection to a queue manager, which conversations may share, and the thread that keeps it alive.

Who waits for a reply receives for all the others too: whatever comes is put where its conversation looks for it. While
nobody waits, ``_keep`` receives now and then, because a queue manager asks whether a client is still there.

The socket of a connection, with TLS or without.

Several threads may use it: one receives while another sends. What waits, waits outside the lock, because a TLS
connection takes one call at a time.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Final

from commands.client.errors import CONNECT, ConnectionLostError, ProtocolError, reason_word
from commands.client.flow import ROUNDS, Control, Event, Flow, Offer, Terms, agreed, repeated
from rfh2.ccsid import ENCODINGS
from rfh2.channel.segments import (
    CLOSE,
    CONFIRM,
    ERROR,
    STATUS_CODES,
    WHOLE,
    Beat,
    Pulse,
    SegmentHeader,
    SegmentType,
    heartbeat,
)
from rfh2.errors import DecodeError, system_words

_RECEIVE_BYTES: Final = 262_144
_HOST, _TLS, _BROKEN = 2538, 2393, 2009


def lost(what: str, reason: int = _BROKEN) -> ConnectionLostError:
    """The error for a connection that is of no use any more."""
    return ConnectionLostError(what, reason, reason_word(reason))


class Transport:
    """A connected socket. Raises ConnectionLostError from everything."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._turn = threading.Lock()
        self._in, self._out = select.poll(), select.poll()
        self._in.register(connected, select.POLLIN)
        self._out.register(connected, select.POLLOUT)

    def receive(self, timeout_s: float) -> bytes | None:
        """What comes; None where nothing does in this time."""
        end_s = time.monotonic() + timeout_s
        while True:
            pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
            if not pending and not self._in.poll(max(0.0, end_s - time.monotonic()) * 1_000):
                return None
            with self._turn:
                try:
                    data = self._socket.recv(_RECEIVE_BYTES)
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    continue  # a part of what TLS needs
                except (OSError, ValueError) as error:
                    raise lost(f"the connection is broken: {_words(error)}") from error
            if not data:
                raise lost("the queue manager closed the connection")
            return data

    def send(self, data: bytes | bytearray, timeout_s: float) -> None:
        """Send all of it; the other end must take something within this time."""
        view = memoryview(data)
        while view:
            with self._turn:
                try:
                    sent = self._socket.send(view[:_RECEIVE_BYTES])
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    sent = 0
                except (OSError, ValueError) as error:
                    raise lost(f"the connection is broken: {_words(error)}") from error
            view = view[sent:]
            if view and not sent and not self._out.poll(timeout_s * 1_000):
                raise lost(f"the queue manager took nothing of what was sent to it in {timeout_s:g} s")

    def close(self) -> None:
        """Close it at once."""
        with self._turn:
            self._socket.close()


def connected(
    places: Sequence[tuple[str, int]], tls: ssl.SSLContext | None, timeout_s: float, what: str = CONNECT
) -> Transport:
    """The first of *places* that takes a connection. Raises ConnectionLostError: what the last one said."""
    failure = lost(f"{what}: no address is given", _HOST)
    for host, port in places:
        try:
            plain = socket.create_connection((host, port), timeout_s)
        except (OSError, UnicodeError) as error:
            failure = lost(f"{what} to {host}({port}): {_words(error)}", _HOST)
            continue
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return Transport(plain if tls is None else tls.wrap_socket(plain, server_hostname=host))
        except (OSError, ValueError) as error:
            plain.close()
            failure = lost(f"{what} to {host}({port}) with TLS: {_words(error)}", _TLS)
    raise failure


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the handshake failed").replace("_", " ").lower()
    return system_words(error) if isinstance(error, OSError) else str(error)


SEND_S: Final = 60.0
"""How long the other end may take nothing of what is sent."""
CALL_S: Final = 120.0
"""The longest time that a call takes, beside the wait for a message."""
_LOOK_S: Final = 5.0
_MOST_UNREAD: Final = 1_000


class Line:
    """A connection. user_data of segments: ``header``. Raises MqError from everything."""

    def __init__(self, transport: Transport, offer: Offer, deadline_s: float) -> None:
        """Negotiate. deadline_s: the clock until which the queue manager must have answered."""
        self._transport, self.offer = transport, offer
        self._flow = Flow(offer.longest_message)
        self._state = threading.Condition()
        self._sending = threading.Lock()
        self._is_receiving = False
        self._error: ConnectionLostError | None = None
        self._inboxes: dict[int | None, deque[Event]] = {None: deque()}
        self.conversations: set[int] = set()
        self._next = 1
        self._pulse: Pulse | None = None
        self.template = SegmentHeader(SegmentType.INITIAL_DATA, order="big", encoding=ENCODINGS["big"])
        try:
            self.terms = self._negotiated(deadline_s)
        except BaseException:
            transport.close()
            raise
        if self.terms.sharing and self.terms.heartbeat_s:
            self._pulse = Pulse(self.terms.heartbeat_s, time.monotonic())
            threading.Thread(target=_keep, args=(weakref.ref(self),), name="mq heartbeats", daemon=True).start()

    def _negotiated(self, deadline_s: float) -> Terms:
        conversation: int | None = None
        payload = self.offer.encode(self.template.order)
        for _ in range(ROUNDS):
            header = self.template._replace(conversation=conversation, flags=WHOLE | CONFIRM)
            self.send(header.write(payload))
            event = self._control(SegmentType.INITIAL_DATA, None if conversation is None else 1, deadline_s)
            answer = event.header
            try:
                terms = agreed(answer, event.payload, self.offer)
                payload = repeated(answer, event.payload, self.offer)
            except DecodeError as error:
                raise self.fail(error) from error
            except ProtocolError as error:
                raise self.fail(error) from error
            if terms.sharing:
                conversation = 1
                self._inboxes.setdefault(1, deque())
            self.template = SegmentHeader(
                SegmentType.INITIAL_DATA,
                order=answer.order,
                encoding=self.template.encoding,
                ccsid=answer.ccsid,
                charset=answer.charset,
            )
            if not answer.flags & ERROR:
                self._flow.longest = terms.longest_message
                return terms
        raise self.fail(ProtocolError("the queue manager refuses the terms that it had answered"))

    # Conversations

    @property
    def has_room(self) -> bool:
        """Whether another conversation may be begun."""
        return self._error is None and len(self.conversations) < self.terms.sharing

    def begin(self) -> tuple[int | None, bool]:
        """The number of a new conversation, None where the connection is not shared; whether it must be begun."""
        with self._state:
            if not self.terms.sharing:
                return None, False
            number, self._next = self._next, self._next + 2
            self.conversations.add(number)
            self._inboxes.setdefault(number, deque())
            return number, number != 1

    def end(self, conversation: int | None) -> bool:
        """Forget it; whether the connection has no other."""
        with self._state:
            self.conversations.discard(conversation or 0)
            self._flow.forget(conversation)
            if conversation is not None:
                self._inboxes.pop(conversation, None)
            return not self.conversations

    # Segments

    def send(self, *segments: bytes) -> None:
        """Send them together."""
        if self._error is not None:
            raise self._error
        with self._sending:
            try:
                self._transport.send(segments[0] if len(segments) == 1 else b"".join(segments), SEND_S)
            except ConnectionLostError as error:
                raise self.fail(error) from error

    def ask(self, conversation: int | None, kind: int) -> None:
        """A call is about to be sent."""
        with self._state:
            self._flow.ask(conversation, kind)

    def want(self, conversation: int | None) -> None:
        """A message is about to be asked for."""
        with self._state:
            self._flow.want(conversation)

    def unwant(self, conversation: int | None) -> None:
        """What was asked for is answered, otherwise than by a message."""
        with self._state:
            self._flow.unwant(conversation)

    def wait(self, conversation: int | None, deadline_s: float) -> Event | None:
        """What comes next for *conversation*; None where nothing does until the clock shows *deadline_s*."""
        inbox = self._inboxes[conversation]
        while True:
            with self._state:
                while not inbox and self._is_receiving and self._error is None:
                    left_s = deadline_s - time.monotonic()
                    if left_s <= 0:
                        break
                    self._state.wait(min(left_s, _LOOK_S))
                if inbox:
                    return inbox.popleft()
                if self._error is not None:
                    raise self._error
                if self._is_receiving:
                    return None
                self._is_receiving = True
            self._receive(deadline_s - time.monotonic())
            if not inbox and self._error is None and time.monotonic() >= deadline_s:
                return None  # whatever else comes meanwhile

    def _receive(self, left_s: float) -> None:
        """Receive for all conversations, this thread alone, for a while."""
        try:
            if data := self._transport.receive(max(0.0, min(left_s, _LOOK_S))):
                self._take(data)
            self._beat()
        except (DecodeError, ProtocolError, ConnectionLostError) as error:
            raise self.fail(error) from error
        finally:
            with self._state:
                self._is_receiving = False
                self._state.notify_all()

    def _take(self, data: bytes) -> None:
        with self._state:
            if self._pulse is not None:
                self._pulse.hear(time.monotonic())
            events = self._flow.receive(data)
            answer, self._flow.outgoing = self._flow.outgoing, bytearray()
            for event in events:
                self._sort(event)
        if answer:
            self.send(bytes(answer))

    def _sort(self, event: Event) -> None:
        if isinstance(event, Control) and event.header.kind == SegmentType.STATUS and event.header.flags & ERROR:
            raise _refused(event, self.offer.channel)
        inbox = self._inboxes.get(event.header.conversation)
        if inbox is None:
            return  # of a conversation that has ended
        if len(inbox) >= _MOST_UNREAD:
            raise ProtocolError(f"the queue manager sends more than {_MOST_UNREAD} segments that were not asked for")
        inbox.append(event)

    def _control(self, kind: int, conversation: int | None, deadline_s: float) -> Control:
        while True:
            event = self.wait(conversation, deadline_s)
            if event is None:
                raise self.fail(ProtocolError("the queue manager does not answer the negotiation"))
            if isinstance(event, Control) and event.header.kind == kind:
                return event
            raise self.fail(ProtocolError("the queue manager answers the negotiation with something else"))

    def _beat(self) -> None:
        """Ask whether the other end is there, where the connection was quiet. Raises ProtocolError where it is not."""
        if self._pulse is None:
            return
        due, _ = self._pulse.beat(time.monotonic(), reads=True)
        if due is Beat.GONE:
            raise ProtocolError(f"the queue manager did not answer a heartbeat in {self._pulse.patience_s:g} s")
        if due is Beat.ASK:
            self.send(heartbeat(self._flow.latest, CONFIRM | WHOLE))

    def look(self) -> None:
        """Receive what is there, unless another thread does; for heartbeats."""
        with self._state:
            if self._is_receiving or self._error is not None:
                return
            self._is_receiving = True
        with contextlib.suppress(ConnectionLostError):
            self._receive(0.0)

    # The end

    @property
    def error(self) -> ConnectionLostError | None:
        """Why the connection is of no use any more; None while it is."""
        return self._error

    def fail(self, error: Exception) -> ConnectionLostError:
        """End the connection because of *error*; what everybody who waits gets."""
        with self._state:
            if self._error is None:
                if isinstance(error, ConnectionLostError):
                    self._error = error
                else:
                    self._error = lost(f"the connection to {self.offer.channel}: {error}")
                self._transport.close()
                self._state.notify_all()
            assert self._error is not None
            return self._error

    def close(self, header: SegmentHeader | None = None, payload: bytes = b"") -> None:
        """Say that it ends, with a last segment, and close it."""
        if self._error is None and header is not None:
            with contextlib.suppress(ConnectionLostError):
                self.send(header._replace(flags=WHOLE | CLOSE).write(payload))
        with self._state:
            if self._error is None:
                self._error = lost("the connection was closed", 2018)
                self._transport.close()
                self._state.notify_all()


def _refused(event: Control, channel: str) -> ConnectionLostError:
    code = int.from_bytes(event.payload[4:8], event.header.order)
    reason, why = STATUS_CODES.get(code, (2009, f"error {code:#04x}"))
    return lost(f"channel {channel}: {why}", reason)


def _keep(line: weakref.ref[Line]) -> None:
    """Answer heartbeats, and send some, until the connection has ended or nobody has it any more."""
    pause = threading.Event()
    while (kept := line()) is not None and kept.error is None:
        kept.look()
        period_s = max(0.05, min(kept.terms.heartbeat_s, 60) / 6)
        del kept
        pause.wait(period_s)


def names(places: Sequence[tuple[str, int]]) -> str:
    """Addresses as IBM MQ writes them."""
    return ",".join(f"{host}({port})" for host, port in places) or reason_word(2538)
