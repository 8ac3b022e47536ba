"""A queue manager as a program has it: queues, topics and units of work, without IBM's client (docs/client.md).

    with connect("mq://app@host:1414/QM1?channel=APP.SVRCONN", password="...") as qmgr:
        with qmgr.queue("ORDERS") as orders, qmgr.unit_of_work():
            orders.put("one", properties={"Colour": "red"})
        for message in qmgr.queue("REPLIES").messages(wait_s=5):
            print(message.text)

Calls raise ``MqError``, whose reason is the MQRC; nothing that is not there is an error: a get gives None.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from commands.client import pcf
from commands.client.calls import Subscribing, Target, Wanted
from commands.client.connection import Connection, Place
from commands.client.errors import ConnectionLostError, MqError, reason_word
from commands.client.places import place_of
from commands.config.settings import QueuesConfig
from commands.config.urls import parse_mq_address
from rfh2 import mqi_constants as m
from rfh2.ccsid import UTF8_CCSID, text_codec
from rfh2.constants import MQFMT_RF_HEADER_2, MQFMT_STRING
from rfh2.elements import folder_text
from rfh2.errors import DecodeError
from rfh2.folders import Folder
from rfh2.message import Message as DecodedMessage, decode
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC
from rfh2.rfh2 import Rfh2

# A message as a program has it: descriptor, properties, data. Properties travel in the folders of an MQRFH2.

USER: Final = "usr"
Properties = Mapping[str, bool | int | float | str]


@dataclass(frozen=True)
class Message:
    """A message that was got. md: its MQMD. body: all that was put, headers too. token: gets it again.

    length: of its body on the queue, which is longer than *body* where the message was cut. reason: of a warning (2079
    it is cut, 2110 and others it could not be converted), 0 for none.
    """

    md: bytes
    body: bytes
    token: bytes = bytes(16)
    length: int = 0
    reason: int = 0

    @cached_property
    def descriptor(self) -> Mqmd:
        """The MQMD by its fields."""
        return Mqmd.decode(self.md)

    @cached_property
    def decoded(self) -> DecodedMessage:
        """The message by its headers; as data alone where they cannot be read."""
        try:
            return decode(self.body, self.md)
        except DecodeError:
            return DecodedMessage(self.descriptor, (), self.body)

    @property
    def data(self) -> bytes:
        """The data behind the headers."""
        return self.decoded.body

    @property
    def text(self) -> str:
        """The data as text, by its CodedCharSetId. Raises UnicodeDecodeError, or ValueError for an unknown one."""
        codec = text_codec(self.decoded.body_ccsid, self.decoded.body_encoding)
        if codec is None:
            raise ValueError(f"CodedCharSetId {self.decoded.body_ccsid} is not known")
        return self.data.decode(codec)

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of folder usr. Raises DecodeError where it is malformed."""
        header = self.decoded.rfh2
        folder = None if header is None else header.folder(USER)
        return {} if folder is None else dict(folder.values())


def outgoing(data: bytes | str, mqmd: Mqmd | None = None, properties: Properties | None = None) -> tuple[Mqmd, bytes]:
    """Descriptor and body of a message to put. Text is put in UTF-8 with Format MQSTR; bytes as *mqmd* describes them.

    Raises EncodeError for a property that no folder can hold.
    """
    mqmd = mqmd or Mqmd(version=2)
    if isinstance(data, str):
        data = data.encode()
        mqmd = replace(mqmd, coded_char_set_id=UTF8_CCSID, format=mqmd.format or MQFMT_STRING)
    if not properties:
        return mqmd, data
    folder = Folder.of(folder_text(USER, dict(properties)))
    header = Rfh2(
        (folder,), encoding=mqmd.encoding, coded_char_set_id=mqmd.coded_char_set_id or UTF8_CCSID, format=mqmd.format
    )
    described = replace(
        mqmd, format=MQFMT_RF_HEADER_2, encoding=546, coded_char_set_id=mqmd.coded_char_set_id or UTF8_CCSID
    )
    return described, header.encode() + data


_INTERRUPTED: Final = 2549
_GET: Final = m.MQGMO_FAIL_IF_QUIESCING | m.MQGMO_PROPERTIES_FORCE_MQRFH2
T = TypeVar("T")
Way = Callable[[Callable[[], Message | None]], Message | None]


def connect(
    url: str,
    *,
    password: str | None = None,
    config: QueuesConfig | None = None,
    application: str = "qpubsub",
    reconnect_s: float = 0.0,
) -> QueueManager:
    """Connect to ``mq://[user@]host[:1414][,host...]/QMGR?channel=NAME``.

    config: TLS, CCDT and password, as table [queues] has them (docs/client.md). reconnect_s: after a break, connect
    again for so long; 0 for not at all. Raises ConfigError for a URL that is none, MqError where nobody answers or the
    queue manager refuses.
    """
    place = place_of(parse_mq_address(url, "mq://"), config or QueuesConfig(), application)
    if password is not None:
        place = replace(place, password=password)
    return QueueManager(place, reconnect_s)


