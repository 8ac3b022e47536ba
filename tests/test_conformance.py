"""docs/conformance.md keeps its word: what it names is there, and every test that it names exists."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "conformance.md"
_CELL = r" (?P<{}>[^|]+) \|"
_ROW = re.compile(
    r"^\| (?P<id>[A-Z0-9]+-\w+) \|" + "".join(map(_CELL.format, ("section", "rule", "code", "tests"))) + "$"
)
_TEST = re.compile(r"`([^`]+)::(\w+)(?:\[([^`\]]+)\])?`")
"""A test in the last column, with the scenario where it has them all."""
ROWS = [match for line in DOCUMENT.read_text().splitlines() if (match := _ROW.match(line))]


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_rule_has_a_row_of_its_own() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(ids) > 100
    assert sorted({each for each in ids if ids.count(each) > 1}) == []


def test_every_section_of_6_7_has_rows() -> None:
    sections = {section for row in ROWS for section in row["section"].split(", ")}
    assert {"6.6", *(f"6.7.{n}" for n in range(1, 11)), "7.5", "8.5"} <= sections
    assert {"2.3.2", "2.4.3", "2.5.1", "2.5.4", "3.1.3", "4.6.1", "4.8.3", "7.1", "7.2"} <= sections
    assert {"7.3", "7.4.1", "7.6.1", "8.1", "8.4", "8.6", "8.7"} <= sections


def test_every_file_exists() -> None:
    missing = [
        f"{row['id']}: {path}"
        for row in ROWS
        for path in re.findall(r"`([^`]+)`", row["code"])
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_every_test_exists() -> None:
    missing = []
    for row in ROWS:
        for path, name, _ in _TEST.findall(row["tests"]):
            if not (ROOT / path).exists() or name not in functions_of(path):
                missing.append(f"{row['id']}: {path}::{name}")
    assert missing == []


def test_no_row_has_a_test_of_another_row_for_want_of_a_name() -> None:
    """What is in backticks in the last column is a test, and nothing else is there."""
    loose = [row["id"] for row in ROWS if re.sub(r"<br>|[ \u2013]", "", _TEST.sub("", row["tests"]))]
    assert loose == []


def test_a_row_without_a_test_says_that_the_rule_is_not_done() -> None:
    bare = [row["id"] for row in ROWS if "::" not in row["tests"] and not row["code"].startswith("not done")]
    assert bare == []


# A test holds the rule that names it

SCENARIOS = ROOT / "fixtures" / "scenarios"


@cache
def _texts(path: str) -> dict[str, str]:
    """Each test of a file, with the comment above it, the tables that it is made of, and what its file is about."""
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    tree = ast.parse(text)
    tables = {
        target.id: ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            while first and lines[first - 1].startswith("#"):
                first -= 1
            own = "\n".join(lines[first : node.end_lineno])
            used = {each.id for part in node.decorator_list for each in ast.walk(part) if isinstance(each, ast.Name)}
            parts = [own, *(tables[name] for name in used & tables.keys()), ast.get_docstring(tree) or ""]
            found[node.name] = "\n".join(parts)
    return found


def _names(text: str, section: str) -> bool:
    """Whether *text* has a section's number, with dots or as in the name of a test; or one of a part of it."""
    number = section.removeprefix("W")
    dotted = rf"(?<![\d.]){re.escape(number)}(?!\d)"
    return (
        re.search(rf"{dotted}|(?<![\d_]){number.replace('.', '_')}(?!\d)|_{number.replace('.', '_')}_", text)
        is not None
    )


def test_a_test_that_a_row_names_knows_the_rule() -> None:
    """One of a row's tests says which it holds: by its section, by the row (D-08 or d08), or by a reason code.

    A test may say it in its name, its text, a comment above it, its table, or in what its file is about.
    """
    strangers = []
    for row in ROWS:
        cited = _TEST.findall(row["tests"])
        sections = [each for each in re.split(r", | to ", row["section"]) if re.fullmatch(r"W?\d+(\.\d+)*", each)]
        kind, number = row["id"].split("-")
        called = [row["id"], f"{kind.lower()}{number}" if kind == "D" else row["id"]]
        called += [number] if kind == "RC" else []
        if cited and not any(
            any(re.search(rf"(?<![A-Za-z]){re.escape(each)}(?![0-9])", text) for each in called)
            or any(_names(text, section) for section in sections)
            for text in (_texts(path)[name] for path, name, _ in cited)
        ):
            scenarios = {scenario for _, _, scenario in cited if scenario}
            if not scenarios:
                strangers.append(row["id"])
    assert strangers == []


def test_a_scenario_that_a_row_names_is_of_its_section() -> None:
    wrong = []
    for row in ROWS:
        for _, _, name in _TEST.findall(row["tests"]):
            if name:
                path = next(SCENARIOS.glob(f"{name}/*.toml"), SCENARIOS / name)
                path = path.with_name("network.toml" if (path.parent / "network.toml").exists() else "scenario.toml")
                of = tomllib.loads(path.read_text())["section"].split(", ") if path.exists() else []
                if not set(of) & set(row["section"].split(", ")):
                    wrong.append(f"{row['id']}: {name}")
    assert wrong == []


# Rows that say "not done" stay true

NOT_DONE = [row for row in ROWS if row["code"].startswith("not done")]


def test_a_row_that_is_not_done_says_why_and_not_when() -> None:
    """What is "not done yet" is done one day, and nobody thinks of the row."""
    assert [row["id"] for row in NOT_DONE if not re.match(r"not done: \w", row["code"])] == []
    promised = re.compile(r"\b(yet|later|soon|to come|planned|so far)\b")
    assert [row["id"] for row in NOT_DONE if promised.search(row["code"])] == []


