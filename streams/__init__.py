"""The topic space: topics, wildcards, topic objects, subscriptions, retained publications (guide 2.5, 4.8, 6.1)."""

from typing import TYPE_CHECKING

from rfh2.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from rfh2.constants import MQCI_NONE
    from streams.blocking import NO_BLOCKS, BlockSet
    from streams.char_wildcards import (
        CharPattern,
        escape_char_pattern,
        has_char_wildcards,
        parse_char_pattern,
        widen_to_topic_pattern,
    )
    from streams.index import SubscriptionIndex
    from streams.mapping import (
        PrefixFinding,
        PrefixSeverity,
        StreamTopic,
        check_prefix_collisions,
        check_stream_addition,
        check_stream_deletion,
        check_sub_point_addition,
        is_stream_queue,
        stream_topic,
        sub_point_prefix,
    )
    from streams.namelists import (
        ADMIN_STREAM,
        DEFAULT_NAMELISTS,
        DEFAULT_STREAM,
        DEFAULT_SUB_POINT,
        QUEUE_NAMELIST,
        SUB_POINT_NAMELIST,
        Namelist,
    )
    from streams.operations import (
        AlterSubscription,
        ClearRetained,
        Delivery,
        Effect,
        Operation,
        Publication,
        Published,
        PublishToTopic,
        RequestRetained,
        RetainedCleared,
        RetainedPublication,
        RetainedStored,
        Subscribe,
        SubscriptionAdded,
        SubscriptionAltered,
        SubscriptionRemoved,
        Unsubscribe,
    )
    from streams.patterns import Pattern, add_pattern_prefix, parse_pattern, remove_pattern_prefix, written_topic
    from streams.retained import RetainedPublications
    from streams.subscriptions import (
        DeliveryPersistence,
        PublicationFormat,
        Subscription,
        SubscriptionOptions,
        WildcardScheme,
    )
    from streams.topic_objects import (
        BASE_DEFAULTS,
        BASE_TOPIC,
        MessageDelivery,
        ProxySubscriptions,
        PutResponse,
        ResolvedTopic,
        Scope,
        TopicObject,
        TopicObjects,
        Wildcard,
    )
    from streams.topic_space import TopicSpace
    from streams.topic_strings import (
        add_prefix,
        check_topic_string,
        construct_topic_string,
        is_within,
        join_levels,
        remove_prefix,
        split_levels,
    )
    from streams.topic_wildcards import TopicPattern, check_publication_topic, has_topic_wildcards, parse_topic_pattern

__all__ = [
    "ADMIN_STREAM",
    "BASE_DEFAULTS",
    "BASE_TOPIC",
    "DEFAULT_NAMELISTS",
    "DEFAULT_STREAM",
    "DEFAULT_SUB_POINT",
    "MQCI_NONE",
    "NO_BLOCKS",
    "QUEUE_NAMELIST",
    "SUB_POINT_NAMELIST",
    "AlterSubscription",
    "BlockSet",
    "CharPattern",
    "ClearRetained",
    "Delivery",
    "DeliveryPersistence",
    "Effect",
    "MessageDelivery",
    "Namelist",
    "Operation",
    "Pattern",
    "PrefixFinding",
    "PrefixSeverity",
    "ProxySubscriptions",
    "Publication",
    "PublicationFormat",
    "PublishToTopic",
    "Published",
    "PutResponse",
    "RequestRetained",
    "ResolvedTopic",
    "RetainedCleared",
    "RetainedPublication",
    "RetainedPublications",
    "RetainedStored",
    "Scope",
    "StreamTopic",
    "Subscribe",
    "Subscription",
    "SubscriptionAdded",
    "SubscriptionAltered",
    "SubscriptionIndex",
    "SubscriptionOptions",
    "SubscriptionRemoved",
    "TopicObject",
    "TopicObjects",
    "TopicPattern",
    "TopicSpace",
    "Unsubscribe",
    "Wildcard",
    "WildcardScheme",
    "add_pattern_prefix",
    "add_prefix",
    "check_prefix_collisions",
    "check_publication_topic",
    "check_stream_addition",
    "check_stream_deletion",
    "check_sub_point_addition",
    "check_topic_string",
    "construct_topic_string",
    "escape_char_pattern",
    "has_char_wildcards",
    "has_topic_wildcards",
    "is_stream_queue",
    "is_within",
    "join_levels",
    "parse_char_pattern",
    "parse_pattern",
    "parse_topic_pattern",
    "remove_pattern_prefix",
    "remove_prefix",
    "split_levels",
    "stream_topic",
    "sub_point_prefix",
    "widen_to_topic_pattern",
    "written_topic",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "streams.blocking": "NO_BLOCKS BlockSet",
        "streams.char_wildcards": (
            "CharPattern escape_char_pattern has_char_wildcards parse_char_pattern widen_to_topic_pattern"
        ),
        "streams.index": "SubscriptionIndex",
        "streams.mapping": (
            "PrefixFinding PrefixSeverity StreamTopic check_prefix_collisions check_stream_addition "
            "check_stream_deletion check_sub_point_addition is_stream_queue stream_topic "
            "sub_point_prefix"
        ),
        "streams.namelists": (
            "ADMIN_STREAM DEFAULT_NAMELISTS DEFAULT_STREAM DEFAULT_SUB_POINT QUEUE_NAMELIST SUB_POINT_NAMELIST Namelist"
        ),
        "streams.operations": (
            "AlterSubscription ClearRetained Delivery Effect Operation Publication Published "
            "PublishToTopic RequestRetained RetainedCleared RetainedPublication RetainedStored Subscribe "
            "SubscriptionAdded SubscriptionAltered SubscriptionRemoved Unsubscribe"
        ),
        "streams.patterns": "Pattern add_pattern_prefix parse_pattern remove_pattern_prefix written_topic",
        "streams.retained": "RetainedPublications",
        "streams.subscriptions": (
            "MQCI_NONE DeliveryPersistence PublicationFormat Subscription SubscriptionOptions WildcardScheme"
        ),
        "streams.topic_objects": (
            "BASE_DEFAULTS BASE_TOPIC MessageDelivery ProxySubscriptions PutResponse ResolvedTopic Scope "
            "TopicObject TopicObjects Wildcard"
        ),
        "streams.topic_space": "TopicSpace",
        "streams.topic_strings": (
            "add_prefix check_topic_string construct_topic_string is_within join_levels remove_prefix split_levels"
        ),
        "streams.topic_wildcards": "TopicPattern check_publication_topic has_topic_wildcards parse_topic_pattern",
    },
)
