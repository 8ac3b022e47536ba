"""The house in numbers: ``python -m tests.structure [REV]...``, of the files here, or of those revisions, side by side.

Rooms are those of ``tests.wings``, arrows the imports between two of them, in whatever function an import stands;
what the four packages re-export from their tops is no arrow. A room's floor is the longest way down from it. One
message's way: the calls during one Publish to one subscriber with an MQRFH2, the second of its topic, in order. A stay
is a run of calls into one module; a return is a stay in a module that was left before; a climb is a stay in a higher
room than the stay before; a call upward is made from a lower room into a higher one.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from pathlib import Path
from statistics import mean, median
from types import FrameType
from typing import Any

from tests.wings import room_of_module

HERE = Path(__file__).parents[1]
PACKAGES = ("rfh2", "streams", "commands", "migrate")
Graph = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class House:
    """What is read of the files. lines: of each module; imports: of these, lines of imports.

    modules, rooms: what each imports of the others.
    """

    lines: Mapping[str, int]
    imports: Mapping[str, int]
    room_of: Mapping[str, str]
    modules: Graph
    rooms: Graph

    @classmethod
    def of(cls, root: Path) -> House:
        paths = {_name(path, root): path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))}
        room_of = {name: room_of_module(name) for name in paths}
        modules: dict[str, set[str]] = {name: set() for name in paths}
        rooms: dict[str, set[str]] = {room: set() for room in room_of.values()}
        for name, path in paths.items():
            modules[name] = {other for other in _imported(path, paths) if other != name}
            if name not in PACKAGES:
                rooms[room_of[name]] |= {room_of[other] for other in modules[name]} - {room_of[name]}
        lines = {name: len(path.read_text().splitlines()) for name, path in paths.items()}
        imports = {name: _import_lines(path) for name, path in paths.items()}
        return cls(lines, imports, room_of, modules, rooms)

    def longest_chain(self) -> int:
        """How many modules follow one another, each imported by the one before; the packages' tops are none of them."""
        modules = {name: others - {*PACKAGES} for name, others in self.modules.items() if name not in PACKAGES}
        longest: dict[str, int] = {}
        for name in TopologicalSorter(modules).static_order():
            longest[name] = 1 + max((longest[other] for other in modules[name]), default=0)
        return max(longest.values())

    def floors(self) -> dict[str, int]:
        """How high each room is: 0 where it imports from none. Rooms in one circle are on one floor."""
        circle_of = {room: number for number, circle in enumerate(circles(self.rooms)) for room in circle}
        below: dict[int, set[int]] = defaultdict(set)
        for room, others in self.rooms.items():
            below[circle_of[room]] |= {circle_of[other] for other in others} - {circle_of[room]}
        floors: dict[int, int] = {}
        for circle in TopologicalSorter({number: below[number] for number in circle_of.values()}).static_order():
            floors[circle] = 1 + max((floors[other] for other in below[circle]), default=-1)
        return {room: floors[number] for room, number in circle_of.items()}


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _import_lines(path: Path) -> int:
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules or node.module in modules:
                    yield full if full in modules else node.module


def circles(graph: Graph) -> list[set[str]]:
    """The parts of *graph* whose members all reach each other; most have one member."""
    groups = [{node} for node in graph]
    group_of = {node: group for group in groups for node in group}
    while True:
        merged = {id(group): group for group in group_of.values()}
        arrows = {
            key: {id(group_of[other]) for node in group for other in graph[node]} - {key}
            for key, group in merged.items()
        }
        try:
            list(TopologicalSorter(arrows).static_order())
        except CycleError as error:
            one = set().union(*(merged[key] for key in error.args[1]))
            group_of |= dict.fromkeys(one, one)
        else:
            return list(merged.values())


