"""Messages that the queue manager itself sends: reports, and delayed messages when they are due.

The reports that a queue manager makes of a message, as its Report field asks (IBM's descriptions of MQMD, Report).

    COA          it is on its queue              EXPIRATION   it has expired, and is discarded
    COD          a program has got it            EXCEPTION    its queue did not take it, after its MQPUT had succeeded

Each is asked for without data, with the first 100 bytes, or with all of it. The headers at the beginning come before
these 100 bytes, so that whoever reads a report can read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from commands.broker.objects import QueueManager
from commands.broker.puts import DeadLetters, Outgoing, PutKind, is_wanted
from commands.qmgr.store.port import BODY, MD, QUEUE, USER, MessageRow, Queues
from commands.qmgr.store.uncommitted import Uncommitted
from rfh2 import constants as mq, mqi_constants as m
from rfh2.ccsid import ASCII_FIELDS
from rfh2.errors import DecodeError, QueueError
from rfh2.layouts import MQXQH, characters
from rfh2.message import decode_chain
from rfh2.mqmd import Mqmd, extended, name_of

_DATA_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of report. asks: its bit; the next two ask for data, and for all of it. feedback: 0 for a reason."""

    asks: int
    feedback: int = 0


COA: Final = Kind(m.MQRO_COA, m.MQFB_COA)
COD: Final = Kind(m.MQRO_COD, m.MQFB_COD)
EXPIRATION: Final = Kind(m.MQRO_EXPIRATION, m.MQFB_EXPIRATION)
EXCEPTION: Final = Kind(m.MQRO_EXCEPTION)


def report_of(kind: Kind, mqmd: Mqmd, body: bytes, qmgr: str, reason: int = 0) -> Outgoing:
    """The report of a message that *qmgr* makes; the queue that takes it gives it MsgId, PutDate and PutTime.

    reason: of an exception.
    """
    asked = mqmd.report
    passes = asked & mq.MQRO_PASS_DISCARD_AND_EXPIRY
    made = replace(
        mqmd,
        report=asked & mq.MQRO_DISCARD_MSG if passes else 0,
        msg_type=mq.MQMT_REPORT,
        expiry=mqmd.expiry if passes and kind is not EXPIRATION else mq.MQEI_UNLIMITED,
        feedback=kind.feedback or reason,
        msg_id=mqmd.msg_id if asked & mq.MQRO_PASS_MSG_ID else bytes(24),
        correl_id=mqmd.correl_id if asked & mq.MQRO_PASS_CORREL_ID else mqmd.msg_id,
        backout_count=0,
        reply_to_q="",
        reply_to_qmgr=qmgr,
        put_appl_type=m.MQAT_QMGR,
        put_appl_name=qmgr[:28],
        put_date="",
        put_time="",
        appl_origin_data="",
        original_length=len(body) if mqmd.original_length == mq.MQOL_UNDEFINED else mqmd.original_length,
    )
    to_qmgr = name_of(mqmd.reply_to_qmgr) or qmgr
    return Outgoing(PutKind.RESPONSE, to_qmgr, name_of(mqmd.reply_to_q), made.encode(), _data(kind, mqmd, body))


def _data(kind: Kind, mqmd: Mqmd, body: bytes) -> bytes:
    if mqmd.report & kind.asks << 2:
        return body
    if not mqmd.report & kind.asks << 1:
        return b""
    try:
        _, begins = decode_chain(body, mqmd.format, mqmd.coded_char_set_id)
    except DecodeError:
        begins = 0
    return body[: begins + _DATA_BYTES]


class SendsMessages(Queues, Protocol):
    """A unit of work of a queue manager that sends messages of its own. uncommitted: messages wherever they are."""

    @property
    def uncommitted(self) -> Uncommitted: ...
    def queue_manager(self) -> QueueManager: ...
    def expired(self, now: datetime) -> list[MessageRow]: ...


Sent = tuple[str, int]
"""The queue that has a message, and the number of the message."""


