"""The calls that a link makes of IBM MQ's topic tree, on one connection, for one thread.

    Subscribe         MQSUB (create or resume, durable, grouped) to the incoming queue, then MQCLOSE with MQCO_KEEP_SUB
    Unsubscribe       MQSUB (resume), then MQCLOSE with MQCO_REMOVE_SUB; PCF Delete Subscription where that is refused
    ClearRetained     PCF Clear Topic String
    RequestRetained   MQSUBRQ, by a subscription of the moment

The bridge keeps no handles, because a connection has few. A durable subscription stays without one, and after a restart
the bridge finds it by its name, which is made of the names of the queue manager and the topic string. All subscriptions
are one group on one queue (guide 4.8.3), so that a publication comes once even if several select it. A selector
excludes the publications of the bridge itself.

Converts publications for MQPUT to a topic, and from messages of a subscription's queue.

Pure. Properties travel in an MQRFH2: ``usr`` is the program's, ``mqps`` what the queue manager says of a publication
(guide 4.4, table 1). Publications of the bridge have their own property, ``QPSBridge``, which a selector can name.

    to the tree         from                            from the tree
    topic               topic string                    mqps.Top
    MQPMO_RETAIN        RetainPub                       mqps.Pub, or mqps.Ret of one that was asked for
    MQPMO_SCOPE_QMGR    Local                           -
    Persistence,        the publication's               the same
      Priority, Expiry
    Format, Encoding,   of the body                     of the body
      CodedCharSetId
    mqpse.Pts, .Seq     PubTime, SeqNum                 psc
    usr                 usr                             usr
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from commands.client.errors import ConnectionLostError, MqError
from commands.config.settings import TopicsConfig
from commands.links.engine.inbound_writer import NativePublication, TreeRetained
from commands.links.engine.properties import ForTree
from commands.links.ibmmq.connection import Connection
from commands.links.ibmmq.manager import MqMessages
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQENC_NATIVE, MQFMT_RF_HEADER_2, MQPER_PERSISTENT
from rfh2.errors import DecodeError, StoreError
from rfh2.folders import Folder, write
from rfh2.message import decode
from rfh2.mqmd import Mqmd, name_of
from rfh2.pcf_names import MQCA_TOPIC_STRING
from rfh2.rfh2 import Rfh2
from streams.subscriptions import WildcardScheme

MARK: Final = "QPSBridge"
SYNCPOINT, RETAIN, SCOPE_QMGR = 0x0000_0002, 0x0020_0000, 0x0400_0000
_STAMPS: Final = {"Pts": "PubTime", "Seq": "SeqNum"}
_NUMBER: Final = re.compile("[0-9]{1,10}", re.ASCII)


def put_for(wanted: ForTree, qmgr: str) -> tuple[bytes, bytes, int]:
    """The MQMD, the body and the MQPMO_* of the MQPUT that publishes it. qmgr: whose bridge publishes."""
    usr = write("usr", ((MARK, qmgr), *wanted.properties))
    folders = [Folder.of(usr)]
    if wanted.stamps:
        folders.insert(0, Folder.of(write("mqpse", wanted.stamps)))
    header = Rfh2(tuple(folders), wanted.encoding, wanted.ccsid, wanted.format)
    mqmd = Mqmd(
        version=2,
        expiry=wanted.expiry if wanted.expiry > 0 else MQEI_UNLIMITED,
        encoding=MQENC_NATIVE,
        coded_char_set_id=UTF8_CCSID,
        format=MQFMT_RF_HEADER_2,
        priority=wanted.priority,
        persistence=int(wanted.persistent),
    )
    options = SYNCPOINT | (RETAIN if wanted.retain else 0) | (SCOPE_QMGR if wanted.local else 0)
    return mqmd.encode(), header.encode() + wanted.payload, options


def native_of(md: bytes, body: bytes, default_format: str = "") -> tuple[NativePublication, str | None]:
    """The publication in a message off a subscription's queue, and whose bridge published it, if one did.

    Raises DecodeError where it is none.
    """
    message = decode(body, md)
    header = message.rfh2
    if header is None or not message.headers or message.headers[0] is not header:
        raise DecodeError(0, "message", "it has no MQRFH2 with the properties of a publication", "no-command-header")
    said = header.folder("mqps")
    properties = {} if said is None else dict(said.pairs())
    topic = properties.get("Top", "")
    if not topic:
        raise DecodeError(0, "message", "it has no property mqps.Top, which names its topic", "no-command-header")
    user: list[tuple[str, str]] = []
    stamps: list[tuple[str, str]] = []
    for folder in header.folders:
        if folder.name == "usr":
            user += folder.pairs()
        elif folder.name == "mqpse":
            stamps += [(_STAMPS[tag], value) for tag, value in folder.pairs() if tag in _STAMPS]
    bridge = next((value for name, value in user if name == MARK), None)
    put_options = properties.get("Pub", "0")
    retained = properties.get("Ret") == "1" or (
        _NUMBER.fullmatch(put_options) is not None and bool(int(put_options) & RETAIN)
    )
    mqmd = message.mqmd
    within = replace(message, headers=message.headers[:1])
    payload = b"".join([*(after.encode() for after in message.headers[1:]), message.body])
    native = NativePublication(
        topic,
        payload,
        retained,
        mqmd.persistence == MQPER_PERSISTENT,
        mqmd.expiry / 10 if mqmd.expiry > 0 else None,
        max(mqmd.priority, 0),
        tuple((name, value) for name, value in user if name != MARK),
        tuple(stamps),
        name_of(header.format) or default_format,
        header.encoding,
        within.body_ccsid,
    )
    return native, bridge


_log = logging.getLogger("qpubsub.mq")

_OURS: Final = "QPUBSUB"
_LONGEST_NAME: Final = 2_000
_GROUP: Final = b"QPUBSUB".ljust(24, b"\0")
_ANSWER_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Selection:
    """What MQSUB subscribes by."""

    topic_string: str
    wildcard: WildcardScheme

    def name(self, bridge: str) -> str:
        """The subscription's name, the same whenever it is asked for."""
        start = f"{_OURS} {bridge} {self.wildcard.value}"
        if len(self.topic_string) <= _LONGEST_NAME:
            return f"{start} {self.topic_string}"
        return f"{start} {hashlib.sha256(self.topic_string.encode()).hexdigest()}"


