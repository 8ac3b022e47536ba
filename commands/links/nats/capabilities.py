"""The features of the queued interface that NATS with JetStream has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.qmgr.link_port import Capability, Feature, How

CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(Feature.SUBSCRIBE, How.DOES, "a durable consumer follows all filters before the response"),
    Capability(Feature.ALTER, How.EMULATED, "a subscription more and one less; options are the bridge's"),
    Capability(Feature.PUBLISH, How.DOES, "at least once, in order; once within 10 minutes (Nats-Msg-Id)"),
    Capability(
        Feature.RETAIN, How.DOES, "a key-value bucket; native values are kept by the bridge for legacy subscribers"
    ),
    Capability(Feature.RETAIN_EMPTY, How.DOES, "an empty value; from natives it is a publication that is not retained"),
    Capability(Feature.REQUEST, How.EMULATED, "answered from what the bridge keeps, which follows the bucket"),
    Capability(Feature.CLEAR, How.DOES, "a purge marker for the key of each topic; a wildcard is looked up first"),
    Capability(
        Feature.CHAR_WILDCARDS, How.EMULATED, "widened back to the nearest / then # (3.1.3), filtered by the bridge"
    ),
    Capability(Feature.INNER_HASH, How.EMULATED, "cut after the first #, filtered by the bridge"),
    Capability(Feature.ODD_TOPICS, How.DOES, "+ and # mean nothing in a subject"),
    Capability(Feature.DOLLAR_TOPICS, How.DOES, "behind the prefix, no subject is the server's own"),
    Capability(Feature.EXPIRY, How.DOES, "Nats-TTL, in seconds, rounded up"),
    Capability(Feature.PERSISTENCE, How.EMULATED, "header mq.Persistence; the stream stores both kinds"),
    Capability(Feature.PRIORITY, How.LOST, "header mq.Priority; NATS delivers in order"),
    Capability(Feature.PROPERTIES, How.DOES, "headers and folder usr; types (dt) become text"),
    Capability(Feature.HEADERS, How.NOT_CARRIED, "folders other than usr, and headers before the MQRFH2"),
    Capability(Feature.SELECTORS, How.EMULATED, "the bridge evaluates them on what comes"),
    Capability(Feature.SCOPE, How.EMULATED, "local = share: published as any other; keep: not published there"),
    Capability(
        Feature.OTHER_SUBS_ONLY, How.DOES, "the bridge leaves the publisher out; mq.Bridge keeps it from coming back"
    ),
    Capability(Feature.ORDER, How.DOES, "by publisher; between the two sides there is none"),
    Capability(Feature.IDENTITY, How.EMULATED, "the bridge's, wherever the tree is"),
    Capability(Feature.UNIT_OF_WORK, How.EMULATED, "each publication is answered for, and goes off the queue then"),
)
