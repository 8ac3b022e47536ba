"""MQI calls on a channel: what is in each, and what its reply holds (docs/wire-formats.md).

A reply repeats the structures of the request with what the queue manager writes into them. A call that fails repeats
them as they came.

In XA calls an application server has the units of work of its programs be branches of global transactions. In
place of the API header they have one of their own: what the call returns, its flags, and the number of the resource
manager, which is the program's business. An XID follows, or what xa_open was given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from commands.listener.conversation import Conversation
from commands.listener.request import (
    ObjectDescriptor,
    Request,
    object_descriptor,
    subscription_descriptor,
    write_descriptor,
)
from commands.qmgr.mqi.attributes import PROPERTIES, PUT_RESPONSES
from commands.qmgr.mqi.calls import NO_FIELDS, PutFields
from commands.qmgr.mqi.getting import GetOptions, Got
from commands.qmgr.mqi.handles import IN_GROUP, Defaults
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.transactions import Transactions, XaCall
from rfh2 import mqi_constants as m
from rfh2.channel.layouts import API_HEADER, FCNO, FOPA, FOPA2, MQCONN, MQGMO, MQINQ, MQPMO, MQSRO, MQSTS, XA
from rfh2.channel.segments import XA_OK, XAER_INVAL, XAER_RMFAIL, SegmentType, Structure, Xid
from rfh2.errors import DecodeError, QueueError, StoreError
from rfh2.mqmd import RawMqmd
from rfh2.pcf_admin_names import MQOT_Q_MGR

Call = Callable[[Conversation, Request], Awaitable[bytes]]
_START: Final = API_HEADER.size
_LONG: Final = 4
_MOST_SELECTORS: Final = 256
NO_REPLY: Final = b""
"""Of a put whose program does not wait for an answer."""
ERROR_QUEUE: Final = "SYSTEM.PROTECTION.ERROR.QUEUE"


async def answered(conversation: Conversation, request: Request) -> bytes:
    """The payload of the reply to *request*. Raises DecodeError where the call cannot be read."""
    call = _CALLS.get(request.header.kind)
    if call is None:
        return request.reply(request.data[_START:], m.MQCC_FAILED, m.MQRC_FUNCTION_NOT_SUPPORTED)
    try:
        return await call(conversation, request)
    except (MqiError, QueueError) as error:
        conversation.debug(f"{SegmentType(request.header.kind).name}: {error}")
        comp_code = error.comp_code if isinstance(error, MqiError) else m.MQCC_FAILED
        return request.reply(request.data[_START:], comp_code, error.reason, request.handle)
    except StoreError as error:
        conversation.log(str(error))
        return request.reply(request.data[_START:], m.MQCC_FAILED, m.MQRC_Q_MGR_NOT_AVAILABLE, request.handle)


async def _connect(conversation: Conversation, request: Request) -> bytes:
    body = request.data[_START:]
    fields = Structure(MQCONN, body, 0, request.header.order, request.header.charset)
    reason = await conversation.connect(
        fields.text("QMgrName"), fields.text("ApplName"), fields["ApplType"], fields["AccountingToken"]
    )
    if len(body) >= MQCONN.size + FCNO.size:
        _write_connection(conversation, body, request)
    comp_code = m.MQCC_WARNING if reason == m.MQRC_ALREADY_CONNECTED else m.MQCC_FAILED if reason else m.MQCC_OK
    return request.reply(body, comp_code, reason)


def _write_connection(conversation: Conversation, body: bytearray, request: Request) -> None:
    """Write the connection's identifier and tag into the FCNO, all else of which becomes zeros."""
    asked = Structure(FCNO, body, MQCONN.size, request.header.order)
    flags = asked["CapabilityFlags"]
    room = len(body) - MQCONN.size
    body[MQCONN.size :] = bytes(room)
    fcno = Structure(FCNO, body, MQCONN.size, request.header.order)
    fcno["StrucId"], fcno["CapabilityFlags"] = b"FCNO", flags | 1
    has_tag = room >= 2 * FCNO.size
    fcno["Version"] = 3 if has_tag else 2 if room > FCNO.size else 1
    fcno["ConnTag"] = conversation.connection_id
    if has_tag and conversation.is_connected:
        tag = conversation.connection_tag.encode("ascii", "replace")[:128]
        body[MQCONN.size + 140 : MQCONN.size + 140 + len(tag)] = tag


async def _disconnect(conversation: Conversation, request: Request) -> bytes:
    await conversation.disconnect(commit=True)
    return request.reply()


