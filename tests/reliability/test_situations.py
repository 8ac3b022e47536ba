"""Large situations, smaller than ``python -m tests.reliability situations`` has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.qmgr.delivery import MOST_MESSAGES
from tests.reliability import situations as program
from tests.reliability.situations import SITUATIONS, Measured, Scene, measured

SMALL = 0.004


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_ends_as_it_must(name: str) -> None:
    steps = measured(name, SMALL)
    assert len(steps) > 1
    assert all(step.memory_bytes > 10_000_000 for step in steps), "of this process, at least"


def test_the_sizes_are_those_that_are_promised() -> None:
    sizes = {name: size for name, (_, size) in SITUATIONS.items()}
    assert sizes == {
        "retained": 50_000,
        "subscriptions": 64_000,
        "fan-out": 50_000,
        "long message": 100 * 1024 * 1024,
        "full for a day": 24 * 60 * 60,
        "beyond the bound": MOST_MESSAGES,
    }


def _wrong(home: Path, _size: int) -> list[Measured]:
    assert Scene(home).messages() == 1, "one message"
    return []


def test_a_wrong_result_is_said_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(program.SITUATIONS, "wrong", (_wrong, 1))
    with pytest.raises(AssertionError, match="one message"):
        measured("wrong")
