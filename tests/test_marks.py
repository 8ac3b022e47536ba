"""Which tests are of the night, which are tried twice (none that breaks something on purpose), and what skips them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
# Ending a process, hanging one, or having the stand-in for IBM MQ fail.
BREAKS = re.compile(r"SIGKILL|SIGSTOP|\.(kill|hang|fault)\(|_killed_when\(")


def _needing_servers() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(TESTS.rglob("test_*.py")):
        if path != Path(__file__) and re.search(r"needs_(mosquitto|mqi|nats|kafka)\b", text := path.read_text()):
            yield path, ast.parse(text)


def _is_marked(node: ast.Module | ast.FunctionDef) -> bool:
    if isinstance(node, ast.FunctionDef):
        return any("mark.faults" in ast.unparse(decorator) for decorator in node.decorator_list)
    return any(
        isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark" and "faults" in ast.unparse(each)
        for each in node.body
    )


def test_what_breaks_a_server_on_purpose_is_marked() -> None:
    breaking = [
        (f"{path.relative_to(TESTS)}:{node.lineno} {node.name}", _is_marked(module) or _is_marked(node))
        for path, module in _needing_servers()
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and BREAKS.search(ast.unparse(node))
    ]
    assert len(breaking) > 10
    assert [name for name, is_marked in breaking if not is_marked] == []


def test_no_folder_is_skipped_by_its_conftest() -> None:
    """In one of several processes, which are given the files by name, all tests would be skipped with it."""
    conftests = sorted(TESTS.rglob("conftest.py"))
    assert [path for path in conftests if re.search(r"importorskip|pytest\.skip", path.read_text())] == []
    assert len(conftests) > 3