class QueueManager:
    """A connection to a queue manager. As a context manager it disconnects; after an error it backs out before.

    reconnect_s: how long to try to connect again after a break. Queues and topics are then opened again by their next
    call. A unit of work is lost with its connection: its next call raises 2003, and so does the call in which the break
    is noticed. A call outside of one, of which nobody knows what became of it, raises 2549.
    """

    def __init__(self, place: Place, reconnect_s: float = 0.0) -> None:
        self._place, self._reconnect_s = place, reconnect_s
        self._connection = Connection.to(place)
        self._in_unit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._connection.abandon()

    @property
    def connection(self) -> Connection:
        """The calls themselves."""
        return self._connection

    @property
    def name(self) -> str:
        """The name of the queue manager."""
        return self._connection.qmgr

    def close(self) -> None:
        """Disconnect; a unit of work that is open is committed, as MQDISC does."""
        self._connection.disconnect()

    def another(self) -> QueueManager:
        """Another connection, for another thread, on the same socket where the channel allows it."""
        made = QueueManager.__new__(QueueManager)
        made._place, made._reconnect_s = self._place, self._reconnect_s
        made._connection, made._in_unit = self._connection.another(), False
        return made

    # Units of work

    @contextmanager
    def unit_of_work(self) -> Iterator[None]:
        """Puts and gets in this block are committed at its end, or backed out after an error."""
        self._in_unit = True
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(MqError):
                self._connection.backout()
            raise
        finally:
            self._in_unit = False

    def commit(self) -> None:
        """MQCMIT. BackedOutError: nothing was committed. ConnectionLostError: nobody knows."""
        self._connection.commit()

    def backout(self) -> None:
        """MQBACK."""
        self._connection.backout()

    # Objects

    def queue(self, name: str, options: int = 0, *, qmgr: str = "", dynamic: str = "AMQ.*") -> Queue:
        """A queue. options: MQOO_*; 0 opens it by its first call, for what that needs.

        dynamic: the name of the queue that *name*, a model queue, makes.
        """
        return Queue(self, Target(name, qmgr=qmgr, dynamic=dynamic), options)

    def topic(self, topic: str) -> Queue:
        """A topic, to put on."""
        return Queue(self, Target(kind=MQOT_TOPIC, topic=topic), m.MQOO_OUTPUT)

    def put(
        self,
        queue: str,
        data: bytes | str,
        *,
        mqmd: Mqmd | None = None,
        properties: Properties | None = None,
        qmgr: str = "",
        options: int = 0,
    ) -> bytes:
        """Put one message on *queue* (MQPUT1); its MsgId."""
        return self._put1(Target(queue, qmgr=qmgr), data, mqmd, properties, options)

    def publish(
        self,
        topic: str,
        data: bytes | str,
        *,
        mqmd: Mqmd | None = None,
        properties: Properties | None = None,
        retain: bool = False,
    ) -> bytes:
        """Put one message on *topic* (MQPUT1); its MsgId."""
        return self._put1(Target(kind=MQOT_TOPIC, topic=topic), data, mqmd, properties, m.MQPMO_RETAIN if retain else 0)

    def _put1(
        self, target: Target, data: bytes | str, mqmd: Mqmd | None, properties: Properties | None, options: int
    ) -> bytes:
        described, body = outgoing(data, mqmd, properties)
        options |= self.put_options
        put = self.once(lambda: self._connection.put1(target, described.encode(), body, options))
        return Mqmd.decode(put).msg_id

    def subscribe(
        self,
        topic: str,
        *,
        name: str = "",
        durable: bool = False,
        selector: str = "",
        queue: Queue | None = None,
        options: int = 0,
    ) -> Subscription:
        """Subscribe to *topic*. A durable subscription has a *name* and goes on where it was. queue: where its
        publications go; None for a managed one."""
        options |= m.MQSO_CREATE | m.MQSO_FAIL_IF_QUIESCING
        options |= (m.MQSO_DURABLE | m.MQSO_RESUME if durable else 0) | (m.MQSO_MANAGED if queue is None else 0)
        return Subscription(self, Subscribing(options, topic, name=name, selector=selector), queue)

    def inquire(self, selectors: Sequence[int]) -> dict[int, int | str]:
        """MQINQ of the queue manager: values by selector (MQIA_*, MQCA_*)."""
        return self.again(lambda: self._connection.inquire_qmgr(selectors))

    def pcf(self, command: int, parameters: Mapping[int, pcf.Value] | None = None) -> list[dict[int, Any]]:
        """A command of administration (MQCMD_*): the parameters of each response."""
        return self.once(lambda: pcf.execute(self._connection, command, parameters or {}))

    # Breaks

    @property
    def put_options(self) -> int:
        """What puts have in common."""
        return (m.MQPMO_SYNCPOINT if self._in_unit else m.MQPMO_NO_SYNCPOINT) | m.MQPMO_FAIL_IF_QUIESCING

    @property
    def get_options(self) -> int:
        """What gets have in common."""
        return (m.MQGMO_SYNCPOINT if self._in_unit else m.MQGMO_NO_SYNCPOINT) | _GET

    def again(self, call: Callable[[], T]) -> T:
        """*call*, which changes nothing and may be made twice: once more after a break."""
        try:
            return call()
        except ConnectionLostError as error:
            self._reconnect(error)
            if self._in_unit:
                raise MqError(error.what, m.MQRC_BACKED_OUT, reason_word(m.MQRC_BACKED_OUT)) from error
            return call()

    def once(self, call: Callable[[], T]) -> T:
        """*call*, which nobody may make twice."""
        was_up = self._connection.is_up
        try:
            return call()
        except ConnectionLostError as error:
            self._reconnect(error)
            if not was_up and not self._in_unit:
                return call()  # nothing of it was sent
            reason = m.MQRC_BACKED_OUT if self._in_unit else _INTERRUPTED
            raise MqError(error.what, reason, reason_word(reason)) from error

    def _reconnect(self, error: ConnectionLostError) -> None:
        """Connect again. Raises *error* where that is not possible in time, or not wanted."""
        end_s, pause_s = time.monotonic() + self._reconnect_s, 0.05
        while time.monotonic() < end_s:
            try:
                self._connection = Connection.to(self._place)
            except MqError:
                time.sleep(min(pause_s, max(0.0, end_s - time.monotonic())))
                pause_s = min(2 * pause_s, 5.0)
            else:
                return
        raise error


