"""A real Prometheus for tests: on a free loopback port, with the configuration of deploy and another target."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.commands.links.mosquitto import free_port
from tests.waiting import PATIENCE_S, until

CONFIGURATION: Final = Path(__file__).parents[1] / "deploy" / "prometheus.yml"
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None or PROMTOOL is None, reason="prometheus or promtool is not installed; see .ci/run"
)


class Prometheus:
    """One server. Its answers are those that Grafana would get."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, what: str, **parameters: str) -> Any:
        """The data that the API gives. Raises AssertionError with what Prometheus says where it refuses."""
        try:
            with urlopen(f"{self._url}/api/v1/{what}?{urlencode(parameters)}", timeout=PATIENCE_S) as answer:
                return json.load(answer)["data"]
        except URLError as error:
            raise AssertionError(f"{parameters}: {getattr(error, 'read', bytes)().decode() or error}") from error

    def series(self, expression: str, start: float, end: float, step_s: float = 1.0) -> list[dict[str, Any]]:
        """Of each series its ``metric``, the labels, and its ``values``: Unix time and a number as text."""
        found = self.ask("query_range", query=expression, start=f"{start}", end=f"{end}", step=f"{step_s}")
        result: list[dict[str, Any]] = found["result"]
        return result


@contextmanager
def prometheus(directory: Path, target: str) -> Iterator[Prometheus]:
    """One that asks *target*, a host and a port, every second."""
    assert PROMETHEUS is not None
    text = CONFIGURATION.read_text(encoding="utf-8")
    text = re.sub(r"targets: \[.*\]", f'targets: ["{target}"]', text)
    text = re.sub(r"scrape_interval: \w+", "scrape_interval: 1s", text)
    assert target in text
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prometheus.yml").write_text(text, encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [PROMETHEUS, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'data'}"]
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    server = Prometheus(f"http://{address}")

    def is_ready() -> bool:
        assert process.poll() is None, (directory / "log").read_text()
        try:
            return bool(server.ask("query", query="up == 1")["result"])
        except AssertionError:
            return False

    try:
        until(is_ready, "Prometheus to have asked")
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
