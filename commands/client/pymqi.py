# ruff: noqa: N803, N815 - the names are those of the package pymqi
"""The shape of the packages ``pymqi`` and ``ibmmq`` on the client here: a program changes its import.

    import commands.client.pymqi as pymqi

    qmgr = pymqi.connect("QM1", "APP.SVRCONN", "mq.example.com(1414)", "app", "password")
    queue = pymqi.Queue(qmgr, "ORDERS")
    queue.put("one")
    queue.get()

Texts come as bytes, as there. Structures have the fields that a call here reads or writes; others are taken and have no
effect. Not here: message handles, the structures of PCF (``PCFExecute`` takes a dictionary), local bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

from commands.client import calls, pcf
from commands.client.calls import Subscribing, Target, Wanted
from commands.client.connection import Connection, Place
from commands.client.errors import MqError, reason_word
from commands.client.places import connection_list
from commands.client.queue_manager import Message
from rfh2 import constants, mqi_constants, pcf_admin_names, pcf_names
from rfh2.ccsid import UTF8_CCSID
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC

_NOT_CONNECTED: Final = 2018


class _Constants:
    """IBM's constants by their names (``MQOO_OUTPUT``)."""

    def __init__(self, **own: Any) -> None:
        for module in (constants, pcf_names, pcf_admin_names, mqi_constants):
            vars(self).update({name: value for name, value in vars(module).items() if name.startswith("MQ")})
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"IBM's constant {name} is not known here")


_FORMATS = {
    name: value.ljust(8).encode()
    for name, value in vars(constants).items()
    if name.startswith("MQFMT_") and isinstance(value, str)
}
_FORMATS |= {"MQFMT_NONE": b" " * 8, "MQFMT_ADMIN": b"MQADMIN ", "MQFMT_PCF": b"MQPCF   "}
CMQC: Final = _Constants(
    **_FORMATS,
    MQCO_NONE=0,
    MQGMO_NO_WAIT=0,
    MQMO_NONE=0,
    MQOO_BIND_AS_Q_DEF=0,
    MQSO_NON_DURABLE=0,
    MQMI_NONE=bytes(24),
    MQCI_NONE=bytes(24),
    MQGI_NONE=bytes(24),
    MQMD_VERSION_1=1,
    MQMD_VERSION_2=2,
    MQMD_CURRENT_VERSION=2,
    MQGMO_VERSION_2=2,
    MQGMO_VERSION_3=3,
    MQGMO_VERSION_4=4,
    MQGMO_CURRENT_VERSION=4,
    MQPMO_CURRENT_VERSION=3,
)
CMQCFC: Final = CMQC


class Error(Exception):
    """Base of the errors here."""


class MQMIError(Error):
    """A call that failed, or ended with a warning. comp, reason: MQCC_* and MQRC_*."""

    def __init__(self, comp: int, reason: int, **more: Any) -> None:
        super().__init__(comp, reason)
        self.comp, self.reason = comp, reason
        vars(self).update(more)

    def error_as_string(self) -> str:
        """Its name."""
        return f"MQRC_{reason_word(self.reason)}"

    errorAsString = error_as_string

    def __str__(self) -> str:
        return f"MQI Error. Comp: {self.comp}, Reason {self.reason}: {self.error_as_string()}"


class PYIFError(Error):
    """A call that makes no sense."""

    def __init__(self, e: str) -> None:
        super().__init__(e)
        self.error = e


def _failed(error: MqError, **more: Any) -> MQMIError:
    return MQMIError(mqi_constants.MQCC_FAILED, error.reason, **more)


def _text(value: str | bytes) -> str:
    text = value.decode("utf-8") if isinstance(value, bytes) else value
    return text.split("\0", 1)[0].rstrip()


class _Fields:
    """A structure by IBM's names, as attributes and as items."""

    fields: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **given: Any) -> None:
        vars(self).update(self.fields)
        self.set(**given)

    def set(self, **given: Any) -> None:
        """Set fields by name. Raises PYIFError for one that the structure does not have."""
        for name, value in given.items():
            self[name] = value

    def get(self) -> dict[str, Any]:
        """All fields."""
        return dict(vars(self))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no field {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.fields:
            raise PYIFError(f"{type(self).__name__} has no field {name}")
        super().__setattr__(name, value)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)


