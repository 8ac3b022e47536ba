"""XA calls: an application server has the units of work of its programs be branches of global transactions.

In place of the API header they have one of their own: what the call returns, its flags, and the number of the resource
manager, which is the program's business. An XID follows, or what xa_open was given.
"""

from __future__ import annotations

from typing import Final

from commands.listener.conversation import Conversation
from commands.listener.request import Request
from commands.qmgr.mqi.transactions import Transactions, XaCall
from rfh2.channel.layouts import XA
from rfh2.channel.segments import XA_OK, XAER_INVAL, XAER_RMFAIL, SegmentType, Xid
from rfh2.errors import StoreError

_MOST_RECOVERED: Final = 256


async def answered(conversation: Conversation, request: Request) -> bytes:
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
CALLS: Final = frozenset({*_OF_BRANCH, SegmentType.XA_OPEN, SegmentType.XA_CLOSE, SegmentType.XA_RECOVER})
"""The types of segments that are XA calls. XA_COMPLETE, of calls that do not wait, is none: no program makes any."""
