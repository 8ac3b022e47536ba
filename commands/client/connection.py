"""The calls of IBM MQ's interface on one connection: MQCONN, MQOPEN, MQPUT and the others, one after the other.

A ``Connection`` is what IBM MQ calls a connection handle: a conversation of a channel, which may share its socket with
others. Its calls raise ``MqError`` with the reason code; a call of another thread waits for its turn.
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Self

from commands.client import calls
from commands.client.calls import Form, Target, Wanted
from commands.client.errors import CONNECT, ConnectionLostError, MqError, ProtocolError, failure, reason_word
from commands.client.flow import Control, Notified, Offer, Reply, Streamed, Terms
from commands.client.line import CALL_S, Line, connected
from rfh2 import mqi_constants as m
from rfh2.ccsid import ASCII_FIELDS
from rfh2.channel.segments import (
    CHECK_MSG,
    CONFIRM,
    FAILURE,
    FAP_OF_PLAIN_PASSWORDS,
    HIGHEST_FAP,
    QUIESCING,
    STREAM_REQUEST,
    WHOLE,
    SegmentType,
    split,
)
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQMD2
from rfh2.mqmd import Mqmd, in_form
from rfh2.pcf_admin_names import MQOT_Q, MQOT_Q_MGR

_log: Final = logging.getLogger("qpubsub.mq")

_BEGIN, _BEGUN, _END = 1, 8, 2
_CHECK_REQUEST: Final = 3
"""The request id of a REQUEST_MSGS that a notification ends."""
_GRACE_S: Final = 2.0
"""How much longer than the wait of an MQGET the queue manager may take to say that it is over."""
_BUFFER_BYTES: Final = 65_536
_TOGETHER: Final = 32
# What comes with a message: it is cut, or could not be converted.
_WARNINGS: Final = frozenset({m.MQRC_TRUNCATED_MSG_ACCEPTED, *range(2110, 2121), 2150, 2190})
_NO_MD: Final = Mqmd(version=2).encode()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a queue manager is, and as whom to connect to it.

    addresses: tried one after the other. qmgr: its name; "" for any. user: with *password* authenticated by it, else
    that of the operating system is told. sharing: conversations on a socket, 0 for none. heartbeat_s: HBINT.
    timeout_s: for a connection to one address, and again for the negotiation.
    """

    addresses: tuple[tuple[str, int], ...]
    channel: str
    qmgr: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    application: str = "qpubsub"
    sharing: int = 10
    heartbeat_s: int = 300
    longest_message: int = 104_857_600
    timeout_s: float = 30.0

    def offer(self) -> Offer:
        """What the connection begins with."""
        # Above this level a password is protected in a way that is not known.
        fap = HIGHEST_FAP if self.password is None else FAP_OF_PLAIN_PASSWORDS
        return Offer(
            self.channel,
            self.qmgr,
            fap,
            self.sharing,
            self.heartbeat_s,
            self.longest_message,
            random=os.urandom(12),
            process=os.getpid() & 0x7FFF_FFFF,
        )


@dataclass(frozen=True, slots=True)
class Got:
    """A message. md: its MQMD, little-endian. token: gets it again. length: of its data, of which *body* may be the
    beginning. reason: of a warning, 0 for none."""

    md: bytes
    body: bytes
    token: bytes
    length: int
    reason: int = 0


@dataclass(slots=True)
class _Stream:
    """What is known of the messages that are sent to one handle. selection: what was last asked for."""

    selection: tuple[object, ...] | None = None
    number: int = 0
    received: int = 0
    last: int = 0