_MD_FIELDS: Final = {
    "Version": "version",
    "Report": "report",
    "MsgType": "msg_type",
    "Expiry": "expiry",
    "Feedback": "feedback",
    "Encoding": "encoding",
    "CodedCharSetId": "coded_char_set_id",
    "Format": "format",
    "Priority": "priority",
    "Persistence": "persistence",
    "MsgId": "msg_id",
    "CorrelId": "correl_id",
    "BackoutCount": "backout_count",
    "ReplyToQ": "reply_to_q",
    "ReplyToQMgr": "reply_to_qmgr",
    "UserIdentifier": "user_identifier",
    "AccountingToken": "accounting_token",
    "ApplIdentityData": "appl_identity_data",
    "PutApplType": "put_appl_type",
    "PutApplName": "put_appl_name",
    "PutDate": "put_date",
    "PutTime": "put_time",
    "ApplOriginData": "appl_origin_data",
    "GroupId": "group_id",
    "MsgSeqNumber": "msg_seq_number",
    "Offset": "offset",
    "MsgFlags": "msg_flags",
    "OriginalLength": "original_length",
}
_SIZES: Final = {"Format": 8, "ReplyToQ": 48, "ReplyToQMgr": 48, "UserIdentifier": 12, "PutApplName": 28}
_BINARY: Final = frozenset({"MsgId", "CorrelId", "AccountingToken", "GroupId"})
_PLAIN: Final = Mqmd(version=2)


def _out(name: str, value: Any) -> Any:
    return value.encode().ljust(_SIZES.get(name, 0)) if isinstance(value, str) else value


class MD(_Fields):
    """A message descriptor."""

    fields = {name: _out(name, getattr(_PLAIN, of)) for name, of in _MD_FIELDS.items()} | {"Version": 1}

    def mqmd(self) -> Mqmd:
        """The descriptor to put."""
        values: dict[str, Any] = {}
        for name, of in _MD_FIELDS.items():
            value, default = getattr(self, name), getattr(_PLAIN, of)
            if name in _BINARY:
                data = value.encode() if isinstance(value, str) else bytes(value)
                value = data[: len(default)].ljust(len(default), b"\0")
            elif isinstance(default, str):
                value = _text(value)
            values[of] = value
        return Mqmd(**{**values, "version": 2})

    def take(self, md: bytes) -> None:
        """Have the fields of a descriptor that came."""
        found = Mqmd.decode(md)
        for name, of in _MD_FIELDS.items():
            self[name] = _out(name, getattr(found, of))


class PMO(_Fields):
    """How to put."""

    fields = {"Version": 1, "Options": 0, "Context": 0, "ResolvedQName": b"", "ResolvedQMgrName": b"", "PubLevel": 9}


class GMO(_Fields):
    """How to get."""

    fields = {
        "Version": 1,
        "Options": 0,
        "WaitInterval": 0,
        "MatchOptions": mqi_constants.MQMO_MATCH_MSG_ID | mqi_constants.MQMO_MATCH_CORREL_ID,
        "ResolvedQName": b"",
        "MsgToken": bytes(16),
        "ReturnedLength": 0,
        "GroupStatus": b" ",
        "SegmentStatus": b" ",
        "Segmentation": b" ",
        "MsgHandle": 0,
    }


class OD(_Fields):
    """What to open."""

    fields = {
        "Version": 1,
        "ObjectType": 1,
        "ObjectName": b"",
        "ObjectQMgrName": b"",
        "DynamicQName": b"AMQ.*",
        "AlternateUserId": b"",
        "ObjectString": b"",
        "SelectionString": b"",
        "ResolvedQName": b"",
        "ResolvedQMgrName": b"",
    }

    def target(self) -> Target:
        """What it names."""
        return Target(
            _text(self["ObjectName"]),
            self["ObjectType"],
            _text(self["ObjectQMgrName"]),
            _text(self["DynamicQName"]),
            _text(self["AlternateUserId"]),
            _text(self["ObjectString"]),
            _text(self["SelectionString"]),
        )

    def set_vs(self, name: str, value: str | bytes, *_: Any) -> None:
        """A string of any length."""
        self[name] = value


