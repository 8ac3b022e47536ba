"""The rules of docs/architecture.md that a machine can check: which way imports go, no I/O or clock below the edge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ["rfh2", "streams", "commands", "migrate"]
EDGE = ("rfh2/captures/", "commands/cli/", "commands/queues/", "commands/live/", "commands/replay/spark", "migrate/")
WORLD = {"os", "socket", "random", "time", "sqlite3", "subprocess", "secrets", "uuid", "tempfile"}


def _modules() -> Iterator[Path]:
    for package in ORDER:
        yield from sorted((ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
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
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today")
        if isinstance(node.value, ast.Name) and node.value.id in ("datetime", "date")
    ]
    assert readers == []


# The module that lets nothing through which drives a terminal, and those that have no Console: the file of run --record
# is JSON, and Java's talk passes through a pipe of its own.
_TALKING = {"commands/cli/console.py", "commands/cli/recorder.py", "commands/replay/spark/talk.py"}
_PAST_THE_CONSOLE = {"stdout.write", "stdout.writelines", "stderr.write", "stderr.writelines", "click.echo", "os.write"}


def test_nothing_is_shown_past_the_console() -> None:
    past = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        if str(path.relative_to(ROOT)) not in _TALKING
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        if ".".join(ast.unparse(node.func).split(".")[-2:]) in _PAST_THE_CONSOLE or ast.unparse(node.func) == "print"
    ]
    assert past == []


def test_no_stream_but_the_consoles_is_handed_out() -> None:
    """``console.stdout`` is flushed and closed elsewhere, and never written to: ``console.binary`` is."""
    allowed = {"flush", "isatty", "fileno"}
    handed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        if str(path.relative_to(ROOT)) not in _TALKING
        for node in ast.walk(ast.parse(path.read_text()))
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.Attribute) and ast.unparse(child) in ("console.stdout", "console.stderr", "sys.stdout")
        if not (isinstance(node, ast.Attribute) and node.attr in allowed)
    ]
    assert handed == []


def test_no_file_has_a_name_that_others_can_know_in_the_temporary_directory() -> None:
    known = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in ("gettempdir", "gettempdirb", "mktemp", "tempdir"))
        or (isinstance(node, ast.Constant) and node.value in ("TMPDIR", "/tmp", "/var/tmp"))
    ]
    assert known == []