def send(unit: SendsMessages, put: Outgoing, user: str | None, now: datetime) -> list[Sent]:
    """Put *put* with the reports of it, or the dead letter in its place, unless it is discarded. user: who puts it.

    Raises QueueError where the dead-letter queue refuses it too.
    """
    try:
        to = _put(unit, put, user)
    except QueueError as refused:
        mqmd, reason, expires_at = put.mqmd, refused.reason, put.expires_at
        sent = report(unit, EXCEPTION, mqmd, put.body, user, now, reason)
        if is_wanted(mqmd):
            qmgr = unit.queue_manager()
            letters = DeadLetters(qmgr.name, qmgr.deadq)
            letter = letters.put(mqmd, put.body, reason, put.queue, now, qmgr=put.qmgr, expires_at=expires_at)
            sent.append(_put(unit, letter, user))
        return sent
    return [to] if put.qmgr != unit.queue_manager().name else [to, *confirm_arrival(unit, to[1], now)]


def confirm_arrival(unit: SendsMessages, seq: int, now: datetime) -> list[Sent]:
    """The COA report of message *seq*, which has come to its queue here, if it asks for one. Raises QueueError."""
    row = unit.uncommitted.message(seq)
    return report(unit, COA, Mqmd.decode(row[MD]), row[BODY] or b"", row[USER], now)


def report(
    unit: SendsMessages, kind: Kind, mqmd: Mqmd, body: bytes, user: str | None, now: datetime, reason: int = 0
) -> list[Sent]:
    """Send the report of a message if the message asks for that kind. user: who put it. Raises QueueError."""
    if not mqmd.report & kind.asks:
        return []
    return send(unit, report_of(kind, mqmd, body, unit.queue_manager().name, reason), user, now)


def report_expired(unit: SendsMessages, now: datetime) -> None:
    """Send the reports of expired messages, which are discarded after this. Raises QueueError."""
    for row in unit.expired(now):
        if " " not in row[QUEUE]:  # the others are those of units of work, which may be backed out
            report(unit, EXPIRATION, Mqmd.decode(row[MD]), row[BODY] or b"", row[USER], now)


def _put(unit: SendsMessages, put: Outgoing, user: str | None) -> Sent:
    if put.qmgr != unit.queue_manager().name:
        behind = unit.find_queue(put.qmgr)
        if behind is None or not behind.transmission:
            raise QueueError(mq.MQRC_UNKNOWN_REMOTE_Q_MGR, put.queue, f"there is no transmission queue {put.qmgr}")
        put = transmitted(put)
    return put.queue, unit.put(put.queue, put.md, put.body, user=user, expires_at=put.expires_at)


# Messages for queues of other queue managers: they go to a transmission queue, behind an MQXQH.
#
# The transmission queue has the name of the other queue manager, as in MQ. A channel takes the messages
# from there (wire formats 5).


def transmitted(put: Outgoing) -> Outgoing:
    """*put* in the form for the transmission queue of its queue manager."""
    mqmd = put.mqmd
    own, data = extended(mqmd, put.body)
    header = MQXQH.fast[mqmd.order].pack(
        "XQH ".encode(mqmd.charset),
        1,
        characters(put.queue, 48, mqmd.charset, "RemoteQName"),
        characters(put.qmgr, 48, mqmd.charset, "RemoteQMgrName"),
    )
    body = header + own.encode() + data
    outer = Mqmd(
        expiry=mqmd.expiry,
        encoding=546 if mqmd.order == "little" else 273,
        coded_char_set_id=0 if mqmd.charset == ASCII_FIELDS else 500,
        format=mq.MQFMT_XMIT_Q_HEADER,
        priority=mqmd.priority,
        persistence=mqmd.persistence,
        msg_id=mqmd.msg_id,
        correl_id=mqmd.correl_id,
        user_identifier=mqmd.user_identifier,
        put_appl_type=mqmd.put_appl_type,
        put_appl_name=mqmd.put_appl_name,
        put_date=mqmd.put_date,
        put_time=mqmd.put_time,
        order=mqmd.order,
        charset=mqmd.charset,
    )
    return put._replace(queue=put.qmgr, md=outer.encode(), body=body)
