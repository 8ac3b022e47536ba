"""The programs of the tutorial put, and are sent, what the tutorial says: on the stand-in for IBM MQ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from tests.commands.links.mqi.harness import GCC, StandIn, library, needs_mqi, stand_in

pytestmark = [pytest.mark.servers, needs_mqi]

HERE = Path(__file__).parent
PROGRAMS = HERE.parents[1] / "docs" / "tutorials" / "programs"
URL = "ibmmq://127.0.0.1:1414/QM1?channel=APP"
Call = Callable[..., str]


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[StandIn]:
    with stand_in(tmp_path / "mq", {"SCORES": {}}) as running:
        yield running


def _in_c(directory: Path) -> list[str]:
    program = directory / "scores"
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-Wno-stringop-truncation"]
    found = ["-I", HERE, "-o", program, PROGRAMS / "scores.c", "-L", library().parent, "-l:libmqm_r.so"]
    subprocess.run([str(GCC), *strict, *map(str, found)], check=True)
    return [str(program)]


def _in_python(_directory: Path) -> list[str]:
    return [sys.executable, str(PROGRAMS / "scores.py")]


@pytest.fixture(params=[_in_c, _in_python], ids=["c", "python"])
def scores(request: pytest.FixtureRequest, mq: StandIn, tmp_path: Path) -> Call:
    program = request.param(tmp_path)

    def call(*words: str) -> str:
        environment = {**os.environ, **mq.environment}
        done = subprocess.run([*program, "QM1", *words], capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return call


def _run(home: Path) -> None:
    done = CliRunner().invoke(main, ["run", "-m", "QM1", "--home", str(home), "--queues", URL, "--once"])
    assert done.exit_code == 0, done.output


def test_a_program_of_1999_behind_ibm_mq(scores: Call, tmp_path: Path) -> None:
    home = tmp_path / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    scores("subscribe")
    scores("publish", "Liverpool", "2 1")
    _run(home)
    assert scores("read").splitlines() == [
        "answered: <pscr><Completion>ok</Completion></pscr>",
        "score: 2 1",
    ]
    scores("publish", "Everton", "0 0")
    _run(home)
    assert scores("read") == "score: 0 0\n"
