"""A subscription in the numbers of MQSD and MQSBC: its options, and how publications have their properties."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rfh2.mqi_constants import (
    MQSO_ANY_USERID,
    MQSO_DURABLE,
    MQSO_FIXED_USERID,
    MQSO_GROUP_SUB,
    MQSO_MANAGED,
    MQSO_NEW_PUBLICATIONS_ONLY,
    MQSO_PUBLICATIONS_ON_REQUEST,
    MQSO_SCOPE_QMGR,
    MQSO_WILDCARD_CHAR,
    MQSO_WILDCARD_TOPIC,
)
from rfh2.pcf_admin_names import MQPSPROP_COMPAT, MQPSPROP_MSGPROP, MQPSPROP_NONE, MQPSPROP_RFH2
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme

PSPROP: Final[Mapping[PublicationFormat, int]] = MappingProxyType(
    {
        PublicationFormat.RFH2: MQPSPROP_RFH2,
        PublicationFormat.RFH1: MQPSPROP_COMPAT,
        PublicationFormat.PCF: MQPSPROP_COMPAT,
        PublicationFormat.NONE: MQPSPROP_NONE,
        PublicationFormat.PROPERTIES: MQPSPROP_MSGPROP,
    }
)
"""MQPSPROP_* of each format."""


def subscription_options(subscription: Subscription) -> int:
    """MQSO_* of a subscription that exists."""
    options = subscription.options
    words = (
        (MQSO_DURABLE, not subscription.temporary),
        (MQSO_MANAGED, subscription.managed),
        (MQSO_GROUP_SUB, subscription.grouped),
        (MQSO_ANY_USERID, options.variable_user_id),
        (MQSO_FIXED_USERID, not options.variable_user_id),
        (MQSO_PUBLICATIONS_ON_REQUEST, options.pub_on_req_only),
        (MQSO_NEW_PUBLICATIONS_ONLY, options.new_pubs_only),
        (MQSO_WILDCARD_CHAR, subscription.wildcard is WildcardScheme.CHAR),
        (MQSO_WILDCARD_TOPIC, subscription.wildcard is WildcardScheme.TOPIC),
        (MQSO_SCOPE_QMGR, options.local),
    )
    return sum(word for word, is_set in words if is_set)
