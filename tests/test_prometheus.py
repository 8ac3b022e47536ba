"""A real Prometheus takes the configuration of deploy, the metrics of ``run``, and every expression of the board."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest

from tests.board import board
from tests.board_picture import Line, asked, at_work, drawn, lines, put_some
from tests.prometheus import CONFIGURATION, PROMTOOL, Prometheus, needs_prometheus, prometheus
from tests.waiting import PATIENCE_S

pytestmark = [needs_prometheus, pytest.mark.servers]

PANELS = [panel for panel in board()["panels"] if "targets" in panel]
ALERTS = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
SECONDS, MOST_SECONDS = 6, 90
# After a command that was measured step by step, the processor measures none for 1,000 times as long as that took: on a
# busy machine, perhaps for half a minute.
SAMPLED = {"rate(qpubsub_wait_seconds_count[5s]) > 0", "rate(qpubsub_sampled_kept_back_total[5s])"}
# What a queue manager lacks of which every queue takes its messages, and which has neither a link nor a listener.
WITHOUT_DATA = {"Owed to subscribers", "Topic tree", "Programs by channel", "MQI calls"}
WITHOUT_DATA |= {"Messages put and got", "Bytes received and sent"}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, str, float, float]]:
    """A Prometheus that has asked for some seconds of load, the address that it asks, and when that was."""
    pytest.importorskip("prometheus_client")
    directory = tmp_path_factory.mktemp("prometheus")
    with at_work(directory) as (store, address), prometheus(directory / "server", address) as server:
        start, missing = time.time(), SAMPLED
        for second in range(MOST_SECONDS):
            put_some(store, second)
            time.sleep(1)
            missing = {query for query in missing if not server.ask("query", query=query)["result"]}
            if second >= SECONDS and not missing:
                break
        yield server, address, start, time.time()


def test_promtool_takes_the_configuration() -> None:
    ran = subprocess.run([str(PROMTOOL), "check", "config", str(CONFIGURATION)], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_promtool_finds_nothing_wrong_with_our_own_metrics(watched: tuple[Prometheus, str, float, float]) -> None:
    with urlopen(f"http://{watched[1]}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read()
    ran = subprocess.run([str(PROMTOOL), "check", "metrics"], input=text, capture_output=True, check=False)
    found = (ran.stdout + ran.stderr).decode().splitlines()
    # IBM's names, which are kept so that boards and alerts made for them work, are not all in Prometheus' manner.
    assert [line for line in found if not line.startswith("ibmmq_")] == []


def test_each_panel_of_the_board_has_data(watched: tuple[Prometheus, str, float, float]) -> None:
    server, _, start, end = watched
    shown = [(panel, lines(server, panel, start, end)) for panel in PANELS]
    assert {panel["title"] for panel, found in shown if not found} <= WITHOUT_DATA
    values = {panel["title"]: found[0].points[-1][1] for panel, found in shown if found}
    assert values["Ready"] == 1
    assert values["Commands a second"] > 0


@pytest.mark.parametrize("expression", re.findall(r"^\| [^|`]+ \| `([^`]+)` \|$", ALERTS, re.MULTILINE))
def test_an_alert_of_the_docs_is_an_expression(watched: tuple[Prometheus, str, float, float], expression: str) -> None:
    assert watched[0].ask("query", query=expression)["resultType"] == "vector"


def test_a_wrong_expression_is_refused(watched: tuple[Prometheus, str, float, float]) -> None:
    with pytest.raises(AssertionError, match="parse error"):
        watched[0].ask("query", query=asked("rate(qpubsub_ready{%s}[$__rate_interval])"))


def test_the_picture_has_each_panel_and_escapes_its_legends() -> None:
    found = [Line("<QM1>", ((0.0, 1.0), (1.0, 2.0)))]
    picture = ElementTree.fromstring(drawn([(panel, found) for panel in board()["panels"]], 2.0))
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {panel["title"] for panel in board()["panels"]} <= set(texts)
    assert "<QM1>" in texts
    graphs = [panel for panel in PANELS if panel["type"] == "timeseries"]
    assert sum(element.tag.endswith("polyline") for element in picture.iter()) == len(graphs)
