"""Whether a Kafka cluster would do for the bridge: what ``qpubsub check`` finds by trying it.

It makes no topic: it asks the cluster whether it would. So it does not disturb a bridge that is running.
"""

from __future__ import annotations

from collections.abc import Iterator

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.checking.findings import CheckResult
from commands.links.kafka.cluster import KafkaCluster
from commands.links.kafka.routes import Routes
from rfh2.errors import StoreError


class KafkaCheck:
    """Tries one cluster. qmgr: whose bridge asks. Raises ConfigError."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._routes = address, Routes(config.kafka)
        self._bridge = config.client_id or f"qpubsub-{qmgr}"
        self._cluster = KafkaCluster(address, config, self._routes, self._bridge)
        self._missing: list[str] = []

    def connect(self) -> CheckResult:
        """Whether the cluster answers; every other test needs that."""
        subject = f"connection to {self._address}"
        try:
            self._missing = self._cluster.missing()
        except StoreError as error:
            return CheckResult(subject, False, str(error))
        return CheckResult(subject, True, f"connected as {self._bridge}")

    def grants(self) -> Iterator[CheckResult]:
        """The topics, their settings, and what the user may do."""
        for topic in self._cluster.topics:
            yield self._new(topic) if topic in self._missing else self._there(topic)
        yield self._transactions()
        if longest := self._cluster.longest():
            yield CheckResult("size of a publication", True, f"{longest} bytes; larger ones are dead letters")

    def _new(self, topic: str) -> CheckResult:
        subject = f"topic {topic}"
        try:
            self._cluster.make(topic, check_only=True)
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._rights("Create"))
        return CheckResult(subject, True, "not there; run makes it")

    def _there(self, topic: str) -> CheckResult:
        subject, wanted = f"topic {topic}", topic not in self._routes.publications
        policy = self._cluster.settings_of(topic).get("cleanup.policy")
        if policy is None:
            return CheckResult(subject, True, "there; the user may not read its settings")
        if wanted and policy != "compact":
            return CheckResult(
                subject, False, f"cleanup.policy is {policy}: it would lose what it keeps", _set(topic, "compact")
            )
        if not wanted and "compact" in policy:
            why = "it is compacted: publications that nobody has read would go"
            return CheckResult(subject, False, why, _set(topic, "delete"))
        return CheckResult(subject, True, f"{len(self._cluster.logs(topic))} partitions, cleanup.policy {policy}")

    def _transactions(self) -> CheckResult:
        """A name of its own: that of the bridge would end the transactions of one that is running."""
        subject = f"transactions as {self._bridge}-check"
        try:
            self._cluster.producer("-check")
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._rights("Write"))
        return CheckResult(subject, True, "allowed")

    def _rights(self, operation: str) -> tuple[str, ...]:
        """Lines that grant what the bridge needs."""
        add = "kafka-acls.sh --add --allow-principal User:qpubsub"
        names = f"--topic {self._cluster.topics[0]} --resource-pattern-type prefixed"
        if operation == "Create":
            return (f"{add} --operation Create --operation Read --operation Write --operation DescribeConfigs {names}",)
        return (f"{add} --operation Write --transactional-id {self._bridge} --resource-pattern-type prefixed",)


def _set(topic: str, policy: str) -> tuple[str, ...]:
    return (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config cleanup.policy={policy}",
    )
