"""Messages for queues of other queue managers: they go to a transmission queue, behind an MQXQH.

The transmission queue has the name of the other queue manager, as in MQ. A channel takes the messages
from there (wire formats 5).
"""

from __future__ import annotations

from commands.broker.puts import Outgoing
from rfh2.ccsid import ASCII_FIELDS
from rfh2.constants import MQFMT_XMIT_Q_HEADER
from rfh2.layouts import MQXQH
from rfh2.mde import extended
from rfh2.mqmd import Mqmd, characters


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
