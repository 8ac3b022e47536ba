"""What the tests of the topic space share: the plain matchers, and short makers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from rfh2.message import Message
from streams.operations import Publication
from streams.subscriptions import Subscription, WildcardScheme
from tests.streams import plain_matchers

NOW = datetime(2011, 1, 26, 10, 57, tzinfo=UTC)


@pytest.fixture(scope="session")
def selects() -> Callable[[str, WildcardScheme, str], bool]:
    """Does this pattern select this topic? By the words of guide 2.5.1.1."""
    return plain_matchers.selects


@pytest.fixture(scope="session")
def reaches() -> Callable[[str, WildcardScheme, str, Collection[str]], bool]:
    """Does a publication reach a subscription, given the topic strings with WILDCARD(BLOCK)? By guide 2.5.4."""
    return plain_matchers.reaches


@pytest.fixture(scope="session")
def now() -> datetime:
    return NOW


@pytest.fixture(scope="session")
def subscription() -> Callable[..., Subscription]:
    """subscription(7, "a/#", ...): a subscription with a number for its sub_id, and a queue of its own."""

    def make(number: int, topic_string: str, **values: Any) -> Subscription:
        values.setdefault("dest_queue", f"Q{number}")
        return Subscription(number.to_bytes(24, "big"), topic_string, dest_qmgr="QM1", created=NOW, **values)

    return make


@pytest.fixture(scope="session")
def publication() -> Callable[..., Publication]:
    """A publication whose message is nothing in particular."""

    def make(text: str = "", **values: Any) -> Publication:
        return Publication(cast(Message, text), NOW, **values)

    return make
