"""The features of the queued interface that Kafka has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.qmgr.link_port import Capability, Feature, How

CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(Feature.SUBSCRIBE, How.EMULATED, "the bridge reads its Kafka topics whole, from before the response on"),
    Capability(Feature.ALTER, How.EMULATED, "a subscription more and one less; options are the bridge's"),
    Capability(Feature.PUBLISH, How.DOES, "once, in order, in transactions, for readers with read_committed"),
    Capability(Feature.RETAIN, How.DOES, "a compacted topic; native values are kept by the bridge for its subscribers"),
    Capability(Feature.RETAIN_EMPTY, How.DOES, "an empty value; from natives it is a publication that is not retained"),
    Capability(Feature.REQUEST, How.EMULATED, "answered from what the bridge keeps, which follows the compacted topic"),
    Capability(Feature.CLEAR, How.DOES, "a tombstone for the key of each topic; a wildcard is looked up first"),
    Capability(Feature.CHAR_WILDCARDS, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(Feature.INNER_HASH, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(Feature.ODD_TOPICS, How.DOES, "a topic string is a key, any bytes"),
    Capability(Feature.DOLLAR_TOPICS, How.DOES, "a topic string is a key, any bytes"),
    Capability(Feature.EXPIRY, How.EMULATED, "header mq.Expires; bridges leave out what has expired, Kafka keeps it"),
    Capability(Feature.PERSISTENCE, How.EMULATED, "header mq.Persistence; Kafka stores both kinds"),
    Capability(Feature.PRIORITY, How.LOST, "header mq.Priority; Kafka delivers in order"),
    Capability(Feature.PROPERTIES, How.DOES, "headers and folder usr; types (dt) become text"),
    Capability(Feature.HEADERS, How.NOT_CARRIED, "folders other than usr, and headers before the MQRFH2"),
    Capability(Feature.SELECTORS, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(Feature.SCOPE, How.EMULATED, "local = share: published as any other; keep: not published there"),
    Capability(
        Feature.OTHER_SUBS_ONLY, How.DOES, "the bridge leaves the publisher out; mq.Bridge keeps it from coming back"
    ),
    Capability(
        Feature.ORDER, How.DOES, "by topic string; between topic strings and between the two sides there is none"
    ),
    Capability(Feature.IDENTITY, How.EMULATED, "the bridge's, wherever the tree is"),
    Capability(Feature.UNIT_OF_WORK, How.EMULATED, "a transaction, which also says what has left the outgoing queue"),
)
