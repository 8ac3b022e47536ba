"""The rooms of the house: ``python -m tests.structure`` lists each with its floor, its size and what it imports.

Before them it counts what docs/architecture.md ("Size") has.

Rooms are those of ``tests.wings``, arrows the imports between two of them, in whatever function an import stands;
what the four packages re-export from their tops is no arrow. A room's floor is the longest way down from it.
"""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.wings import room_of_module

HERE = Path(__file__).parents[1]
PACKAGES = ("rfh2", "streams", "commands", "migrate")
_TEMPORARY = ("TMPDIR", "/tmp", "/var/tmp")
Graph = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class House:
    """What is read of the files. lines: of each module.

    modules, rooms: what each imports of the others.
    """

    lines: Mapping[str, int]
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
        return cls(lines, room_of, modules, rooms)

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


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Those nodes of a module that a rule is about; a module is parsed once for all rules."""
    kinds = ast.Import | ast.ImportFrom | ast.ClassDef | ast.Attribute | ast.Call | ast.Starred
    # There are no circles in a tree, and looking for them takes longer than the tree.
    gc.disable()
    try:
        return tuple(
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, kinds) or (isinstance(node, ast.Constant) and node.value in _TEMPORARY)
        )
    finally:
        gc.enable()


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in nodes_of(path):
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


def longest_chain(modules: Graph) -> tuple[str, ...]:
    """The longest way down through imports, in whatever function they stand; *modules* have no circle."""
    chains: dict[str, tuple[str, ...]] = {}
    for name in TopologicalSorter(modules).static_order():
        chains[name] = (name, *max((chains[other] for other in modules[name]), key=len, default=()))
    return max(chains.values(), key=len)


def _lines_of_imports(path: Path) -> int:
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def sums(root: Path) -> Iterator[tuple[str, str]]:
    """What is counted of the whole house."""
    house = House.of(root)
    count, lines = len(house.lines), sum(house.lines.values())
    imports = sum(_lines_of_imports(path) for package in PACKAGES for path in (root / package).rglob("*.py"))
    yield "modules", f"{count:,}"
    yield "lines", f"{lines:,}"
    yield "lines a module", f"{lines / count:.0f}"
    yield "lines that import", f"{imports / lines:.1%}"
    yield "rooms, arrows between them", f"{len(house.rooms)}, {sum(map(len, house.rooms.values()))}"
    yield "floors", f"{max(house.floors().values()) + 1}"
    yield "longest chain of imports", f"{len(longest_chain(house.modules))}"


def drawing(root: Path) -> Iterator[str]:
    """Each room with its floor, its size, and the rooms that it imports from, the highest first."""
    house = House.of(root)
    floors = house.floors()
    for room in sorted(house.rooms, key=lambda room: (-floors[room], room)):
        sizes = [lines for module, lines in house.lines.items() if house.room_of[module] == room]
        below = ", ".join(sorted(house.rooms[room])) or "nothing"
        yield f"{floors[room]:2} {room}: {len(sizes)} modules, {sum(sizes):,} lines; imports {below}"


if __name__ == "__main__":
    print("\n".join(f"{value:>8} {what}" for what, value in sums(HERE)))
    print(" -> ".join(longest_chain(House.of(HERE).modules)))
    print("\n".join(drawing(HERE)))
