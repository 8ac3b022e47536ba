"""Puts: what leaves the bridge. A response, a publication for one subscriber, or a dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from commands.headers.response import Completion
from rfh2.message import Message
from rfh2.message_bytes import MessageBytes


class PutKind(StrEnum):
    """Why a message leaves."""

    PUBLICATION = "publication"
    RESPONSE = "response"
    DEADLETTER = "deadletter"


@dataclass(slots=True, unsafe_hash=True)
class Outgoing:
    """A put as the core makes it; ``Put`` is the form that is recorded.

    topic: the resolved topic string, prefix included; only for publications. completion, reason: only for responses and
    dead letters. temporary: the sub_ids of the subscriptions that end with the queue; only for publications.
    """

    kind: PutKind
    qmgr: str
    queue: str
    message: Message
    body: bytes
    topic: str | None = None
    sub_name: str | None = None
    completion: Completion | None = None
    reason: int | None = None
    expires_at: datetime | None = None
    temporary: tuple[bytes, ...] = ()


class Put(MessageBytes):
    """One put, as replay and ``run --record`` write it.

    seq: of the command that caused it. n: 0, 1, 2 ... within that command. qmgr, queue: where it goes. topic: the
    resolved topic string or None. reason: the first one, or None.
    """

    seq: int
    n: int
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
    def of(cls, seq: int, n: int, outgoing: Outgoing) -> Put:
        """The recorded form of put *n* of command *seq*."""
        return cls(
            seq=seq,
            n=n,
            kind=outgoing.kind,
            qmgr=outgoing.qmgr,
            queue=outgoing.queue,
            topic=outgoing.topic,
            sub_name=outgoing.sub_name,
            completion=outgoing.completion,
            reason=outgoing.reason,
            md_hex=outgoing.message.mqmd.encode().hex(),
            body_hex=outgoing.body.hex(),
        )
