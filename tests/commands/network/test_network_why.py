"""Why a publication did not arrive at another queue manager: which one kept it back, by which rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.explain.why import Reason
from commands.replay.network.local import NetworkSetup, QueueManagerSetup
from commands.replay.network.why import NetworkWhy
from tests.commands.cli_runs import run
from tests.commands.network.world import World, at

CASES = [
    ("delivered", (at("QM1"), at("QM2", "QM1")), {}, Reason.DELIVERED, "it came by QM1"),
    (
        "SUBSCOPE",
        (at("QM1"), at("QM2", "QM1", setup="DEFINE TOPIC(S) TOPICSTR('Sport') SUBSCOPE(QMGR)")),
        {},
        Reason.SCOPE,
        "kept back at QM2 by SUBSCOPE(QMGR) of topic object S",
    ),
    (
        "SUBSCOPE, although the publication is there",
        (
            at("QM1"),
            at(
                "QM2",
                "QM1",
                setup="DEFINE TOPIC(S) TOPICSTR('Sport') SUBSCOPE(QMGR)\nDEFINE SUB(ALL) TOPICSTR('#') DEST(X)",
            ),
        ),
        {},
        Reason.SCOPE,
        "kept back at QM2 by SUBSCOPE(QMGR) of topic object S: it came from QM1",
    ),
    (
        "SUBSCOPE on the way",
        (at("QM1"), at("HUB", "QM1", setup="ALTER TOPIC(SYSTEM.BASE.TOPIC) SUBSCOPE(QMGR)"), at("QM2", "HUB")),
        {},
        Reason.SCOPE,
        "kept back at HUB by SUBSCOPE(QMGR) of topic object SYSTEM.BASE.TOPIC",
    ),
    (
        "PUBSCOPE",
        (at("QM1", setup="DEFINE TOPIC(S) TOPICSTR('Sport') PUBSCOPE(QMGR)"), at("QM2", "QM1")),
        {},
        Reason.SCOPE,
        "kept back at QM1 by PUBSCOPE(QMGR) of topic object S",
    ),
    ("Local", (at("QM1"), at("QM2", "QM1")), {"options": ["Local"]}, Reason.SCOPE, "kept back at QM1 by Local"),
    (
        "no cluster topic",
        (at("QM1", "", "CL1"), at("QM2", "", "CL1")),
        {},
        Reason.SCOPE,
        "kept back at QM2 by the cluster: Sport is not a topic of cluster CL1 (guide 3.3.4)",
    ),
    (
        "overlapping clusters",
        (
            at("QM1", "", "CL1", setup="DEFINE TOPIC(S) TOPICSTR('Sport') CLUSTER(CL1)"),
            at("HUB", "", "CL1", "CL2"),
            at("QM2", "", "CL2", setup="DEFINE TOPIC(S) TOPICSTR('Sport') CLUSTER(CL2)"),
        ),
        {},
        Reason.SCOPE,
        "kept back at HUB by the cluster: nothing goes from cluster CL2 to cluster CL1 (guide 3.2.1.3)",
    ),
]


def _world(network: tuple[QueueManagerSetup, ...], more: dict[str, list[str]]) -> World:
    world = World(*network)
    world.register("QM2", "Sport", queue="BOARD")
    world.publish("QM1", "Sport", **more)
    return world


@pytest.mark.parametrize(
    ("network", "more", "reason", "detail"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_which_queue_manager_kept_it_back(
    network: tuple[QueueManagerSetup, ...], more: dict[str, list[str]], reason: Reason, detail: str
) -> None:
    why = NetworkWhy(NetworkSetup(network))
    messages = _world(network, more).messages
    found = [verdict for message in messages for verdict in why.take(message) if verdict.queue == "BOARD"]
    assert [(v.seq, v.topic, v.qmgr, v.reason, v.detail) for v in found] == [(2, "Sport", "QM2", reason, detail)]
    assert [verdict.delivered for verdict in found] == [reason is Reason.DELIVERED]


def test_a_stream_that_is_missing_on_the_way() -> None:
    stream = "DEFINE QLOCAL(X)"
    network = (
        at("QMA", setup=stream, semantics="v6"),
        at("QMB", "QMA", semantics="v6"),
        at("QMC", "QMB", setup=stream, semantics="v6"),
    )
    world = World(*network)
    world.register("QMC", "a", queue="Q", stream="X")
    world.publish("QMA", "a", on="X", header="MQRFH")
    why = NetworkWhy(NetworkSetup(network))
    (verdict,) = (verdict for message in world.messages for verdict in why.take(message))
    assert verdict.reason is Reason.STREAM
    assert verdict.detail == "kept back at QMC by the stream: QMB does not have that of X/a on stream X (guide 3.3.4)"


NEAR = [
    ("case", "sport", {}, "", Reason.CASE),
    ("a wildcard of the other scheme", "Spo*", {}, "", Reason.WILDCARD_SCHEME),
    ("a Local publication goes to no other", "sport", {"options": ["Local"]}, "", None),
    ("nor does one of PUBSCOPE(QMGR)", "sport", {}, "DEFINE TOPIC(S) TOPICSTR('Sport') PUBSCOPE(QMGR)", None),
    ("nothing like it", "Weather", {}, "", None),
]


@pytest.mark.rule("DIS-27")
@pytest.mark.parametrize(("pattern", "more", "setup", "reason"), [c[1:] for c in NEAR], ids=[c[0] for c in NEAR])
def test_a_near_miss_at_another_queue_manager(
    pattern: str, more: dict[str, list[str]], setup: str, reason: Reason | None
) -> None:
    network = (at("QM1", setup=setup), at("HUB", "QM1"), at("QM2", "HUB"))
    world = World(*network)
    world.register("QM2", pattern, queue="BOARD")
    world.publish("QM1", "Sport", **more)
    why = NetworkWhy(NetworkSetup(network))
    found = [verdict for message in world.messages for verdict in why.take(message)]
    assert [(each.qmgr, each.queue, each.reason) for each in found] == ([("QM2", "BOARD", reason)] if reason else [])


def test_a_near_miss_that_no_scope_lets_come_is_none() -> None:
    network = (at("QM1"), at("QM2", "QM1", setup="ALTER TOPIC(SYSTEM.BASE.TOPIC) SUBSCOPE(QMGR)"))
    world = World(*network)
    world.register("QM2", "sport", queue="BOARD")
    world.publish("QM1", "Sport")
    world.publish("QM2", "Sport")
    why = NetworkWhy(NetworkSetup(network))
    found = [verdict for message in world.messages for verdict in why.take(message)]
    assert [(each.seq, each.qmgr, each.reason) for each in found] == [(3, "QM2", Reason.CASE)]


def test_the_verb(tmp_path: Path) -> None:
    capture, estate = tmp_path / "capture.jsonl", tmp_path / "estate.toml"
    estate.write_text(
        '[[queue_manager]]\nname = "QM1"\n[[queue_manager]]\nname = "QM2"\nparent = "QM1"\nsetup = "QM2.mqsc"\n'
    )
    (tmp_path / "QM2.mqsc").write_text("DEFINE TOPIC(S) TOPICSTR('Sport') SUBSCOPE(QMGR)")
    messages = _world((at("QM1"), at("QM2", "QM1")), {}).messages
    capture.write_text("".join(message.model_dump_json() + "\n" for message in messages))
    words = ["why", "--network", str(estate), "--input", str(capture)]
    ran = run(*words)
    assert ran.code == 0
    assert "BOARD at queue manager QM2" in ran.out
    assert "kept back at QM2 by SUBSCOPE(QMGR) of topic object S" in ran.out
    (line,) = run(*words, "BOARD", "--json").lines
    assert json.loads(line)["reason"] == "scope"
    (line,) = run(*words, "OTHER", "--json").lines
    assert json.loads(line)["reason"] == "no-match"
    assert run("why", "--network", str(estate)).code == 2