async def _open(conversation: Conversation, request: Request) -> bytes:
    od, end = object_descriptor(request, _START)
    options = request.long(end)
    handle = await conversation.open(od, options)
    fopa_at = end + 4
    if len(request.data) >= fopa_at + FOPA.size:
        fopa = request.structure(FOPA, fopa_at)
        queue = od.object_type != MQOT_Q_MGR
        write_defaults(fopa, conversation.defaults(handle) if queue else None)
        if len(request.data) >= fopa_at + FOPA2.size:
            more = request.structure(FOPA2, fopa_at)
            more.put_text("ErrorQName", ERROR_QUEUE if queue else "")
            more["ExtraOffset"], more["ExtraLength"] = FOPA2.size, 0
    return request.reply(request.data[_START:], handle=handle)


def write_defaults(fields: Structure, defaults: Defaults | None) -> None:
    """Write what the reply to MQOPEN says for what a program's options leave to the object; None: it has none."""
    names = ("DefPersistence", "DefPutResponseType", "DefReadAhead", "PropertyControl")
    values = (-1, -1, -1, -1)
    if defaults is not None:
        values = (int(defaults.persistent), PUT_RESPONSES[defaults.put_response], 0, PROPERTIES[defaults.properties])
    for name, value in zip(names, values, strict=True):
        fields[name] = value


async def _close(conversation: Conversation, request: Request) -> bytes:
    await conversation.close(request.handle, request.long(_START))
    return request.reply(handle=-1)


async def _put(conversation: Conversation, request: Request) -> bytes:
    return await _put_at(conversation, request, _START, None)


async def _put1(conversation: Conversation, request: Request) -> bytes:
    od, end = object_descriptor(request, _START)
    reply = await _put_at(conversation, request, end, od)
    if reply == NO_REPLY:
        return reply
    od.resolve(od.target.name, conversation.qmgr)
    return request.reply(bytes(request.data[_START:end]) + reply[_START:])


async def _put_at(conversation: Conversation, request: Request, at: int, od: ObjectDescriptor | None) -> bytes:
    mqmd, pmo_at = request.mqmd(at)
    pmo = request.versioned(MQPMO, pmo_at)
    length = request.long(pmo.end)
    body = bytes(request.data[pmo.end + 4 : pmo.end + 4 + max(0, length)])
    if length < 0 or len(body) < length:
        raise MqiError(m.MQRC_DATA_LENGTH_ERROR, f"{len(body)} of {length} bytes of the message came")
    if pmo["Options"] & m.MQPMO_ASYNC_RESPONSE:
        await conversation.put_unanswered(od, request.handle, mqmd, pmo["Options"], body, put_fields(pmo))
        return NO_REPLY
    put, queue = await conversation.put(od, request.handle, mqmd, pmo["Options"], body, fields=put_fields(pmo))
    written = put_written(conversation, pmo, request.in_own_terms(put, mqmd.version), queue)
    return request.reply(written + request.bytes_of(length), handle=request.handle)


def put_fields(pmo: Structure) -> PutFields:
    """What an MQPMO says beside its options."""
    return PutFields(pmo["PubLevel"] if pmo["Version"] >= 3 else NO_FIELDS.level, pmo["Context"])


def put_written(conversation: Conversation, pmo: Structure, put: bytes, queue: str) -> bytes:
    """The descriptor, and the MQPMO with the names that *queue* resolved to, as the reply to a put has them."""
    pmo["KnownDestCount"] = 1
    pmo.put_text("ResolvedQName", queue)
    pmo.put_text("ResolvedQMgrName", conversation.qmgr)
    return put + bytes(pmo)


def asked_for(mqmd: RawMqmd, gmo: Structure, longest: int) -> tuple[GetOptions, int]:
    """What MQGET asks for, and how long it waits, in milliseconds."""
    match = gmo["MatchOptions"] if gmo["Version"] > 1 else m.MQMO_MATCH_MSG_ID | m.MQMO_MATCH_CORREL_ID
    asked = GetOptions(
        options=gmo["Options"],
        match=match,
        msg_id=mqmd.msg_id,
        correl_id=mqmd.correl_id,
        group_id=mqmd.group_id,
        longest=max(0, longest),
        seq=int.from_bytes(gmo["MsgToken"], "big") if gmo["Version"] >= 3 else 0,
        ccsid=mqmd.coded_char_set_id,
        encoding=mqmd.encoding,
        number=mqmd.msg_seq_number,
    )
    return asked, gmo["WaitInterval"] if gmo["Options"] & m.MQGMO_WAIT else 0


