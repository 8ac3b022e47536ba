"""The rules of docs/architecture.md that a machine can check: which way imports go, no I/O or clock below the edge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from commands.cli import ELSEWHERE, VERBS, module_of
from tests.structure import House, longest_chain, nodes_of
from tests.wings import ROOMS

ROOT = Path(__file__).parents[1]
ORDER = ["rfh2", "streams", "commands", "migrate"]
EDGE = (
    "rfh2/captures/",
    "commands/cli/",
    "commands/options/",
    "commands/disk/",
    "commands/config/",
    "commands/terminal/",
    "commands/testing/",
    "commands/running/",
    "commands/monitoring/",
    "commands/console/",
    "commands/qmgr/store/",
    "commands/links/",
    "commands/client/line.py",
    "commands/client/connection.py",
    "commands/client/queue_manager.py",
    "commands/client/places.py",
    "commands/client/pcf.py",
    "commands/client/asynchronous.py",
    "commands/replay/spark",
    "commands/replay/step/index_file.py",
    "commands/listener/",
    "migrate/",
)
WORLD = {"os", "socket", "random", "time", "sqlite3", "subprocess", "secrets", "uuid", "tempfile"}


def _modules() -> Iterator[Path]:
    for package in ORDER:
        yield from sorted((ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


@pytest.mark.parametrize("package", ORDER)
def test_imports_go_one_way(package: str) -> None:
    allowed = ORDER[: ORDER.index(package) + 1]
    upward = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in (ROOT / package).rglob("*.py")
        for line, name in _imports(path)
        if name.split(".")[0] in ORDER and name.split(".")[0] not in allowed
    ]
    assert upward == []


@cache
def _house() -> House:
    return House.of(ROOT)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_knows_only_the_rooms_that_it_may(room: str) -> None:
    house = _house()
    stray = [
        f"{name} imports {other}"
        for name, others in house.modules.items()
        if house.room_of[name] == room and name not in ORDER
        for other in others - {*ORDER}
        if house.room_of[other] not in (room, *ROOMS[room].knows)
    ]
    assert stray == []


def test_the_house_is_low() -> None:
    house = _house()
    assert max(house.floors().values()) + 1 <= 10
    assert sum(map(len, house.rooms.values())) <= 100
    assert len(longest_chain(house.modules)) <= 24


def test_the_rooms_are_in_an_order_in_which_none_stands_on_itself() -> None:
    list(TopologicalSorter({room: knows for room, (_, knows) in ROOMS.items()}).static_order())


def test_every_module_of_the_command_line_has_a_verb() -> None:
    modules = {path.stem for path in (ROOT / "commands" / "cli").glob("*.py")}
    assert modules == {module_of(verb).rpartition(".")[2] for verb in VERBS if verb not in ELSEWHERE} | {
        "__init__",
        "__main__",
    }


def test_every_module_has_a_room() -> None:
    homeless = [name for name, room in _house().room_of.items() if room not in ROOMS and name != "commands"]
    assert homeless == []


def _folder_graph() -> dict[str, set[str]]:
    """Which folders the modules of each folder import from; what a package re-exports from its top is no import."""
    folder_of = {}
    for path in _modules():
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        folder_of[name] = str(path.relative_to(ROOT).parent)
    graph: dict[str, set[str]] = {}
    for path in _modules():
        here = str(path.relative_to(ROOT).parent)
        if path.name == "__init__.py" and here in ORDER:
            continue
        for node in nodes_of(path):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                there = folder_of.get(name if name in folder_of else node.module)
                if there is not None and there != here:
                    graph.setdefault(here, set()).add(there)
    return graph


def test_no_folders_import_each_other_in_a_circle() -> None:
    graph = _folder_graph()
    # TopologicalSorter names the circle in its error.
    list(TopologicalSorter(graph).static_order())


def test_nobody_subclasses_the_topic_space() -> None:
    spies = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in _modules()
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
        if any(isinstance(base, ast.Name) and base.id == "TopicSpace" for base in node.bases)
    ]
    assert spies == []


def test_the_core_knows_no_world() -> None:
    worldly = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in _modules()
        if not str(path.relative_to(ROOT)).startswith(EDGE)
        for line, name in _imports(path)
        if name.split(".")[0] in WORLD
    ]
    assert worldly == []


def test_the_core_reads_no_clock() -> None:
    readers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        if not str(path.relative_to(ROOT)).startswith(EDGE)
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today")
        if isinstance(node.value, ast.Name) and node.value.id in ("datetime", "date")
    ]
    assert readers == []


# The module that lets nothing through which drives a terminal, and those that have no Console: the file of run --record
# is JSON, and Java's talk passes through a pipe of its own.
_TALKING = {"commands/terminal/console.py", "commands/running/journal.py", "commands/replay/spark/session.py"}
_PAST_THE_CONSOLE = {"stdout.write", "stdout.writelines", "stderr.write", "stderr.writelines", "click.echo", "os.write"}


def test_nothing_is_shown_past_the_console() -> None:
    past = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        if str(path.relative_to(ROOT)) not in _TALKING
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        if (called := ast.unparse(node.func)) == "print" or ".".join(called.split(".")[-2:]) in _PAST_THE_CONSOLE
    ]
    assert past == []


def test_no_stream_but_the_consoles_is_handed_out() -> None:
    """``console.stdout`` is flushed and closed elsewhere, and never written to: ``console.binary`` is."""
    streams = {("console", "stdout"), ("console", "stderr"), ("sys", "stdout")}
    handed = []
    for path in _modules():
        if str(path.relative_to(ROOT)) not in _TALKING:
            attributes = [node for node in nodes_of(path) if isinstance(node, ast.Attribute)]
            allowed = {id(node.value) for node in attributes if node.attr in ("flush", "isatty", "fileno")}
            handed += [
                f"{path.relative_to(ROOT)}:{node.lineno}"
                for node in attributes
                if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in streams
                if id(node) not in allowed
            ]
    assert handed == []


def test_no_file_has_a_name_that_others_can_know_in_the_temporary_directory() -> None:
    known = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        for node in nodes_of(path)
        if isinstance(node, ast.Constant)
        or (isinstance(node, ast.Attribute) and node.attr in ("gettempdir", "gettempdirb", "mktemp", "tempdir"))
    ]
    assert known == []


def test_no_arguments_or_items_are_packed_to_be_unpacked() -> None:
    """``f(*(a, b), *(c, d))`` hides which argument is which."""
    packed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        for node in nodes_of(path)
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List)
    ]
    assert packed == []
