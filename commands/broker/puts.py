"""Puts: what leaves the bridge. A response, a publication for one subscriber, or a dead letter.

A dead letter is a message that could not be processed, behind an MQDLH with the reason and the destination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from commands.broker.descriptor import Accepted, Origin, fitting
from commands.headers.response import Completion
from rfh2.captured import MessageBytes
from rfh2.ccsid import ASCII_FIELDS, is_ebcdic, text_codec
from rfh2.constants import MQFMT_DEAD_LETTER_HEADER, MQRO_DISCARD_MSG
from rfh2.dlh import Dlh
from rfh2.errors import DecodeError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from streams.operations import Delivery


class PutKind(StrEnum):
    """Why a message leaves."""

    PUBLICATION = "publication"
    RESPONSE = "response"
    DEADLETTER = "deadletter"


class Outgoing(NamedTuple):
    """A put as the core makes it; ``Put`` is the form that is recorded."""

    kind: PutKind
    qmgr: str
    queue: str
    md: bytes
    body: bytes
    topic: str | None = None  # the resolved topic string, prefix included; only for publications
    sub_name: str | None = None
    completion: Completion | None = None  # only for responses and dead letters
    reason: int | None = None  # likewise
    expires_at: datetime | None = None
    sub_ids: tuple[bytes, ...] = ()  # the subscriptions that it is for; only for publications
    temporary: tuple[bytes, ...] = ()  # those of them that end with the queue
    accepted: Accepted | None = None  # what a queue keeps beside the message, where that is known beforehand

    @property
    def mqmd(self) -> Mqmd:
        """The descriptor, decoded."""
        return Mqmd.decode(self.md)

    @property
    def message(self) -> Message:
        """The message, decoded; all of it is data where its headers cannot be read."""
        try:
            return decode(self.body, self.md)
        except DecodeError:
            return Message(self.mqmd, (), self.body)


class Put(MessageBytes):
    """One put, as replay and ``run --record`` write it.

    seq: of the command that caused it. at_qmgr: the queue manager at which that command arrived; None in puts that
    were written before version 0.2. n: 0, 1, 2 ... within that command. These three identify a put, and are its order.
    qmgr, queue: where it goes. topic: the resolved topic string or None. reason: the first one, or None.
    """

    seq: int
    n: int
    at_qmgr: str | None = None
    kind: PutKind
    qmgr: str | None
    queue: str
    topic: str | None = None
    sub_name: str | None = None
    completion: Completion | None = None
    reason: int | None = None
    md_hex: str
    body_hex: str

    @classmethod
    def of(cls, seq: int, at_qmgr: str, n: int, outgoing: Outgoing) -> Put:
        """The recorded form of put *n* of command *seq*, which arrived at queue manager *at_qmgr*."""
        return cls(
            seq=seq,
            n=n,
            at_qmgr=at_qmgr,
            kind=outgoing.kind,
            qmgr=outgoing.qmgr,
            queue=outgoing.queue,
            topic=outgoing.topic,
            sub_name=outgoing.sub_name,
            completion=outgoing.completion,
            reason=outgoing.reason,
            md_hex=outgoing.md.hex(),
            body_hex=outgoing.body.hex(),
        )


def is_wanted(mqmd: Mqmd) -> bool:
    """Whether a message may go to the dead-letter queue: not if its sender asked the queue manager to discard it."""
    return not mqmd.report & MQRO_DISCARD_MSG


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Makes the dead letters of one queue manager. qmgr: its name. queue: its dead-letter queue (DEADQ)."""

    qmgr: str
    queue: str

    def put(
        self,
        mqmd: Mqmd,
        body: bytes,
        reason: int,
        queue: str,
        now: datetime,
        *,
        qmgr: str | None = None,
        expires_at: datetime | None = None,
    ) -> Outgoing:
        """The put of the dead letter that *mqmd* and *body* become.

        queue, qmgr: the place or the destination of the message; this queue manager where *qmgr* is None. now: UTC.
        expires_at: when the message expires, if that is known more exactly than from Expiry.
        """
        origin = Origin.of(self.qmgr, now)
        described, dead = _dead_letter(mqmd, body, reason, queue, self.qmgr if qmgr is None else qmgr, origin)
        return Outgoing(
            PutKind.DEADLETTER,
            self.qmgr,
            self.queue,
            described.encode(),
            dead,
            completion=Completion.ERROR,
            reason=reason,
            expires_at=expires_at,
        )


def _dead_letter(mqmd: Mqmd, body: bytes, reason: int, queue: str, qmgr: str, origin: Origin) -> tuple[Mqmd, bytes]:
    """The descriptor and the body (wire formats 5, MQDLH).

    The MQDLH has the Encoding, CodedCharSetId and Format of what follows it, the queue that the message was on, and the
    program, date and time of the put. The descriptor keeps its fields, also MsgId and CorrelId; only those change that
    describe the body, which now begins with the MQDLH.
    """
    header = Dlh(
        reason,
        fitting(queue, 48),
        fitting(qmgr, 48),
        mqmd.encoding,
        mqmd.coded_char_set_id,
        mqmd.format,
        origin.put_appl_type,
        origin.put_appl_name,
        origin.put_date,
        origin.put_time,
        order=mqmd.order,
        charset=mqmd.charset,
    )
    described = replace(
        mqmd,
        format=MQFMT_DEAD_LETTER_HEADER,
        encoding=546 if mqmd.order == "little" else 273,
        coded_char_set_id=_ccsid_of_header(mqmd),
        put_appl_type=origin.put_appl_type,
        put_appl_name=origin.put_appl_name,
        put_date=origin.put_date,
        put_time=origin.put_time,
    )
    return described, header.encode() + body


def _ccsid_of_header(mqmd: Mqmd) -> int:
    """CodedCharSetId of the MQDLH, whose characters are the descriptor's: the message's own if it means the same."""
    ascii_fields = mqmd.charset == ASCII_FIELDS
    ccsid = mqmd.coded_char_set_id
    utf16 = (text_codec(ccsid, mqmd.encoding) or "").startswith("utf-16")
    if not utf16 and is_ebcdic(ccsid) is not ascii_fields:
        return ccsid
    return 819 if ascii_fields else 500


Copies = tuple[Delivery, ...]
"""The deliveries that one put combines; the first decides the descriptor."""


class ExitFate(StrEnum):
    """What became of a message that did not go to the queue of its subscriber."""

    DISCARDED = "discarded"
    DEAD_LETTER = "dead-letter"
    DIVERTED = "diverted"


@dataclass(frozen=True, slots=True)
class Exited:
    """A message that the exit suppressed, or sent elsewhere.

    copies: the deliveries that it was for. feedback: why it was suppressed, else 0. qmgr, queue: where it was sent.
    """

    copies: Copies
    fate: ExitFate
    feedback: int
    qmgr: str
    queue: str
