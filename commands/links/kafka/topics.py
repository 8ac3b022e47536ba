"""The topics of a Kafka cluster: whether one is there, its settings, and how one is made.

Each function asks the cluster by *admin*, a client of confluent-kafka; patience_s: how long an answer may take. They
raise KafkaException where the cluster refuses or does not answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from rfh2.errors import StoreError

try:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AdminClient,
        ConfigResource,
        NewTopic,
        ResourceType,
    )
except ImportError:  # pragma: no cover - the extra is not installed
    AdminClient = None  # type: ignore[assignment,misc]

_OFTEN_S: Final = 0.1


def partitions_of(admin: AdminClient, topic: str, patience_s: float) -> list[int] | None:
    """The numbers of a topic's partitions; None where the topic is not there."""
    about = admin.describe_topics(TopicCollection([topic]), request_timeout=patience_s)[topic]
    try:
        return [each.id for each in about.result().partitions]
    except KafkaException as error:
        if error.args[0] != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return None


def settings_of(admin: AdminClient, topic: str, patience_s: float) -> dict[str, str]:
    """The settings of a topic; none where it is not there, or the user may not read them."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    asked = admin.describe_configs([resource], request_timeout=patience_s)
    try:
        return {name: str(entry.value) for name, entry in asked[resource].result().items()}
    except KafkaException as error:
        if error.args[0] not in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART}:
            raise
        return {}


def make_topic(
    admin: AdminClient,
    topic: str,
    partitions: int,
    replicas: int,
    settings: Mapping[str, str],
    patience_s: float,
    *,
    check_only: bool = False,
) -> None:
    """Make a topic, and wait until it is there; that somebody else made it meanwhile is no error.

    check_only: only ask whether it could be made. Raises StoreError if that is refused.
    """
    new = NewTopic(topic, partitions, replicas, config=dict(settings))
    asked = admin.create_topics([new], validate_only=check_only, request_timeout=patience_s)
    try:
        asked[topic].result()
    except KafkaException as error:
        if error.args[0] != KafkaError.TOPIC_ALREADY_EXISTS:
            raise StoreError(f"Kafka topic {topic} cannot be made: {error.args[0].str()}") from error
    end = time.monotonic() + patience_s
    while not check_only and partitions_of(admin, topic, patience_s) is None and time.monotonic() < end:
        time.sleep(_OFTEN_S)
