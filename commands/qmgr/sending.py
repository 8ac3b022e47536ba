"""Messages that the queue manager itself sends: reports, and delayed messages when they are due."""

from __future__ import annotations

from datetime import datetime

from commands.broker.puts import DeadLetters, Outgoing, is_wanted
from commands.disk.errors import QueueError
from commands.qmgr.reports import COA, EXCEPTION, EXPIRATION, Kind, report_of
from commands.qmgr.store.messages import BODY, MD, QUEUE, USER
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.ccsid import ASCII_FIELDS
from rfh2.constants import MQFMT_XMIT_Q_HEADER, MQRC_UNKNOWN_REMOTE_Q_MGR
from rfh2.layouts import MQXQH, characters
from rfh2.mde import extended
from rfh2.mqmd import Mqmd

Sent = tuple[str, int]
"""The queue that has a message, and the number of the message."""


def send(unit: EmbeddedUnitOfWork, put: Outgoing, user: str | None, now: datetime) -> list[Sent]:
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


def confirm_arrival(unit: EmbeddedUnitOfWork, seq: int, now: datetime) -> list[Sent]:
    """The COA report of message *seq*, which has come to its queue here, if it asks for one. Raises QueueError."""
    row = unit.uncommitted.message(seq)
    return report(unit, COA, Mqmd.decode(row[MD]), row[BODY] or b"", row[USER], now)


def report(
    unit: EmbeddedUnitOfWork, kind: Kind, mqmd: Mqmd, body: bytes, user: str | None, now: datetime, reason: int = 0
) -> list[Sent]:
    """Send the report of a message if the message asks for that kind. user: who put it. Raises QueueError."""
    if not mqmd.report & kind.asks:
        return []
    return send(unit, report_of(kind, mqmd, body, unit.queue_manager().name, reason), user, now)


def report_expired(unit: EmbeddedUnitOfWork, now: datetime) -> None:
    """Send the reports of expired messages, which are discarded after this. Raises QueueError."""
    for row in unit.expired(now):
        if " " not in row[QUEUE]:  # the others are those of units of work, which may be backed out
            report(unit, EXPIRATION, Mqmd.decode(row[MD]), row[BODY] or b"", row[USER], now)


def _put(unit: EmbeddedUnitOfWork, put: Outgoing, user: str | None) -> Sent:
    if put.qmgr != unit.queue_manager().name:
        behind = unit.find_queue(put.qmgr)
        if behind is None or not behind.transmission:
            raise QueueError(MQRC_UNKNOWN_REMOTE_Q_MGR, put.queue, f"there is no transmission queue {put.qmgr}")
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
        format=MQFMT_XMIT_Q_HEADER,
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