class SD(_Fields):
    """What to subscribe to."""

    fields = {
        "Version": 1,
        "Options": 0,
        "ObjectName": b"",
        "ObjectString": b"",
        "SubName": b"",
        "SubUserData": b"",
        "SelectionString": b"",
        "SubCorrelId": bytes(24),
        "SubExpiry": -1,
        "PubPriority": -3,
        "SubLevel": 1,
        "AlternateUserId": b"",
        "ResObjectString": b"",
    }

    def set_vs(self, name: str, value: str | bytes, *_: Any) -> None:
        """A string of any length."""
        self[name] = value

    def get_vs(self, name: str) -> Any:
        """A string of any length."""
        return self[name]

    def asked(self) -> Subscribing:
        """The call."""
        return Subscribing(
            self["Options"],
            _text(self["ObjectString"]),
            _text(self["ObjectName"]),
            _text(self["SubName"]),
            _text(self["SubUserData"]),
            _text(self["SelectionString"]),
            bytes(self["SubCorrelId"]).ljust(24, b"\0"),
            self["SubExpiry"],
            self["PubPriority"],
            self["SubLevel"],
            _text(self["AlternateUserId"]),
        )


class CD(_Fields):
    """A channel."""

    fields = {
        "ChannelName": b"",
        "ConnectionName": b"",
        "ChannelType": 6,
        "TransportType": 2,
        "SSLCipherSpec": b"",
        "SharingConversations": 10,
        "HeartbeatInterval": 300,
        "MaxMsgLength": 104_857_600,
        "UserIdentifier": b"",
        "Password": b"",
        "Version": 11,
    }


class SCO(_Fields):
    """TLS by IBM's key repositories, which are not read here: give ``connect_with_options`` an SSLContext as *tls*."""

    fields = {"KeyRepository": b"", "CertificateLabel": b"", "CertificateValPolicy": 0, "Version": 5}


class QueueManager:
    """A connection, made by one of the calls."""

    def __init__(self, name: str | None = "", **_: Any) -> None:
        self._connection: Connection | None = None
        if name is not None:
            raise PYIFError("there are no local queue managers here: give QueueManager None, and connect")

    def connect_tcp_client(
        self,
        name: str | bytes,
        cd: CD,
        channel: str | bytes,
        conn_name: str | bytes,
        user: str | bytes | None = None,
        password: str | bytes | None = None,
    ) -> None:
        """Connect over TCP."""
        cd.ChannelName, cd.ConnectionName = channel, conn_name
        self.connect_with_options(name, cd=cd, user=user, password=password)

    connectTCPClient = connect_tcp_client

    def connect_with_options(
        self,
        name: str | bytes,
        *args: Any,
        user: str | bytes | None = None,
        password: str | bytes | None = None,
        cd: CD | None = None,
        tls: Any = None,
        **_: Any,
    ) -> None:
        """Connect by a CD. tls: an ssl.SSLContext."""
        channel = cd or next((each for each in args if isinstance(each, CD)), None)
        if channel is None:
            raise PYIFError("a CD is needed: its ChannelName and ConnectionName say where the queue manager is")
        place = Place(
            connection_list(_text(channel["ConnectionName"]), "ConnectionName"),
            _text(channel["ChannelName"]),
            _text(name),
            None if user is None else _text(user),
            None if password is None else _text(password),
            tls,
            "pymqi",
            channel["SharingConversations"],
            channel["HeartbeatInterval"],
        )
        try:
            self._connection = Connection.to(place)
        except MqError as error:
            raise _failed(error) from error

    connectWithOptions = connect_with_options

    @property
    def is_connected(self) -> bool:
        """Whether it is, as far as is known."""
        return self._connection is not None and self._connection.is_up

    def get_handle(self) -> Connection:
        """The connection itself. Raises PYIFError where there is none."""
        if self._connection is None:
            raise PYIFError("not connected")
        return self._connection

    getHandle = get_handle

    def disconnect(self) -> None:
        """End the connection; what is not committed is."""
        connection, self._connection = self._connection, None
        if connection is None:
            raise PYIFError("not connected")
        connection.disconnect()

    def begin(self) -> None:
        """Nothing: a unit of work begins with its first call."""

    def commit(self) -> None:
        """MQCMIT."""
        self.call(Connection.commit)

    def backout(self) -> None:
        """MQBACK."""
        self.call(Connection.backout)

    def put1(self, queue: str | bytes | OD, msg: str | bytes, *opts: Any) -> None:
        """MQPUT1; opts: an MD and a PMO."""
        target = queue.target() if isinstance(queue, OD) else Target(_text(queue))
        md, pmo = _chosen(opts)
        described, body = _outgoing(md, msg)
        options, how = pmo["Options"], {"context": pmo["Context"]}
        md.take(self.call(lambda connection: connection.put1(target, described.encode(), body, options, **how)))

    def inquire(self, attribute: int) -> Any:
        """MQINQ of one attribute."""
        found = self.call(lambda connection: connection.inquire_qmgr([attribute])[attribute])
        return found.encode() if isinstance(found, str) else found

    def call(self, call: Callable[[Connection], Any], **more: Any) -> Any:
        """*call* with the connection, its errors as MQMIError."""
        connection = self._connection
        if connection is None:
            raise MQMIError(mqi_constants.MQCC_FAILED, _NOT_CONNECTED)
        try:
            return call(connection)
        except MqError as error:
            raise _failed(error, **more) from error


