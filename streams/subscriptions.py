"""Subscriptions, independent of the commands that made them.

A subscription is a value: registering again gives a new value with the same ``sub_id``. Nothing here knows which header
the command had; what a subscriber asked for is spelt in the terms of MQSUB and DEFINE SUB (guide 4.8, 6.7.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import cast

from rfh2.mqi_constants import MQCI_NONE as MQCI_NONE  # noqa: PLC0414 - exported

HIGHEST_PUB_LEVEL = 9
"""PubLevel of a publication whose program asks for no other (guide 4.6.1)."""


MANAGED_PREFIX = "SYSTEM.MANAGED."
"""So begin the names of queues that the queue manager makes for one subscription each."""
PROXY_SUB_ID = b"PROXY"
"""So begin the sub_ids of proxy subscriptions, which come after all others in the order of delivery."""


class WildcardScheme(StrEnum):
    """Which characters of a subscription's topic string are wild (guide 2.5.1.1)."""

    TOPIC = "topic"
    CHAR = "char"


class DeliveryPersistence(StrEnum):
    """Persistence of what a subscriber receives; of several asked for, the last one wins (guide 6.7.4)."""

    AS_PUBLISHED = "as-published"
    AS_QUEUE = "as-queue"
    PERSISTENT = "persistent"
    NON_PERSISTENT = "non-persistent"


class PublicationFormat(StrEnum):
    """The header in which a subscriber gets a publication: that of the command it registered with.

    DEFINE SUB chooses with PSPROP: RFH2, COMPAT (RFH1), NONE, or MSGPROP (PROPERTIES: as message properties).
    """

    RFH2 = "rfh2"
    RFH1 = "rfh1"
    PCF = "pcf"
    NONE = "none"
    PROPERTIES = "properties"


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """Registration options that outlive the command (guide 6.7.4, RegOpt)."""

    local: bool = False
    new_pubs_only: bool = False
    pub_on_req_only: bool = False
    inform_if_ret: bool = False
    variable_user_id: bool = False
    incl_stream_name: bool = False
    dups_ok: bool = False
    anonymous: bool = False
    persistence: DeliveryPersistence = DeliveryPersistence.AS_PUBLISHED


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription in the topic space.

    sub_id: 24 bytes, unique in the queue manager, ascending in the order of registration (deliveries go in that order).
    topic_string: complete, the prefix of a stream or a subscription point included. prefix: that prefix, taken off
    again from what goes back to the subscriber; empty where there is none. correl_id: MQCI_NONE unless it is part
    of the identity. selector: the Filter. identities: the identity set (JoinShared, JoinExcl). sub_level, grouped,
    destination class: only MQSC sets them. expires_at, created: UTC; None means unlimited. renewed: when expires_at was
    set, if that was after it was created. Of DEFINE SUB alone,
    too: topic_object, the TOPICOBJ it was made with; pub_priority, the PUBPRTY of what is delivered, None as
    published, -1 as the queue's default; keep_correl_id, DESTCORL of zeros: the publisher's CorrelId reaches the
    subscriber. temporary: it goes with its queue, a temporary dynamic one (guide 6.7.2), or with its program: of MQSUB,
    all that are not durable.
    """

    sub_id: bytes
    topic_string: str
    dest_queue: str
    dest_qmgr: str
    created: datetime
    name: str | None = None
    wildcard: WildcardScheme = WildcardScheme.TOPIC
    prefix: str = ""
    stream: str | None = None
    sub_point: str | None = None
    correl_id: bytes = MQCI_NONE
    user: str = ""
    accounting_token: bytes = bytes(32)
    appl_identity_data: str = ""
    user_data: str | None = None
    selector: str | None = None
    options: SubscriptionOptions = SubscriptionOptions()
    format: PublicationFormat = PublicationFormat.RFH2
    identities: tuple[str, ...] = ()
    exclusive: bool = False
    sub_level: int = 1
    grouped: bool = False
    admin: bool = False
    expires_at: datetime | None = None
    topic_object: str = ""
    pub_priority: int | None = None
    keep_correl_id: bool = False
    temporary: bool = False
    renewed: datetime | None = None

    @property
    def managed(self) -> bool:
        """Whether the queue manager made its queue, for it alone (guide 2.4.1)."""
        return self.dest_queue.startswith(MANAGED_PREFIX)

    @property
    def is_proxy(self) -> bool:
        """Whether another queue manager of the network made it, to get publications sent on (guide 3.1)."""
        return self.sub_id.startswith(PROXY_SUB_ID)

    @property
    def traditional_identity(self) -> tuple[str, str, bytes]:
        """Queue manager, queue and correlation identifier: the subscriber without its user id (guide 6.7.2)."""
        return (self.dest_qmgr, self.dest_queue, self.correl_id)


# The subscriptions at one place of an index: none, one, or several. Most places hold one, and need no container.
# Several are a dict by sub_id, so that one among many thousands on the same topic string can be removed at once.
Several = dict[bytes, Subscription]
Holding = Subscription | Several | None


def with_added(holding: Holding, subscription: Subscription) -> Subscription | Several:
    """The holding with this subscription in it; one of the same sub_id is replaced."""
    if holding is None:
        return subscription
    if isinstance(holding, dict):
        holding[subscription.sub_id] = subscription
        return holding
    if holding.sub_id == subscription.sub_id:
        return subscription
    return {holding.sub_id: holding, subscription.sub_id: subscription}


def with_removed(holding: Holding, sub_id: bytes) -> Holding:
    """The holding without this subscription. Raises KeyError where it is not there."""
    if isinstance(holding, dict):
        del holding[sub_id]
        return next(iter(holding.values())) if len(holding) == 1 else holding
    if holding is None or holding.sub_id != sub_id:
        raise KeyError(sub_id)
    return None


def flatten(held: list[Subscription | Several]) -> list[Subscription]:
    """All subscriptions of several places, in the places' order."""
    if dict not in map(type, held):
        return cast(list[Subscription], held)
    subscriptions: list[Subscription] = []
    for each in held:
        if isinstance(each, dict):
            subscriptions.extend(each.values())
        else:
            subscriptions.append(each)
    return subscriptions
