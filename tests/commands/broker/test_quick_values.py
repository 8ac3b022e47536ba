"""The values of the core with quick constructors (``rfh2.frozen``) are the values that ordinary ones would make."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from commands.broker.context import Context
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.headers.publication import DeliveryForm
from rfh2 import Message, Mqmd
from streams.operations import Delivery, Publication, PublishToTopic
from streams.subscriptions import PublicationFormat, Subscription

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PUBLICATION = Publication(Message(Mqmd(), (), b"data"), NOW)
SUBSCRIPTION = Subscription(bytes(24), "a", "Q", "QM1", NOW)
VALUES = [
    Arrival(1, NOW, "Q", None, b"body", "user"),
    PUBLICATION,
    PublishToTopic("a", PUBLICATION),
    Delivery(SUBSCRIPTION, "a", PUBLICATION),
    DeliveryForm(PublicationFormat.RFH2, ("a",)),
    Outgoing(PutKind.PUBLICATION, "QM1", "Q", PUBLICATION.message, b"body", "a"),
    Outcome(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_copied_pickled_and_frozen_as_others_are(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is type(value)
    assert again == copy.copy(value) == replace(value) == value
    assert repr(again) == repr(value)
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(value)[0].name, None)


@pytest.mark.parametrize("cls", [*map(type, VALUES), Context], ids=lambda cls: cls.__name__)
def test_it_refuses_to_be_subclassed(cls: type[Any]) -> None:
    with pytest.raises(TypeError, match=f"{cls.__name__} cannot be subclassed"):
        type("Sub", (cls,), {"__slots__": ()})