def _sections(row: re.Match[str]) -> list[str]:
    return [section for section in row["section"].split(", ") if re.fullmatch(r"\d+(\.\d+)*", section)]


def test_no_section_with_tests_is_not_done() -> None:
    """Tests bear the section's number in their names: where a section has some, a row of it names one of them."""
    named: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in functions_of(str(path.relative_to(ROOT))):
            if found := re.match(r"test_(\d+(?:_\d\d?)*)_", name):
                named.setdefault(found[1].replace("_", "."), set()).add(name)
    cited = {name for row in ROWS for _, name, _ in _TEST.findall(row["tests"])}
    undone = {section for row in NOT_DONE for section in _sections(row)}
    forgotten = {
        section: sorted(names)
        for section, names in named.items()
        if any(section == each or section.startswith(f"{each}.") for each in undone) and not names & cited
    }
    assert forgotten == {}


# What the rules are about. Every module deals with them, and a row that names them says nothing of any.
SUBJECTS = frozenset(
    re.findall(
        r"\w+",
        """authority body broker cause command content dead display embedded event filter flow folder for format from
        legacy letter manager mqrfh qmgr message name namelist order pair pcf place point property publication
        publish put queue register response retained stream string sub subscriber subscription topic unit value
        wildcard work write""",
    )
)
# Words of a row that are in the name of a module, a package or a verb too, which does something else; and what.
NAMED_ALIKE = {
    "APP-5h": {"administration": "where it is not called", "exit": "what the row limits"},
    "PS-19": {"attribute": "of a topic object"},
    "ST-5": {"handle": "of an open object", "share": "of a workload"},
    "V7-10": {"decision": "about a statement of a plan"},
    "D-34b": {"model": "of commands", "setup": "which the row names"},
    "PUB-3": {
        "network": "which queue managers an estate has",
        "pub": "the verb",
        "transmission": "what waits for another queue manager",
    },
    "REG-29": {"metatopic": "read by the migration"},
    "SP-5": {"difference": "between versions"},
    "QM-5": {"hierarchy": "a runbook for IBM MQ's"},
    "QM-7": {"call": "of the MQI, in captures", "subscribing": "at the MQTT broker"},
    "V7-12": {"cluster": "a runbook for IBM MQ's", "hierarchy": "a runbook for IBM MQ's"},
    "V7-11": {"statu": "the verb, which the row names"},
    "D-05": {"admin": "administration as PCF", "metatopic": "read by the migration"},
    "D-14b": {"migrate": "which tells of them"},
    "D-14c": {"note": "of a dialect", "replay": "which the row names", "sign": "which the row names"},
    "D-16": {"hierarchy": "the runbook, which the row names", "runbook": "which the row names"},
    "D-17": {"capture": "what is replayed", "dynamic": "queues of a queue manager; a replay has none"},
    "D-22": {"capture": "what is replayed"},
    "D-28": {"processor": "which the row names", "replay": "which the row names"},
}


def _singular(word: str) -> str:
    word = word.lower()
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def test_what_is_not_done_has_no_module_of_its_name() -> None:
    """A row and a module that share a word that is nobody's subject: the row is to be looked at, or the word explained.

    It finds features, which are named in the code as the guide names them. It cannot find one that bears another name.
    """
    modules = {
        _singular(word)
        for package in ("rfh2", "streams", "commands", "migrate")
        for path in (ROOT / package).rglob("*.py")
        for part in path.relative_to(ROOT).with_suffix("").parts
        for word in part.split("_")
        if len(word) > 2
    }
    alike = {
        row["id"]: found
        for row in NOT_DONE
        if (
            found := {_singular(word) for word in re.findall(r"[A-Za-z]+", f"{row['rule']} {row['code']}")}
            & modules - SUBJECTS
        )
    }
    assert alike == {id_: set(words) for id_, words in NAMED_ALIKE.items()}


@pytest.mark.parametrize(
    ("line", "check"),
    [
        (
            "| MIG-1 | 7.1 | strmqbrk: subscriptions, authorities | not done yet: migrate | - |",
            test_a_row_that_is_not_done_says_why_and_not_when,
        ),
        (
            "| MIG-4 | 7.4 | Hierarchy to cluster | not done: topologies are out of scope | - |",
            test_what_is_not_done_has_no_module_of_its_name,
        ),
        (
            "| MB-3 | 8.4 | The log of a migration | not done: it is for a person to keep | - |",
            test_what_is_not_done_has_no_module_of_its_name,
        ),
        (
            "| DIS-5 | 3.3.1 | Scope | `streams/index.py` "
            "| `tests/streams/test_char_wildcards.py::test_what_a_pattern_selects` |",
            test_a_test_that_a_row_names_knows_the_rule,
        ),
        (
            "| PS-12 | 2.5.3 | Topics make a tree | `streams/index.py` "
            "| `tests/commands/broker/test_scenarios.py::test_replay_gives_the_same[6.2-currencies]` |",
            test_a_scenario_that_a_row_names_is_of_its_section,
        ),
        ("| MB-13 | 8.6 | What becomes of a collective | not done: - | - |", test_no_section_with_tests_is_not_done),
    ],
)
def test_a_row_that_is_false_is_found(line: str, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Such rows were on the page for long after the migration was done."""
    row = _ROW.match(line)
    assert row is not None
    others = [other for other in ROWS if other["id"] != row["id"]]
    monkeypatch.setattr(sys.modules[__name__], "ROWS", [*others, row])
    monkeypatch.setattr(sys.modules[__name__], "NOT_DONE", [*NOT_DONE, row])
    with pytest.raises(AssertionError):
        check()
