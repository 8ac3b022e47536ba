"""The Grafana board drawn without Grafana: ``python -m tests.board_picture`` writes docs/pictures/board.svg again.

``qpubsub run --metrics`` works under a small load for a minute, a real Prometheus asks it every second, and each
panel shows what Prometheus answers to the expressions of that panel. Places, titles and legends are the board's.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.store import QueueManagerStore
from tests.board import board
from tests.commands.links.mosquitto import free_port
from tests.prometheus import Prometheus, prometheus
from tests.reliability.workload import CONTROL, STREAM, put
from tests.waiting import PATIENCE_S

PICTURE: Final = Path(__file__).parents[1] / "docs" / "pictures" / "board.svg"
VARIABLES: Final = {"$qmgr": ".*", "$input": "SYSTEM.BROKER.*", "$dead": "SYSTEM.DEAD.LETTER.QUEUE"}
_INTERVAL: Final = "5s"
_UNIT_X, _UNIT_Y, _MARGIN = 50, 24, 6
_COLOURS: Final = ("#1f77b4", "#2ca02c", "#ff7f0e", "#d62728", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
_LEGENDS: Final = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a panel. points: seconds since the beginning, and the value."""

    legend: str
    points: tuple[tuple[float, float], ...]


def asked(expression: str) -> str:
    """An expression of the board as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression.replace("$__rate_interval", _INTERVAL)


@contextmanager
def at_work(directory: Path) -> Iterator[tuple[QueueManagerStore, str]]:
    """A queue manager whose processor serves metrics, and their address."""
    home, address = directory / "qmgrs", f"127.0.0.1:{free_port()}"
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("FULL", max_depth=40))
            for topic, queue, more in (
                ("Sport/#", "BOARD", ""),
                ("Sport/+/Goals", "FULL", ""),
                ("Sport/#", "LATE", "<Filter>Root.MQMD.Priority &gt; 5</Filter>"),
            ):
                psc = f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>{more}"
                put(unit, CONTROL, psc)
        arguments = ["run", "-m", "QM1", "--home", str(home), "--metrics", address, "--durability", "normal"]
        with (directory / "run.log").open("ab") as log:
            process = subprocess.Popen([sys.executable, "-m", "commands.cli", *arguments], stdout=log, stderr=log)
        try:
            yield store, address
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def put_some(store: QueueManagerStore, second: int) -> None:
    """The load of one second: more and less of it, some commands with errors, and a subscriber that gets."""
    with store.unit_of_work() as unit:
        for n in range(10 + 8 * (second % 7)):
            retain = "<PubOpt>RetainPub</PubOpt>" if n % 5 == 0 else ""
            put(unit, STREAM, f"<Command>Publish</Command>{retain}<Topic>Sport/{n % 9}/Goals</Topic>")
        if second % 4 == 0:
            put(unit, CONTROL, "<Command>ReqUpdate</Command><Topic>Weather</Topic><QName>BOARD</QName>")
        if second % 3 == 0 and unit.find_queue("BOARD") is not None:
            for _ in range(90):
                unit.get("BOARD")


def lines(server: Prometheus, panel: dict[str, Any], start: float, end: float) -> list[Line]:
    """What *panel* shows."""
    found = []
    for target in panel["targets"]:
        for series in server.series(asked(target["expr"]), start, end):
            legend = _legend(target["legendFormat"], series["metric"])
            points = tuple((float(at) - start, float(value)) for at, value in series["values"] if value != "NaN")
            if points:
                found.append(Line(legend, points))
    return found


def _legend(form: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda name: labels.get(name[1], ""), form)


def drawn(shown: Sequence[tuple[dict[str, Any], Sequence[Line]]], seconds: float) -> str:
    """The board as SVG: each panel with its lines."""
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel, _ in shown)
    body = "\n".join(part for panel, found in shown for part in _panel(panel, found, seconds))
    size = f'width="{24 * _UNIT_X}" height="{bottom * _UNIT_Y}" viewBox="0 0 {24 * _UNIT_X} {bottom * _UNIT_Y}"'
    style = "text{font:12px sans-serif;fill:#333}.small{font-size:10px;fill:#666}.stat{font-size:22px}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n{body}\n</svg>\n'


def _panel(panel: dict[str, Any], found: Sequence[Line], seconds: float) -> Iterator[str]:
    place = panel["gridPos"]
    x, y = place["x"] * _UNIT_X + _MARGIN, place["y"] * _UNIT_Y + _MARGIN
    width, height = place["w"] * _UNIT_X - 2 * _MARGIN, place["h"] * _UNIT_Y - 2 * _MARGIN
    title = escape(panel["title"])
    if panel["type"] == "row":
        yield f'<text x="{x}" y="{y + 12}" font-weight="bold">{title}</text>'
        return
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="#fff" stroke="#ccc"/>'
    yield f'<text x="{x + 8}" y="{y + 16}">{title}</text>'
    if not found:
        yield f'<text x="{x + 8}" y="{y + height / 2:.0f}" class="small">no data</text>'
    elif panel["type"] == "stat":
        yield f'<text x="{x + 8}" y="{y + height - 14}" class="stat">{found[0].points[-1][1]:,.4g}</text>'
    else:
        yield from _graph(found, seconds, (x + 8, y + 36, width - 16, height - 46 - 12 * _LEGENDS))
        for n, line in enumerate(found[:_LEGENDS]):
            at = y + height - 6 - 12 * (min(len(found), _LEGENDS) - 1 - n)
            yield f'<text x="{x + 8}" y="{at}" class="small" style="fill:{_COLOURS[n]}">{escape(line.legend)}</text>'


def _graph(found: Sequence[Line], seconds: float, area: tuple[int, int, int, int]) -> Iterator[str]:
    x, y, width, height = area
    most = max(value for line in found for _, value in line.points) or 1.0
    yield f'<text x="{x + width}" y="{y - 10}" class="small" text-anchor="end">{most:,.4g}</text>'
    yield f'<line x1="{x}" y1="{y + height}" x2="{x + width}" y2="{y + height}" stroke="#ccc"/>'
    for n, line in enumerate(found):
        points = " ".join(
            f"{x + width * at / seconds:.1f},{y + height * (1 - value / most):.1f}" for at, value in line.points
        )
        yield f'<polyline points="{points}" fill="none" stroke="{_COLOURS[n % len(_COLOURS)]}" stroke-width="1.5"/>'


def picture(directory: Path, seconds: int) -> str:
    """The board after so many seconds of load."""
    with at_work(directory) as (store, address), prometheus(directory / "prometheus", address) as server:
        start = time.time()
        for second in range(seconds):
            put_some(store, second)
            time.sleep(max(0.0, start + second + 1 - time.time()))
        end = time.time()
        shown = [(panel, lines(server, panel, start, end) if "targets" in panel else []) for panel in board()["panels"]]
    return drawn(shown, end - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        PICTURE.write_text(picture(Path(directory), 60), encoding="utf-8")


if __name__ == "__main__":
    main()
