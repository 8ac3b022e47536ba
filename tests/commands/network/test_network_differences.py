"""A workload through two networks: who gets more, less, twice, later, and what it costs (guide 7.4, 8.6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree

from commands.replay.network.comparison import NetworkChange, NetworkComparison
from commands.replay.network.local import NetworkSetup, QueueManagerSetup
from tests.commands.cli_runs import run
from tests.commands.network.world import World, at

TREE = (at("QM1"), at("QM2", "QM1"), at("QM3", "QM2"))
CLUSTER = tuple(
    at(f"QM{n}", "", "CL1", setup="DEFINE TOPIC(SPORT) TOPICSTR('Sport') CLUSTER(CL1)" if n == 1 else "")
    for n in (1, 2, 3)
)
ONE = (at("HUB"),)


DOUBLED = (at("QM1", setup="ALTER QMGR PARENT(QM3)"), at("QM2", "QM1"), at("QM3", "QM2"))
CLOSED = (
    at("QM1", setup="DEFINE TOPIC(W) TOPICSTR('Weather') PUBSCOPE(QMGR)"),
    at("QM2", "QM1"),
    at("QM3", "QM2", setup="DEFINE TOPIC(S) TOPICSTR('Sport') SUBSCOPE(QMGR)"),
)
NO_TOPIC = "Weather is not a topic of cluster CL1 (guide 3.3.4)"
CASES = [
    ("the same", TREE, TREE, []),
    (
        "a cluster: the weather is no cluster topic",
        TREE,
        CLUSTER,
        ["less BOARD at QM3: Weather: kept back at QM3 by the cluster: " + NO_TOPIC],
    ),
    ("one broker", TREE, ONE, []),
    (
        "a longer way",
        tuple(at(each.position.qmgr, "QM1" if each.position.qmgr != "QM1" else "") for each in TREE),
        TREE,
        [
            "later BOARD at QM3: Sport: over 2 links instead of 1",
            "later BOARD at QM3: Weather: over 2 links instead of 1",
        ],
    ),
    (
        "a loop",
        TREE,
        DOUBLED,
        [
            "twice BOARD at QM3: Sport: would arrive 2 times instead of 1: by QM1 and QM2",
            "twice BOARD at QM3: Weather: would arrive 2 times instead of 1: by QM1 and QM2",
        ],
    ),
    (
        "scope",
        TREE,
        CLOSED,
        [
            "less BOARD at QM3: Sport: kept back at QM3 by SUBSCOPE(QMGR) of topic object S",
            "less BOARD at QM3: Weather: kept back at QM1 by PUBSCOPE(QMGR) of topic object W",
        ],
    ),
    ("nothing connected", (at("QM1"), at("QM2"), at("QM3")), TREE, ["more", "more"]),
]


def _workload() -> World:
    world = World(*TREE)
    world.register("QM3", "Sport", "Weather", queue="BOARD")
    world.publish("QM1", "Sport")
    world.publish("QM1", "Weather")
    return world


@pytest.mark.parametrize(("before", "after", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_who_gets_more_less_twice_later(
    before: tuple[QueueManagerSetup, ...], after: tuple[QueueManagerSetup, ...], expected: list[str]
) -> None:
    comparison = NetworkComparison(NetworkSetup(before), NetworkSetup(after))
    found = [example for message in _workload().messages for example in comparison.compare(message)]
    said = [f"{each.change} {each.queue} at {each.qmgr}: {each.topic}: {each.detail}" for each in found]
    if expected == ["more", "more"]:
        said = [each.change for each in found]
    assert said == expected
    report = comparison.report()
    assert sum(report.totals.values()) == len(found)
    assert report.messages == 3


def test_the_figures_count_flows_and_copies() -> None:
    comparison = NetworkComparison(NetworkSetup(TREE), NetworkSetup(CLUSTER))
    world = _workload()
    world.publish("QM1", "Sport", options=["RetainPub"])
    for message in world.messages:
        comparison.compare(message)
    report = comparison.report()
    assert (report.before.proxy_flows, report.before.proxy_subscriptions) == (4, 4)
    assert (report.before.publications_sent, report.before.retained_copies, report.before.deliveries) == (6, 3, 3)
    # In the cluster both others are asked, and the publisher sends directly.
    assert (report.after.proxy_flows, report.after.publications_sent, report.after.retained_copies) == (2, 2, 2)
    assert report.totals[NetworkChange.LESS] == 1


def _estate(path: Path, *queue_managers: QueueManagerSetup) -> Path:
    lines = []
    for each in queue_managers:
        lines += ["[[queue_manager]]", f'name = "{each.position.qmgr}"', f'parent = "{each.position.parent}"']
        lines.append(f"clusters = {json.dumps(list(each.position.clusters))}")
        if each.setup:
            script = path.parent / f"{path.stem}-{each.position.qmgr}.mqsc"
            script.write_text(each.setup)
            lines.append(f'setup = "{script.name}"')
    path.write_text("\n".join(lines))
    return path


def test_the_verb(tmp_path: Path) -> None:
    capture, svg = tmp_path / "capture.jsonl", tmp_path / "network.svg"
    capture.write_text("".join(message.model_dump_json() + "\n" for message in _workload().messages))
    before, after = _estate(tmp_path / "before.toml", *TREE), _estate(tmp_path / "after.toml", *CLUSTER)
    words = ["differences", str(capture), "--before", str(before), "--after", str(after)]
    ran = run(*words, "--svg", str(svg))
    assert ran.code == 1
    assert "publications sent between queue managers               4           1" in ran.out
    assert "BOARD at QM3: less: Weather" in ran.out
    root = etree.fromstring(svg.read_bytes())
    texts = [text.text for text in root.iter("{*}text")]
    assert texts[0] == f"{after}: publications"
    assert {"QM1", "QM2", "QM3", "CL1", "1 / 0"} <= set(texts)
    assert json.loads(run(*words, "--json").out)["totals"] == {"more": 0, "less": 1, "twice": 0, "later": 0}
    assert run("differences", str(capture), "--before", str(before), "--after", str(before)).code == 0
    assert run("differences", str(capture), "--before", str(before)).code == 2


def test_the_page(tmp_path: Path) -> None:
    """It has what the text has, and the picture of the second network."""
    capture, page = tmp_path / "capture.jsonl", tmp_path / "report.html"
    capture.write_text("".join(message.model_dump_json() + "\n" for message in _workload().messages))
    before, after = _estate(tmp_path / "before.toml", *TREE), _estate(tmp_path / "after.toml", *CLUSTER)
    words = ["differences", str(capture), "--before", str(before), "--after", str(after)]
    assert run(*words, "--html", str(page)).code == 1
    shown = page.read_text()
    assert f"What {after} does differently from {before}" in shown
    for words_of_it in ("publications sent between queue managers", "publications that subscribers miss", "Weather"):
        assert words_of_it in shown
    assert "kept back at QM3 by the cluster" in shown
    assert shown.count("<svg") == 1
    assert "<?xml" not in shown
    same = run("differences", str(capture), "--before", str(before), "--after", str(before), "--html", "-")
    assert same.code == 0
    assert "Subscribers that would notice</h2>" not in same.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--engine", "spark"], "cannot be used with"),
        (["--output", "d.jsonl"], "cannot be used with"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, options: list[str], why: str) -> None:
    estate = _estate(tmp_path / "estate.toml", *TREE)
    ran = run("differences", str(estate), "--before", str(estate), "--after", str(estate), *options)
    assert ran.code == 2
    assert why in ran.talk
