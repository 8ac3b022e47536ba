"""Power cuts and failing disks: a part of what ``python -m tests.reliability.power`` tries; and the model itself."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

from tests.reliability.disk_states import CUT, NAME, WRITE, Cut, Operation
from tests.reliability.power import COMPILER
from tests.reliability.power_rooms import ROOMS


@pytest.mark.skipif(COMPILER is None, reason="a C compiler is needed")
def test_what_was_acknowledged_outlasts_a_power_cut_and_a_disk_that_fails() -> None:
    words = [sys.executable, "-m", "tests.reliability.power", "--cuts", "0", "--states", "6", "--faults", "1"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    *found, _ = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [each["room"] for each in found if "syncs do nothing" not in each["room"]] == list(ROOMS)
    assert sum(each["states"] for each in found) > 200
    assert sum(each["faults"] for each in found) > 60


# A file and the root: what is on the disk, and what each change makes of it.
_TEXT = b"a" * 1024
_LONG = Operation(WRITE, 1, 0, b"b" * 1024)
_SHORT = Operation(CUT, 1, 3)
_MADE = Operation(NAME, 0, names=((0, "new", 2),))
_MOVED = Operation(NAME, 0, names=((0, "file", None), (0, "other", 1)))
STATES = [
    ((), {"file": _TEXT}),
    ((_LONG,), {"file": b"b" * 1024}),
    ((Operation(WRITE, 1, 1026, b"c"),), {"file": _TEXT + b"\0\0c"}),
    ((_SHORT,), {"file": b"aaa"}),
    ((_LONG, _SHORT), {"file": b"bbb"}),
    ((_MADE,), {"file": _TEXT, "new": b""}),
    ((_MOVED, _LONG), {"other": b"b" * 1024}),
]


def _cut(*pending: Operation) -> Cut:
    return Cut({1: _TEXT, 2: b""}, {0: {"file": 1}}, pending, (), "now")


@pytest.mark.parametrize(("kept", "tree"), STATES)
def test_what_is_left(kept: tuple[Operation, ...], tree: dict[str, bytes]) -> None:
    assert _cut().state("", kept).tree == tree


def test_every_way_to_lose_two_changes() -> None:
    cut = _cut(_LONG, _MADE)
    plain = [state.tree for state in cut.plain()]
    assert plain == [{"file": _TEXT}, {"file": b"b" * 1024, "new": b""}]
    torn = [{"file": b"b" * 512 + b"a" * 512, "new": b""}, {"file": b"a" * 512 + b"b" * 512, "new": b""}]
    ones = [{"file": b"b" * 1024}, {"file": _TEXT, "new": b""}]
    found = [cut.state(how, kept).tree for how, kept in cut.enumerated()]
    assert [tree for tree in found if tree not in (*plain, *ones)] == torn
    assert all(tree in found for tree in ones)
    assert len({cut.random(Random(seed)).key for seed in range(200)}) == 8, "all of them, by chance"
