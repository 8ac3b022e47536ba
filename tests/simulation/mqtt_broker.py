"""An MQTT 5 broker in simulated time, as far as the bridge uses one: sessions, QoS 1, retained publications.

It keeps its word (docs/reliability.md): what it has acknowledged it has, and what a session has not acknowledged it
sends again. Where it is told to lose a session, it notes which publications nobody will get for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from paho.mqtt.client import topic_matches_sub
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.simulation.kernel import Kernel
from tests.simulation.network import End

_NO_LOCAL, _AS_PUBLISHED = 4, 8
_TAKEN_OVER: Final = b"\xe0\x02\x8e\x00"
_WRITES_S: Final = 4.0
_PINGED: Final = b"\xd0\x00"


@dataclass(frozen=True)
class Published:
    """A publication as it was accepted. about: its properties as they came. by: the client."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    about: bytes
    by: str
    at_s: float


@dataclass
class Wanted:
    """A subscription. identifier: None for none."""

    options: int
    identifier: int | None


@dataclass
class Session:
    """What the broker keeps of a client. sent: at QoS 1, without an answer."""

    client: str
    expiry_s: int
    filters: dict[str, Wanted] = field(default_factory=dict)
    waiting: deque[tuple[Published, bytes, bool]] = field(default_factory=deque)
    sent: dict[int, tuple[Published, bytes, bool]] = field(default_factory=dict)
    end: End | None = None
    window: int = 65_535
    number: int = 0


class Broker:
    """accepted: what clients published, in order. sends: how often each payload was sent to a client that keeps a
    session. missed: payloads that a lost session has cost.
    watched: the client that nothing must be lost for."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Published] = {}
        self.accepted: list[Published] = []
        self.sends: dict[bytes, int] = {}
        self.missed: set[bytes] = set()
        self.watched = ""
        self._written: dict[str, dict[str, Wanted]] = {}
        self._write()

    def connect(self) -> End:
        """The broker's end of a new connection."""
        connection = _Connection(self)
        return connection.end

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        """A native program does, at QoS 1."""
        self.accept(Published(topic, payload, 1, retain, b"", "native", self.kernel.now))

    def lose_sessions(self) -> None:
        """It forgets all sessions, and ends their connections."""
        for session in list(self.sessions.values()):
            self._forget(session)
            if session.end is not None:
                session.end.cut()

    def go_back(self) -> None:
        """It is killed, and has the filters of its sessions as it last wrote them to its disk."""
        for session in list(self.sessions.values()):
            session.filters = dict(self._written.get(session.client, {}))
            if session.end is not None:
                session.end.cut()

    def _write(self) -> None:
        self._written = {client: dict(session.filters) for client, session in self.sessions.items()}
        self.kernel.at(self.kernel.now + _WRITES_S, self._write)

    def usurp(self, client: str) -> None:
        """Another program connects as *client*, and ends at once; the session stays."""
        session = self.sessions.get(client)
        if session is not None and session.end is not None:
            end, session.end = session.end, None
            end.send(_TAKEN_OVER)
            end.close()

    def _forget(self, session: Session) -> None:
        self.sessions.pop(session.client, None)
        self.missed |= {each[0].payload for each in (*session.waiting, *session.sent.values())}

    def accept(self, published: Published) -> None:
        """Keep it, and give it to who wants it."""
        self.accepted.append(published)
        self.kernel.note("accepted", published.by, published.topic, published.payload[:16])
        if published.retain:
            if published.payload:
                self.retained[published.topic] = published
            else:
                self.retained.pop(published.topic, None)
        if self.watched not in self.sessions:
            self.missed.add(published.payload)
        for session in list(self.sessions.values()):
            wants = [
                each
                for topic_filter, each in session.filters.items()
                if topic_matches_sub(topic_filter, published.topic)
                and not (each.options & _NO_LOCAL and session.client == published.by)
            ]
            if not wants and session.client == self.watched:
                self.missed.add(published.payload)
            if wants:
                keeps = published.retain and any(each.options & _AS_PUBLISHED for each in wants)
                self.give(session, published, _identifiers(*wants), max(each.options & 3 for each in wants), keeps)

    def give(self, session: Session, published: Published, about: bytes, qos: int, retain: bool) -> None:
        """Send it to the client, now or when it is there."""
        if not min(qos, published.qos):
            if session.end is not None:
                session.end.send(_publish(published, about, 0, 0, retain, False))
            return
        session.waiting.append((published, about, retain))
        self.flow(session)

    def flow(self, session: Session) -> None:
        """Send what waits, as far as the client takes more."""
        while session.end is not None and session.waiting and len(session.sent) < session.window:
            session.number = session.number % 65_535 + 1
            session.sent[session.number] = session.waiting.popleft()
            self.send(session, session.number, again=False)

    def send(self, session: Session, number: int, again: bool) -> None:
        """Send one that needs an answer."""
        published, about, retain = session.sent[number]
        if session.expiry_s:
            self.sends[published.payload] = self.sends.get(published.payload, 0) + 1
        if session.end is not None and not session.end.is_over:
            session.end.send(_publish(published, about, number, 1, retain, again))


