"""Topics of a stream inside a broker, ``$SYS/STREAM/NAME/...``, are the stream's in every source (guide 8.4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate import migmbbrk
from migrate.acl import FILE_NAME
from migrate.assemble import broker_topic, of_product, split_stream
from migrate.ledger import Verdict
from migrate.legacy_state import LegacyState, Product
from migrate.plan import MigrationPlan, Phase, PlanOptions
from migrate.readers.sources import read_sources
from migrate.target import Target
from streams.topic_objects import DEFAULT_STREAM
from tests.migrate.legacy_messages import NOW

TOPICS = [
    ("a/b", DEFAULT_STREAM, "a/b"),
    ("$SYS/STREAM/Sport/a/b", "Sport", "a/b"),
    ("$SYS/STREAM/Sport", "Sport", ""),
    ("$SYS/STREAM/Sport//b", "Sport", "/b"),
    ("$SYS/STREAM", DEFAULT_STREAM, "$SYS/STREAM"),
    ("$SYS/STREAM/", DEFAULT_STREAM, "$SYS/STREAM/"),
    ("$SYS/Broker/B/Status", DEFAULT_STREAM, "$SYS/Broker/B/Status"),
]


@pytest.mark.parametrize(("inside", "stream", "topic"), TOPICS)
def test_8_4_a_topic_inside_the_broker(inside: str, stream: str, topic: str) -> None:
    assert split_stream(inside) == (stream, topic)
    assert broker_topic(stream, topic, Product.WMB) == inside
    assert broker_topic(stream, topic, Product.MQ) == topic


def plan(directory: Path, text: str, name: str = "outfile.txt") -> MigrationPlan:
    path = directory / name
    path.write_text(text)
    state: LegacyState = of_product(read_sources([str(path)], "QM1", Product.WMB), "BRK1", Product.WMB)
    return migmbbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW, Phase.REHEARSE)


RETAINED = """{"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1", "retained": [{
  "source": {"file": "made"}, "topic": "$SYS/STREAM/Sport/EU/x", "body_hex": "%s"}]}"""


@pytest.mark.rule("MIG-19")
def test_a_retained_publication_goes_to_its_stream(tmp_path: Path) -> None:
    """Not to the topic ``$SYS/STREAM/Sport/EU/x``, where nobody of the stream would find it."""
    header = (
        b"RFH \x00\x00\x00\x02" + (36 + 4 + 84).to_bytes(4, "big") + (273).to_bytes(4, "big")
        + (1208).to_bytes(4, "big") + b"MQSTR   " + bytes(4) + (1208).to_bytes(4, "big") + (84).to_bytes(4, "big")
        + b"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>EU/x</Topic></psc>".ljust(84)
    )  # fmt: skip
    found = plan(tmp_path, RETAINED % header.hex(), "state.json")
    assert [(r.stream, r.topic) for r in found.state.retained] == [("Sport", "EU/x")]
    assert [kept.retained.topic_string for kept in found.retained] == ["Sport/EU/x"]


LISTED = """
DynamicSubscriptionEngine
  Topic
    name='%s'
    ACLEntry
      principalName='fred'
      principalType='user'
      publish='true'
  Topic
    name='$SYS/STREAM/Sport/a'
    Subscription
      clientId='mqrfh2:QM1:A.Q'
      user='fred'
BIP8071I: Successful command completion.
"""


def test_a_list_on_the_root_of_a_stream_uses_the_streams_topic_object(tmp_path: Path) -> None:
    found = plan(tmp_path, LISTED % "$SYS/STREAM/Sport")
    assert "setmqaut -m QM1 -n Sport -t topic -p fred +pub" in found.security
    assert not any("MIGMBBRK.TOPIC" in line for line in found.security)
    assert not any(step.definition.name.startswith("MIGMBBRK.TOPIC") for step in found.definitions)


@pytest.mark.parametrize("topic", ["$SYS/STREAM", "$SYS"])
def test_a_list_above_all_streams_is_left_to_a_person(tmp_path: Path, topic: str) -> None:
    found = plan(tmp_path, LISTED % topic)
    (fate,) = (fate for fate in found.fates if fate.key[0] == "acl")
    assert fate.verdict is Verdict.REPORTED
    assert any(line.startswith(f"# {topic} of fred: ") for line in found.security), FILE_NAME


def test_a_subscription_to_a_stream_itself_is_not_understood(tmp_path: Path) -> None:
    text = LISTED.replace("name='$SYS/STREAM/Sport/a'", "name='$SYS/STREAM/Sport'") % "x"
    path = tmp_path / "outfile.txt"
    path.write_text(text)
    (unread,) = read_sources([str(path)], "QM1", Product.WMB).unread
    assert "not a topic of it" in unread.why
    assert unread.is_state
