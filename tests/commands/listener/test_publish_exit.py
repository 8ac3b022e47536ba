"""The publish exit for programs that subscribe by MQSUB (guide 4.6.2: Subscribe, Subscription Request)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commands.broker.exit_values import (
    ExitAnswer,
    ExitMessage,
    ExitResponse,
    PublicationContext,
    SubscriptionContext,
)
from commands.qmgr.store import QueueManagerStore
from rfh2.constants import MQRC_PUBLISH_EXIT_ERROR
from rfh2.mqi_constants import (
    MQPMO_RETAIN,
    MQSO_CREATE,
    MQSO_DURABLE,
    MQSO_MANAGED,
    MQSO_PUBLICATIONS_ON_REQUEST,
    MQSR_ACTION_PUBLICATION,
)
from tests.commands.listener.conftest import processing
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_MS

NEW = MQSO_CREATE | MQSO_MANAGED


class _Exit:
    """Marks what it lets through; fails for data that ends with ``bad``."""

    def publication(
        self, message: ExitMessage, publication: PublicationContext, subscription: SubscriptionContext
    ) -> ExitAnswer:
        del publication, subscription
        if message.body.endswith(b"bad"):
            return ExitAnswer(exit_response=ExitResponse.FAILED, why="bad data")
        return ExitAnswer(md=replace(message.mqmd, appl_identity_data="passed").encode())


@pytest.fixture
def client(home: Path, port: int) -> Iterator[MqiClient]:
    with processing(home, publish_exit=_Exit()), MqiClient(port) as client:
        assert client.connect() == 0
        yield client


def _subscriptions(home: Path) -> int:
    with QueueManagerStore.open(home, "QM1") as store:
        return len(store.load_state()[1])


def _managed_queues(home: Path) -> list[str]:
    with QueueManagerStore.open(home, "QM1") as store:
        return [name for name in store.load_state()[0].queues if name.startswith("SYSTEM.MANAGED.")]


def _asked(client: MqiClient) -> int:
    asking = client.subscribed(NEW | MQSO_PUBLICATIONS_ON_REQUEST, "Sport/Soccer")
    assert client.request_retained(asking.hsub, MQSR_ACTION_PUBLICATION) == (0, 1)
    return asking.hobj


WAYS: list[tuple[str, Callable[[MqiClient], int]]] = [
    ("MQSUB", lambda client: client.subscribed(NEW, "Sport/Soccer").hobj),
    ("MQSUBRQ", _asked),
]


@pytest.mark.rule("APP-5")
@pytest.mark.parametrize("subscribe", [row[1] for row in WAYS], ids=[row[0] for row in WAYS])
def test_4_6_2_retained_publications_pass_the_exit(client: MqiClient, subscribe: Callable[[MqiClient], int]) -> None:
    client.publish("Sport/Soccer", b"kept", MQPMO_RETAIN)
    message = client.get(subscribe(client), wait_ms=PATIENCE_MS)
    assert (message.body[-4:], message.mqmd.appl_identity_data) == (b"kept", "passed")


@pytest.mark.rule("APP-5e")
def test_4_6_2_mqsub_fails_with_the_exit_and_subscribes_to_nothing(client: MqiClient, home: Path) -> None:
    client.publish("Sport/Soccer", b"bad", MQPMO_RETAIN)
    failed = client.subscribe(NEW | MQSO_DURABLE, "Sport/Soccer", "S1")
    assert failed.reason == MQRC_PUBLISH_EXIT_ERROR
    assert (_subscriptions(home), _managed_queues(home)) == (0, [])
    asking = client.subscribed(NEW | MQSO_PUBLICATIONS_ON_REQUEST, "Sport/Soccer")
    assert client.request_retained(asking.hsub)[0] == MQRC_PUBLISH_EXIT_ERROR