def got_written(request: Request, gmo: Structure, version: int, got: Got) -> bytes:
    """The descriptor, in *version*, and the MQGMO, as the reply to a get has them."""
    gmo.put_text("ResolvedQName", got.queue)
    if got.mqmd.msg_flags & IN_GROUP and gmo["Version"] >= 2:
        status = "L" if got.mqmd.msg_flags & m.MQMF_LAST_MSG_IN_GROUP else "G"
        gmo["GroupStatus"] = status.encode(request.header.charset)
    if gmo["Version"] >= 3:
        gmo["MsgToken"], gmo["ReturnedLength"] = got.seq.to_bytes(16, "big"), len(got.body)
    return request.in_own_terms(got.mqmd.data, version) + bytes(gmo)


async def _get(conversation: Conversation, request: Request) -> bytes:
    mqmd, gmo_at = request.mqmd(_START)
    gmo = request.versioned(MQGMO, gmo_at)
    asked, wait_ms = asked_for(mqmd, gmo, request.long(gmo.end))
    try:
        got = await conversation.get(request.handle, asked, wait_ms, request.held)
    except MqiError as error:
        if error.reason != m.MQRC_NO_MSG_AVAILABLE:
            raise
        empty = bytes(request.data[_START : gmo.end]) + bytes(4)
        return request.reply(empty, m.MQCC_FAILED, error.reason, request.handle)
    assert got is not None
    body = got_written(request, gmo, mqmd.version, got) + request.bytes_of(got.length) + got.body
    return request.reply(body, got.comp_code, got.reason, request.handle)


async def _inquire(conversation: Conversation, request: Request) -> bytes:
    head, selectors = _selectors(request)
    integers, characters, reason = await conversation.inquire(request.handle, selectors)
    text = b"".join(
        value[:length].ljust(length).encode(request.header.charset, "replace") for length, value in characters
    )
    # Clients before 9.1 ask for one integer more than there are, and look for the characters behind that.
    integers += [0] * (min(head["IntAttrCount"], _MOST_SELECTORS) - len(integers))
    head["IntAttrCount"], head["CharAttrLength"] = len(integers), len(text)
    values = b"".join(request.bytes_of(value) for value in integers)
    body = bytes(head) + bytes(request.data[head.end : head.end + 4 * len(selectors)]) + values + text
    return request.reply(body, m.MQCC_WARNING if reason else 0, reason, request.handle)


async def _set(conversation: Conversation, request: Request) -> bytes:
    head, selectors = _selectors(request)
    if not 0 <= head["IntAttrCount"] <= len(selectors):
        raise DecodeError(_START, "MQSET", f"IntAttrCount is {head['IntAttrCount']}, with {len(selectors)} selectors")
    if head["IntAttrCount"] < len(selectors):
        raise MqiError(m.MQRC_SELECTOR_ERROR, "attributes that are characters cannot be set")
    values = [request.long(head.end + 4 * (len(selectors) + n)) for n in range(len(selectors))]
    await conversation.set(request.handle, list(zip(selectors, values, strict=True)))
    return request.reply(handle=request.handle)


def _selectors(request: Request) -> tuple[Structure, list[int]]:
    """What MQINQ and MQSET begin with."""
    head = request.structure(MQINQ, _START)
    count = head["SelectorCount"]
    if not 0 <= count <= _MOST_SELECTORS:
        raise DecodeError(_START, "MQINQ", f"SelectorCount is {count}, not 0 to {_MOST_SELECTORS}")
    return head, [request.long(head.end + 4 * n) for n in range(count)]


STATUS_TYPES: Final = {
    "done": {"MQSTAT_TYPE_ASYNC_ERROR": m.MQSTAT_TYPE_ASYNC_ERROR},
    "refused": {
        "MQSTAT_TYPE_RECONNECTION": m.MQSTAT_TYPE_RECONNECTION,
        "MQSTAT_TYPE_RECONNECTION_ERROR": m.MQSTAT_TYPE_RECONNECTION_ERROR,
    },
}
"""What MQSTAT tells. A client knows itself how it reconnects."""


def coverage() -> tuple[str, str, str]:
    """MQSTAT's row of the table of options."""
    refused = ", ".join(f"{name} ({m.MQRC_STAT_TYPE_ERROR})" for name in STATUS_TYPES["refused"])
    return "MQSTAT", ", ".join(STATUS_TYPES["done"]), refused


