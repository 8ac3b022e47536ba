"""Which test holds which rule of docs/conformance.md: ``python -m tests.rules [ID]...`` prints them.

A test says it with a mark, ``@pytest.mark.rule("REG-3")``; a scenario of the guide in its file, ``rules = ["PS-7"]``.
So the page names neither tests nor modules, and a rename or a move edits nothing there. The code of a rule is what its
tests are named after: ``tests/streams/test_retained.py`` tests ``streams/retained.py``, or else its room, ``streams``.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "conformance.md"
SCENARIOS = ROOT / "fixtures" / "scenarios"
_ROW = re.compile(r"\| ((?:[A-Z0-9]+-\w+(?:, )?)+)(?: \(([^|)]+)\))? \| ([^|]+) \|")
_HEADING = re.compile(r"#+ (?:(\d+(?:\.\d+)*) (?!to ))?")
NOT_DONE = re.compile(r"\*\*Not done:\*\* (.*)")


@dataclass(frozen=True)
class Rule:
    """A rule, in a row of the page that others may share. not_done: the reason, None where it is done.

    section: of the guide, several with commas; after the id, else that of the heading above, "-" where it has none.
    """

    id: str
    section: str
    text: str

    @property
    def not_done(self) -> str | None:
        found = NOT_DONE.search(self.text)
        return found and found[1]


def rules(text: str) -> list[Rule]:
    """The rules of a page like docs/conformance.md, in its order."""
    found, heading = [], "-"
    for line in text.splitlines():
        if (title := _HEADING.match(line)) is not None:
            heading = title[1] or "-"
        elif (row := _ROW.fullmatch(line)) is not None:
            found += [Rule(each, row[2] or heading, row[3]) for each in row[1].split(", ")]
    return found


@cache
def marked_tests() -> dict[str, list[str]]:
    """For each rule's id: its tests, as pytest names them, and its scenarios as ``fixtures/scenarios/NAME``."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, ids in _marked(path.read_text()):
            for each in ids:
                found.setdefault(each, []).append(f"{path.relative_to(ROOT)}::{name}")
    for path in sorted(SCENARIOS.glob("*/*.toml")):
        for each in tomllib.loads(path.read_text()).get("rules", ()):
            found.setdefault(each, []).append(str(path.parent.relative_to(ROOT)))
    return found


def _marked(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    if "mark.rule(" not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
                    yield node.name, [ast.literal_eval(each) for each in decorator.args]


def code_of(test: str) -> str:
    """The module or the room that a test is named after; of a scenario, the verb of all scenarios."""
    path = Path(test.partition("::")[0])
    if path.parts[0] != "tests":
        return "commands/broker"
    room = Path(*path.parts[1:-1])
    module = room / f"{path.stem.removeprefix('test_')}.py"
    return str(next((each for each in (module, room, *room.parents) if (ROOT / each).exists()), room))


def main(ids: Sequence[str]) -> int:
    """Print the rows with their code and tests, those of *ids* or all."""
    for rule in rules(DOCUMENT.read_text()):
        if not ids or rule.id in ids:
            tests = marked_tests().get(rule.id, [])
            print(f"{rule.id}  {rule.section}  {rule.text}")
            print("".join(f"    {code}\n" for code in sorted({code_of(test) for test in tests})), end="")
            print("".join(f"    {test}\n" for test in tests), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
