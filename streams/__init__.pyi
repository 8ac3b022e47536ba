from .char_wildcards import (
    CharPattern as CharPattern,
    escape_char_pattern as escape_char_pattern,
    has_char_wildcards as has_char_wildcards,
    parse_char_pattern as parse_char_pattern,
    widen_to_topic_pattern as widen_to_topic_pattern,
)
from .index import SubscriptionIndex as SubscriptionIndex
from .mapping import (
    PrefixFinding as PrefixFinding,
    PrefixSeverity as PrefixSeverity,
    StreamTopic as StreamTopic,
    check_prefix_collisions as check_prefix_collisions,
    check_stream_addition as check_stream_addition,
    check_stream_deletion as check_stream_deletion,
    check_sub_point_addition as check_sub_point_addition,
    is_stream_queue as is_stream_queue,
    stream_topic as stream_topic,
    sub_point_prefix as sub_point_prefix,
)
from .operations import (
    AlterSubscription as AlterSubscription,
    ClearRetained as ClearRetained,
    Delivery as Delivery,
    Effect as Effect,
    Operation as Operation,
    Publication as Publication,
    Published as Published,
    PublishToTopic as PublishToTopic,
    RequestRetained as RequestRetained,
    RetainedCleared as RetainedCleared,
    RetainedPublication as RetainedPublication,
    RetainedStored as RetainedStored,
    Subscribe as Subscribe,
    SubscriptionAdded as SubscriptionAdded,
    SubscriptionAltered as SubscriptionAltered,
    SubscriptionRemoved as SubscriptionRemoved,
    Unsubscribe as Unsubscribe,
)
from .patterns import (
    Pattern as Pattern,
    add_pattern_prefix as add_pattern_prefix,
    parse_pattern as parse_pattern,
    remove_pattern_prefix as remove_pattern_prefix,
    written_topic as written_topic,
)
from .retained import RetainedPublications as RetainedPublications
from .subscriptions import (
    MQCI_NONE as MQCI_NONE,
    DeliveryPersistence as DeliveryPersistence,
    PublicationFormat as PublicationFormat,
    Subscription as Subscription,
    SubscriptionOptions as SubscriptionOptions,
    WildcardScheme as WildcardScheme,
)
from .topic_objects import (
    ADMIN_STREAM as ADMIN_STREAM,
    BASE_DEFAULTS as BASE_DEFAULTS,
    BASE_TOPIC as BASE_TOPIC,
    DEFAULT_NAMELISTS as DEFAULT_NAMELISTS,
    DEFAULT_STREAM as DEFAULT_STREAM,
    DEFAULT_SUB_POINT as DEFAULT_SUB_POINT,
    QUEUE_NAMELIST as QUEUE_NAMELIST,
    SUB_POINT_NAMELIST as SUB_POINT_NAMELIST,
    MessageDelivery as MessageDelivery,
    Namelist as Namelist,
    ProxySubscriptions as ProxySubscriptions,
    PutResponse as PutResponse,
    ResolvedTopic as ResolvedTopic,
    Scope as Scope,
    TopicObject as TopicObject,
    TopicObjects as TopicObjects,
    Wildcard as Wildcard,
)
from .topic_space import TopicSpace as TopicSpace
from .topic_strings import (
    NO_BLOCKS as NO_BLOCKS,
    BlockSet as BlockSet,
    add_prefix as add_prefix,
    check_topic_string as check_topic_string,
    construct_topic_string as construct_topic_string,
    is_within as is_within,
    join_levels as join_levels,
    remove_prefix as remove_prefix,
    split_levels as split_levels,
)
from .topic_wildcards import (
    TopicPattern as TopicPattern,
    check_publication_topic as check_publication_topic,
    has_topic_wildcards as has_topic_wildcards,
    parse_topic_pattern as parse_topic_pattern,
)

__version__: str