class Queue:
    """A queue or a topic that is open, or will be by its first call. As a context manager it is closed at the end."""

    def __init__(self, qmgr: QueueManager, target: Target, options: int = 0) -> None:
        self.qmgr, self.target = qmgr, target
        self._handles: dict[int, int] = {}
        self._connection = qmgr.connection
        self.name = target.name
        if options:
            self.handle(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ConnectionLostError):
            self.close()

    def handle(self, options: int) -> int:
        """A handle that is open for *options* at least."""
        connection = self.qmgr.connection
        if self._connection is not connection:
            self._connection, self._handles = connection, {}
        for open_for, handle in self._handles.items():
            # Open for input is open for input.
            wanted = options & ~m.MQOO_ANY_INPUT if open_for & m.MQOO_ANY_INPUT else options
            if open_for & wanted == wanted:
                return handle
        opened = connection.open(self.target, options | m.MQOO_FAIL_IF_QUIESCING)
        if opened.name != self.target.name:
            self.name, self.target = opened.name, replace(self.target, name=opened.name)  # a model made it
        self._handles[options] = opened.handle
        return opened.handle

    def close(self, options: int = 0) -> None:
        """MQCLOSE with these MQCO_*."""
        handles, self._handles = self._handles, {}
        for handle in reversed(handles.values()):
            if self._connection.is_up:
                self._connection.close(handle, options)

    def put(
        self,
        data: bytes | str,
        *,
        mqmd: Mqmd | None = None,
        properties: Properties | None = None,
        options: int = 0,
    ) -> bytes:
        """Put a message; its MsgId. options: more MQPMO_*."""
        described, body = outgoing(data, mqmd, properties)
        md, all_options = described.encode(), options | self.qmgr.put_options
        if described.msg_id == bytes(24):
            all_options |= m.MQPMO_NEW_MSG_ID

        def call() -> bytes:
            return self.qmgr.connection.put(
                self.handle(m.MQOO_OUTPUT), md, body, all_options, what=f"MQPUT to {self.name or self.target.topic}"
            )

        return Mqmd.decode(self.qmgr.once(call)).msg_id

    def get(
        self,
        wait_s: float | None = None,
        *,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        group_id: bytes | None = None,
        token: bytes | None = None,
        convert: bool = False,
        ccsid: int = 1_208,
        encoding: int = 546,
        longest: int | None = None,
        options: int = 0,
    ) -> Message | None:
        """Get the next message, or the next one that has these identifiers; None where there is none in *wait_s*.

        wait_s: -1 for ever. convert: data to *ccsid* and *encoding*. longest: bytes; a longer message stays, and raises
        2080. options: more MQGMO_*.
        """
        match = _match(msg_id, correl_id, group_id, token)
        wanted = Wanted(
            options | self.qmgr.get_options | (m.MQGMO_CONVERT if convert else 0),
            _wait_ms(wait_s),
            longest,
            ccsid=ccsid,
            encoding=encoding,
            **match,
        )
        return self._get(wanted, m.MQOO_INPUT_AS_Q_DEF, self.qmgr.once)

    def browse(self, wait_s: float | None = None, *, convert: bool = False) -> Iterator[Message]:
        """The messages that are on the queue, which stay there, in order."""
        option = m.MQGMO_BROWSE_FIRST
        while True:
            options = option | _GET | (m.MQGMO_CONVERT if convert else 0)
            found = self._get(Wanted(options, _wait_ms(wait_s)), m.MQOO_BROWSE, self.qmgr.again)
            if found is None:
                return
            yield found
            option = m.MQGMO_BROWSE_NEXT

    def messages(self, wait_s: float | None = None, **how: Any) -> Iterator[Message]:
        """Get one message after the other, as ``get``, until none comes in *wait_s*."""
        while (found := self.get(wait_s, **how)) is not None:
            yield found

    def _get(self, wanted: Wanted, options: int, way: Way) -> Message | None:
        def call() -> Message | None:
            got = self.qmgr.connection.get(self.handle(options), wanted, f"MQGET from {self.name}")
            return None if got is None else Message(got.md, got.body, got.token, got.length, got.reason)

        return way(call)

    def inquire(self, selectors: Sequence[int]) -> dict[int, int | str]:
        """MQINQ: values by selector (MQIA_*, MQCA_*)."""
        return self.qmgr.again(lambda: self.qmgr.connection.inquire(self.handle(m.MQOO_INQUIRE), selectors))

    def set(self, values: Mapping[int, int]) -> None:
        """MQSET: INHIBIT_GET, INHIBIT_PUT and others."""
        self.qmgr.again(lambda: self.qmgr.connection.set(self.handle(m.MQOO_SET), values))


