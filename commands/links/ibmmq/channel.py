"""The calls that the bridge makes, through a client of its own (``commands.client``).

The calls that the bridge makes, through the package ``ibmmq`` and IBM's library; the one module that knows it.

Errors leave as ``MqError``; ``None`` stands for "no message". Not to be shared between threads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from commands.client import pcf
from commands.client.calls import Subscribing, Target, Wanted
from commands.client.connection import Connection as Client
from commands.client.errors import CONNECT, ConnectionLostError, MqError, failure, reason_word
from commands.client.places import place_of
from commands.config.settings import ConfigError, QueuesConfig
from commands.config.urls import Address
from commands.links.ibmmq.connection import Connection, Got, Subscribed
from rfh2 import mqi_constants as m, pcf_admin_names, pcf_names
from rfh2.ccsid import ASCII_FIELDS
from rfh2.distribution import how_to_install
from rfh2.mqi_constants import MQRC_NO_MSG_AVAILABLE, MQRC_TRUNCATED_MSG_ACCEPTED, MQRC_TRUNCATED_MSG_FAILED
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC

_FIRST_BUFFER: Final = 65_536


def _package() -> Any:
    # Where OpenTelemetry is installed, the package would change how messages are got and put, and add properties of its
    # own. The bridge reads and writes the trace context itself (commands.monitoring).
    os.environ.setdefault("MQIPY_NOOTEL", "1")
    try:
        import ibmmq  # noqa: PLC0415 - the extra may not be installed, nor the client library that it loads
    except ImportError as error:
        if importlib.util.find_spec("ibmmq") is None:
            why = f"ibmmq:// needs the package ibmmq: {how_to_install('mq')}"
        else:
            # The package reports this one as "No module named 'ibmmqc'".
            why = "ibmmq:// needs IBM MQ's client; it is not found: LD_LIBRARY_PATH has to name where libmqm_r.so is"
        raise ConfigError("--queues, --topics", why) from error
    return ibmmq


class LibraryConnection:
    """One connection by IBM's library. Raises ConfigError where the package is missing."""

    def __init__(self, address: Address, config: QueuesConfig, application: str = "qpubsub") -> None:
        self.mq = _package()
        self._address, self._config, self._application = address, config, application
        self._open: dict[tuple[str, int], Any] = {}
        self._qmgr: Any = None
        self._buffer = _FIRST_BUFFER

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._qmgr is not None

    def connect(self) -> None:
        """Connect, by the parameters of the URL and the configuration, else as the environment says."""
        mq, config, address = self.mq, self._config, self._address
        arguments: dict[str, Any] = {}
        # The client's own reconnection would hide what a break did to the unit of work.
        cno = mq.CNO(Options=mq.CMQC.MQCNO_HANDLE_SHARE_BLOCK | mq.CMQC.MQCNO_RECONNECT_DISABLED)
        with contextlib.suppress(AttributeError):
            cno.ApplName = self._application.encode()
            cno.Version = max(cno.Version, mq.CMQC.MQCNO_VERSION_7)
        if address.host:
            channel = address.channel or config.channel
            if channel is None:
                raise ConfigError("--queues, --topics", "the channel is missing: ibmmq://host/QMGR?channel=NAME")
            cd = mq.CD(ChannelName=channel, ConnectionName=f"{address.host}({address.port})")
            if config.cipher is not None:
                cd.SSLCipherSpec = config.cipher
            arguments["cd"] = cd
            # Without it, a server installed on this machine would look for a queue manager of that name here.
            cno.Options |= mq.CMQC.MQCNO_CLIENT_BINDING
        elif config.ccdt is not None:
            cno.CCDTUrl = config.ccdt
            cno.Version = max(cno.Version, mq.CMQC.MQCNO_VERSION_6)
            cno.Options |= mq.CMQC.MQCNO_CLIENT_BINDING
        if config.key_repository is not None:
            sco = mq.SCO(KeyRepository=config.key_repository)
            if config.certificate_label is not None:
                sco.CertificateLabel = config.certificate_label
            arguments["sco"] = sco
        user, password = address.user or config.user, config.password()
        if user is not None and password is not None:
            csp = mq.CSP()
            csp.CSPUserId, csp.CSPPassword = user, password
            arguments["csp"] = csp
        qmgr = mq.QueueManager(None)
        with self._calling(f"{CONNECT} to {address}"):
            qmgr.connect_with_options(address.qmgr, cno=cno, **arguments)
        self._qmgr = qmgr

    def disconnect(self) -> None:
        """Disconnect; the queue manager backs out what was not committed."""
        qmgr, self._qmgr = self._qmgr, None
        handles, self._open = list(self._open.values()), {}
        if qmgr is None:
            return
        # MQDISC would commit; and where the connection is broken, all of this fails, to no harm. It closes the handles
        # too: closed one by one, as ibmmq 2.1.2 would at their ends, 1 could take the buffer of 10 with it and be freed
        # twice (it looks for the key of a closed handle's buffer by how it begins).
        for handle in handles:
            handle.set_handle(None)
        for step in (qmgr.backout, qmgr.disconnect):
            with contextlib.suppress(self.mq.MQMIError, self.mq.PYIFError):
                step()

    def commit(self) -> None:
        """MQCMIT. BackedOutError: nothing was committed. ConnectionLostError: the result is not known yet."""
        with self._calling("MQCMIT"):
            self._connected().commit()

    def backout(self) -> None:
        """MQBACK."""
        with self._calling("MQBACK"):
            self._connected().backout()

    def queue(self, name: str, options: int) -> Any:
        """The queue, opened with these MQOO_*; it stays open."""
        handle = self._open.get((name, options))
        if handle is None:
            with self._calling(f"MQOPEN of {name}"):
                options_ = options | self.mq.CMQC.MQOO_FAIL_IF_QUIESCING
                handle = self.mq.Queue(self._connected(), name, options_)
            self._open[(name, options)] = handle
        return handle

    def temporary_queue(self, model: str) -> tuple[Any, str]:
        """A dynamic queue made from *model*, open for input until the connection ends: its handle and its name."""
        mq = self.mq
        od = mq.OD(ObjectName=model, DynamicQName="QPUBSUB.*")
        options = mq.CMQC.MQOO_INPUT_EXCLUSIVE | mq.CMQC.MQOO_FAIL_IF_QUIESCING
        with self._calling(f"MQOPEN of {model}"):
            handle = mq.Queue(self._connected(), od, options)
        name = self._text(od.ObjectName)
        self._open[(name, options)] = handle
        return handle, name

    def close_queue(self, name: str, options: int) -> None:
        """Close it again."""
        handle = self._open.pop((name, options), None)
        if handle is not None:
            with contextlib.suppress(self.mq.MQMIError, self.mq.PYIFError):
                handle.close()

    def get(
        self,
        handle: Any,
        options: int,
        *,
        token: bytes | None = None,
        correl_id: bytes | None = None,
        wait_ms: int = 0,
    ) -> Got | None:
        """MQGET with these MQGMO_*; None where there is no message. token, correl_id: of the one that is wanted."""
        mq, cmqc = self.mq, self.mq.CMQC
        options |= cmqc.MQGMO_FAIL_IF_QUIESCING | cmqc.MQGMO_PROPERTIES_FORCE_MQRFH2
        if wait_ms:
            options |= cmqc.MQGMO_WAIT
        while True:
            md = mq.MD()
            gmo = mq.GMO(Options=options, WaitInterval=wait_ms, MatchOptions=cmqc.MQMO_NONE)
            if token is not None:
                gmo.MatchOptions, gmo.MsgToken = cmqc.MQMO_MATCH_MSG_TOKEN, token
            if correl_id is not None:
                gmo.MatchOptions, md.CorrelId = cmqc.MQMO_MATCH_CORREL_ID, correl_id
            try:
                with self._calling("MQGET"):
                    body = handle.get(self._buffer, md, gmo)
            except MqError as error:
                if error.reason == MQRC_NO_MSG_AVAILABLE:
                    return None
                if error.reason == MQRC_TRUNCATED_MSG_FAILED:
                    self._buffer = max(self._buffer * 2, int(getattr(error.__cause__, "original_length", 0)))
                    continue
                raise
            return Got(md.pack(), body, gmo.MsgToken, len(body))

    def glance(self, handle: Any, first: bool, *, size: int = 0, correl_id: bytes | None = None) -> Got | None:
        """MQGET that browses, the descriptor and the first *size* bytes. first: at the beginning, else the next one.

        correl_id: of those that are wanted.
        """
        mq, cmqc = self.mq, self.mq.CMQC
        options = cmqc.MQGMO_BROWSE_FIRST if first else cmqc.MQGMO_BROWSE_NEXT
        options |= cmqc.MQGMO_ACCEPT_TRUNCATED_MSG | cmqc.MQGMO_FAIL_IF_QUIESCING | cmqc.MQGMO_PROPERTIES_FORCE_MQRFH2
        md, gmo = mq.MD(), mq.GMO(Options=options, MatchOptions=cmqc.MQMO_NONE)
        if correl_id is not None:
            gmo.MatchOptions, md.CorrelId = cmqc.MQMO_MATCH_CORREL_ID, correl_id
        try:
            with self._calling("MQGET (browse)"):
                body = handle.get(size, md, gmo)
                length = len(body)
        except MqError as error:
            if error.reason == MQRC_NO_MSG_AVAILABLE:
                return None
            if error.reason != MQRC_TRUNCATED_MSG_ACCEPTED:
                raise
            body, length = getattr(error.__cause__, "message", b""), int(getattr(error.__cause__, "original_length", 0))
        return Got(md.pack(), body[:size], gmo.MsgToken, length)

    def put1(self, queue: str, qmgr: str, md: bytes, body: bytes, options: int) -> None:
        """MQPUT1 with these MQPMO_*."""
        od = self.mq.OD(ObjectName=queue, ObjectQMgrName=qmgr)
        pmo = self.mq.PMO(Options=options | self.mq.CMQC.MQPMO_FAIL_IF_QUIESCING)
        where = f"{queue} at {qmgr}" if qmgr else queue
        with self._calling(f"MQPUT1 to {where}"):
            self._connected().put1(od, body, self._md(md), pmo)

    def inquire(self, handle: Any, selectors: list[int]) -> dict[int, Any]:
        """MQINQ: selector and value; text is trimmed."""
        with self._calling("MQINQ"):
            found = handle.inquire(selectors)
        return {key: self._text(value) if isinstance(value, bytes | str) else value for key, value in found.items()}

    def inquire_qmgr(self, selectors: list[int]) -> dict[int, Any]:
        """MQINQ of the queue manager."""
        return self.inquire(self._connected(), selectors)

    def publish(self, topic_string: str, md: bytes, body: bytes, options: int) -> None:
        """MQPUT to a topic."""
        mq = self.mq
        with self._calling(f"MQPUT to topic {topic_string}"):
            topic = mq.Topic(self._connected(), topic_string=topic_string.encode())
            topic.open(open_opts=mq.CMQC.MQOO_OUTPUT | mq.CMQC.MQOO_FAIL_IF_QUIESCING)
            try:
                topic.pub(body, self._md(md), mq.PMO(Options=options | mq.CMQC.MQPMO_FAIL_IF_QUIESCING))
            finally:
                topic.close()

    def subscribe(
        self, topic_string: str, name: str, options: int, queue: Any, selector: str = "", correl_id: bytes | None = None
    ) -> Subscribed:
        """MQSUB with these MQSO_*. queue: a queue's handle, None for a managed one."""
        mq = self.mq
        sd = mq.SD(Options=options | mq.CMQC.MQSO_FAIL_IF_QUIESCING)
        if topic_string:
            sd.set_vs("ObjectString", topic_string.encode())
        if name:
            sd.set_vs("SubName", name.encode())
        if selector:
            sd.set_vs("SelectionString", selector.encode())
        if correl_id is not None:
            sd.SubCorrelId = correl_id
        subscription = mq.Subscription(self._connected())
        with self._calling(f"MQSUB to {topic_string or name}"):
            subscription.sub(sub_desc=sd, sub_queue=queue)
        if queue is not None:
            # The package gives it a queue of its own by the same handle, which would be closed with it.
            subscription.get_sub_queue().set_handle(None)
        return Subscribed(subscription, subscription.get_sub_queue(), bytes(sd.SubCorrelId))

    def request(self, subscribed: Subscribed) -> int:
        """MQSUBRQ: how many retained publications are sent."""
        sro = self.mq.SRO()
        with self._calling("MQSUBRQ"):
            subscribed.handle.subrq(sro=sro)
        return int(sro.NumPubs)

    def close_subscription(self, subscribed: Subscribed, options: int, queue_too: bool = False) -> None:
        """MQCLOSE with these MQCO_*."""
        with self._calling("MQCLOSE of a subscription"):
            subscribed.handle.close(options, queue_too)

    def pcf(self, command: str, parameters: dict[int, Any]) -> list[Any]:
        """A PCF command, its name MQCMD_*; the parameters of its answers."""
        with self._calling(f"PCF {command}"):
            execute = self.mq.PCFExecute(self._connected(), response_wait_interval=10_000)
            try:
                return list(getattr(execute, command)(parameters))
            finally:
                execute.disconnect()

    def _connected(self) -> Any:
        if self._qmgr is None:
            raise ConnectionLostError("the connection", 2018, "HCONN_ERROR")
        return self._qmgr

    def _md(self, md: bytes) -> Any:
        mqmd = Mqmd.decode(md)
        native = replace(mqmd, order="little", charset=ASCII_FIELDS)
        return self.mq.MD().unpack(native.encode())

    def _text(self, value: bytes | str) -> str:
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        return text.split("\0")[0].rstrip()

    @contextlib.contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        try:
            yield
        except self.mq.MQMIError as error:
            name = error.error_as_string().partition("MQRC_")[2] or error.error_as_string()
            raise failure(what, int(error.reason), name) from error
        except self.mq.PYIFError as error:
            raise ConnectionLostError(what, 2018, "HCONN_ERROR") from error


