"""docs/architecture.md is true where a machine can tell, and what counts its figures counts right."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.structure import HERE, House, circles, way
from tests.wings import ROOMS

PAGE = (HERE / "docs" / "architecture.md").read_text()
BOUNDS = re.findall(r"`([\w./]+\.py)`, `(\w+)` = ([\d,]+)", PAGE)


@pytest.mark.parametrize(
    ("arrows", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [{"a", "b"}]),
        ({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"a"}}, [{"a", "b", "c", "d"}]),
        ({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}}, [{"a", "b"}, {"c", "d"}]),
    ],
)
def test_circles(arrows: dict[str, set[str]], expected: list[set[str]]) -> None:
    found = [circle for circle in circles(arrows) if len(circle) > 1]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def test_what_is_read_of_the_files(tmp_path: Path) -> None:
    for name, text in {
        "rfh2/__init__.py": "from rfh2.low import x\n",
        "rfh2/low.py": "x = 1\n",
        "streams/__init__.py": "",
        "streams/far/__init__.py": "",
        "streams/far/high.py": "from rfh2 import low\nimport streams.near\n\n\ndef f():\n    from streams import far\n",
        "streams/near.py": "from rfh2.low import x\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    house = House.of(tmp_path)
    assert house.modules["streams.far.high"] == {"rfh2.low", "streams.near", "streams.far"}
    assert house.rooms == {"wire": set(), "streams": {"wire"}}
    assert house.floors() == {"wire": 0, "streams": 1}
    assert house.lines["streams.far.high"] == 6


def test_one_messages_way_is_seen() -> None:
    called = {module for _, module in way()}
    assert {"rfh2.rfh2", "commands.broker.core", "commands.broker.forward", "streams.topic_space"} <= called


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
