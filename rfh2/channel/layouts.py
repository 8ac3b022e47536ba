"""The structures of a client channel, declared with construct: of segments, and of MQI calls (docs/wire-formats.md).

Pointers have four bytes on the wire. What is always big-endian, in whatever order the rest is, is declared as bytes.
"""

from __future__ import annotations

from typing import Any

import construct as c

from rfh2.layouts import Layout

# How calls use them: observed with IBM's Java client 9.4.1, or in recorded segments, unless said.
#
# order of segments: INITIAL_DATA, until nothing is marked as not accepted; USERID, no reply; CONAUTH_INFO, answered
#   by an empty STATUS; MQCONN; calls; MQDISC
# INITIAL_DATA: 44, 102, 208 or 240 bytes by level. A value that is not accepted: the server's own in its place, its
#   error bit, control flag 0x02
# password: plain up to level 12; from 13 on protected in an unknown way
# HEARTBEAT: no payload; flags 0x31 asks, 0x30 answers. On a shared connection both ends ask, with TSHC
# conversations: 1 is there; SOCKET_ACTION type 1 starts others, answered by type 8; type 2 ends one, without a reply
# handle in replies: that of the request; MQOPEN: the new one; MQCLOSE: -1, or the handle itself if messages were sent
#   to it
# ReplyLength in a reply: 28 and the bytes after the segment header, whichever header that is
# SelectionString of JMS: after the MQOD, which gives its offset
# REQUEST_MSGS: flag 0x10: a selection follows, else the last one counts; 0x08: a call waits for the message, else a
#   consumer does; 0x02: send what there is, with request id 1, then NOTIFICATION 11 with the request's own id
# a wait that is over: NOTIFICATION 11
# a call that fails: ASYNC_MESSAGE with the reason, and an MQMD all the same
# a message longer than was asked for: ASYNC_MESSAGE with reason 2080, or 2079, and the beginning of the data; the
#   program asks again, by the message token
# TotalMsgLength, ActualMsgLength: how much of the message is sent, and how long it is
# the length of a segment of a shared connection: a multiple of 4, filled up with zeros: a Java client looks for
#   fields at multiples of 4
# MQINQ: the reply has as many integers as the request has room for (IntAttrCount); the characters are after these
# NOTIFICATION 3: the connection's consumers are started (2) or stopped (0); with a request id other than 1 it is
#   answered by NOTIFICATION 4, as 5 is by 6
# MQSUB: after the API header with the handle of the queue: that of the subscription, 0, MQSD of 312 bytes, its
#   strings. The reply is the same
# MQSUBRQ: after the API header with the handle of the subscription: the action, MQSRO of 16 bytes
# strings after an MQSD: in the order of the structure, in UTF-8, each filled up to 4 bytes; in the reply
#   ResObjectString last
# MQSET, MQSTAT: as MQINQ with values, and no body in the reply; the type, and MQSTS of 224 bytes
# MQPUT with MQPMO_ASYNC_RESPONSE: no reply. Before the first one a Java program reserves identifiers by SPI verb 6
# SPI verb 2: MQPUT with options: 2 syncpoint, 4 deferred. SPPI is 32 bytes, then the data
# SPI verb 3: MQGET. SPGU: MQMD, MQGMO. SPGI, version 2: size and interval of a batch, longest message, options: 2
#   commits what was got before. SPGO, version 2, is 28 bytes, then the data
# SPI verb 4: a deferred message, by MsgId: mode 2 takes it back; another one puts it now (not observed)
# SPI verb 6: SPRI: 24 (bytes of an identifier) and how many. SPRO: how many, the byte from which the program counts,
#   the first being 1, and the first identifier; the program counts in 3 bytes, little-endian, which must not wrap
# SPI verb 7: MQSUB of JMS: after SPBI the handle of the subscription, LSD of 196 bytes (Options 0x50 for a shared
#   subscription, 0x20000 for one that another program has open, by the SubId at 32; queue and queue manager at 64 and
#   112), MQSD, strings. Handle of the queue in the API header
# SPI verb 11: SPNI: 1, a reason, and the identifier of a connection (24 bytes): calls of this that wait for a message
#   end with the reason
# SPI verb 12: MQOPEN. In version 1, of clients 9.0 and 9.1.0, LPOO has 32 bytes; in version 2 it is LPOO 3 of 88
#   bytes, and the reply ends with the policy of the queue


