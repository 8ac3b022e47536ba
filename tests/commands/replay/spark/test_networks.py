"""The replay of networks on Spark gives the same bytes as the local one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from commands.network.estate_file import read_estate
from commands.network.topology import Position
from commands.replay.network.local import NetworkReplay, NetworkSetup, QueueManagerSetup
from commands.replay.spark.engine import NetworkOrder, run_network
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from tests.commands.network_scenarios import network_scenarios


def test_several_networks_give_the_puts_of_the_local_replay(spark: SparkSession, tmp_path: Path) -> None:
    """All scenarios of guide 3 in one estate: each is a network of its own, with other names."""
    queue_managers, messages = [], []
    for number, scenario in enumerate(network_scenarios()):
        names = {each.position.qmgr: f"{each.position.qmgr}.{number}" for each in scenario.setup.queue_managers}
        queue_managers += [_renamed(each, names, number) for each in scenario.setup.queue_managers]
        messages += [(message, names[message.qmgr or ""]) for message in scenario.messages]
    setup = NetworkSetup(tuple(queue_managers))
    captured = [message.model_copy(update={"seq": seq, "qmgr": qmgr}) for seq, (message, qmgr) in enumerate(messages)]
    capture, target = tmp_path / "capture.jsonl", tmp_path / "puts.jsonl"
    capture.write_text("".join(message.model_dump_json() + "\n" for message in captured))
    local = NetworkReplay(setup)
    expected = "".join(put.model_dump_json() + "\n" for message in captured for put in local.replay(message)[1])
    done = run_network(spark, NetworkOrder(capture, "auto", target, setup))
    written = "".join(path.read_text() for path in sorted(target.iterdir()) if path.suffix == ".jsonl")
    assert written == expected
    assert done.counts == local.counts
    assert len(setup.build().topology.networks()) > 10


def _renamed(given: QueueManagerSetup, names: Mapping[str, str], number: int) -> QueueManagerSetup:
    position = given.position
    clusters = tuple(f"{cluster}.{number}" for cluster in position.clusters)
    setup = given.setup
    for cluster in sorted(position.clusters):
        setup = setup.replace(f"CLUSTER({cluster})", f"CLUSTER({cluster}.{number})")
    for before, after in names.items():
        setup = setup.replace(f"PARENT({before})", f"PARENT({after})")
    placed = Position(names[position.qmgr], names.get(position.parent, ""), clusters)
    return QueueManagerSetup(placed, setup, given.semantics)


def test_a_queue_manager_that_the_network_does_not_have(spark: SparkSession, tmp_path: Path) -> None:
    scenario = next(network_scenarios())
    setup = NetworkSetup.of(read_estate(scenario.path))
    message = CapturedMessage(seq=7, qmgr="NOBODY", queue="Q", body_hex="00")
    (tmp_path / "capture.jsonl").write_text(message.model_dump_json() + "\n")
    order = NetworkOrder(tmp_path / "capture.jsonl", "auto", tmp_path / "puts.jsonl", setup)
    with pytest.raises(QPubSubError, match="message 7 was put at queue manager NOBODY, which is not in the network"):
        run_network(spark, order)
    assert not (tmp_path / "puts.jsonl").exists()
