"""Trying IBM MQ: the connection, the queues that the bridge reads and writes, the topic tree, and the rights to each.

The check uses each right and then undoes what it did: it puts messages under syncpoint and backs them out, and its
subscriptions are not durable. So it reports a right only after the right has worked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from commands.client.errors import MqError
from commands.config.settings import QueuesConfig, TopicsConfig
from commands.config.urls import Address
from commands.links.checking.trees import CheckResult
from commands.links.ibmmq.channel import connection_to
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.constants import MQPER_PERSISTENT, MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.mqmd import Mqmd
from rfh2.pcf_names import MQCA_TOPIC_STRING

_SYNCPOINT, _SET_ALL = 0x0002, 0x0800
_MODEL_QUEUE: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
_PSMODES: Final = {0: "DISABLED", 1: "COMPAT", 2: "ENABLED"}
_PUBSUB_MODE: Final = 187


class MqCheck:
    """Tests one queue manager. user: the user that the setmqaut lines name."""

    def __init__(self, address: Address, config: QueuesConfig, user: str) -> None:
        self._qmgr, self._user, self._config, self._address = address.qmgr, user, config, address
        self._connection = connection_to(address, config, "qpubsub check")

    def connect(self) -> CheckResult:
        """Whether there is a connection; every other test needs one. Raises ConfigError."""
        subject = f"connection to {self._address}"
        try:
            self._connection.connect()
        except MqError as error:
            mend = self._authorize("qmgr", "", "+connect +inq +setall") if error.reason == MQRC_NOT_AUTHORIZED else ()
            return CheckResult(subject, False, str(error), mend)
        return CheckResult(subject, True, "connected")

    def queues(self, inputs: Sequence[str], destinations: Sequence[str]) -> Iterator[CheckResult]:
        """The queues of the processor. destinations: where subscribers' queues are known to be."""
        yield self._psmode()
        for name in inputs:
            yield self._input(name)
        yield self._record()
        yield self._owed()
        yield self._dead_letters()
        for name in destinations:
            yield self._output(name, f"subscriber queue {name}", create=False)

    def outgoing(self, name: str) -> Iterator[CheckResult]:
        """The queue on which publications wait for the tree."""
        yield self._input(name)
        yield self._output(name, f"queue {name}, for output", create=False)

    def topics(self, config: TopicsConfig) -> Iterator[CheckResult]:
        """The topic tree."""
        topic = f"QPUBSUB/check/{self._qmgr}"
        yield self._input(config.in_queue)
        yield self._sent_to(config.in_queue)
        yield self._tried("subscribing", lambda: self._subscribe(topic), self._topic("+sub +resume +pub"))
        yield self._tried("publishing", lambda: self._publish(topic), self._topic("+pub"))
        mend = (*self._authorize("queue", "SYSTEM.ADMIN.COMMAND.QUEUE", "+put"),)
        mend += self._authorize("queue", _MODEL_QUEUE, "+get +dsp +put")
        mend += self._topic("+clr")
        yield self._tried("clearing a topic (PCF Clear Topic String)", lambda: self._clear(topic), mend)

    def close(self) -> None:
        """Disconnect; the tests leave nothing behind."""
        self._connection.disconnect()

    # What is tried

    def _psmode(self) -> CheckResult:
        subject = "PSMODE of the queue manager"
        try:
            mode = int(self._connection.inquire_qmgr([_PUBSUB_MODE])[_PUBSUB_MODE])
        except MqError as error:
            if error.reason == m.MQRC_SELECTOR_ERROR:
                return CheckResult(subject, True, "not known to the queue manager, which has no queued interface")
            return self._not_inquired(subject, error)
        if _PSMODES.get(mode) == "ENABLED":
            why = "ENABLED: its own queued interface reads the same queues"
            return CheckResult(subject, False, why, ("ALTER QMGR PSMODE(COMPAT)",))
        return CheckResult(subject, True, _PSMODES.get(mode, str(mode)))

    def _not_inquired(self, subject: str, error: MqError) -> CheckResult:
        mend = self._authorize("qmgr", "", "+inq") if error.reason == MQRC_NOT_AUTHORIZED else ()
        return CheckResult(subject, False, str(error), mend)

    def _input(self, name: str) -> CheckResult:

        def attempt() -> str:
            handle = self._connection.queue(name, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE | m.MQOO_INQUIRE)
            found = self._connection.inquire(handle, [c.MQIA_INHIBIT_GET, c.MQIA_CURRENT_Q_DEPTH])
            self._connection.glance(handle, first=True)
            self._connection.close_queue(name, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE | m.MQOO_INQUIRE)
            if found[c.MQIA_INHIBIT_GET]:
                raise MqError(f"MQGET from {name}", 2016, "GET_INHIBITED")
            return f"{found[c.MQIA_CURRENT_Q_DEPTH]} messages wait"

        mends = {
            MQRC_UNKNOWN_OBJECT_NAME: (f"DEFINE QLOCAL('{name}') DEFPSIST(YES) SHARE",),
            MQRC_NOT_AUTHORIZED: self._authorize("queue", name, "+get +browse +inq"),
            2016: (f"ALTER QLOCAL('{name}') GET(ENABLED)",),
        }
        return self._by_reason(f"queue {name}, for input", attempt, mends)

    def _record(self) -> CheckResult:
        name = self._config.record_queue
        options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_BROWSE

        def attempt() -> str:
            self._connection.queue(name, options)
            self._put(name)
            self._connection.close_queue(name, options)
            return "can be read exclusively and put to"

        mends = {
            MQRC_UNKNOWN_OBJECT_NAME: (f"DEFINE QLOCAL('{name}') DEFPSIST(YES) SHARE MAXMSGL(104857600)",),
            MQRC_NOT_AUTHORIZED: self._authorize("queue", name, "+get +browse +put +inq"),
            m.MQRC_OBJECT_IN_USE: ("a bridge is running; stop it to try this",),
        }
        return self._by_reason(f"record queue {name}", attempt, mends)

    def _owed(self) -> CheckResult:
        name = self._config.owed_queue
        options = m.MQOO_INPUT_SHARED | m.MQOO_BROWSE

        def attempt() -> str:
            handle = self._connection.queue(name, options)
            waits = self._connection.glance(handle, first=True) is not None
            self._put(name)
            self._connection.close_queue(name, options)
            return "can be read and put to" + ("; publications are kept there, see qpubsub status" if waits else "")

        mends = {
            MQRC_UNKNOWN_OBJECT_NAME: (
                f"DEFINE QLOCAL('{name}') DEFPSIST(YES) SHARE MAXDEPTH(100000) MAXMSGL(104857600)",
            ),
            MQRC_NOT_AUTHORIZED: self._authorize("queue", name, "+get +browse +put"),
            2016: (f"ALTER QLOCAL('{name}') GET(ENABLED)",),
            2051: (f"ALTER QLOCAL('{name}') PUT(ENABLED)",),
            2053: (f"ALTER QLOCAL('{name}') MAXDEPTH(999999999)",),
        }
        return self._by_reason(f"queue {name}, for what cannot be delivered yet", attempt, mends)

    def _dead_letters(self) -> CheckResult:
        selector = c.MQCA_DEAD_LETTER_Q_NAME
        try:
            name = str(self._connection.inquire_qmgr([selector])[selector])
        except MqError as error:
            return self._not_inquired("dead-letter queue", error)
        if not name:
            line = "ALTER QMGR DEADQ('SYSTEM.DEAD.LETTER.QUEUE')"
            return CheckResult("dead-letter queue", False, "the queue manager has none", (line,))
        return self._output(name, f"dead-letter queue {name}")

    def _output(self, name: str, subject: str, create: bool = True) -> CheckResult:
        def attempt() -> str:
            self._put(name, _SET_ALL if self._config.context == "all" else 0)
            return "can be put to"

        right = "+put +setall" if self._config.context == "all" else "+put"
        mends = {
            MQRC_UNKNOWN_OBJECT_NAME: (f"DEFINE QLOCAL('{name}') DEFPSIST(YES)",) if create else (),
            MQRC_NOT_AUTHORIZED: (
                *self._authorize("queue", name, right),
                *(self._authorize("qmgr", "", "+setall") if self._config.context == "all" else ()),
            ),
            2051: (f"ALTER QLOCAL('{name}') PUT(ENABLED)",),
            2053: (f"ALTER QLOCAL('{name}') MAXDEPTH(999999999)",),
        }
        return self._by_reason(subject, attempt, mends)

    def _sent_to(self, name: str) -> CheckResult:
        """The queue of a subscription: the subscriber must have the right to put there."""

        def attempt() -> str:
            self._put(name)
            return "can be put to"

        mends = {MQRC_NOT_AUTHORIZED: self._authorize("queue", name, "+put")}
        return self._by_reason(f"queue {name}, as where subscriptions send", attempt, mends)

    def _put(self, queue: str, options: int = 0) -> None:
        md = Mqmd(persistence=MQPER_PERSISTENT, format="MQSTR", user_identifier=self._user[:12]).encode()
        try:
            self._connection.put1(queue, "", md, b"qpubsub check", _SYNCPOINT | options)
        finally:
            self._connection.backout()

    def _subscribe(self, topic: str) -> str:
        connection = self._connection
        options = m.MQSO_CREATE | m.MQSO_MANAGED | m.MQSO_PUBLICATIONS_ON_REQUEST
        made = connection.subscribe(topic, "", options | m.MQSO_WILDCARD_TOPIC, None)
        try:
            connection.request(made)
        except MqError as error:
            if error.reason != m.MQRC_NO_RETAINED_MSG:
                raise
        finally:
            connection.close_subscription(made, 0, queue_too=True)
        return "allowed"

    def _publish(self, topic: str) -> str:
        try:
            self._connection.publish(topic, Mqmd(format="MQSTR").encode(), b"qpubsub check", _SYNCPOINT)
        finally:
            self._connection.backout()
        return "allowed"

    def _clear(self, topic: str) -> str:
        parameters = {MQCA_TOPIC_STRING: topic, c.MQIACF_CLEAR_TYPE: c.MQCLRT_RETAINED}
        self._connection.pcf("MQCMD_CLEAR_TOPIC_STRING", {**parameters, c.MQIACF_CLEAR_SCOPE: 1})
        return "allowed"

    # What is found

    def _tried(self, subject: str, attempt: Callable[[], str], mend: tuple[str, ...]) -> CheckResult:
        return self._by_reason(subject, attempt, {}, mend)

    def _by_reason(
        self, subject: str, attempt: Callable[[], str], mends: dict[int, tuple[str, ...]], otherwise: Any = ()
    ) -> CheckResult:
        try:
            return CheckResult(subject, True, attempt())
        except MqError as error:
            return CheckResult(subject, False, str(error), mends.get(error.reason, tuple(otherwise)))

    def _authorize(self, kind: str, name: str, rights: str) -> tuple[str, ...]:
        which = f" -n {name}" if name else ""
        return (f"setmqaut -m {self._qmgr} -t {kind}{which} -p {self._user} {rights}",)

    def _topic(self, rights: str) -> tuple[str, ...]:
        return self._authorize("topic", "SYSTEM.BASE.TOPIC", rights)