_GET: Final = m.MQGMO_FAIL_IF_QUIESCING | m.MQGMO_PROPERTIES_FORCE_MQRFH2
_NO_CONNECTION: Final = 2018


class ChannelConnection:
    """One connection of the client channel protocol."""

    def __init__(self, address: Address, config: QueuesConfig, application: str = "qpubsub") -> None:
        self._address, self._config, self._application = address, config, application
        self._client: Client | None = None
        self._open: dict[tuple[str, int], int] = {}

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def connect(self) -> None:
        place = place_of(self._address, self._config, self._application)
        try:
            self._client = Client.to(place)
        except MqError as error:
            raise type(error)(f"{CONNECT} to {self._address}: {_why(error)}", error.reason, error.name) from error

    def disconnect(self) -> None:
        client, self._client = self._client, None
        self._open = {}
        if client is not None:
            client.abandon()

    def commit(self) -> None:
        self._connected().commit()

    def backout(self) -> None:
        self._connected().backout()

    def queue(self, name: str, options: int) -> int:
        handle = self._open.get((name, options))
        if handle is None:
            opened = self._connected().open(Target(name), options | m.MQOO_FAIL_IF_QUIESCING)
            handle = self._open[(name, options)] = opened.handle
        return handle

    def temporary_queue(self, model: str) -> tuple[int, str]:
        options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_FAIL_IF_QUIESCING
        opened = self._connected().open(Target(model, dynamic="QPUBSUB.*"), options)
        self._open[(opened.name, options)] = opened.handle
        return opened.handle, opened.name

    def close_queue(self, name: str, options: int) -> None:
        handle = self._open.pop((name, options), None)
        if handle is not None and self._client is not None:
            with suppress(MqError):
                self._client.close(handle)

    def get(
        self,
        handle: Any,
        options: int,
        *,
        token: bytes | None = None,
        correl_id: bytes | None = None,
        wait_ms: int = 0,
    ) -> Got | None:
        wanted = Wanted(options | _GET, wait_ms or None)
        if token is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_MSG_TOKEN, token=token)
        if correl_id is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_CORREL_ID, correl_id=correl_id)
        got = self._connected().get(handle, wanted)
        return None if got is None else Got(got.md, got.body, got.token, got.length)

    def glance(self, handle: Any, first: bool, *, size: int = 0, correl_id: bytes | None = None) -> Got | None:
        options = m.MQGMO_BROWSE_FIRST if first else m.MQGMO_BROWSE_NEXT
        wanted = Wanted(options | m.MQGMO_ACCEPT_TRUNCATED_MSG | _GET, longest=size)
        if correl_id is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_CORREL_ID, correl_id=correl_id)
        got = self._connected().get(handle, wanted, "MQGET (browse)")
        return None if got is None else Got(got.md, got.body[:size], got.token, got.length)

    def put1(self, queue: str, qmgr: str, md: bytes, body: bytes, options: int) -> None:
        self._connected().put1(Target(queue, qmgr=qmgr), md, body, options | m.MQPMO_FAIL_IF_QUIESCING)

    def inquire(self, handle: Any, selectors: list[int]) -> dict[int, Any]:
        return self._connected().inquire(handle, selectors)

    def inquire_qmgr(self, selectors: list[int]) -> dict[int, Any]:
        return self._connected().inquire_qmgr(selectors)

    def publish(self, topic_string: str, md: bytes, body: bytes, options: int) -> None:
        target = Target(kind=MQOT_TOPIC, topic=topic_string)
        self._connected().put1(target, md, body, options | m.MQPMO_FAIL_IF_QUIESCING)

    def subscribe(
        self, topic_string: str, name: str, options: int, queue: Any, selector: str = "", correl_id: bytes | None = None
    ) -> Subscribed:
        asked = Subscribing(
            options | m.MQSO_FAIL_IF_QUIESCING,
            topic_string,
            name=name,
            selector=selector,
            correl_id=bytes(24) if correl_id is None else correl_id,
        )
        made = self._connected().subscribe(asked, queue or 0)
        return Subscribed(made.hsub, queue or made.hobj, bytes(made.descriptor["SubCorrelId"]))

    def request(self, subscribed: Subscribed) -> int:
        return self._connected().request_retained(subscribed.handle)

    def close_subscription(self, subscribed: Subscribed, options: int, queue_too: bool = False) -> None:
        client = self._connected()
        client.close(subscribed.handle, options)
        if queue_too:
            with suppress(MqError):  # a managed queue goes with its subscription
                client.close(subscribed.queue)

    def pcf(self, command: str, parameters: dict[int, Any]) -> list[Any]:
        number = vars(pcf_admin_names).get(command) or vars(pcf_names)[command]
        return pcf.execute(self._connected(), number, parameters)

    def _connected(self) -> Client:
        if self._client is None:
            raise ConnectionLostError("the connection", _NO_CONNECTION, reason_word(_NO_CONNECTION))
        return self._client


def _why(error: MqError) -> str:
    return error.what.removeprefix(f"{CONNECT} to ").removeprefix(CONNECT).removeprefix(": ")


def connection_to(address: Address, config: QueuesConfig, application: str = "qpubsub") -> Connection:
    """A connection that is not made yet. Raises ConfigError where the package ``ibmmq`` is needed and missing."""
    if address.needs_library:
        return LibraryConnection(address, config, application)
    return ChannelConnection(address, config, application)