@dataclass
class Subscription:
    """A subscription, and the queue of its publications. As a context manager it is closed at the end: a durable one is
    kept."""

    qmgr: QueueManager
    asked: Subscribing
    to: Queue | None = None

    def __post_init__(self) -> None:
        self._made = self.qmgr.connection.subscribe(
            self.asked, 0 if self.to is None else self.to.handle(m.MQOO_INPUT_AS_Q_DEF)
        )
        self._is_closed = False
        self.queue = self.to or _Managed(self.qmgr, self._made.hobj)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ConnectionLostError):
            self.close()

    def get(self, wait_s: float | None = None, **how: Any) -> Message | None:
        """The next publication."""
        return self.queue.get(wait_s, **how)

    def messages(self, wait_s: float | None = None, **how: Any) -> Iterator[Message]:
        """One publication after the other, until none comes in *wait_s*."""
        return self.queue.messages(wait_s, **how)

    def request_retained(self) -> int:
        """MQSUBRQ: have what is retained sent; how many publications that is."""
        return self.qmgr.connection.request_retained(self._made.hsub)

    def close(self, *, remove: bool = False) -> None:
        """End it; a durable one only where it is to be removed."""
        if self._is_closed or not self.qmgr.connection.is_up:
            return
        self._is_closed = True
        options = m.MQCO_REMOVE_SUB if remove else m.MQCO_KEEP_SUB if self.asked.options & m.MQSO_DURABLE else 0
        self.qmgr.connection.close(self._made.hsub, options)
        if self.to is None:
            with suppress(MqError):  # it goes with its subscription
                self.qmgr.connection.close(self._made.hobj)


class _Managed(Queue):
    """The queue that a queue manager made for a subscription: it is open, and cannot be opened again."""

    def __init__(self, qmgr: QueueManager, handle: int) -> None:
        super().__init__(qmgr, Target())
        self.name = "a managed queue"
        self._handle = handle

    def handle(self, options: int) -> int:
        del options
        return self._handle


def _wait_ms(wait_s: float | None) -> int | None:
    if wait_s is None or wait_s == 0:
        return None
    return -1 if wait_s < 0 else max(1, round(wait_s * 1_000))


def _match(
    msg_id: bytes | None, correl_id: bytes | None, group_id: bytes | None, token: bytes | None
) -> dict[str, Any]:
    given = {
        "msg_id": (msg_id, m.MQMO_MATCH_MSG_ID),
        "correl_id": (correl_id, m.MQMO_MATCH_CORREL_ID),
        "group_id": (group_id, m.MQMO_MATCH_GROUP_ID),
        "token": (token, m.MQMO_MATCH_MSG_TOKEN),
    }
    chosen: dict[str, Any] = {name: value for name, (value, _) in given.items() if value is not None}
    return chosen | {"match": sum(bit for value, bit in given.values() if value is not None)}
