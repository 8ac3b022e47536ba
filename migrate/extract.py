"""The command messages that get the state out of a running version 6 broker, for ``strmqbrk --extract``.

For each stream: the subscribers and publishers (metatopics of all identities, anonymous ones too, which needs the
authority to use another user's), and every retained publication. On the administration stream: streams and neighbours.
Each question is three commands in MQRFH, which every version 6 broker accepts: register with PubOnReqOnly, request an
update, deregister. InclStreamName makes retained publications name their stream. Answers that nothing is retained
(3077) are no errors.

Collected from the reply queue, into any capture format, the answers are a source of ``strmqbrk``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE
from rfh2.captured import CapturedMessage
from rfh2.constants import MQFMT_RF_HEADER_1, MQMT_REQUEST, MQPER_PERSISTENT
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.mqps import (
    MQPS_COMMAND,
    MQPS_DEREGISTER_SUBSCRIBER,
    MQPS_Q_MGR_NAME,
    MQPS_Q_NAME,
    MQPS_REGISTER_SUBSCRIBER,
    MQPS_REGISTRATION_OPTIONS,
    MQPS_REQUEST_UPDATE,
    MQPS_STREAM_NAME,
    MQPS_TOPIC,
)
from rfh2.rfh1 import Rfh1
from streams.namelists import DEFAULT_STREAM

REPLY_QUEUE: Final = "QPUBSUB.EXTRACT.REPLY"
_NAME: Final = 48
# Registrations of an abandoned run expire.
_EXPIRY_TENTHS: Final = 6_000


def commands(qmgr: str, streams: Iterable[str], now: datetime) -> Iterator[CapturedMessage]:
    """The messages, in order, all for the control queue of *qmgr*. streams: besides the default one."""
    padded = qmgr.ljust(_NAME)
    questions = [(ADMIN_STREAM, f"MQ/{padded}/{what}", False) for what in ("StreamSupport", "Parent", "Children")]
    for stream in dict.fromkeys((DEFAULT_STREAM, *streams)):
        for who in ("Subscribers", "Publishers"):
            questions.append((stream, f"MQ/SA/{padded}/{who}/AllIdentities/*", True))
        questions.append((stream, "*", False))
    seq = 0
    for stream, topic, anonymous in questions:
        for word in (MQPS_REGISTER_SUBSCRIBER, MQPS_REQUEST_UPDATE, MQPS_DEREGISTER_SUBSCRIBER):
            seq += 1
            yield _command(seq, now, qmgr, word, stream, topic, anonymous)


def _command(
    seq: int, now: datetime, qmgr: str, word: str, stream: str, topic: str, anonymous: bool
) -> CapturedMessage:
    pairs = [(MQPS_COMMAND, word), (MQPS_STREAM_NAME, stream), (MQPS_TOPIC, topic)]
    pairs += [(MQPS_Q_MGR_NAME, qmgr), (MQPS_Q_NAME, REPLY_QUEUE)]
    if word == MQPS_REGISTER_SUBSCRIBER:
        options = ["PubOnReqOnly", "InclStreamName", "InformIfRet", *(["Anon"] if anonymous else [])]
        pairs += [(MQPS_REGISTRATION_OPTIONS, option) for option in options]
    header = Rfh1(coded_char_set_id=1208).with_pairs(pairs)
    mqmd = Mqmd(
        format=MQFMT_RF_HEADER_1,
        coded_char_set_id=1208,
        msg_type=MQMT_REQUEST,
        persistence=MQPER_PERSISTENT,
        expiry=_EXPIRY_TENTHS if word == MQPS_REGISTER_SUBSCRIBER else -1,
        reply_to_q=REPLY_QUEUE,
        reply_to_qmgr=qmgr,
    )
    return CapturedMessage(
        seq=seq,
        time=now,
        qmgr=qmgr,
        queue=CONTROL_QUEUE,
        md_hex=mqmd.encode().hex(),
        body_hex=encode(Message(mqmd, (header,))).hex(),
    )
