"""The features of the queued interface that IBM MQ's topic tree has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.qmgr.link_port import Capability, Feature, How

CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(
        Feature.SUBSCRIBE, How.DOES, "a durable subscription by MQSUB before the response; one for all that share it"
    ),
    Capability(Feature.ALTER, How.EMULATED, "a subscription more and one less; options are the bridge's"),
    Capability(Feature.PUBLISH, How.DOES, "MQPUT to a topic, under syncpoint"),
    Capability(Feature.RETAIN, How.DOES, "MQPMO_RETAIN; native ones are kept by the bridge for legacy subscribers"),
    Capability(Feature.RETAIN_EMPTY, How.DOES, "a message without data is a message"),
    Capability(Feature.REQUEST, How.DOES, "MQSUBRQ; the bridge sends what comes of it"),
    Capability(Feature.CLEAR, How.DOES, "PCF Clear Topic String for each topic; a wildcard is looked up first"),
    Capability(Feature.CHAR_WILDCARDS, How.DOES, "MQSO_WILDCARD_CHAR"),
    Capability(Feature.INNER_HASH, How.DOES, "the same rules"),
    Capability(Feature.ODD_TOPICS, How.DOES, "the same rules"),
    Capability(Feature.DOLLAR_TOPICS, How.DOES, "the same rules; $SYS is the queue manager's"),
    Capability(Feature.EXPIRY, How.DOES, "Expiry"),
    Capability(Feature.PERSISTENCE, How.DOES, "Persistence"),
    Capability(Feature.PRIORITY, How.DOES, "Priority"),
    Capability(Feature.PROPERTIES, How.DOES, "message properties, folder usr; types (dt) become text"),
    Capability(Feature.HEADERS, How.NOT_CARRIED, "folders other than usr and mqpse, and headers before the MQRFH2"),
    Capability(Feature.SELECTORS, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(
        Feature.SCOPE,
        How.DOES,
        "local = share: MQPMO_SCOPE_QMGR; keep: scope QMGR stays here, and gets nothing from there",
    ),
    Capability(
        Feature.OTHER_SUBS_ONLY, How.DOES, "the bridge leaves the publisher out; a selector keeps it from coming back"
    ),
    Capability(Feature.ORDER, How.DOES, "by publisher; between the two sides there is none"),
    Capability(Feature.IDENTITY, How.EMULATED, "the bridge's, wherever the tree is"),
    Capability(Feature.UNIT_OF_WORK, How.DOES, "MQPUT under syncpoint, with the get where the queues are IBM MQ's too"),
)
