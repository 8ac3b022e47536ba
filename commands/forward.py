"""Publications on their way to subscribers: the new psc folder, and the descriptor of guide 6.7.9.

The psc folder is written anew and stands first; every other folder, every other header and the body go on byte for
byte. Subscribers that are told the same thing share the bytes: ``Forwarder`` makes them once for each publication and
telling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from commands.model import Publish, PubOpt
from commands.parse import parse
from commands.psc_folder import split_psc
from commands.stamps import Origin, fitting
from rfh2.constants import MQEI_UNLIMITED, MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQPER_PERSISTENT
from rfh2.errors import QPubSubError
from rfh2.folders import Folder, write
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.operations import Delivery
from streams.subscriptions import MQCI_NONE, DeliveryPersistence, Subscription
from streams.topic_strings import remove_prefix


@dataclass(frozen=True, slots=True)
class _Telling:
    """What a forwarded psc folder depends on, beside the publication."""

    message: int
    topic: str
    sub_point: str | None
    is_retained: bool


class Forwarder:
    """Makes the messages that the deliveries of one command come to."""

    def __init__(self, qmgr: str, now: datetime, origin: Origin) -> None:
        self._qmgr, self._now, self._origin = qmgr, now, origin
        self._made: dict[_Telling, tuple[Message, bytes]] = {}

    def forward(self, delivery: Delivery, msg_id: bytes, queue_default: int) -> tuple[Message, bytes]:
        """The message for one subscriber, and its body. queue_default: DEFPSIST of its queue, for PersAsQueue."""
        subscription = delivery.subscription
        telling = _Telling(
            id(delivery.publication),
            remove_prefix(subscription.prefix, delivery.topic_string),
            subscription.sub_point,
            delivery.from_retained and subscription.options.inform_if_ret,
        )
        made = self._made.get(telling)
        if made is None:
            message = _retold(delivery.publication.message, telling)
            made = self._made[telling] = (message, encode(message))
        message, body = made
        return Message(self._descriptor(delivery, msg_id, queue_default), message.headers, message.body), body

    def _descriptor(self, delivery: Delivery, msg_id: bytes, queue_default: int) -> Mqmd:
        """Guide 6.7.9; the publication's priority and persistence were resolved when it was published."""
        subscription, publication = delivery.subscription, delivery.publication
        published = publication.message.mqmd
        own_correl_id = subscription.correl_id != MQCI_NONE
        return Mqmd(
            msg_type=MQMT_DATAGRAM,
            expiry=remaining_expiry(published.expiry, publication.published_at, self._now),
            encoding=published.encoding,
            coded_char_set_id=published.coded_char_set_id,
            format=_format(publication.message),
            priority=published.priority,
            persistence=_persistence(subscription, published.persistence, queue_default),
            msg_id=msg_id,
            correl_id=subscription.correl_id if own_correl_id else subscription.sub_id,
            reply_to_qmgr=fitting(self._qmgr, 48),
            user_identifier=fitting(subscription.user, 12),
            accounting_token=subscription.accounting_token,
            appl_identity_data=subscription.appl_identity_data,
            put_appl_type=self._origin.put_appl_type,
            put_appl_name=self._origin.put_appl_name,
            put_date=self._origin.put_date,
            put_time=self._origin.put_time,
            order=published.order,
            charset=published.charset,
        )


def remaining_expiry(expiry: int, since: datetime, now: datetime) -> int:
    """Tenths of a second left of *expiry*, which began to run at *since*; at least one."""
    if expiry <= 0:
        return MQEI_UNLIMITED
    elapsed = int((now - since).total_seconds() * 10)
    return max(expiry - max(elapsed, 0), 1)


def _format(message: Message) -> str:
    """MQFMT_RF_HEADER_2; what the publisher said where something else comes before the MQRFH2, or there is none."""
    first = message.headers[0] if message.headers else None
    return MQFMT_RF_HEADER_2 if isinstance(first, Rfh2) else message.mqmd.format


def _persistence(subscription: Subscription, published: int, queue_default: int) -> int:
    wanted = subscription.options.persistence
    if wanted is DeliveryPersistence.AS_PUBLISHED:
        return published
    if wanted is DeliveryPersistence.AS_QUEUE:
        return queue_default
    return MQPER_PERSISTENT if wanted is DeliveryPersistence.PERSISTENT else 0


def _retold(message: Message, telling: _Telling) -> Message:
    """*message* with the psc folder that a subscriber is to see."""
    header = message.rfh2
    if header is None:
        return message
    _, others = split_psc(header)
    charset = "utf-8" if header.name_value_ccsid == 1208 else f"utf-16-{header.order[0]}e"
    new = header.with_folders((Folder.of(_psc(message, telling), charset), *others))
    at = message.headers.index(header)
    return replace(message, headers=(*message.headers[:at], new, *message.headers[at + 1 :]))


def _psc(message: Message, telling: _Telling) -> str:
    pairs = [("Command", Publish.word)]
    if telling.is_retained:
        pairs.append(("PubOpt", PubOpt.IS_RETAINED_PUB.value))
    pairs.append(("Topic", telling.topic))
    if telling.sub_point:
        pairs.append(("SubPoint", telling.sub_point))
    try:
        command = parse(message)
    except QPubSubError:
        return write("psc", pairs)
    if isinstance(command, Publish):
        passed = (("PubTime", command.pub_time), ("SeqNum", command.seq_num))
        pairs += [(tag, value) for tag, value in passed if value]
    return write("psc", pairs)
