"""Puts: what leaves the bridge. A response, a publication for one subscriber, or a dead letter."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from commands.broker.descriptor import Accepted
from commands.headers.response import Completion
from rfh2.captured import MessageBytes
from rfh2.errors import DecodeError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd


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
