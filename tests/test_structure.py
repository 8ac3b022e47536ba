"""docs/architecture.md is true where a machine can tell, and what counts its figures counts right."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.structure import HERE
from tests.wings import ROOMS

PAGE = (HERE / "docs" / "architecture.md").read_text()
BOUNDS = re.findall(r"`([\w./]+\.py)`, `(\w+)` = ([\d,]+)", PAGE)


def test_every_room_is_in_the_page() -> None:
    rows = {room: places for room, places in re.findall(r"^\| (\w+) \| (.*?) \|", PAGE, re.MULTILINE) if room in ROOMS}
    named = {
        room: {place.replace("/", ".") for place in re.findall("`(.*?)`", places)} for room, places in rows.items()
    }
    assert named == {room: {*places} for room, (places, _) in ROOMS.items()}


@pytest.mark.parametrize(("path", "name", "value"), BOUNDS, ids=[f"{path}:{name}" for path, name, _ in BOUNDS])
def test_bounds_are_those_of_the_code(path: str, name: str, value: str) -> None:
    module = import_module(path.removesuffix(".py").replace("/", "."))
    assert f"{getattr(module, name):,}" == value


def test_every_cache_has_its_bounds() -> None:
    assert len(BOUNDS) >= 8