class Connection:
    """One connection handle. As a context manager it disconnects at the end: MQBACK after an error, then MQDISC."""

    def __init__(self, place: Place, line: Line) -> None:
        self.place, self._line = place, line
        self._turn = threading.RLock()
        self._number, must_begin = line.begin()
        template = line.template
        header = template._replace(conversation=self._number)
        self._header = header
        self.form = Form(header.order, header.charset, header.size)
        self._streams: dict[int, _Stream] = {}
        self._knows_spi = False
        self._is_open = True
        self.connection_id, self.tag = b"", b""
        self.is_quiescing = False
        if must_begin:
            self._begin()

    @classmethod
    def to(cls, place: Place) -> Connection:
        """Connect. Raises MqError: no address answers, or the queue manager refuses."""
        if place.password is not None and place.tls is None:
            _log.info("%s: the password is sent as it is, because the connection has no TLS", place.channel)
        deadline_s = time.monotonic() + place.timeout_s * (len(place.addresses) + 1)
        line = Line(connected(place.addresses, place.tls, place.timeout_s), place.offer(), deadline_s)
        return cls._connected(place, line)

    @classmethod
    def _connected(cls, place: Place, line: Line, tag: bytes = b"") -> Connection:
        made = cls(place, line)
        try:
            made._connect(tag)
        except BaseException:
            made._end()
            raise
        return made

    def another(self) -> Connection:
        """Another connection to the same queue manager, for another thread: on the same socket where there is room."""
        if self._line.has_room:
            return self._connected(
                replace(self.place, qmgr=self.place.qmgr or self._line.terms.qmgr), self._line, self.tag
            )
        return Connection.to(self.place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and self.is_up:
            with contextlib.suppress(MqError):
                self.backout()
        self.disconnect()

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._is_open and self._line.error is None

    @property
    def qmgr(self) -> str:
        """The name of the queue manager."""
        return self._line.terms.qmgr

    @property
    def terms(self) -> Terms:
        """What was agreed when the socket was connected."""
        return self._line.terms

    def shares(self, other: Connection) -> bool:
        """Whether it is on the same socket as *other*."""
        return self._line is other._line

    # The connection itself

    def _begin(self) -> None:
        """Begin another conversation on the socket."""
        assert self._number is not None
        header = self._header._replace(kind=int(SegmentType.SOCKET_ACTION), conversation=None, of_connection=True)
        first = self._line.offer.trace
        body = calls.action(self.form, self._number, _BEGIN, self._line.offer.thread, first + self._number // 2)
        self._line.send(header.write(body))
        self._control(SegmentType.SOCKET_ACTION)

    def _control(self, kind: int) -> None:
        event = self._line.wait(self._number, time.monotonic() + CALL_S)
        if not isinstance(event, Control) or event.header.kind != kind:
            raise self._line.fail(ProtocolError("the queue manager does not answer at the beginning of a conversation"))

    def _connect(self, tag: bytes) -> None:
        place, terms, header = self.place, self._line.terms, self._header
        with self._failing(CONNECT):
            if not tag:
                user = place.user if place.user is not None and place.password is None else _user()
                self._line.send(header._replace(kind=int(SegmentType.USERID)).write(calls.user_id(self.form, user)))
            if place.password is not None:
                body = calls.credentials(self.form, terms.fap, place.user or _user(), place.password)
                self._line.send(header._replace(kind=int(SegmentType.CONAUTH_INFO)).write(body))
                self._control(SegmentType.STATUS)
            payload = calls.connect(self.form, terms.fap, place.qmgr, place.application, tag)
            reply = self.call(CONNECT, SegmentType.MQCONN, payload)
            self.connection_id, self.tag = calls.connection_tag(reply)

    def disconnect(self) -> None:
        """MQDISC, which commits, and the end of the conversation. Never raises MqError."""
        with self._turn:
            if self.is_up:
                with contextlib.suppress(MqError):
                    self.call("MQDISC", SegmentType.MQDISC, self.form.call(b""))
            self._end()

    def abandon(self) -> None:
        """End the conversation without MQDISC: what was not committed is backed out."""
        with self._turn, contextlib.suppress(MqError):
            if self.is_up:
                self.backout()
        self.disconnect()

    def _end(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        is_last = self._line.end(self._number)
        header, body = None, b""
        if self._number is not None:
            header = self._header._replace(kind=int(SegmentType.SOCKET_ACTION), conversation=None, of_connection=True)
            body = calls.action(self.form, self._number, _END)
        if is_last:
            self._line.close(header, body)
        elif header is not None and self._line.error is None:
            with contextlib.suppress(MqError):
                self._line.send(header.write(body))

    # Calls

    @contextlib.contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """What ends the connection, and what cannot be written, as MqError."""
        try:
            yield
        except MqError as error:
            if error.what.startswith(what) or not isinstance(error, ConnectionLostError):
                raise
            raise type(error)(f"{what}: {error.what}", error.reason, error.name) from error
        except (DecodeError, ProtocolError) as error:
            raise self._line.fail(error) from error
        except EncodeError as error:
            raise MqError(f"{what}: {error}", 2195, reason_word(2195)) from error
        except BaseException:
            # The call may be half sent, or its reply may come yet: nobody can go on here.
            self._line.fail(ProtocolError(f"{what} was interrupted"))
            raise

    def call(self, what: str, kind: int, payload: bytes, *, allowed: frozenset[int] = frozenset()) -> Reply:
        """One call. what: for messages. allowed: reasons with which it may fail without an exception."""
        with self._turn, self._failing(what):
            self._require_open(what)
            self._line.ask(self._number, kind)
            self._send(kind, payload)
            reply = self._reply(what)
            if reply.comp_code == m.MQCC_FAILED and reply.reason not in allowed:
                raise failure(what, reply.reason, reason_word(reply.reason))
            return reply

    def _require_open(self, what: str) -> None:
        if not self._is_open:
            raise ConnectionLostError(what, 2018, reason_word(2018))

    def _send(self, kind: int, payload: bytes) -> None:
        largest, header = self._line.terms.largest, self._header._replace(kind=int(kind))
        if header.size + len(payload) <= largest:
            self._line.send(next(split(header, payload, largest)))
            return
        segments = split(header, payload, largest)
        while some := list(islice(segments, _TOGETHER)):
            self._line.send(*some)

    def _reply(self, what: str) -> Reply:
        deadline_s = time.monotonic() + CALL_S
        while True:
            event = self._line.wait(self._number, deadline_s)
            if isinstance(event, Reply):
                return event
            if event is None:
                raise self._line.fail(ProtocolError(f"no reply to {what} came in {CALL_S:g} s"))
            self._note(event)

    def _note(self, event: object) -> None:
        """What came meanwhile."""
        if isinstance(event, Notified) and event.code == QUIESCING:
            self.is_quiescing = True

    def open(self, target: Target, options: int) -> calls.Opened:
        """MQOPEN with these MQOO_*."""
        what = f"MQOPEN of {target.name or target.topic or 'the queue manager'}"
        if target.kind != MQOT_Q or not self._line.terms.has_spi:
            kind, payload = SegmentType.MQOPEN, calls.open_object(self.form, target, options)
        else:
            if not self._knows_spi:
                self.call("SPI query", SegmentType.SPI, calls.query_spi(self.form))
                self._knows_spi = True
            kind, payload = SegmentType.SPI, calls.open_by_spi(self.form, target, options)
        with self._turn, self._failing(what):
            opened = calls.opened(self.call(what, kind, payload))
            self._streams.pop(opened.handle, None)
            return opened

    def close(self, handle: int, options: int = 0) -> None:
        """MQCLOSE with these MQCO_*."""
        stream = self._streams.pop(handle, None)
        payload = calls.close(self.form, handle, options, 0 if stream is None else stream.last)
        self.call("MQCLOSE", SegmentType.MQCLOSE, payload)

    def put(
        self,
        handle: int,
        md: bytes,
        body: bytes,
        options: int,
        *,
        context: int = 0,
        level: int | None = None,
        what: str = "MQPUT",
    ) -> bytes:
        """MQPUT with these MQPMO_*; the descriptor as it was put, which is *md* for MQPMO_ASYNC_RESPONSE."""
        with self._failing(what):
            md = self._in_form(md)
            payload = calls.put(self.form, handle, md, body, options, context=context, level=level)
        return self._put(what, SegmentType.MQPUT, payload, md, 0, options)

    def put1(
        self,
        target: Target,
        md: bytes,
        body: bytes,
        options: int,
        *,
        context: int = 0,
        level: int | None = None,
    ) -> bytes:
        """MQPUT1 with these MQPMO_*; the descriptor as it was put."""
        at = f" at {target.qmgr}" if target.qmgr else ""
        what = f"MQPUT1 to {target.name or target.topic}{at}"
        with self._failing(what):
            md = self._in_form(md)
            payload = calls.put1(self.form, target, md, body, options, context=context, level=level)
            start = len(target.encode(self.form))
        return self._put(what, SegmentType.MQPUT1, payload, md, start, options)

    def _put(self, what: str, kind: int, payload: bytes, md: bytes, at: int, options: int) -> bytes:
        if options & m.MQPMO_ASYNC_RESPONSE:
            with self._turn, self._failing(what):
                self._require_open(what)
                self._send(kind, payload)
            return md
        reply = self.call(what, kind, payload)
        return reply.body[at : at + len(md)]

    def _in_form(self, md: bytes) -> bytes:
        version = int.from_bytes(md[4:8], "little")
        return in_form(md, version if version in (1, 2) else int.from_bytes(md[4:8], "big"), *self.form[:2])

    def get(self, handle: int, wanted: Wanted, what: str = "MQGET") -> Got | None:
        """MQGET; None where there is no message.

        Raises MqError: 2080 where the message is longer than it may be, and stays where it is.
        """
        with self._turn, self._failing(what):
            self._require_open(what)
            found = self._get_plainly(handle, wanted) if self._number is None else self._get_sent(handle, wanted, what)
        if found is None or not found.reason:
            return found
        if found.reason == m.MQRC_NO_MSG_AVAILABLE:
            return None
        if found.reason in _WARNINGS:
            return found
        raise failure(what, found.reason, reason_word(found.reason))

    def _get_plainly(self, handle: int, wanted: Wanted) -> Got | None:
        """A request and its reply. It is made again with a longer buffer where the message does not fit."""
        mqmd = Mqmd(
            version=2,
            msg_id=wanted.msg_id,
            correl_id=wanted.correl_id,
            group_id=wanted.group_id,
            msg_seq_number=wanted.number,
            coded_char_set_id=wanted.ccsid,
            encoding=wanted.encoding,
            order=self.form.order,
            charset=self.form.charset,
        )
        room = _BUFFER_BYTES if wanted.longest is None else wanted.longest
        while True:
            payload = calls.get(self.form, handle, wanted, mqmd.encode(), room)
            self._line.ask(self._number, SegmentType.MQGET)
            self._send(SegmentType.MQGET, payload)
            reply = self._reply_to_get(wanted)
            if reply.reason == m.MQRC_NO_MSG_AVAILABLE:
                return None
            if reply.comp_code == m.MQCC_FAILED:
                return Got(_NO_MD, b"", bytes(16), 0, reply.reason)
            parts = calls.got(reply)
            if reply.reason != m.MQRC_TRUNCATED_MSG_FAILED or wanted.longest is not None or parts.length <= room:
                return Got(_native(parts.md), parts.body, parts.token, parts.length, reply.reason)
            room = parts.length

    def _reply_to_get(self, wanted: Wanted) -> Reply:
        """A wait without an end is ended by the queue manager, or by heartbeats that it does not answer."""
        deadline_s = _end_s(wanted, CALL_S)
        while True:
            event = self._line.wait(self._number, deadline_s)
            if isinstance(event, Reply):
                return event
            if event is None:
                raise self._line.fail(ProtocolError("no reply to MQGET came in time"))
            self._note(event)

    def _get_sent(self, handle: int, wanted: Wanted, what: str) -> Got | None:
        """A message that is asked for and sent, as on every shared connection.

        no wait:  REQUEST_MSGS that checks ──> [message,] CHECK_MSG
        wait:     REQUEST_MSGS ──> message
                               └─> CHECK_MSG, or nothing in time ──> as without a wait; again, if there is time left
        """
        stream = self._streams.setdefault(handle, _Stream())
        end_s = _end_s(wanted, 0.0)
        checks, found = wanted.wait_ms is None, None
        until_s = self._ask_for(handle, stream, wanted, checks)
        while True:
            event = self._line.wait(self._number, until_s)
            if event is None:
                if checks:
                    raise self._line.fail(ProtocolError(f"no answer to {what} came in {CALL_S:g} s"))
                checks = True
                until_s = self._ask_for(handle, stream, wanted, checks)
            elif isinstance(event, Streamed) and event.handle == handle:
                found = self._received(event, stream)
                if not checks:
                    return found
            elif not isinstance(event, Notified) or event.handle != handle:
                self._note(event)
            elif event.code == CHECK_MSG and not checks:
                checks = True
                until_s = self._ask_for(handle, stream, wanted, checks)
            elif event.code == CHECK_MSG and event.header.request == _CHECK_REQUEST:
                self._line.unwant(self._number)
                left_s = end_s - time.monotonic()
                if found is not None or left_s <= 0:
                    return found
                checks = False
                until_s = self._ask_for(handle, stream, replace(wanted, wait_ms=_ms(left_s)), checks)
            elif event.code in (FAILURE, QUIESCING):
                self._line.unwant(self._number)
                reason = m.MQRC_Q_MGR_QUIESCING if event.code == QUIESCING else event.value
                return Got(_NO_MD, b"", bytes(16), 0, reason)

    def _ask_for(self, handle: int, stream: _Stream, wanted: Wanted, checks: bool) -> float:
        """Send the request; the clock until which its answer is waited for."""
        selects = stream.selection != wanted.selection
        if selects:
            stream.selection, stream.number = wanted.selection, stream.number + 1
        body = calls.request_message(
            self.form,
            handle,
            wanted,
            received=stream.received,
            last=stream.last,
            selection=stream.number,
            selects=selects,
            checks=checks,
        )
        stream.received = 0
        request, flags = (_CHECK_REQUEST, WHOLE | CONFIRM) if checks else (STREAM_REQUEST, WHOLE)
        header = self._header._replace(kind=int(SegmentType.REQUEST_MSGS), request=request, flags=flags)
        self._line.want(self._number)
        self._line.send(header.write(body))
        return time.monotonic() + CALL_S if checks else _end_s(wanted, _GRACE_S)

    def _received(self, event: Streamed, stream: _Stream) -> Got:
        stream.received += len(event.body) + MQMD2.size
        stream.last = event.number
        return Got(_native(event.md), event.body, event.token, event.length, event.reason)

    def inquire(self, handle: int, selectors: Sequence[int], characters: int | None = None) -> dict[int, int | str]:
        """MQINQ. characters: room for text, None for what is needed."""
        with self._turn, self._failing("MQINQ"):
            reply = self.call("MQINQ", SegmentType.MQINQ, calls.inquire(self.form, handle, selectors, characters))
            return calls.inquired(reply, selectors)

    def inquire_qmgr(
        self, selectors: Sequence[int], characters: int | None = None, options: int = 0x2020
    ) -> dict[int, int | str]:
        """MQINQ of the queue manager."""
        opened = self.open(Target(kind=MQOT_Q_MGR), options)
        try:
            return self.inquire(opened.handle, selectors, characters)
        finally:
            if self.is_up:
                self.close(opened.handle)

    def set(self, handle: int, values: Mapping[int, int]) -> None:
        """MQSET of attributes that are numbers."""
        self.call("MQSET", SegmentType.MQSET, calls.set_attributes(self.form, handle, values))

    def commit(self) -> None:
        """MQCMIT. BackedOutError: nothing was committed. ConnectionLostError: the result is not known."""
        self.call("MQCMIT", SegmentType.MQCMIT, self.form.call(b""))

    def backout(self) -> None:
        """MQBACK."""
        self.call("MQBACK", SegmentType.MQBACK, self.form.call(b""))

    def subscribe(self, asked: calls.Subscribing, queue: int = 0) -> calls.Subscribed:
        """MQSUB. queue: the handle of a queue, 0 for a managed one."""
        what = f"MQSUB to {asked.topic or asked.topic_object or asked.name}"
        with self._turn, self._failing(what):
            reply = self.call(what, SegmentType.MQSUB, calls.subscribe(self.form, asked, queue))
            made = calls.subscribed(reply)
            self._streams.pop(made.hobj, None)
            return made

    def request_retained(self, hsub: int) -> int:
        """MQSUBRQ: how many retained publications are sent."""
        with self._turn, self._failing("MQSUBRQ"):
            reply = self.call("MQSUBRQ", SegmentType.MQSUBRQ, calls.request_retained(self.form, hsub))
            return calls.retained_sent(reply)

    def status(self) -> calls.AsyncPuts:
        """MQSTAT: what became of puts whose answers were not waited for."""
        with self._turn, self._failing("MQSTAT"):
            return calls.status_of(self.call("MQSTAT", SegmentType.MQSTAT, calls.status(self.form)))


def _end_s(wanted: Wanted, more_s: float) -> float:
    """The clock when the wait is over."""
    if wanted.wait_ms is not None and wanted.wait_ms < 0:
        return float("inf")
    return time.monotonic() + (wanted.wait_ms or 0) / 1_000 + more_s


def _ms(left_s: float) -> int:
    return -1 if left_s == float("inf") else max(1, int(left_s * 1_000))


def _native(md: bytes) -> bytes:
    """The descriptor as everybody here reads it: little-endian, version 2."""
    return in_form(md, 2, "little", ASCII_FIELDS)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
