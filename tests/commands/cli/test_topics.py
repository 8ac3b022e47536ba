"""``qpubsub topics``: the tree of a queue manager as text, SVG and a page; what is wrong with it on stderr."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from commands.cli import main
from commands.terminal.console import Console, ExitCode
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.world import at

SETUP = """
DEFINE QLOCAL('Sport')
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK)
DEFINE SUB(RESULTS) TOPICSTR('Sport/Soccer/#') DEST(RESULTS.Q)
ALTER NL(SYSTEM.QPUBSUB.QUEUE.NAMELIST) +
  NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, 'Sport', 'Music')
"""


def qpubsub(*words: str) -> tuple[int, str, str]:
    """Exit code, data and talk."""
    out, err = io.BytesIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        main.main(list(words), obj=Console(out, err))
    assert isinstance(ended.value.code, int)
    return ended.value.code, out.getvalue().decode(), err.getvalue()


@pytest.fixture
def home(tmp_path: Path) -> str:
    assert qpubsub("create", "QM1", "--home", str(tmp_path))[0] == ExitCode.DONE
    script = tmp_path / "setup.mqsc"
    script.write_text(SETUP)
    assert qpubsub("mqsc", "-m", "QM1", "--home", str(tmp_path), str(script))[0] == ExitCode.DONE
    return str(tmp_path)


def test_text(home: str) -> None:
    code, data, talk = qpubsub("topics", "-m", "QM1", "--home", home)
    assert code == ExitCode.DONE
    assert data.splitlines() == [
        "QM1",
        "└── Sport                             ■ Sport WILDCARD(BLOCK)  ▲ stream Sport",
        "    └── Soccer/#                      ● RESULTS to RESULTS.Q",
    ]
    assert "stream Music has no topic object: its topics are at the root" in talk
    assert "1 subscription," in talk


def test_a_topic_of_a_cluster_and_its_copy(tmp_path: Path) -> None:
    defines = "DEFINE TOPIC(ORDERS) TOPICSTR('Orders') CLUSTER(SALES) SUB(DISABLED)"
    with LiveWorld(tmp_path, at("QM1", "", "SALES", setup=defines), at("QM2", "", "SALES")) as world:
        world.settle()
        drawn = [qpubsub("topics", "-m", qmgr, "--home", str(tmp_path))[1].splitlines()[1:] for qmgr in ("QM1", "QM2")]
    (own,), (copy,) = drawn
    assert own.endswith("■ ORDERS CLUSTER(SALES) SUB(DISABLED)")
    assert copy.endswith("■ ORDERS copy of CLUSTER(SALES) SUB(DISABLED)")


@pytest.mark.parametrize(("form", "begins"), [("svg", "<svg "), ("html", "<!DOCTYPE html>")])
def test_pictures_for_a_report(home: str, form: str, begins: str) -> None:
    code, data, _ = qpubsub("topics", "-m", "QM1", "--home", home, "--to", form, "--under", "Sport")
    assert code == ExitCode.DONE
    assert data.startswith(begins)
    assert "RESULTS to RESULTS.Q" in data
