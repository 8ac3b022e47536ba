"""What JMS classes keep with SUBSTORE(QUEUE): messages on SYSTEM.JMS.ADMIN.QUEUE and SYSTEM.JMS.PS.STATUS.QUEUE.

The broker has each of these subscriptions too, under the subscriber's queue and, as CorrelId, the MsgId of the entry.
If another source has the subscription of an entry, the entry adds nothing; the message stays where it is, for the JMS
program. If no other source has it, the entry becomes a subscription, provided that it has all that is needed. Any other
entry may be state, and is reported as such: a migration does not ignore it (P23).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from commands.broker.objects import ADMIN_QUEUE, RECORD_QUEUES, SHARED_QUEUES
from migrate.legacy_state import Item, LegacySubscription, Product, Source, Unread
from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError
from rfh2.jms_entry import JmsEntry, decode_entry, is_entry
from rfh2.message import Message
from streams.subscriptions import WildcardScheme

_PROBLEM: Final = "P23"
_UNKNOWN: Final = ("expires_at", "format", "user")
_FILTER: Final = "Root."


@dataclass(frozen=True, slots=True)
class _Record:
    source: Source
    queue: str
    entry: JmsEntry | None
    correl_id: str
    why: str


@dataclass(slots=True)
class JmsRecords:
    """The records of all captures, in their order."""

    found: list[_Record] = field(default_factory=list)

    def takes(self, source: Source, message: CapturedMessage, decoded: Message | None) -> bool:
        """Keep a message that is one, by its queue or by how it begins; whether it is."""
        body = message.body
        if message.queue not in RECORD_QUEUES and not (message.queue == "" and is_entry(body)):
            return False
        entry, why = None, "it cannot be decoded"
        if decoded is not None:
            try:
                entry, why = decode_entry(decoded.body, decoded.mqmd.encoding), ""
            except DecodeError as error:
                why = error.why
        correl_id = "" if decoded is None else decoded.mqmd.msg_id.hex().upper()
        self.found.append(_Record(source, message.queue or ADMIN_QUEUE, entry, correl_id, why))
        return True

    def items(self, others: Iterable[Item], product: Product) -> Iterator[Item]:
        """The items that the records give. others: the items of all sources."""
        if not self.found:
            return
        known = [item for item in others if isinstance(item, LegacySubscription)]
        identities = {(item.queue, (item.correl_id or "").upper()) for item in known}
        queues = {item.queue for item in known}
        told: list[_Record] = []
        for record in self.found:
            entry = record.entry
            if entry is None:
                why = f"{record.why}; JMS classes keep a subscription or a subscriber there, in a format not documented"
                yield _unread(record, f"a message on {record.queue}", why)
            elif (entry.queue_name, record.correl_id) in identities or (
                entry.queue_name not in SHARED_QUEUES and entry.queue_name in queues
            ):
                told.append(record)
            else:
                yield _subscription(record, entry, product)
        if told:
            why = "the broker's own state has their subscriptions; the messages stay where they are"
            what = f"{len(told)} JMS subscriptions on {ADMIN_QUEUE}"
            yield Unread(source=told[0].source, text=what, why=why, count=len(told), is_state=False, problem=_PROBLEM)


def _subscription(record: _Record, entry: JmsEntry, product: Product) -> Item:
    what = f"JMS subscription {entry.identity} to {entry.topic} for {entry.queue_name}"
    advice = "take it from the broker's own state"
    if entry.queue_name not in SHARED_QUEUES:
        return _unread(record, what, f"whether its subscription has a CorrelId is not known: {advice}")
    if entry.selector and not entry.selector.startswith(_FILTER):
        return _unread(record, what, f"whether the broker or the program applies its selector is not known: {advice}")
    return LegacySubscription(
        source=record.source,
        topic=entry.topic,
        queue=entry.queue_name,
        correl_id=record.correl_id,
        scheme=WildcardScheme.CHAR if product is Product.MQ else WildcardScheme.TOPIC,
        filter=entry.selector or None,
        options=("CorrelAsId",),
        unknown=_UNKNOWN,
    )


def _unread(record: _Record, what: str, why: str) -> Unread:
    return Unread(source=record.source, text=what, why=why, warns=True, problem=_PROBLEM)
