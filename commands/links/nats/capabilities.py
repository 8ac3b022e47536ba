"""The features of the queued interface that NATS with JetStream has; docs/live-brokers.md shows them."""

from __future__ import annotations

from typing import Final

from commands.links.engine.log_capabilities import capabilities_of
from commands.qmgr.link_port import Feature, How

CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: (How.DOES, "a durable consumer follows all filters before the response"),
        Feature.PUBLISH: (How.DOES, "at least once, in order; once within 10 minutes (Nats-Msg-Id)"),
        Feature.RETAIN: (How.DOES, "a key-value bucket; native values are kept by the bridge for legacy subscribers"),
        Feature.REQUEST: (How.EMULATED, "answered from what the bridge keeps, which follows the bucket"),
        Feature.CLEAR: (How.DOES, "a purge marker for the key of each topic; a wildcard is looked up first"),
        Feature.CHAR_WILDCARDS: (How.EMULATED, "widened back to the nearest / then # (3.1.3), filtered by the bridge"),
        Feature.INNER_HASH: (How.EMULATED, "cut after the first #, filtered by the bridge"),
        Feature.ODD_TOPICS: (How.DOES, "+ and # mean nothing in a subject"),
        Feature.DOLLAR_TOPICS: (How.DOES, "behind the prefix, no subject is the server's own"),
        Feature.EXPIRY: (How.DOES, "Nats-TTL, in seconds, rounded up"),
        Feature.PERSISTENCE: (How.EMULATED, "header mq.Persistence; the stream stores both kinds"),
        Feature.PRIORITY: (How.LOST, "header mq.Priority; NATS delivers in order"),
        Feature.ORDER: (How.DOES, "by publisher; between the two sides there is none"),
        Feature.UNIT_OF_WORK: (How.EMULATED, "each publication is answered for, and goes off the queue then"),
    }
)
