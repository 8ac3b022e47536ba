"""Trying a queue manager as a client does: each call once, on a queue of the moment, with what was got compared.

It needs nothing prepared but the right to connect and a model queue, and leaves nothing behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from commands.client import pcf
from commands.client.calls import Wanted
from commands.client.connection import Connection, Place
from commands.client.errors import MqError
from commands.client.queue_manager import Queue, QueueManager
from commands.links.checking.trees import CheckResult
from rfh2 import mqi_constants as m
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import (
    MQCMD_PING_Q_MGR,
    MQIA_COMMAND_LEVEL,
    MQIA_CURRENT_Q_DEPTH,
    MQIA_PLATFORM,
)

_LONG_BYTES: Final = 300_000
_WAIT_S: Final = 1.0


class ClientCheck:
    """Tests of one queue manager. model: a model queue that the user may open."""

    def __init__(self, place: Place, model: str = pcf.MODEL_QUEUE) -> None:
        self._place, self._model = place, model
        self._qmgr: QueueManager | None = None

    def results(self) -> Iterator[CheckResult]:
        """Each test. The first that fails may be the last: without a connection or a queue there is nothing to try."""
        subject = f"connection to channel {self._place.channel}"
        try:
            self._qmgr = QueueManager(self._place)
        except MqError as error:
            yield CheckResult(subject, False, str(error))
            return
        with self._qmgr as qmgr:
            yield CheckResult(subject, True, self._terms(qmgr.connection))
            yield self._tried("MQINQ of the queue manager", lambda: self._level(qmgr))
            yield self._tried("a second conversation", lambda: self._conversation(qmgr))
            yield self._tried("PCF Ping Queue Manager", lambda: self._ping(qmgr))
            try:
                options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_BROWSE | m.MQOO_OUTPUT | m.MQOO_INQUIRE
                queue = qmgr.queue(self._model, options, dynamic="QPUBSUB.*")
            except QPubSubError as error:
                yield CheckResult(f"a queue from {self._model}", False, str(error))
                return
            with queue:
                yield CheckResult(f"a queue from {self._model}", True, queue.name)
                for name, test in self._of_a_queue(qmgr, queue):
                    yield self._tried(name, test)
            yield self._tried("MQSUB, MQPUT to a topic, MQGET", lambda: self._topic(qmgr))

    def _of_a_queue(self, qmgr: QueueManager, queue: Queue) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "MQPUT, MQGET", lambda: self._same(queue, b"\0\x01qpubsub check\xff")
        yield "MQPUT, MQGET of several segments", lambda: self._same(queue, os.urandom(_LONG_BYTES))
        yield "browse, and MQGET by CorrelId", lambda: self._chosen(queue)
        yield "MQGET that waits in vain", lambda: self._waits(queue)
        yield "MQBACK, MQCMIT", lambda: self._units(qmgr, queue)
        yield "MQGMO_CONVERT", lambda: self._converted(queue)
        yield "properties of a message", lambda: self._properties(queue)
        yield "MQINQ of a queue", lambda: f"{self._depth(queue)} messages"

    def _tried(self, subject: str, test: Callable[[], str]) -> CheckResult:
        try:
            return CheckResult(subject, True, test())
        except QPubSubError as error:
            return CheckResult(subject, False, str(error))

    @staticmethod
    def _terms(connection: Connection) -> str:
        terms = connection.terms
        return (
            f"{terms.qmgr} ({terms.identifier}), level {terms.fap}, {terms.sharing} conversations, segments of "
            f"{terms.largest} bytes, messages of {terms.longest_message}, heartbeat {terms.heartbeat_s} s"
        )

    @staticmethod
    def _level(qmgr: QueueManager) -> str:
        found = qmgr.inquire([MQIA_COMMAND_LEVEL, MQIA_PLATFORM])
        return f"command level {found[MQIA_COMMAND_LEVEL]}, platform {found[MQIA_PLATFORM]}"

    @staticmethod
    def _conversation(qmgr: QueueManager) -> str:
        with qmgr.another() as other:
            return "on the same socket" if other.connection.shares(qmgr.connection) else "on a socket of its own"

    @staticmethod
    def _ping(qmgr: QueueManager) -> str:
        qmgr.pcf(MQCMD_PING_Q_MGR)
        return "answered"

    @staticmethod
    def _same(queue: Queue, data: bytes) -> str:
        queue.put(data)
        got = queue.get(_WAIT_S)
        _require(got is not None and got.data == data, "the message that was put did not come back")
        return f"{len(data):,} bytes came back"

    @staticmethod
    def _chosen(queue: Queue) -> str:
        queue.put(b"one", mqmd=Mqmd(version=2, correl_id=b"1" * 24))
        queue.put(b"two", mqmd=Mqmd(version=2, correl_id=b"2" * 24))
        seen = [message.data for message in queue.browse()]
        second = queue.get(correl_id=b"2" * 24)
        rest = [message.data for message in queue.messages()]
        _require(seen == [b"one", b"two"], f"browse showed {len(seen)} messages")
        _require(second is not None and second.data == b"two" and rest == [b"one"], "another message came")
        return "as they were put"

    @staticmethod
    def _waits(queue: Queue) -> str:
        began_s = time.monotonic()
        _require(queue.get(_WAIT_S) is None, "a message came")
        took_s = time.monotonic() - began_s
        _require(took_s >= 0.9 * _WAIT_S, f"it ended after {took_s:.2f} of {_WAIT_S:g} s")
        return f"{m.MQRC_NO_MSG_AVAILABLE} after {took_s:.2f} s"

    @staticmethod
    def _units(qmgr: QueueManager, queue: Queue) -> str:
        handle = queue.handle(m.MQOO_OUTPUT)
        md = Mqmd(version=2).encode()
        qmgr.connection.put(handle, md, b"backed out", m.MQPMO_SYNCPOINT)
        qmgr.backout()
        _require(qmgr.connection.get(handle, Wanted(options=m.MQGMO_BROWSE_FIRST)) is None, "MQBACK left a message")
        qmgr.connection.put(handle, md, b"committed", m.MQPMO_SYNCPOINT)
        qmgr.commit()
        got = qmgr.connection.get(handle, Wanted(options=m.MQGMO_SYNCPOINT))
        qmgr.backout()
        again = queue.get()
        _require(got is not None and again is not None and again.data == b"committed", "the message is gone")
        return "commit and backout work"

    @staticmethod
    def _converted(queue: Queue) -> str:
        queue.put("déjà vu".encode("cp037"), mqmd=Mqmd(version=2, coded_char_set_id=37, format="MQSTR"))
        got = queue.get(_WAIT_S, convert=True, ccsid=1_208)
        _require(got is not None and got.data == "déjà vu".encode(), "the text was not converted")
        return "text of CCSID 37 came as UTF-8"

    @staticmethod
    def _properties(queue: Queue) -> str:
        given: dict[str, str | int | bool] = {"Colour": "red", "Size": 42, "Sold": True}
        queue.put("text", properties=given)
        got = queue.get(_WAIT_S)
        _require(got is not None and got.properties == given and got.text == "text", "they came back changed")
        return "the same"

    @staticmethod
    def _depth(queue: Queue) -> int:
        return int(queue.inquire([MQIA_CURRENT_Q_DEPTH])[MQIA_CURRENT_Q_DEPTH])

    @staticmethod
    def _topic(qmgr: QueueManager) -> str:
        topic = f"QPUBSUB/check/{os.getpid()}"
        with qmgr.subscribe(topic) as subscription:
            qmgr.publish(topic, b"qpubsub check")
            got = subscription.get(10 * _WAIT_S)
            _require(got is not None and got.data == b"qpubsub check", "the publication did not arrive")
            try:
                subscription.request_retained()
            except MqError as error:
                if error.reason != m.MQRC_NO_RETAINED_MSG:
                    raise
        return "the publication arrived"


class _DiffersError(QPubSubError):
    """What came is not what was put."""


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise _DiffersError(why)
