"""A whole migration of a live queue manager, in each of the ways to reach it (guide 7.4.1).

Legacy state, plan, apply, verify; then somebody changes something, verify names it; then undo takes everything back.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from migrate import embedded
from tests.commands.cli_runs import run
from tests.migrate.cases import told
from tests.migrate.live.rigs import WAYS, Rig, create, rig, write_legacy

assert main

CHECKPOINTS = [
    *("compat", "stopped", "queues", "objects", "authorities", "enabled", "retained-01", "retained-02"),
    *("subscriptions", "registrations", "record"),
]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The files of a plan."""
    out = tmp_path / "files"
    source = str(write_legacy(tmp_path))
    ran = run("strmqbrk", "-m", "QM1", "--target", "files", "--out", str(out), source)
    assert ran.code in (0, 1, 3), ran.talk
    return out


def state(home: Path) -> dict[str, Any]:
    with QueueManagerStore.open(home, "QM1") as store:
        found = told(embedded.load(store))
    # The queues to which the administrator's own answers went.
    found["objects"] = {name: each for name, each in found["objects"].items() if " QPUBSUB." not in name}
    return found


def apply_all(live: Rig, plan: Path) -> None:
    """Every checkpoint; what REST cannot do is done by hand, and confirmed."""
    words = ["--all", "--confirm", "stopped", "--json", "--wait", "30"]
    for _ in range(8):
        ran = live("apply", str(plan), *words)
        found = json.loads(ran.out)
        if found["stopped"] is None:
            assert ran.code == 0
            return
        name = found["stopped"]["checkpoint"]
        assert live.way == "rest", ran.talk
        assert "by hand" in found["stopped"]["why"]
        by_hand = re.search(r"load (\S+) into (\S+) by hand", found["stopped"]["why"])
        assert by_hand is not None
        file, queue = by_hand.groups()
        assert run("put", "-m", "QM1", "--home", str(live.home), queue, str(plan / file)).code == 0
        words += ["--confirm", name]
    raise AssertionError(found)


@pytest.mark.rule("MIG-22")
@pytest.mark.parametrize("way", WAYS)
def test_7_4_1_plan_apply_verify_change_verify_undo(way: str, plan: Path, tmp_path: Path) -> None:
    with rig(way, tmp_path) as live:
        before = state(live.home)
        missing = live("verify", str(plan), "--json")
        assert missing.code == 1
        assert {each["how"] for each in json.loads(missing.out)["differences"]} == {"missing", "changed"}

        apply_all(live, plan)
        same = live("verify", str(plan), "--json")
        found = json.loads(same.out)
        assert (same.code, found["differences"], found["same"]) == (0, [], True)
        assert found["compared"] == {"QUEUE": 6, "TOPIC": 1, "NAMELIST": 2, "QMGR": 1, "SUB": 5, "RETAINED": 3}

        live.mqsc("ALTER SUB('n') USERDATA('changed') DEST(OTHER.Q)\nALTER QMGR PSMODE(DISABLED)\n")
        live.mqsc("CLEAR TOPICSTR('News') CLRTYPE(RETAINED)\nALTER TOPIC('Sport') PUB(DISABLED)\n")
        live.mqsc("DEFINE SUB('twin') TOPICSTR('Prices/?') DEST(C.Q) WSCHEMA(CHAR)\n")
        changed = json.loads(live("verify", str(plan), "--json").out)["differences"]
        assert [(each["how"], each["kind"], each["attribute"], each["live"]) for each in changed] == [
            ("changed", "QMGR", "PSMODE", "DISABLED"),
            ("changed", "TOPIC", "PUB", "DISABLED"),
            ("changed", "SUB", "DEST", "OTHER.Q"),
            ("changed", "SUB", "USERDATA", "changed"),
            ("extra", "SUB", "", ""),
            ("missing", "RETAINED", "", ""),
        ]
        live.mqsc("ALTER SUB('n') USERDATA('') DEST(D.Q)\nALTER QMGR PSMODE(ENABLED)\nDELETE SUB('twin')\n")
        live.mqsc("DELETE QLOCAL(OTHER.Q)\nALTER TOPIC('Sport') PUB(ASPARENT)\n")
        # A subscription that is defined is sent what is retained: the twin was. Those of the plan were not.
        live.mqsc("CLEAR QLOCAL(C.Q)\n")

        # No DISPLAY shows whether what is retained is still what was loaded: that takes a connection, or --force. The
        # stand-in of the connection has queues alone.
        is_kept = "and would be kept: retained publication" in live("apply", str(plan), "--undo", "--rehearse").talk
        assert way == "pcf" or is_kept == (way == "rest")
        undone = live("apply", str(plan), "--undo", *(["--force"] if is_kept else []))
        assert (undone.code, state(live.home)) == (int(is_kept), before), undone.talk


def test_a_direct_migration_is_verified_too(tmp_path: Path) -> None:
    """What strmqbrk itself has done to an embedded queue manager, and what its undo leaves."""
    create(tmp_path / "home")
    out, words = tmp_path / "files", ("-m", "QM1", "--home", str(tmp_path / "home"))
    assert run("strmqbrk", *words, "--out", str(out), str(write_legacy(tmp_path))).code in (0, 1, 3)
    same = run("verify", *words, str(out))
    assert (same.code, same.out) == (0, "")
    assert "no difference, 18 objects compared (6 queues, 1 topic object" in same.talk
    assert run("strmqbrk", *words, "--undo").code == 0
    assert run("verify", *words, str(out)).code == 1


def test_one_checkpoint_a_run(plan: Path, tmp_path: Path) -> None:
    with rig("embedded", tmp_path) as live:
        done: list[str] = []
        while True:
            found = json.loads(live("apply", str(plan), "--confirm", "stopped", "--json").out)
            done += found["done"]
            assert len(found["done"]) == 1
            if found["next"] is None:
                break
        assert done == CHECKPOINTS
        again = live("apply", str(plan), "--all", "--json")
        assert (again.code, json.loads(again.out)["sent"]) == (0, 0)


def test_a_person_has_to_confirm(plan: Path, tmp_path: Path) -> None:
    with rig("embedded", tmp_path, processes=False) as live:
        ran = live("apply", str(plan), "--all")
        assert ran.code == 1, "compat was done"
        assert "endmqbrk -m QM1" in ran.talk
        assert "--confirm stopped" in ran.talk
        again = live("apply", str(plan), "--all")
        assert again.code == 2, "nothing was changed"
