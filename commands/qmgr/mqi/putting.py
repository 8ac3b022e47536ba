"""The context of a message that a program puts, and its identifiers: what MQPUT fills in before the queue does.

The options of MQPUT say which fields of the program's descriptor count (IBM's description of MQPMO, Options). What the
program may not set is made blank here; the store then writes who put it, and when.

Delivery delay, as JMS programs ask for it: a message waits on a queue of its own, and goes to its destination then.

IBM's JMS client writes the delay, in milliseconds, in the folder ``mqext`` of the message, and puts it on its
destination. As in IBM MQ it is kept on SYSTEM.DDELAY.LOCAL.QUEUE, as persistent as it is, behind a header that names
the destination: an MQXQH, whose embedded MQMD has what is its own. CorrelId says when it is due, in microseconds.

It leaves that queue and comes to the other one in one unit of work, and is a new message there: behind those that came
before. Where its queue does not take it, it is a dead letter; where that is not possible, it is tried again.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from heapq import heappop, heappush
from typing import Final

from commands.broker.objects import DELAY_QUEUE
from commands.broker.puts import Outgoing, PutKind
from commands.broker.times import from_microseconds, to_microseconds
from commands.qmgr.mqi.handles import Application, OpenQueues
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.sending import send
from commands.qmgr.store.port import EXPIRES_AT, MD, SEQ, USER, MessageRow, message_of
from commands.qmgr.store.queue_manager import QueueManagerStore
from commands.qmgr.store.uncommitted import Match, Search
from rfh2 import mqi_constants as m
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQENC_NATIVE, MQFMT_RF_HEADER_2, MQFMT_XMIT_Q_HEADER, MQPER_PERSISTENCE_AS_Q_DEF
from rfh2.errors import DecodeError, QueueError
from rfh2.layouts import MQMD1
from rfh2.message import decode_chain
from rfh2.mqmd import Mqmd, RawMqmd, Xqh, decode_xqh, in_form
from rfh2.rfh2 import Rfh2

_AT: Final = MQMD1.slices()
_MSG_ID, _CORREL_ID, _USER = _AT["MsgId"], _AT["CorrelId"], _AT["UserIdentifier"]
# These stand one behind the other: who it is, from where the message comes, and of that what the store writes.
_IDENTITY: Final = slice(_USER.start, _AT["ApplIdentityData"].stop)
_ORIGIN: Final = slice(_IDENTITY.stop, _AT["ApplOriginData"].stop)
_PUT: Final = slice(_ORIGIN.start, _AT["PutTime"].stop)
OF_CONTEXT: Final = (
    m.MQOO_PASS_IDENTITY_CONTEXT | m.MQOO_PASS_ALL_CONTEXT | m.MQOO_SET_IDENTITY_CONTEXT | m.MQOO_SET_ALL_CONTEXT
)
"""Options of MQOPEN, and of MQPUT1, for which they are the same bits."""
# Of each option of MQPUT, those of MQOPEN that allow it: IBM's implications among them.
_ALLOWED_BY: Final = (
    (m.MQPMO_PASS_IDENTITY_CONTEXT, OF_CONTEXT, m.MQRC_NOT_OPEN_FOR_PASS_IDENT),
    (m.MQPMO_PASS_ALL_CONTEXT, m.MQOO_PASS_ALL_CONTEXT | m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_PASS_ALL),
    (m.MQPMO_SET_IDENTITY_CONTEXT, m.MQOO_SET_IDENTITY_CONTEXT | m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_SET_IDENT),
    (m.MQPMO_SET_ALL_CONTEXT, m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_SET_ALL),
)


def require_context(opened: int, options: int) -> None:
    """Raises MqiError 2093 to 2096 where an MQPUT sets or passes context, and the object is not open for that.

    opened, options: of MQOPEN and of MQPUT.
    """
    for asked, allowed, reason in _ALLOWED_BY:
        if options & asked and not opened & allowed:
            raise MqiError(reason, "it is not open for that context: see MQOO_*_CONTEXT")


def put_descriptor(mqmd: RawMqmd, options: int, application: Application, new_id: bytes, passed: bytes | None) -> bytes:
    """The descriptor with which the message is put. options: MQPMO_*. passed: of the message that is passed on.

    new_id: for a CorrelId that MQPMO_NEW_CORREL_ID asks for; the store makes MsgIds.
    """
    md = mqmd.data
    if options & m.MQPMO_NEW_MSG_ID:
        md = md[: _MSG_ID.start] + bytes(24) + md[_MSG_ID.stop :]
    if options & m.MQPMO_NEW_CORREL_ID:
        md = md[: _CORREL_ID.start] + new_id + md[_CORREL_ID.stop :]
    if options & m.MQPMO_SET_ALL_CONTEXT:
        return md
    given = _given(application, bool(options & m.MQPMO_NO_CONTEXT), mqmd.order, mqmd.charset)
    if passed is not None and options & (m.MQPMO_PASS_IDENTITY_CONTEXT | m.MQPMO_PASS_ALL_CONTEXT):
        seen = in_form(passed, mqmd.version, mqmd.order, mqmd.charset)
        given = seen if options & m.MQPMO_PASS_ALL_CONTEXT else seen[: _ORIGIN.start] + given[_ORIGIN]
    identity = md if options & m.MQPMO_SET_IDENTITY_CONTEXT else given
    return b"".join((md[: _IDENTITY.start], identity[_IDENTITY], given[_ORIGIN], md[_ORIGIN.stop :]))


@lru_cache(maxsize=4096)
def _given(application: Application, is_none: bool, order: ByteOrder, charset: str) -> bytes:
    """A descriptor with the context that the queue manager gives; the store says when. is_none: MQPMO_NO_CONTEXT."""
    if is_none:
        return Mqmd(order=order, charset=charset).encode()
    return Mqmd(
        user_identifier=application.user[:12],
        accounting_token=application.accounting_token,
        put_appl_type=application.kind,
        put_appl_name=application.name,
        order=order,
        charset=charset,
    ).encode()


def as_put(md: bytes, kept: bytes) -> bytes:
    """The descriptor *md* that was put, with what the store wrote into it: *kept* is what it keeps.

    That is MsgId, the user, the application and the time; the program does not see what queues have for defaults.
    """
    parts = md[: _MSG_ID.start], kept[_MSG_ID], md[_MSG_ID.stop : _USER.start], kept[_USER], md[_USER.stop : _PUT.start]
    return b"".join((*parts, kept[_PUT], md[_PUT.stop :]))


_FOLDER: Final = "mqext"
_TAG: Final = "Dly"
_MILLISECONDS: Final = re.compile("[0-9]{1,18}")
_MOST_TOGETHER: Final = 100
_AGAIN_US: Final = 10_000_000
_LOOK_US: Final = 60_000_000
_CCSID: Final = 819


def delay_of(mqmd: RawMqmd, body: bytes) -> int:
    """The delay in milliseconds that a JMS program asks for; 0 for none."""
    if (name := mqmd.name(mqmd.format)) != MQFMT_RF_HEADER_2 or b"<Dly" not in body:
        return 0
    try:
        headers, _ = decode_chain(body, name, mqmd.coded_char_set_id)
        first = headers[0] if headers else None
        folder = first.folder(_FOLDER) if isinstance(first, Rfh2) else None
        texts = [] if folder is None else [text for tag, text in folder.pairs() if tag == _TAG]
    except DecodeError:
        return 0
    return next((int(text) for text in texts if _MILLISECONDS.fullmatch(text)), 0)


def delayed(put: Outgoing, due_us: int, def_persistent: bool) -> Outgoing:
    """What is put on the queue of delayed messages for *put*. def_persistent: DEFPSIST of its queue."""
    mqmd = put.mqmd
    # Of the descriptor on that queue all else is the message's own; so it has its MsgId and its user.
    own = Mqmd(
        encoding=mqmd.encoding,
        coded_char_set_id=mqmd.coded_char_set_id,
        format=mqmd.format,
        priority=mqmd.priority,
        correl_id=mqmd.correl_id,
    )
    persistence = int(def_persistent) if mqmd.persistence == MQPER_PERSISTENCE_AS_Q_DEF else mqmd.persistence
    outer = replace(
        mqmd,
        format=MQFMT_XMIT_Q_HEADER,
        encoding=MQENC_NATIVE,
        coded_char_set_id=_CCSID,
        persistence=persistence,
        correl_id=due_us.to_bytes(24, "big"),
    )
    header = Xqh(own, put.queue, put.qmgr)
    return put._replace(queue=DELAY_QUEUE, md=outer.encode(), body=header.encode() + put.body)


def revived(md: bytes, body: bytes) -> Outgoing:
    """The message that ``delayed`` made this one of. Raises DecodeError."""
    outer = Mqmd.decode(md)
    header = decode_xqh(body, 0, outer.coded_char_set_id)
    own = header.mqmd
    mqmd = replace(
        outer,
        format=own.format,
        encoding=own.encoding,
        coded_char_set_id=own.coded_char_set_id,
        priority=own.priority,
        correl_id=own.correl_id,
    )
    rest = body[header.length :]
    return Outgoing(PutKind.PUBLICATION, header.remote_qmgr_name, header.remote_q_name, mqmd.encode(), rest)


class DelayedMessages:
    """Those of one queue manager, as one process knows them."""

    def __init__(self, open_queues: OpenQueues) -> None:
        self._open_queues = open_queues
        self._due: list[tuple[int, int]] = []  # a heap: when, and the number of the message
        self._known: set[int] = set()
        self._search, self._look_at = Search(DELAY_QUEUE, Match()), 0

    def move(self, store: QueueManagerStore) -> tuple[list[str], float | None]:
        """Put what is due; the queues that have more messages, and the seconds until more is due, None for never.

        Raises StoreError.
        """
        now_us = to_microseconds(store.clock())
        self._look(store, now_us)
        due: list[int] = []
        while self._due and self._due[0][0] <= now_us and len(due) < _MOST_TOGETHER:
            due.append(heappop(self._due)[1])
        try:
            queues = self._moved(store, due, now_us) if due else []
        except BaseException:
            self._look_at = 0  # all was backed out: it is looked for once more
            raise
        self._known.difference_update(due)
        return queues, None if not self._due else max(0.0, (self._due[0][0] - now_us) / 1_000_000)

    def _look(self, store: QueueManagerStore, now_us: int) -> None:
        """Learn of those that have come; from time to time of all, as another process may have committed old ones."""
        if now_us >= self._look_at:
            self._search, self._look_at = Search(DELAY_QUEUE, Match()), now_us + _LOOK_US
            self._open_queues.searched(self._search)
            self._due.clear()
            self._known.clear()

        def passes(row: MessageRow) -> bool:
            if row[SEQ] not in self._known:
                self._known.add(row[SEQ])
                heappush(self._due, (_due_us(row), row[SEQ]))
            return False

        while not self._search.turn(store.database, now_us, passes)[1]:
            pass

    def _moved(self, store: QueueManagerStore, due: list[int], now_us: int) -> list[str]:
        queues: list[str] = []
        with store.unit_of_work() as unit:
            for seq in due:
                row = unit.uncommitted.find(DELAY_QUEUE, now_us, Match(seq=seq))
                if row is None:
                    continue  # it has expired, or somebody has taken it
                message = message_of(store.database, row, now_us)
                expires_at = None if row[EXPIRES_AT] is None else from_microseconds(row[EXPIRES_AT])
                try:
                    with unit.savepoint():
                        put = revived(message.md, message.body)._replace(expires_at=expires_at)
                        sent = send(unit, put, row[USER], from_microseconds(now_us))
                        unit.uncommitted.remove(DELAY_QUEUE, seq)
                except (DecodeError, QueueError):
                    heappush(self._due, (now_us + _AGAIN_US, seq))
                else:
                    queues += [queue for queue, _ in sent]
        return queues


def _due_us(row: MessageRow) -> int:
    return int.from_bytes(row[MD][72:96], "big")