def way() -> list[tuple[str, str]]:
    """(calling module, called module) of each call during one Publish; in a process of its own, on its own path."""
    # What a revision calls its modules is its own; the package's name for its broker is the same in all.
    from commands import Broker
    from rfh2 import Folder, Mqmd, Rfh2

    broker = Broker("QM1")
    arrival: Any = sys.modules[Broker.process.__module__].Arrival
    calls: list[tuple[str, str]] = []

    def noted(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            called = str(frame.f_globals.get("__name__"))
            back = frame.f_back
            if called.partition(".")[0] in PACKAGES and not frame.f_code.co_filename.startswith("<"):
                calls.append(("" if back is None else str(back.f_globals.get("__name__")), called))

    md = Mqmd(format="MQHRF2", user_identifier="app").encode()
    commands = (
        ("SYSTEM.BROKER.CONTROL.QUEUE", "<Command>RegSub</Command><Topic>a/b</Topic><QName>S</QName>"),
        *(2 * [("SYSTEM.BROKER.DEFAULT.STREAM", "<Command>Publish</Command><Topic>a/b</Topic>")]),
    )
    for number, (queue, psc) in enumerate(commands):
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data"
        coming = arrival(number, datetime(2026, 1, 1, tzinfo=UTC), queue, md, body)
        calls.clear()
        sys.setprofile(noted)
        try:
            outcome = broker.process(coming)
        finally:
            sys.setprofile(None)
    assert [put.queue for put in outcome.puts] == ["S"]
    return calls


def _way_of(root: Path) -> list[tuple[str, str]]:
    command = [sys.executable, __file__, "--way", str(root)]
    ran = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return [(caller, called) for caller, called in json.loads(ran.stdout)]


def numbers(root: Path) -> dict[str, str]:
    """What is counted of the files under *root*, by name."""
    house = House.of(root)
    floors, sizes = house.floors(), list(house.lines.values())
    named = {room: ", ".join(sorted(circle)) for circle in circles(house.rooms) if len(circle) > 1 for room in circle}
    calls = _way_of(root)
    height = {module: floors[room] for module, room in house.room_of.items()}
    stays = [module for module, _ in groupby(called for _, called in calls)]
    return {
        "modules": f"{len(sizes):,}",
        "lines": f"{sum(sizes):,}",
        "of these imports": f"{sum(house.imports.values()) / sum(sizes):.1%}",
        "lines a module, mean": f"{mean(sizes):.0f}",
        "lines a module, median": f"{median(sizes):.0f}",
        "lines, largest module": f"{max(sizes):,}",
        "rooms": str(len(house.rooms)),
        "floors": str(max(floors.values()) + 1),
        "longest chain of imports": str(house.longest_chain()),
        "arrows between rooms": str(sum(map(len, house.rooms.values()))),
        "circles of modules": str(sum(len(circle) > 1 for circle in circles(house.modules))),
        "circles of rooms": str(sum(len(circle) > 1 for circle in circles(house.rooms))),
        "rooms in a circle": "; ".join(sorted(set(named.values()))) or "none",
        "one Publish: calls": f"{len(calls):,}",
        "one Publish: modules": str(len(set(stays))),
        "one Publish: rooms": str(len({house.room_of[module] for module in stays})),
        "one Publish: stays": str(len(stays)),
        "one Publish: returns": str(len(stays) - len(set(stays))),
        "one Publish: climbs": str(sum(height[after] > height[before] for before, after in pairwise(stays))),
        "one Publish: calls upward": str(
            sum(height[caller] < height[called] for caller, called in calls if caller in height)
        ),
    }


def drawing(root: Path) -> Iterator[str]:
    """Each room with its floor, its size, and the rooms that it imports from, the highest first."""
    house = House.of(root)
    floors = house.floors()
    for room in sorted(house.rooms, key=lambda room: (-floors[room], room)):
        sizes = [lines for module, lines in house.lines.items() if house.room_of[module] == room]
        below = ", ".join(sorted(house.rooms[room])) or "nothing"
        yield f"{floors[room]:2} {room}: {len(sizes)} modules, {sum(sizes):,} lines; imports {below}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the numbers as a Markdown table, a column for each revision."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("revision", nargs="*", metavar="REV", help="of git; none: the files as they are")
    parser.add_argument("--rooms", action="store_true", help="list the rooms and their arrows, too")
    parser.add_argument("--way", metavar="DIRECTORY", help="one message's way alone, as JSON, with the packages there")
    options = parser.parse_args(arguments)
    if options.way:
        # In place of the folder of this file, which has folders of the packages' names.
        sys.path[0] = options.way
        print(json.dumps(way()))
        return
    columns = {}
    with tempfile.TemporaryDirectory() as directory:
        for revision in options.revision or ["here"]:
            root = Path(directory, revision.replace("/", "-")) if options.revision else HERE
            if options.revision:
                packed = subprocess.run(
                    ["git", "archive", revision, *PACKAGES], cwd=HERE, check=True, capture_output=True
                ).stdout
                with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                    archive.extractall(root, filter="data")
            columns[revision] = numbers(root)
            if options.rooms:
                print(f"{revision}\n" + "\n".join(drawing(root)) + "\n")
    print("| counted | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(column[name] for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