class SharedQueueError(StoreError):
    """A subscription of another bridge sends to the same incoming queue."""

    def __init__(self, queue: str, name: str) -> None:
        super().__init__(queue, name)
        self.queue, self.name = queue, name

    def __str__(self) -> str:
        what = f"subscription {self.name} of another bridge sends to {self.queue} too"
        end = "delete that subscription if no bridge uses it any more, as after an update of this one"
        return f"{what}: give each bridge a queue of its own by [topics] in_queue; {end}"


class Tree:
    """The tree by one connection, made again when it is needed. Raises MqError from everything.

    bridge: the queue manager whose bridge it is, which several bridges of one tree are told apart by.
    """

    def __init__(self, messages: MqMessages, config: TopicsConfig, bridge: str) -> None:
        self._messages, self._config, self.bridge = messages, config, bridge

    def subscribe(self, selection: Selection) -> None:
        """Subscribe to it at the tree."""
        with self._connected() as connection:
            options = m.MQSO_CREATE | m.MQSO_RESUME | m.MQSO_DURABLE | m.MQSO_GROUP_SUB
            options |= m.MQSO_SET_CORREL_ID | m.MQSO_NEW_PUBLICATIONS_ONLY | _wildcard(selection)
            name, selector = selection.name(self.bridge), f"{MARK} IS NULL OR {MARK} <> '{self.bridge}'"
            queue = self._incoming(connection)
            made = connection.subscribe(selection.topic_string, name, options, queue, selector, _GROUP)
            connection.close_subscription(made, m.MQCO_KEEP_SUB)

    def existing(self) -> list[str]:
        """The names of the subscriptions of this link that the queue manager has.

        Raises SharedQueueError where the incoming queue also gets what another bridge has subscribed to: whoever got a
        publication first would keep it from the other one.
        """
        with self._connected() as connection:
            try:
                found = connection.pcf("MQCMD_INQUIRE_SUBSCRIPTION", {c.MQCACF_SUB_NAME: f"{_OURS} *"})
            except MqError as error:
                if error.reason == m.MQRC_NO_SUBSCRIPTION:
                    return []
                raise
            names = []
            for each in found:
                name, queue = (_text(each.get(key)) for key in (c.MQCACF_SUB_NAME, c.MQCACF_DESTINATION))
                if name.startswith(f"{_OURS} {self.bridge} "):
                    names.append(name)
                elif queue == self._config.in_queue:
                    raise SharedQueueError(queue, name)
            return names

    def unsubscribe(self, name: str) -> None:
        """End the subscription of this name; do nothing if there is none."""
        with self._connected() as connection:
            try:
                options = m.MQSO_RESUME | m.MQSO_DURABLE
                resumed = connection.subscribe("", name, options, self._incoming(connection))
                connection.close_subscription(resumed, m.MQCO_REMOVE_SUB)
            except ConnectionLostError:
                raise
            except MqError as error:
                if error.reason == m.MQRC_NO_SUBSCRIPTION:
                    return
                connection.pcf("MQCMD_DELETE_SUBSCRIPTION", {c.MQCACF_SUB_NAME: name})

    def retained(self, selection: Selection) -> TreeRetained:
        """What is retained under it now."""
        with self._connected() as connection:
            options = m.MQSO_CREATE | m.MQSO_MANAGED | m.MQSO_PUBLICATIONS_ON_REQUEST
            asked = connection.subscribe(selection.topic_string, "", options | _wildcard(selection), None)
            natives: list[NativePublication] = []
            topics: set[str] = set()
            try:
                for _ in range(_requested(connection, asked)):
                    queue = asked.queue
                    got = connection.get(queue, m.MQGMO_NO_SYNCPOINT, wait_ms=_ANSWER_MS)
                    if got is None:
                        raise StoreError("IBM MQ has not sent all that it retains")
                    # What cannot be read is passed over, and logged: no RegSub may fail because of it.
                    with _passed_over():
                        native, bridge = native_of(got.md, got.body, self._config.default_format)
                        topics.add(native.topic)
                        if bridge != self.bridge:
                            natives.append(native)
            finally:
                with suppress(MqError):
                    connection.close_subscription(asked, 0, queue_too=True)
            return TreeRetained(tuple(natives), frozenset(topics))

    def clear(self, topic_string: str, local: bool) -> None:
        """Clear what is retained there, in this queue manager alone or in its network too."""
        with self._connected() as connection:
            scope = c.MQCLRS_LOCAL if local else c.MQCLRS_GLOBAL
            parameters = {MQCA_TOPIC_STRING: topic_string, c.MQIACF_CLEAR_TYPE: c.MQCLRT_RETAINED}
            connection.pcf("MQCMD_CLEAR_TOPIC_STRING", {**parameters, c.MQIACF_CLEAR_SCOPE: scope})

    def call(self) -> None:
        """Have the queue manager answer something that changes nothing (MQCMIT)."""
        with self._connected() as connection:
            connection.commit()

    def close(self) -> None:
        """Disconnect."""
        self._messages.close()

    def _incoming(self, connection: Connection) -> Any:
        return connection.queue(self._config.in_queue, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = self._messages.connection
        try:
            if not connection.is_up:
                connection.connect()
            yield connection
        except ConnectionLostError:
            connection.disconnect()
            raise


def _text(value: bytes | str | None) -> str:
    return (value.decode() if isinstance(value, bytes) else value or "").rstrip()


@contextmanager
def _passed_over() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        expected = isinstance(error, DecodeError)
        text = "a native retained publication is passed over: %s"
        _log.warning(text, error, exc_info=None if expected else error)


def _requested(connection: Connection, asked: Any) -> int:
    try:
        return connection.request(asked)
    except MqError as error:
        if error.reason == m.MQRC_NO_RETAINED_MSG:
            return 0
        raise


def _wildcard(selection: Selection) -> int:
    by_characters = selection.wildcard is WildcardScheme.CHAR
    return int(m.MQSO_WILDCARD_CHAR if by_characters else m.MQSO_WILDCARD_TOPIC)