class _Connection:
    """Packets of one client, and their answers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.end = End(broker.kernel, self._received, self._ended)
        self._bytes = bytearray()
        self._session: Session | None = None

    def _received(self, data: bytes) -> None:
        self._bytes += data
        while (found := _packet(self._bytes)) is not None:
            first, body, length = found
            del self._bytes[:length]
            self._one(first, body)
            if self.end.is_over:
                return

    def _ended(self) -> None:
        session = self._session
        if session is not None and session.end is self.end:
            session.end = None
            if not session.expiry_s:
                self._broker.sessions.pop(session.client, None)

    def _one(self, first: int, body: bytes) -> None:
        kind = first >> 4
        if kind == PacketTypes.CONNECT:
            self._connect(body)
        elif self._session is None:
            self.end.cut()
        elif kind == PacketTypes.PUBLISH:
            self._publish(first, body)
        elif kind == PacketTypes.PUBACK:
            self._session.sent.pop(int.from_bytes(body[:2], "big"), None)
            self._broker.flow(self._session)
        elif kind == PacketTypes.SUBSCRIBE:
            self._subscribe(self._session, body)
        elif kind == PacketTypes.UNSUBSCRIBE:
            self._unsubscribe(self._session, body)
        elif kind == PacketTypes.PINGREQ:
            self.end.send(_PINGED)
        elif kind == PacketTypes.DISCONNECT:
            self.end.close()
            self._ended()

    def _connect(self, body: bytes) -> None:
        clean, at = bool(body[7] & 2), 10
        about, at = _properties(PacketTypes.CONNECT, body, at)
        client = body[at + 2 : at + 2 + int.from_bytes(body[at : at + 2], "big")].decode()
        broker = self._broker
        session = broker.sessions.get(client)
        if session is not None and session.end is not None:
            broker.usurp(client)
        if session is not None and clean:
            broker._forget(session)
            session = None
        is_present = session is not None
        if session is None:
            session = broker.sessions[client] = Session(client, 0)
        session.expiry_s = getattr(about, "SessionExpiryInterval", 0)
        session.window = getattr(about, "ReceiveMaximum", 65_535)
        session.end, self._session = self.end, session
        self.end.send(bytes([0x20, 3, int(is_present), 0, 0]))
        for number in list(session.sent):
            broker.send(session, number, again=True)
        broker.flow(session)

    def _publish(self, first: int, body: bytes) -> None:
        length = int.from_bytes(body[:2], "big")
        topic, at, qos = body[2 : 2 + length].decode(), 2 + length, first >> 1 & 3
        number, at = (body[at : at + 2], at + 2) if qos else (b"", at)
        size, start = _varint(body, at)
        assert self._session is not None
        about, payload = body[start : start + size], body[start + size :]
        by, now = self._session.client, self._broker.kernel.now
        self._broker.accept(Published(topic, payload, qos, bool(first & 1), about, by, now))
        if qos and not self.end.is_over:
            self.end.send(b"\x40\x02" + number)

    def _subscribe(self, session: Session, body: bytes) -> None:
        about, at = _properties(PacketTypes.SUBSCRIBE, body, 2)
        identifier = getattr(about, "SubscriptionIdentifier", [None])[0]
        answers = bytearray()
        told: list[Callable[[], None]] = []
        while at < len(body):
            length = int.from_bytes(body[at : at + 2], "big")
            topic_filter, options = body[at + 2 : at + 2 + length].decode(), body[at + 2 + length]
            at += 3 + length
            is_new = topic_filter not in session.filters
            session.filters[topic_filter] = wanted = Wanted(options, identifier)
            answers.append(options & 3)
            if options >> 4 == 0 or (options >> 4 == 1 and is_new):
                for topic, kept in sorted(self._broker.retained.items()):
                    if topic_matches_sub(topic_filter, topic):
                        give = (session, kept, _identifiers(wanted), options & 3, True)
                        told.append(lambda give=give: self._broker.give(*give))  # type: ignore[misc]
        self.end.send(_framed(0x90, body[:2] + b"\0" + bytes(answers)))
        for each in told:
            each()

    def _unsubscribe(self, session: Session, body: bytes) -> None:
        _, at = _properties(PacketTypes.UNSUBSCRIBE, body, 2)
        answers = bytearray()
        while at < len(body):
            length = int.from_bytes(body[at : at + 2], "big")
            there = session.filters.pop(body[at + 2 : at + 2 + length].decode(), None)
            answers.append(0x11 if there is None else 0)
            at += 2 + length
        self.end.send(_framed(0xB0, body[:2] + b"\0" + bytes(answers)))


def _packet(data: bytearray) -> tuple[int, bytes, int] | None:
    """First byte, body and length of the packet that *data* begins with; None where it is not all there."""
    if len(data) < 2 or (data[1] & 0x80 and len(data) < 5):
        return None
    size, start = _varint(data, 1)
    return None if len(data) < start + size else (data[0], bytes(data[start : start + size]), start + size)


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = divmod(value, 128)
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _framed(first: int, body: bytes) -> bytes:
    return bytes([first]) + _as_varint(len(body)) + body


def _identifiers(*wanted: Wanted) -> bytes:
    return b"".join(b"\x0b" + _as_varint(each.identifier) for each in wanted if each.identifier is not None)


def _publish(published: Published, about: bytes, number: int, qos: int, retain: bool, again: bool) -> bytes:
    topic, properties = published.topic.encode(), published.about + about
    body = len(topic).to_bytes(2, "big") + topic + (number.to_bytes(2, "big") if qos else b"")
    first = 0x30 | again << 3 | qos << 1 | retain
    return _framed(first, body + _as_varint(len(properties)) + properties + published.payload)


def _properties(kind: int, body: bytes, at: int) -> tuple[Properties, int]:
    found = Properties(kind)  # type: ignore[no-untyped-call]
    _, length = found.unpack(body[at:])  # type: ignore[no-untyped-call]
    return found, at + length