def _short(long: Any) -> Any:
    return c.Int16ub if long is c.Int32sb else c.Int16ul


def _header_rest(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    return (
        "ByteOrder" / c.Byte,
        "SegmentType" / c.Byte,
        "ControlFlags1" / c.Byte,
        "ControlFlags2" / c.Byte,
        "Luwid" / c.Bytes(8),
        "Encoding" / long,
        "CodedCharSetId" / short,
        "Reserved" / short,
    )


def _tsh(long: Any) -> tuple[Any, ...]:
    return ("StrucId" / c.Bytes(4), "SegmentLength" / c.Bytes(4), *_header_rest(long))


def _tshm(long: Any) -> tuple[Any, ...]:
    own = ("StrucId" / c.Bytes(4), "SegmentLength" / c.Bytes(4), "ConversationId" / c.Bytes(4))
    return (*own, "RequestId" / c.Bytes(4), *_header_rest(long))


def _id_begin(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    return (
        "StrucId" / c.Bytes(4),
        "FapLevel" / c.Byte,
        "CapabilityFlags1" / c.Byte,
        "NotAccepted1" / c.Byte,
        "ErrorFlags1" / c.Byte,
        "Reserved1" / short,
        "MaxMessagesPerBatch" / short,
        "MaxTransmissionSize" / long,
        "MaxMessageSize" / long,
        "SequenceWrap" / long,
        "ChannelName" / c.Bytes(20),
    )


def _id_more(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    return (
        "CapabilityFlags2" / c.Byte,
        "NotAccepted2" / c.Byte,
        "CodedCharSetId" / short,
        "QMgrName" / c.Bytes(48),
        "HeartbeatInterval" / long,
        "LengthOfRest" / short,
    )


def _id_sharing(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    return (
        "ErrorFlags2" / c.Byte,
        "Reserved2" / c.Byte,
        "HeaderCompression" / c.Bytes(2),
        "MessageCompression" / c.Bytes(16),
        "Reserved3" / short,
        "SslKeyResetCount" / long,
        "ConversationsPerSocket" / long,
        "CapabilityFlags3" / c.Byte,
        "NotAccepted3" / c.Byte,
        "Reserved4" / short,
        "ProcessId" / long,
        "ThreadId" / long,
        "TraceId" / long,
        "ProductId" / c.Bytes(12),
        "QMgrIdentifier" / c.Bytes(48),
    )


def _id_protection(long: Any) -> tuple[Any, ...]:
    del long
    return ("PasswordProtection" / c.Bytes(20), "Random" / c.Bytes(12))


def _uid(long: Any) -> tuple[Any, ...]:
    del long
    return ("StrucId" / c.Bytes(4), "UserIdentifier" / c.Bytes(12), "Password" / c.Bytes(12))


def _uid_long(long: Any) -> tuple[Any, ...]:
    return (*_uid(long), "LongUserIdentifier" / c.Bytes(64), "SidLength" / c.Byte, "Sid" / c.Bytes(39))


def _caut(long: Any) -> tuple[Any, ...]:
    names = ("AuthenticationType", "UserMaxLength", "PasswordMaxLength", "UserLength", "PasswordLength")
    return ("StrucId" / c.Bytes(4), *(name / long for name in names))


def _api(long: Any) -> tuple[Any, ...]:
    return ("ReplyLength" / c.Bytes(4), "CompCode" / long, "Reason" / long, "ObjectHandle" / long)


def _xa(long: Any) -> tuple[Any, ...]:
    # In place of the API header.
    return ("ReplyLength" / c.Bytes(4), "ReturnValue" / long, "Flags" / long, "ResourceManager" / long)


def _xid(long: Any) -> tuple[Any, ...]:
    # The two identifiers follow, and zeros up to a multiple of 4.
    return ("FormatId" / long, "GlobalLength" / c.Int8ub, "BranchLength" / c.Int8ub)


def _conn(long: Any) -> tuple[Any, ...]:
    return (
        "QMgrName" / c.Bytes(48),
        "ApplName" / c.Bytes(28),
        "ApplType" / long,
        "AccountingToken" / c.Bytes(32),
        "Options" / long,
        "ConnectOptions" / long,
    )


def _fcno(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "CapabilityFlags" / long,
        "ConnTag" / c.Bytes(128),
    )


def _charv(long: Any, name: str) -> tuple[Any, ...]:
    parts = ("Pointer", "Offset", "BufferSize", "Length", "CodedCharSetId")
    return tuple(f"{name}{part}" / long for part in parts)


def _od1(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "ObjectType" / long,
        "ObjectName" / c.Bytes(48),
        "ObjectQMgrName" / c.Bytes(48),
        "DynamicQName" / c.Bytes(48),
        "AlternateUserId" / c.Bytes(12),
    )


def _od2(long: Any) -> tuple[Any, ...]:
    counts = ("RecsPresent", "KnownDestCount", "UnknownDestCount", "InvalidDestCount")
    offsets = ("ObjectRecOffset", "ResponseRecOffset", "ObjectRecPointer", "ResponseRecPointer")
    return (*_od1(long), *(name / long for name in counts + offsets))


def _od3(long: Any) -> tuple[Any, ...]:
    names = ("AlternateSecurityId" / c.Bytes(40), "ResolvedQName" / c.Bytes(48), "ResolvedQMgrName" / c.Bytes(48))
    return (*_od2(long), *names)


def _od4(long: Any) -> tuple[Any, ...]:
    strings = (_charv(long, name) for name in ("ObjectString", "SelectionString", "ResObjectString"))
    return (*_od3(long), *(part for string in strings for part in string), "ResolvedType" / long)


def _pmo1(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Options" / long,
        "Timeout" / long,
        "Context" / long,
        "KnownDestCount" / long,
        "UnknownDestCount" / long,
        "InvalidDestCount" / long,
        "ResolvedQName" / c.Bytes(48),
        "ResolvedQMgrName" / c.Bytes(48),
    )


def _pmo2(long: Any) -> tuple[Any, ...]:
    names = ("RecsPresent", "PutMsgRecFields", "PutMsgRecOffset", "ResponseRecOffset")
    return (*_pmo1(long), *(name / long for name in (*names, "PutMsgRecPointer", "ResponseRecPointer")))


def _pmo3(long: Any) -> tuple[Any, ...]:
    handles = ("OriginalMsgHandle" / c.Bytes(8), "NewMsgHandle" / c.Bytes(8))
    return (*_pmo2(long), *handles, "Action" / long, "PubLevel" / long)


def _gmo1(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Options" / long,
        "WaitInterval" / long,
        "Signal1" / long,
        "Signal2" / long,
        "ResolvedQName" / c.Bytes(48),
    )


def _gmo2(long: Any) -> tuple[Any, ...]:
    states = ("GroupStatus" / c.Bytes(1), "SegmentStatus" / c.Bytes(1), "Segmentation" / c.Bytes(1))
    return (*_gmo1(long), "MatchOptions" / long, *states, "Reserved1" / c.Bytes(1))


def _gmo3(long: Any) -> tuple[Any, ...]:
    return (*_gmo2(long), "MsgToken" / c.Bytes(16), "ReturnedLength" / long)


def _gmo4(long: Any) -> tuple[Any, ...]:
    return (*_gmo3(long), "Reserved2" / long, "MsgHandle" / c.Bytes(8))


def _fopa(long: Any) -> tuple[Any, ...]:
    names = ("Version", "StrucLength", "DefPersistence", "DefPutResponseType", "DefReadAhead", "PropertyControl")
    return ("StrucId" / c.Bytes(4), *(name / long for name in names))


def _fopa2(long: Any) -> tuple[Any, ...]:
    return (*_fopa(long), "ErrorQName" / c.Bytes(48), "ExtraOffset" / long, "ExtraLength" / long)


def _spi(long: Any) -> tuple[Any, ...]:
    return ("Verb" / long, "Version" / long, "MaxReplySize" / long)


def _spi_block(long: Any) -> tuple[Any, ...]:
    return ("StrucId" / c.Bytes(4), "Version" / long, "StrucLength" / long)


def _spai(long: Any) -> tuple[Any, ...]:
    names = ("QName" / c.Bytes(48), "QMgrName" / c.Bytes(48), "MsgId" / c.Bytes(24))
    return (*_spi_block(long), "Mode" / long, *names)


def _spri(long: Any) -> tuple[Any, ...]:
    return (*_spi_block(long), "TagSize" / long, "Count" / long)


def _spni(long: Any) -> tuple[Any, ...]:
    return (*_spi_block(long), "Action" / long, "Reason" / long, "ConnectionId" / c.Bytes(24))


def _lpoo1(long: Any) -> tuple[Any, ...]:
    names = ("Version", "Options", "LpiOptions", "DefPersistence", "DefPutResponseType", "DefReadAhead")
    return ("StrucId" / c.Bytes(4), *(name / long for name in (*names, "PropertyControl")))


def _lpoo3(long: Any) -> tuple[Any, ...]:
    return (*_lpoo1(long), "ErrorQName" / c.Bytes(48), "ExtraOffset" / long, "ExtraLength" / long)


def _sd(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Options" / long,
        "ObjectName" / c.Bytes(48),
        "AlternateUserId" / c.Bytes(12),
        "AlternateSecurityId" / c.Bytes(40),
        "SubExpiry" / long,
        *(part for name in ("ObjectString", "SubName", "SubUserData") for part in _charv(long, name)),
        "SubCorrelId" / c.Bytes(24),
        "PubPriority" / long,
        "PubAccountingToken" / c.Bytes(32),
        "PubApplIdentityData" / c.Bytes(32),
        *_charv(long, "SelectionString"),
        "SubLevel" / long,
        *_charv(long, "ResObjectString"),
    )


def _lsd(long: Any) -> tuple[Any, ...]:
    names = ("QName" / c.Bytes(48), "QMgrName" / c.Bytes(48), "Reserved1" / c.Bytes(24))
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Options" / long,
        *_charv(long, "SubIdentity"),
        "SubId" / c.Bytes(24),
        "Reserved2" / long,
        "OpenOptions" / long,
        *names,
        *(name / long for name in ("Reserved3", "Reserved4", "Reserved5")),
    )


def _sts(long: Any) -> tuple[Any, ...]:
    numbers = ("Version", "CompCode", "Reason", "PutSuccessCount", "PutWarningCount", "PutFailureCount", "ObjectType")
    names = ("ObjectName", "ObjectQMgrName", "ResolvedObjectName", "ResolvedQMgrName")
    return ("StrucId" / c.Bytes(4), *(name / long for name in numbers), *(name / c.Bytes(48) for name in names))


def _sro(long: Any) -> tuple[Any, ...]:
    return ("StrucId" / c.Bytes(4), *(name / long for name in ("Version", "Options", "NumPubs")))


def _request_messages(long: Any) -> tuple[Any, ...]:
    names = ("Version", "ObjectHandle", "BytesReceived", "BytesRequested", "MaxMsgLength", "Options", "WaitInterval")
    return (*(name / long for name in names), "QueueStatus" / long, "Flags" / long, "GlobalMessageIndex" / long)


def _selection(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    names = ("CodedCharSetId", "Encoding", "MsgSeqNumber", "Offset", "MatchOptions")
    return ("SelectionIndex" / short, "MqmdVersion" / short, *(name / long for name in names))


def _async_message(long: Any) -> tuple[Any, ...]:
    short = _short(long)
    return (
        "Version" / long,
        "ObjectHandle" / long,
        "MessageIndex" / long,
        "GlobalMessageIndex" / long,
        "SegmentDataLength" / long,
        "SegmentIndex" / short,
        "SelectionIndex" / short,
        "Reason" / long,
        "TotalMsgLength" / long,
        "ActualMsgLength" / long,
        "MsgToken" / c.Bytes(16),
        "Status" / short,
        "NameLength" / c.Byte,
    )


def _notification(long: Any) -> tuple[Any, ...]:
    return tuple(name / long for name in ("Version", "ObjectHandle", "Code", "Value"))


def _socket_action(long: Any) -> tuple[Any, ...]:
    return tuple(name / long for name in ("ConversationId", "RequestId", "Type", "Parameter1", "Parameter2"))


def _spi_data(long: Any) -> tuple[Any, ...]:
    return (*_spi_block(long), "Options" / long, "DataLength" / long)


def _spgi(long: Any) -> tuple[Any, ...]:
    return (*_spi_block(long), *(name / long for name in ("BatchSize", "BatchInterval", "MaxMsgLength", "Options")))


def _spgo2(long: Any) -> tuple[Any, ...]:
    return (*_spi_data(long), "Reserved" / c.Bytes(8))


def _msh(long: Any) -> tuple[Any, ...]:
    names = ("MsgSeqNumber", "BufferLength", "Reserved", "MsgLength")
    return ("StrucId" / c.Bytes(4), *(name / long for name in names))


def _mqinq(long: Any) -> tuple[Any, ...]:
    return tuple(name / long for name in ("SelectorCount", "IntAttrCount", "CharAttrLength"))


TSH = Layout("TSH", _tsh)
TSHM = Layout("TSHM", _tshm)
# INITIAL_DATA in its parts: a client's level says how many of them it sends.
ID_BEGIN = Layout("ID", _id_begin)
ID_MORE = Layout("ID", _id_more)
ID_SHARING = Layout("ID", _id_sharing)
ID_PROTECTION = Layout("ID", _id_protection)
UID = Layout("UID", _uid)
UID_LONG = Layout("UID", _uid_long)
CAUT = Layout("CAUT", _caut)
API_HEADER = Layout("API header", _api)
XA = Layout("XA header", _xa)
XID = Layout("XID", _xid)
MQCONN = Layout("MQCONN", _conn)
FCNO = Layout("FCNO", _fcno)
MQOD = {1: Layout("MQOD", _od1), 2: Layout("MQOD", _od2), 3: Layout("MQOD", _od3), 4: Layout("MQOD", _od4)}
MQPMO = {1: Layout("MQPMO", _pmo1), 2: Layout("MQPMO", _pmo2), 3: Layout("MQPMO", _pmo3)}
MQGMO = {1: Layout("MQGMO", _gmo1), 2: Layout("MQGMO", _gmo2), 3: Layout("MQGMO", _gmo3), 4: Layout("MQGMO", _gmo4)}
FOPA = Layout("FOPA", _fopa)
FOPA2 = Layout("FOPA", _fopa2)
SPI = Layout("SPI", _spi)
SPI_BLOCK = Layout("SPI block", _spi_block)
SPI_DATA = Layout("SPPI or SPGO", _spi_data)  # the data of the message follows
SPGI = Layout("SPGI", _spgi)
SPGO2 = Layout("SPGO", _spgo2)
SPAI = Layout("SPAI", _spai)
SPRI = Layout("SPRI", _spri)
SPNI = Layout("SPNI", _spni)
LPOO = {1: Layout("LPOO", _lpoo1), 3: Layout("LPOO", _lpoo3)}
MQSD = Layout("MQSD", _sd)
LSD = Layout("LSD", _lsd)
MQSRO = Layout("MQSRO", _sro)
MQSTS = Layout("MQSTS", _sts)
REQUEST_MSGS = Layout("REQUEST_MSGS", _request_messages)
SELECTION = Layout("REQUEST_MSGS", _selection)
ASYNC_MESSAGE = Layout("ASYNC_MESSAGE", _async_message)
ASYNC_CONTINUED_BYTES = ASYNC_MESSAGE.offset("Reason")
"""So much of ASYNC_MESSAGE is in each segment of a long message behind the first."""
NOTIFICATION = Layout("NOTIFICATION", _notification)
SOCKET_ACTION = Layout("SOCKET_ACTION", _socket_action)
MQMSH = Layout("MQMSH", _msh)  # between queue managers; an MQXQH follows
MQINQ = Layout("MQINQ", _mqinq)