def connect(
    queue_manager: str | bytes,
    channel: str | bytes | None = None,
    conn_info: str | bytes | None = None,
    user: str | bytes | None = None,
    password: str | bytes | None = None,
    **_: Any,
) -> QueueManager:
    """A connected queue manager."""
    if channel is None or conn_info is None:
        raise PYIFError("channel and conn_info are needed: there are no local queue managers here")
    made = QueueManager(None)
    made.connect_tcp_client(queue_manager, CD(), channel, conn_info, user, password)
    return made


def _chosen(opts: Sequence[Any]) -> tuple[MD, PMO]:
    md = next((each for each in opts if isinstance(each, MD)), None) or MD()
    pmo = next((each for each in opts if isinstance(each, PMO)), None) or PMO()
    return md, pmo


def _outgoing(md: MD, msg: str | bytes) -> tuple[Mqmd, bytes]:
    if isinstance(msg, str):
        md.CodedCharSetId, md.Format = UTF8_CCSID, CMQC.MQFMT_STRING
        msg = msg.encode()
    return md.mqmd(), msg


class Queue:
    """A queue, opened by its name with *args* (MQOO_*), or by its first put or get."""

    def __init__(self, qmgr: QueueManager, *args: Any) -> None:
        self.qmgr = qmgr
        self._target: Target | None = None
        self._handles: dict[int, int] = {}
        self._options: int | None = None
        if args:
            self._describe(args[0])
            if len(args) > 1:
                self.open(args[0], args[1])

    def _describe(self, queue: str | bytes | OD) -> None:
        self._od = queue if isinstance(queue, OD) else None
        self._target = queue.target() if isinstance(queue, OD) else Target(_text(queue))

    def open(self, queue: str | bytes | OD, *opts: Any) -> None:
        """MQOPEN."""
        self._describe(queue)
        self._options = opts[0] if opts else mqi_constants.MQOO_INPUT_AS_Q_DEF
        self.handle(self._options)

    def handle(self, options: int) -> int:
        """The handle, opened with *options* where the program said nothing itself."""
        if self._target is None:
            raise PYIFError("the queue is not open")
        wanted = self._options if self._options is not None else options
        if wanted not in self._handles:
            target = self._target
            opened = self.qmgr.call(lambda connection: connection.open(target, wanted))
            self._handles[wanted] = opened.handle
            if self._od is not None:
                self._od["ObjectName"] = opened.name.encode().ljust(48)
        return self._handles[wanted]

    def put(self, msg: str | bytes, *opts: Any) -> None:
        """MQPUT; opts: an MD and a PMO. The MD then has what the queue manager set."""
        md, pmo = _chosen(opts)
        handle = self.handle(mqi_constants.MQOO_OUTPUT)
        described, body = _outgoing(md, msg)
        if pmo["Options"] & mqi_constants.MQPMO_NEW_CORREL_ID:
            md.CorrelId = bytes(24)
        options, context = pmo["Options"], pmo["Context"]
        md.take(
            self.qmgr.call(
                lambda connection: connection.put(handle, described.encode(), body, options, context=context)
            )
        )

    def get(self, maxLength: int | None = None, *opts: Any) -> bytes:
        """MQGET of a message of at most *maxLength* bytes, None for any; opts: an MD and a GMO.

        Raises MQMIError: 2033 where there is none; 2079 and 2080 with ``message`` and ``original_length``.
        """
        md = next((each for each in opts if isinstance(each, MD)), None) or MD()
        gmo = next((each for each in opts if isinstance(each, GMO)), None) or GMO()
        handle = self.handle(mqi_constants.MQOO_INPUT_AS_Q_DEF)
        asked = md.mqmd()
        converts = gmo["Options"] & mqi_constants.MQGMO_CONVERT
        wanted = Wanted(
            gmo["Options"] & ~mqi_constants.MQGMO_WAIT,
            gmo["WaitInterval"] if gmo["Options"] & mqi_constants.MQGMO_WAIT else None,
            maxLength,
            gmo["MatchOptions"],
            asked.msg_id,
            asked.correl_id,
            asked.group_id,
            bytes(gmo["MsgToken"]),
            asked.msg_seq_number,
            (asked.coded_char_set_id or UTF8_CCSID) if converts else UTF8_CCSID,
            asked.encoding,
        )
        return self._got(md, gmo, handle, wanted)

    def _got(self, md: MD, gmo: GMO, handle: int, wanted: Wanted) -> bytes:
        try:
            got = self.qmgr.call(lambda connection: connection.get(handle, wanted))
        except MQMIError as error:
            if error.reason != mqi_constants.MQRC_TRUNCATED_MSG_FAILED:
                raise
            browsed = self._cut(wanted)
            raise MQMIError(mqi_constants.MQCC_WARNING, error.reason, **browsed) from error
        if got is None:
            raise MQMIError(mqi_constants.MQCC_FAILED, mqi_constants.MQRC_NO_MSG_AVAILABLE)
        md.take(got.md)
        gmo.MsgToken, gmo.ReturnedLength = got.token, len(got.body)
        if got.reason:
            raise MQMIError(mqi_constants.MQCC_WARNING, got.reason, message=got.body, original_length=got.length)
        return bytes(got.body)

    def _cut(self, wanted: Wanted) -> dict[str, Any]:
        """What is told of a message that did not fit."""
        browse = mqi_constants.MQOO_BROWSE
        options = mqi_constants.MQGMO_BROWSE_FIRST | mqi_constants.MQGMO_ACCEPT_TRUNCATED_MSG
        target = self._target
        assert target is not None

        def look(connection: Connection) -> dict[str, Any]:
            handle = connection.open(target, browse).handle
            try:
                found = connection.get(
                    handle,
                    Wanted(
                        options,
                        longest=wanted.longest,
                        match=wanted.match,
                        msg_id=wanted.msg_id,
                        correl_id=wanted.correl_id,
                    ),
                )
            finally:
                connection.close(handle)
            return {} if found is None else {"message": found.body, "original_length": found.length}

        found: dict[str, Any] = self.qmgr.call(look)
        return found

    def get_no_rfh2(self, maxLength: int | None = None, *opts: Any) -> bytes:
        """The data behind an MQRFH2, if there is one."""
        md = next((each for each in opts if isinstance(each, MD)), None) or MD()
        body = self.get(maxLength, md, *(each for each in opts if each is not md))
        return Message(md.mqmd().encode(), body).data

    def close(self, options: int = 0) -> None:
        """MQCLOSE."""
        if not self._handles:
            raise PYIFError("the queue is not open")
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            self.qmgr.call(partial(Connection.close, handle=handle, options=options))

    def inquire(self, attribute: int) -> Any:
        """MQINQ of one attribute."""
        handle = self.handle(mqi_constants.MQOO_INQUIRE)
        found = self.qmgr.call(lambda connection: connection.inquire(handle, [attribute])[attribute])
        return found.encode() if isinstance(found, str) else found

    def set(self, attribute: int, arg: int) -> None:
        """MQSET of one attribute that is a number."""
        handle = self.handle(mqi_constants.MQOO_SET)
        self.qmgr.call(lambda connection: connection.set(handle, {attribute: arg}))


