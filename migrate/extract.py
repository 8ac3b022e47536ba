"""The command messages that get the state out of a running version 6 broker: ``extract``, ``strmqbrk --extract``.

For each stream: the subscribers and publishers (metatopics of all identities, anonymous ones too, which needs the
authority to use another user's), and every retained publication. On the administration stream: streams and neighbours.
Each question is three commands in MQRFH, which every version 6 broker accepts: register with PubOnReqOnly, request an
update, deregister. InclStreamName makes retained publications name their stream. Answers that nothing is retained
(3077) are no errors.

Collected from the reply queue, into any capture format, the answers are a source of ``strmqbrk``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE
from rfh2 import rfh1
from rfh2.captured import CapturedMessage
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQFMT_RF_HEADER_1, MQMT_REQUEST, MQPER_PERSISTENT
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from streams.topic_objects import DEFAULT_STREAM

REPLY_QUEUE: Final = "QPUBSUB.EXTRACT.REPLY"
_NAME: Final = 48
# Registrations of an abandoned run expire.
_EXPIRY_TENTHS: Final = 6_000


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask a broker: everything that is retained on *topic* of *stream*. what: its name, for a person.

    anonymous: also what anonymous registrations see.
    """

    what: str
    stream: str
    topic: str
    anonymous: bool = False


def questions_about_streams(qmgr: str) -> list[Question]:
    """On the administration stream: which streams the broker supports, and its neighbours."""
    padded = qmgr.ljust(_NAME)
    return [Question(what, ADMIN_STREAM, f"MQ/{padded}/{what}") for what in ("StreamSupport", "Parent", "Children")]


def questions_on_streams(qmgr: str, streams: Iterable[str]) -> list[Question]:
    """For each of *streams*, besides the default one: subscribers, publishers, retained publications."""
    padded = qmgr.ljust(_NAME)
    found = []
    for stream in dict.fromkeys((DEFAULT_STREAM, *streams)):
        for who in ("Subscribers", "Publishers"):
            found.append(Question(who, stream, f"MQ/SA/{padded}/{who}/AllIdentities/*", True))
        found.append(Question("retained publications", stream, "*"))
    return found


def commands(qmgr: str, streams: Iterable[str], now: datetime) -> Iterator[CapturedMessage]:
    """The messages, in order, all for the control queue of *qmgr*. streams: besides the default one."""
    seq = 0
    for question in (*questions_about_streams(qmgr), *questions_on_streams(qmgr, streams)):
        for message in asking(question, qmgr, now, REPLY_QUEUE, seq):
            seq = message.seq
            yield message


def asking(question: Question, qmgr: str, now: datetime, reply_queue: str, after: int = 0) -> Iterator[CapturedMessage]:
    """The three commands that ask *question*, numbered from *after*; answers go to *reply_queue*."""
    words = (rfh1.MQPS_REGISTER_SUBSCRIBER, rfh1.MQPS_REQUEST_UPDATE, rfh1.MQPS_DEREGISTER_SUBSCRIBER)
    for seq, word in enumerate(words, after + 1):
        yield _command(seq, now, qmgr, word, question, reply_queue)


def _command(seq: int, now: datetime, qmgr: str, word: str, question: Question, reply_queue: str) -> CapturedMessage:
    pairs = [(rfh1.MQPS_COMMAND, word), (rfh1.MQPS_STREAM_NAME, question.stream), (rfh1.MQPS_TOPIC, question.topic)]
    pairs += [(rfh1.MQPS_Q_MGR_NAME, qmgr), (rfh1.MQPS_Q_NAME, reply_queue)]
    if word == rfh1.MQPS_REGISTER_SUBSCRIBER:
        options = ["PubOnReqOnly", "InclStreamName", "InformIfRet", *(["Anon"] if question.anonymous else [])]
        pairs += [(rfh1.MQPS_REGISTRATION_OPTIONS, option) for option in options]
    mqmd, body = request(pairs, qmgr, reply_queue, _EXPIRY_TENTHS if word == rfh1.MQPS_REGISTER_SUBSCRIBER else -1)
    return CapturedMessage(
        seq=seq, time=now, qmgr=qmgr, queue=CONTROL_QUEUE, md_hex=mqmd.encode().hex(), body_hex=body.hex()
    )


def request(pairs: Iterable[tuple[str, str]], qmgr: str, reply_queue: str, expiry: int) -> tuple[Mqmd, bytes]:
    """A command in MQRFH, which every broker accepts. reply_queue: of *qmgr*, for the answer. expiry: in tenths."""
    mqmd = Mqmd(
        format=MQFMT_RF_HEADER_1,
        coded_char_set_id=UTF8_CCSID,
        msg_type=MQMT_REQUEST,
        persistence=MQPER_PERSISTENT,
        expiry=expiry,
        reply_to_q=reply_queue,
        reply_to_qmgr=qmgr,
    )
    return mqmd, encode(Message(mqmd, (rfh1.Rfh1(coded_char_set_id=UTF8_CCSID).with_pairs(pairs),)))
