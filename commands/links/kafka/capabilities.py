"""The features of the queued interface that Kafka has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.links.engine.log_capabilities import capabilities_of
from commands.qmgr.link_port import Feature, How

CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: (How.EMULATED, "the bridge reads its Kafka topics whole, from before the response on"),
        Feature.PUBLISH: (How.DOES, "once, in order, in transactions, for readers with read_committed"),
        Feature.RETAIN: (How.DOES, "a compacted topic; native values are kept by the bridge for its subscribers"),
        Feature.REQUEST: (How.EMULATED, "answered from what the bridge keeps, which follows the compacted topic"),
        Feature.CLEAR: (How.DOES, "a tombstone for the key of each topic; a wildcard is looked up first"),
        Feature.CHAR_WILDCARDS: (How.EMULATED, "the bridge evaluates them on what comes"),
        Feature.INNER_HASH: (How.EMULATED, "the bridge evaluates them on what comes"),
        Feature.ODD_TOPICS: (How.DOES, "a topic string is a key, any bytes"),
        Feature.DOLLAR_TOPICS: (How.DOES, "a topic string is a key, any bytes"),
        Feature.EXPIRY: (How.EMULATED, "header mq.Expires; bridges leave out what has expired, Kafka keeps it"),
        Feature.PERSISTENCE: (How.EMULATED, "header mq.Persistence; Kafka stores both kinds"),
        Feature.PRIORITY: (How.LOST, "header mq.Priority; Kafka delivers in order"),
        Feature.ORDER: (How.DOES, "by topic string; between topic strings and between the two sides there is none"),
        Feature.UNIT_OF_WORK: (How.EMULATED, "a transaction, which also says what has left the outgoing queue"),
    }
)
