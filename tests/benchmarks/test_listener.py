"""The figures of the listener: each way of taking them works, on a little of the work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.benchmarks import listener

pytestmark = pytest.mark.nightly


def test_idle_connections_are_measured() -> None:
    with listener.service() as server:
        assert 0 <= listener.idle(server, 20) < 1_000_000
        assert server.spent_s() > 0


def test_work_in_process_is_measured() -> None:
    assert all(clock_s > 0 for clock_s, _ in listener.in_process(5, persistent=True))


@pytest.mark.servers
@pytest.mark.skipif(
    not listener.JARS or shutil.which("javac") is None, reason="IBM's client or javac is not here: .ci/run fetches it"
)
def test_java_clients_are_measured(tmp_path: Path) -> None:
    path = listener.classpath(tmp_path)
    with listener.service() as server:
        put, get = listener.steps(path, server, 2, 3, True)
        assert float(put.printed) > 0
        assert float(get.printed) > 0
        (reply,) = listener.steps(path, server, 1, 3, False, "reply")
        assert len(reply.printed.split()) == 2
