"""``[mqsc] directory``: scripts are applied when a bridge starts, and again when they change."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.config.settings import Config, MqscConfig
from commands.qmgr.store import QueueManagerStore
from commands.running.bridge import Bridge
from commands.running.mqsc_scripts import ScriptDirectory
from commands.running.run_settings import RunSettings
from commands.terminal.console import Console
from commands.terminal.users import groups_of
from tests.commands.cli_runs import run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    QueueManagerStore.create(tmp_path / "home", QueueManager("QM1")).close()
    (tmp_path / "mqsc").mkdir()
    return tmp_path / "home"


@pytest.fixture
def scripts(home: Path, tmp_path: Path) -> ScriptDirectory:
    return ScriptDirectory(tmp_path / "mqsc", lambda: QueueManagerStore.open(home, "QM1"), groups_of)


def descriptions(home: Path) -> dict[str, str]:
    with QueueManagerStore.open(home, "QM1") as store:
        return {queue.name: queue.description for queue in store.local_queues() if queue.name.startswith("Q.")}


def test_scripts_are_applied_in_order_of_their_names(home: Path, tmp_path: Path, scripts: ScriptDirectory) -> None:
    (tmp_path / "mqsc" / "20.mqsc").write_text("DEFINE QLOCAL(Q.1) REPLACE DESCR('20')\n")
    (tmp_path / "mqsc" / "10.mqsc").write_text("DEFINE QLOCAL(Q.1) DESCR('10')\nDEFINE QLOCAL(Q.2) DESCR('10')\n")
    for other in (".hidden.mqsc", "notes.txt"):
        (tmp_path / "mqsc" / other).write_text("DEFINE QLOCAL(Q.3)\n")
    scripts.look()
    assert descriptions(home) == {"Q.1": "20", "Q.2": "10"}


def test_a_change_counts_when_two_looks_have_seen_it(home: Path, tmp_path: Path, scripts: ScriptDirectory) -> None:
    first, more = tmp_path / "mqsc" / "1.mqsc", tmp_path / "mqsc" / "2.mqsc"
    first.write_text("DEFINE QLOCAL(Q.1) REPLACE DESCR('one')\n")
    scripts.look()
    more.write_text("DEFINE QLOCAL(Q.2) DESCR('two')\nDEFINE QL")
    first.write_text("DEFINE QLOCAL(Q.1) REPLACE DESCR('three')\n")
    scripts.look()
    assert descriptions(home) == {"Q.1": "one"}
    more.write_text("DEFINE QLOCAL(Q.2) DESCR('two')\n")
    scripts.look()
    assert descriptions(home) == {"Q.1": "three"}
    scripts.look()
    assert descriptions(home) == {"Q.1": "three", "Q.2": "two"}


def test_what_is_refused_is_a_line_in_the_log(
    home: Path, tmp_path: Path, scripts: ScriptDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    path, binary = tmp_path / "mqsc" / "1.mqsc", tmp_path / "mqsc" / "2.mqsc"
    path.write_text("* comment\nDELETE QLOCAL(NONE)\n\nDEFINE +\n  NONSENSE(A)\nDEFINE QLOCAL(Q.1)\n")
    binary.write_bytes(b"\xff")
    with caplog.at_level(logging.INFO, "qpubsub.mqsc"):
        scripts.look()
        scripts.look()
    said = [record.getMessage() for record in caplog.records]
    assert [line[: line.index("AMQ") + 7] for line in said[:2]] == [
        f"{path}, line 2: AMQ8147",
        f"{path}, line 4: AMQ8405",
    ]
    assert said[2] == f"{path}: 3 MQSC commands, 2 refused"
    assert said[3].startswith(f"{binary}: it cannot be read: 'utf-8' codec")
    assert len(said) == 4
    assert list(descriptions(home)) == ["Q.1"]


def test_a_bridge_applies_the_scripts_before_it_works(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mqsc" / "1.mqsc").write_text("DEFINE QLOCAL(Q.1)\n")
    config = Config(mqsc=MqscConfig(directory=tmp_path / "mqsc"))
    with Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home, config=config)):
        assert list(descriptions(home)) == ["Q.1"]
    missing = config.model_copy(update={"mqsc": MqscConfig(directory=tmp_path / "nosuch")})
    with pytest.raises(FileNotFoundError):
        Bridge(Console.standard(), RunSettings(qmgr="QM1", home=home, config=missing)).__enter__()


def test_drift_is_what_the_scripts_would_change_now(home: Path, tmp_path: Path, scripts: ScriptDirectory) -> None:
    def drift() -> list[str]:
        found = json.loads(run("status", "-m", "QM1", "--home", str(home), "--json").out)["definitions"]
        assert found["directory"] == str(tmp_path / "mqsc")
        return list(found["drift"])

    assert json.loads(run("status", "-m", "QM1", "--home", str(home), "--json").out)["definitions"] is None
    script = tmp_path / "mqsc" / "1.mqsc"
    script.write_text(
        "DEFINE QLOCAL(Q.1) DESCR('one')\nDEFINE NAMELIST(N) NAMES(A, B)\nALTER QMGR PSRTYCNT(7)\n"
        "DEFINE SUB(S) TOPICSTR('x') DEST(Q.1)\nDEFINE TOPIC(T) TOPICSTR('t')\n"
    )
    scripts.look()
    assert drift() == []
    by_hand = "ALTER QLOCAL(Q.1) DESCR('two')\nALTER NL(N) NAMES(B)\nALTER QMGR PSRTYCNT(5)\nDELETE TOPIC(T)\n"
    assert run("mqsc", "-m", "QM1", "--home", str(home), stdin=by_hand).code == 0
    assert drift() == [
        "NAMELIST(N): NAMES is (B), in the script (A, B)",
        "QLOCAL(Q.1): DESCR is (two), in the script (one)",
        "QMGR(QM1): PSRTYCNT is (5), in the script (7)",
        "TOPIC(T) is missing",
    ]
    shown = run("status", "-m", "QM1", "--home", str(home)).out
    assert f"Definitions of {tmp_path / 'mqsc'}: 4 differences" in shown
    script.write_text(script.read_text() + "DELETE QLOCAL(Q.2)\n")
    run("mqsc", "-m", "QM1", "--home", str(home), stdin="DEFINE QLOCAL(Q.2)\n")
    assert "QLOCAL(Q.2) is extra: the scripts delete it" in drift()
    (tmp_path / "mqsc").rename(tmp_path / "gone")
    assert run("status", "-m", "QM1", "--home", str(home)).code == 0
