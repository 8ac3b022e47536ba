"""NATS with JetStream as a topic tree (``Adapter``).

A stream has the publications, and a key-value bucket the retained ones, a key for each topic. Both belong to all
bridges and native programs that share the topics.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.log_adapter import LogAdapter, capabilities_of
from commands.links.engine.spool import Spool
from commands.links.nats.connection import Names
from commands.links.nats.logs import NatsLogs
from commands.links.nats.messages import why_too_long
from commands.links.nats.sender import NatsSender
from commands.qmgr.link_port import Feature, How

CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: How.DOES,
        Feature.PUBLISH: How.DOES,
        Feature.RETAIN: How.DOES,
        Feature.REQUEST: How.EMULATED,
        Feature.CLEAR: How.DOES,
        Feature.CHAR_WILDCARDS: How.EMULATED,
        Feature.INNER_HASH: How.EMULATED,
        Feature.ODD_TOPICS: How.DOES,
        Feature.DOLLAR_TOPICS: How.DOES,
        Feature.EXPIRY: How.DOES,
        Feature.PERSISTENCE: How.EMULATED,
        Feature.PRIORITY: How.LOST,
        Feature.ORDER: How.DOES,
        Feature.UNIT_OF_WORK: How.EMULATED,
    }
)


class NatsAdapter(LogAdapter[Any]):
    """One NATS server or cluster. state: the directory for what the bridge remembers. Raises ConfigError."""

    kind = "NATS"
    name = "the NATS server"
    log = logging.getLogger("qpubsub.nats")
    filters_at_once = 200
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path) -> None:
        self._config, self._names = config, Names.of(config, qmgr)
        self._nats = NatsLogs(address, config, self._names)
        super().__init__(self._nats, state / "nats.json", config.default_format)

    def why_not_carried(self, topic_string: str) -> str | None:
        return why_too_long(topic_string, self._config.longest_subject)

    def sender(self, spool: Spool, stop: threading.Event) -> NatsSender:
        del spool, stop  # queues are never the server's, and no call waits for long
        return NatsSender(self._nats, self._config, self._names)