async def _status(conversation: Conversation, request: Request) -> bytes:
    asked, fields = request.long(_START), request.structure(MQSTS, _START + _LONG)
    if asked not in STATUS_TYPES["done"].values():
        raise MqiError(m.MQRC_STAT_TYPE_ERROR, f"MQSTAT knows no type {asked}")
    puts = conversation.take_async_puts()
    fields["CompCode"], fields["Reason"] = puts.comp_code, puts.reason
    fields["PutSuccessCount"], fields["PutWarningCount"], fields["PutFailureCount"] = puts.done, 0, puts.failed
    fields["ObjectType"] = puts.object_type
    fields.put_text("ObjectName", puts.name)
    fields.put_text("ResolvedObjectName", puts.name)
    for name in ("ObjectQMgrName", "ResolvedQMgrName"):
        fields.put_text(name, conversation.qmgr if puts.failed else "")
    return request.reply(request.data[_START:], handle=request.handle)


async def _commit(conversation: Conversation, request: Request) -> bytes:
    await conversation.commit()
    return request.reply()


async def _backout(conversation: Conversation, request: Request) -> bytes:
    await conversation.backout()
    return request.reply()


async def _subscribe(conversation: Conversation, request: Request) -> bytes:
    descriptor, fields = subscription_descriptor(request, _START + 2 * _LONG)
    hsub, hobj, answer = await conversation.subscribe(descriptor, request.handle)
    return request.reply(
        request.bytes_of(hsub) + bytes(_LONG) + write_descriptor(fields, descriptor, answer), handle=hobj
    )


async def _request_retained(conversation: Conversation, request: Request) -> bytes:
    fields = request.structure(MQSRO, _START + _LONG)
    fields["NumPubs"] = await conversation.request_retained(request.handle, request.long(_START))
    return request.reply(request.data[_START:], handle=request.handle)


_CALLS: Final[dict[int, Call]] = {
    SegmentType.MQCONN: _connect,
    SegmentType.MQDISC: _disconnect,
    SegmentType.MQOPEN: _open,
    SegmentType.MQCLOSE: _close,
    SegmentType.MQPUT: _put,
    SegmentType.MQPUT1: _put1,
    SegmentType.MQGET: _get,
    SegmentType.MQINQ: _inquire,
    SegmentType.MQSET: _set,
    SegmentType.MQCMIT: _commit,
    SegmentType.MQBACK: _backout,
    SegmentType.MQSTAT: _status,
    SegmentType.MQSUB: _subscribe,
    SegmentType.MQSUBRQ: _request_retained,
}


_MOST_RECOVERED: Final = 256


async def xa_answered(conversation: Conversation, request: Request) -> bytes:
    """The payload of the reply to an XA call. Raises DecodeError, MqiError where the program is not connected."""
    head, kind = request.structure(XA, 0), request.header.kind
    flags, body = head["Flags"], b""
    try:
        if kind in (SegmentType.XA_OPEN, SegmentType.XA_CLOSE):
            value = XA_OK
        elif kind == SegmentType.XA_RECOVER:
            value, body = await _recover(conversation, request, flags)
        else:
            xid = Xid.read(request.data, head.end, request.header.order).write("big")
            call, lasting = _OF_BRANCH[kind], kind not in (SegmentType.XA_START, SegmentType.XA_END)
            value = await conversation.transact(lambda program, unit: program.transact(call, unit, xid, flags), lasting)
    except StoreError as error:
        conversation.log(str(error))
        value = XAER_RMFAIL
    return request.reply(body, value, flags, head["ResourceManager"])


async def _recover(conversation: Conversation, request: Request, flags: int) -> tuple[int, bytes]:
    most = min(request.long(XA.size), _MOST_RECOVERED)
    if most < 0:
        return XAER_INVAL, b""
    found = await conversation.transact(
        lambda program, unit: (program.transactions.recover(unit, flags, most), ()), False
    )
    order = request.header.order
    xids = b"".join(Xid.read(bytearray(xid), 0, "big").write(order) for xid in found)
    return len(found), request.bytes_of(len(found)) + xids


_OF_BRANCH: Final[dict[int, XaCall]] = {
    SegmentType.XA_START: Transactions.start,
    SegmentType.XA_END: Transactions.end,
    SegmentType.XA_PREPARE: Transactions.prepare,
    SegmentType.XA_COMMIT: Transactions.commit,
    SegmentType.XA_ROLLBACK: Transactions.rollback,
    SegmentType.XA_FORGET: Transactions.forget,
}
XA_CALLS: Final = frozenset({*_OF_BRANCH, SegmentType.XA_OPEN, SegmentType.XA_CLOSE, SegmentType.XA_RECOVER})
"""The types of segments that are XA calls. XA_COMPLETE, of calls that do not wait, is none: no program makes any."""
