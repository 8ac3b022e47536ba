"""The features of the queued interface that an MQTT 5 broker has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.qmgr.link_port import Capability, Feature, How

CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(Feature.SUBSCRIBE, How.DOES, "SUBSCRIBE at QoS 1 before the response; one filter for all that share it"),
    Capability(Feature.ALTER, How.EMULATED, "a subscription more and one less; options are the bridge's"),
    Capability(Feature.PUBLISH, How.DOES, "PUBLISH, at least once, in order"),
    Capability(Feature.RETAIN, How.DOES, "retain flag; native ones are kept by the bridge for legacy subscribers"),
    Capability(Feature.RETAIN_EMPTY, How.LOST, "to MQTT it clears the topic; legacy subscribers still get it"),
    Capability(Feature.REQUEST, How.EMULATED, "answered from what the bridge keeps, which follows the broker"),
    Capability(Feature.CLEAR, How.DOES, "an empty retained PUBLISH for each topic; a wildcard is looked up first"),
    Capability(
        Feature.CHAR_WILDCARDS, How.EMULATED, "widened back to the nearest / then # (3.1.3), filtered by the bridge"
    ),
    Capability(Feature.INNER_HASH, How.EMULATED, "cut after the first #, filtered by the bridge"),
    Capability(Feature.ODD_TOPICS, How.NOT_CARRIED, "legacy programs reach each other as before"),
    Capability(Feature.DOLLAR_TOPICS, How.NOT_CARRIED, "they are the MQTT broker's; legacy programs reach each other"),
    Capability(Feature.EXPIRY, How.DOES, "Message Expiry Interval, in seconds, rounded up"),
    Capability(Feature.PERSISTENCE, How.DOES, "QoS 1 for persistent, QoS 0 for not"),
    Capability(Feature.PRIORITY, How.LOST, "user property mq.Priority; MQTT delivers in order"),
    Capability(Feature.PROPERTIES, How.DOES, "user properties and folder usr; types (dt) become text"),
    Capability(Feature.HEADERS, How.NOT_CARRIED, "folders other than usr, and headers before the MQRFH2"),
    Capability(Feature.SELECTORS, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(
        Feature.SCOPE,
        How.EMULATED,
        "local = share: carried as any other; keep: scope QMGR stays here, and gets nothing from there",
    ),
    Capability(
        Feature.OTHER_SUBS_ONLY, How.DOES, "the bridge leaves the publisher out; No Local keeps it from coming back"
    ),
    Capability(Feature.ORDER, How.DOES, "by publisher; between the two sides there is none"),
    Capability(Feature.IDENTITY, How.EMULATED, "the bridge's, wherever the tree is"),
    Capability(Feature.UNIT_OF_WORK, How.EMULATED, "each publication is answered for, and goes off the queue then"),
)
