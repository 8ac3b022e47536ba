"""The reports that a queue manager makes of a message, as its Report field asks (IBM's descriptions of MQMD, Report).

    COA          it is on its queue              EXPIRATION   it has expired, and is discarded
    COD          a program has got it            EXCEPTION    its queue did not take it, after its MQPUT had succeeded

Each is asked for without data, with the first 100 bytes, or with all of it. The headers at the beginning come before
these 100 bytes, so that whoever reads a report can read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from commands.broker.puts import Outgoing, PutKind
from rfh2 import mqi_constants as m
from rfh2.chain import decode_chain
from rfh2.constants import (
    MQEI_UNLIMITED,
    MQMT_REPORT,
    MQOL_UNDEFINED,
    MQRO_DISCARD_MSG,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_DISCARD_AND_EXPIRY,
    MQRO_PASS_MSG_ID,
)
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of

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
OF_QUEUE_MANAGERS: Final = m.MQRO_COA | m.MQRO_COD | m.MQRO_EXPIRATION | m.MQRO_EXCEPTION


def report_of(kind: Kind, mqmd: Mqmd, body: bytes, qmgr: str, reason: int = 0) -> Outgoing:
    """The report of a message that *qmgr* makes; the queue that takes it gives it MsgId, PutDate and PutTime.

    reason: of an exception.
    """
    asked = mqmd.report
    passes = asked & MQRO_PASS_DISCARD_AND_EXPIRY
    made = replace(
        mqmd,
        report=asked & MQRO_DISCARD_MSG if passes else 0,
        msg_type=MQMT_REPORT,
        expiry=mqmd.expiry if passes and kind is not EXPIRATION else MQEI_UNLIMITED,
        feedback=kind.feedback or reason,
        msg_id=mqmd.msg_id if asked & MQRO_PASS_MSG_ID else bytes(24),
        correl_id=mqmd.correl_id if asked & MQRO_PASS_CORREL_ID else mqmd.msg_id,
        backout_count=0,
        reply_to_q="",
        reply_to_qmgr=qmgr,
        put_appl_type=m.MQAT_QMGR,
        put_appl_name=qmgr[:28],
        put_date="",
        put_time="",
        appl_origin_data="",
        original_length=len(body) if mqmd.original_length == MQOL_UNDEFINED else mqmd.original_length,
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
