"""The settings of a Kafka topic: what the answers of a cluster mean. A stand-in for the client answers one thing."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

from commands.links.kafka.cluster import settings_of  # noqa: E402

KafkaError, KafkaException = confluent_kafka.KafkaError, confluent_kafka.KafkaException


class Admin:
    """A client to whose questions the cluster answers with *code*."""

    def __init__(self, code: int) -> None:
        self._code = code

    def describe_configs(self, resources: list[Any], **_: object) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(self._code)))
        return dict.fromkeys(resources, answer)


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_what_cannot_be_known_is_no_setting(code: int) -> None:
    assert settings_of(Admin(code), "orders", 1.0) == {}


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT])
def test_no_answer_does_not_mean_that_there_are_no_settings(code: int) -> None:
    with pytest.raises(KafkaException) as raised:
        settings_of(Admin(code), "orders", 1.0)
    assert raised.value.args[0] == code