class Topic:
    """A topic to put on."""

    def __init__(
        self, queue_manager: QueueManager, topic_name: Any = None, topic_string: Any = None, topic_desc: Any = None
    ) -> None:
        del topic_desc
        name, string = (_text(each or "") for each in (topic_name, topic_string))
        self.qmgr, self._target = queue_manager, Target(name, MQOT_TOPIC, topic=string)
        self._handle: int | None = None

    def open(
        self, topic_name: Any = None, topic_string: Any = None, topic_desc: Any = None, open_opts: Any = 0
    ) -> None:
        """MQOPEN."""
        del topic_desc
        if topic_name or topic_string:
            self._target = Target(_text(topic_name or ""), MQOT_TOPIC, topic=_text(topic_string or ""))
        opened = self.qmgr.call(
            lambda connection: connection.open(self._target, open_opts or mqi_constants.MQOO_OUTPUT)
        )
        self._handle = opened.handle

    def pub(self, msg: str | bytes, *opts: Any) -> None:
        """MQPUT."""
        if self._handle is None:
            self.open()
        md, pmo = _chosen(opts)
        described, body = _outgoing(md, msg)
        handle, options = self._handle, pmo["Options"]
        assert handle is not None
        md.take(self.qmgr.call(lambda connection: connection.put(handle, described.encode(), body, options)))

    def close(self, options: int = 0) -> None:
        """MQCLOSE."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self.qmgr.call(lambda connection: connection.close(handle, options))


class Subscription:
    """A subscription, and the queue of its publications."""

    def __init__(self, queue_manager: QueueManager, **_: Any) -> None:
        self.qmgr = queue_manager
        self._made: calls.Subscribed | None = None
        self._queue: Queue | None = None

    def sub(self, sub_desc: SD | None = None, sub_queue: Queue | None = None, **named: Any) -> None:
        """MQSUB."""
        asked = sub_desc or SD(
            Options=named.get("sub_opts") or mqi_constants.MQSO_CREATE | mqi_constants.MQSO_MANAGED,
            SubName=named.get("sub_name") or b"",
            ObjectName=named.get("topic_name") or b"",
            ObjectString=named.get("topic_string") or b"",
        )
        queue = 0 if sub_queue is None else sub_queue.handle(mqi_constants.MQOO_INPUT_AS_Q_DEF)
        made: calls.Subscribed = self.qmgr.call(lambda connection: connection.subscribe(asked.asked(), queue))
        self._made = made
        if sub_desc is not None:
            sub_desc["SubCorrelId"] = bytes(made.descriptor["SubCorrelId"])
            sub_desc["ResObjectString"] = made.string("ResObjectString").encode()
        if sub_queue is None:
            self._queue = Queue(self.qmgr)
            self._queue._target, self._queue._od, self._queue._options = Target(), None, 0
            self._queue._handles = {0: made.hobj}
        else:
            self._queue = sub_queue

    def get_sub_queue(self) -> Queue | None:
        """The queue."""
        return self._queue

    def get(self, max_length: int | None = None, *opts: Any) -> bytes:
        """MQGET of a publication."""
        if self._queue is None:
            raise PYIFError("not subscribed")
        return self._queue.get(max_length, *opts)

    def close(
        self, sub_close_options: int = 0, close_sub_queue: bool = False, close_sub_queue_options: int = 0
    ) -> None:
        """MQCLOSE of the subscription, and of its queue."""
        made, self._made = self._made, None
        if made is not None:
            self.qmgr.call(lambda connection: connection.close(made.hsub, sub_close_options))
        if close_sub_queue and self._queue is not None:
            with suppress(MQMIError):  # a managed queue goes with its subscription
                self._queue.close(close_sub_queue_options)


class PCFExecute:
    """Commands of administration: ``PCFExecute(qmgr).MQCMD_INQUIRE_Q({CMQC.MQCA_Q_NAME: b"*"})``."""

    def __init__(self, name: QueueManager, *, response_wait_interval: int = 5_000, **_: Any) -> None:
        self.qmgr, self._wait_s = name, response_wait_interval / 1_000

    def __getattr__(self, name: str) -> Callable[..., list[dict[int, Any]]]:
        number = getattr(CMQC, name) if name.startswith("MQCMD_") else None
        if number is None:
            raise AttributeError(name)

        def execute(args: Mapping[int, Any] | None = None, *_: Any) -> list[dict[int, Any]]:
            given = {key: _decoded(value) for key, value in (args or {}).items()}
            found = self.qmgr.call(lambda connection: pcf.execute(connection, number, given, wait_s=self._wait_s))
            return [{key: _encoded(value) for key, value in row.items()} for row in found]

        return execute

    def disconnect(self) -> None:
        """Nothing: it has no connection of its own."""


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return [_decoded(each) for each in value] if isinstance(value, list | tuple) else value


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {key: _encoded(each) for key, each in value.items()}
    return [_encoded(each) for each in value] if isinstance(value, list) else value


md, pmo, gmo, od, cd, sco, sd = MD, PMO, GMO, OD, CD, SCO, SD
"""The names of earlier versions."""
