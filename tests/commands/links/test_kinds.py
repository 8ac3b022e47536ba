"""What each kind of topic tree has to have, and says of itself: for every scheme of ``--topics``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE, QueueManager
from commands.client.errors import MqError, failure
from commands.config.settings import Config, TopicsConfig
from commands.config.urls import PORTS, parse_address
from commands.links.engine.adapter import Adapter, Sent, Waiting, carries, how
from commands.links.engine.properties import ForTree
from commands.links.ibmmq.adapter import MqSender
from commands.links.opening import Places
from commands.qmgr.link_port import Feature, How
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from rfh2.mqmd import Mqmd
from streams.subscriptions import WildcardScheme
from tests.commands.links import test_same_puts

DOC = (Path(__file__).parents[3] / "docs" / "live-brokers.md").read_text()


@pytest.fixture(params=PORTS, scope="module")
def adapter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Adapter[Any, Any]:
    home = tmp_path_factory.mktemp("qmgrs")
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    url = f"{request.param}://localhost/" + ("QM1" if request.param in ("ibmmq", "mq") else "")
    places = Places.of(home, "QM1", Config(topics=TopicsConfig(prefix="")), None, url)
    return places.adapter(parse_address(url, "--topics"), places.stores(DEAD_LETTER_QUEUE))


def test_the_page_has_every_scheme_and_the_table_of_the_adapter(
    adapter: Adapter[Any, Any],
) -> None:
    assert [scheme for scheme in PORTS if f"{scheme}://" not in DOC] == []
    table = re.search(r"^\| feature \|.*?(?=\n\n)", DOC, re.MULTILINE | re.DOTALL)
    assert table is not None, "docs/live-brokers.md has no table of capabilities"
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    at = head.index(adapter.kind)
    said = {each.feature: re.sub(" by the bridge|; logged", "", each.how) for each in adapter.capabilities}
    assert {feature: row[at] for row in rows for feature in row[0].split("; ")} == said


def test_the_guides_scenarios_are_run_over_every_kind(adapter: Adapter[Any, Any]) -> None:
    ids = [str(row.id) for row in test_same_puts.ADAPTERS]
    assert [row for row in ids if re.search(rf"{adapter.kind}\b.*\btree", row)], "a row of ADAPTERS in test_same_puts"


def test_every_feature_is_in_the_table_of_capabilities(adapter: Adapter[Any, Any]) -> None:
    assert [each.feature for each in adapter.capabilities] == list(Feature)


# Feature, and a topic string that only a tree with this feature can have.
TOPICS = [(Feature.DOLLAR_TOPICS, "$mine/x"), (Feature.ODD_TOPICS, "a/c++/x")]


@pytest.mark.parametrize(("feature", "topic"), TOPICS, ids=[feature.name for feature, _ in TOPICS])
def test_topics_that_are_not_carried_stay(adapter: Adapter[Any, Any], feature: Feature, topic: str) -> None:
    stays = adapter.why_stays(topic) is not None
    assert stays is (how(adapter.capabilities, feature) is How.NOT_CARRIED)
    assert (adapter.why_not_carried(topic) is not None) is stays


PATTERNS = [
    ("a/b", WildcardScheme.TOPIC, "a/b", "a/c"),
    ("a/+", WildcardScheme.TOPIC, "a/b", "b/b"),
    ("a/#", WildcardScheme.TOPIC, "a/b/c", "b"),
    ("a/#/c", WildcardScheme.TOPIC, "a/b/c", "b"),
    ("a/b*", WildcardScheme.CHAR, "a/bc", "b"),
]


@pytest.mark.parametrize(("pattern", "scheme", "inside", "outside"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_a_filter_selects_what_its_pattern_does_or_more(
    adapter: Adapter[Any, Any], pattern: str, scheme: WildcardScheme, inside: str, outside: str
) -> None:
    selects = adapter.filter_of(pattern, scheme)
    assert selects is not None
    assert list(adapter.matcher([selects])(inside)) == [selects]
    assert list(adapter.matcher([selects])(outside)) == []
    again = adapter.filter_of(*adapter.pattern_of(selects))
    assert again == selects, "the pattern of a filter has the same filter"


def test_what_the_tree_retains_can_be_cleared_and_looked_up_or_neither(adapter: Adapter[Any, Any]) -> None:
    retains = carries(adapter.capabilities, Feature.RETAIN)
    assert retains or not carries(adapter.capabilities, Feature.CLEAR)


def test_properties_that_ibm_mq_does_not_take_are_a_dead_letter_and_a_fault_of_its_own_is_not() -> None:
    def sent(reason: int) -> list[Sent]:
        def publish(*_: object) -> None:
            raise failure("MQPUT", reason, "")

        sender = MqSender(SimpleNamespace(connection=SimpleNamespace(publish=publish)), False, SimpleNamespace())  # type: ignore[arg-type]
        message = StoredMessage(1, "Q", datetime.now(UTC), None, Mqmd().encode(), b"", True, 0)
        return list(sender.send([Waiting(message, ForTree("a"), (b"", b"", 0))]))

    assert [each.reason for reason in (2478, 2442, 2051) for each in sent(reason)] == [2478, 2442, 2051]
    with pytest.raises(MqError):
        sent(2102)
