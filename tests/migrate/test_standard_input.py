"""Sources of a migration on standard input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from tests.commands.cli_runs import run
from tests.migrate.cases import LEGACY

STREAMS = LEGACY / "streams"
SOURCES = [str(STREAMS / name) for name in ("capture.jsonl", "qm.ini", "authorities.sh", "relations.json")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")):
        return tmp_path / "home"


@pytest.mark.parametrize(
    ("sources", "stdin"),
    [
        (("-", *SOURCES[1:]), "capture.jsonl"),
        ((SOURCES[0], "qm.ini=-", *SOURCES[2:]), "qm.ini"),
        ((SOURCES[3], *SOURCES[:2], "--source", "-"), "authorities.sh"),
    ],
    ids=["captures", "with-a-kind", "as-an-option"],
)
def test_a_source_is_standard_input(sources: tuple[str, ...], stdin: str, home: Path) -> None:
    """The state is the same, and each item names the source that a person gave."""
    given = ("strmqbrk", "-m", "QM1", "--home", str(home), "--rehearse", "--json")
    expected = json.loads(run(*given, *SOURCES).out)["fates"]
    ran = run(*given, *sources, stdin=(STREAMS / stdin).read_bytes())
    assert ran.out.count("stdin") > 0
    named = json.loads(ran.out.replace("stdin", str(STREAMS / stdin)))["fates"]
    told = [sorted((fate["label"], fate["source"]) for fate in fates) for fates in (named, expected)]
    assert told[0] == told[1]


def test_standard_input_is_read_once(home: Path) -> None:
    ran = run("strmqbrk", "-m", "QM1", "--home", str(home), "--rehearse", "-", "state=-", stdin=b"")
    assert ran.code == ExitCode.USAGE
    assert "standard input (-) can be read once only" in ran.talk
