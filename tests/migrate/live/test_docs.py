"""docs/extract-and-verify.md says what the code does; the checkpoints are those of each kind of plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.objects import kind_of
from commands.config.settings import AdminConfig
from migrate.live.differences import How
from migrate.live.journal import Action, checkpoints
from migrate.planned_state import PlannedHeading, planned_objects, read_planned
from tests.migrate.cases import Case

PAGE = (Path(__file__).parents[3] / "docs" / "extract-and-verify.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]

RETAINED, END = ["retained-01", "retained-02", "retained-03"], ["registrations", "record"]
SCRIPTS = ["queues", "objects", "authorities"]
KINDS = [
    (
        "streams",
        ["compat", "stopped", *SCRIPTS, "enabled", *RETAINED, "subscriptions", *END],
    ),
    ("access-control", ["compat", *SCRIPTS, "record"]),
    (
        "subscription-points",
        [*("compat", "stopped"), *SCRIPTS, "security", "upgraded", "enabled", *RETAINED[:1], "subscriptions", *END],
    ),
]


def heading_of(name: str) -> PlannedHeading:
    return PlannedHeading.model_validate_json(Case.of(name).outputs()["planned.jsonl"].splitlines()[0])


@pytest.mark.parametrize(("name", "expected"), KINDS, ids=[name for name, _ in KINDS])
def test_the_checkpoints_of_each_kind_of_plan(name: str, expected: list[str]) -> None:
    """In the order of the checklist, with a file that is there for each."""
    found = checkpoints(heading_of(name))
    outputs = Case.of(name).outputs()
    assert [each.name for each in found] == expected
    assert [each.file for each in found if each.file and each.file not in outputs] == []
    files = [each.file for each in found if each.file]
    named = [file for line in outputs["checklist.md"].splitlines() for file in files if file in line and "`" in line]
    assert list(dict.fromkeys(named)) == files


def test_every_checkpoint_is_in_the_page() -> None:
    named = "".join(ROWS)
    for name, _ in KINDS:
        for each in checkpoints(heading_of(name)):
            word = "retained-NN" if each.action is Action.LOAD and each.name != "registrations" else each.name
            assert f"`{word}`" in named, word


@pytest.mark.parametrize("how", list(How))
def test_every_word_of_a_difference_is_in_the_page(how: How) -> None:
    assert any(row.startswith(f"| `{how}` |") for row in ROWS)


@pytest.mark.parametrize("name", AdminConfig.model_fields)
def test_every_key_of_the_file_is_in_the_page(name: str) -> None:
    (row,) = [row for row in ROWS if row.startswith(f"| `{name}` |")]
    default = AdminConfig.model_fields[name].default
    if isinstance(default, float):
        assert row.split("|")[2].strip() == f"{default:g}"


@pytest.mark.parametrize("name", ["streams", "subscription-points", "access-control", "metatopics", "log-example"])
def test_what_is_planned_is_written_and_read_whole(name: str, tmp_path: Path) -> None:
    """An object for each thing that the plan makes."""
    case = Case.of(name)
    path = tmp_path / "planned.jsonl"
    path.write_text(case.outputs()["planned.jsonl"])
    heading, objects = read_planned(path)
    plan = case.plan()
    assert objects == list(planned_objects(plan, case.target()))
    assert (heading.fingerprint, heading.qmgr) == (plan.fingerprint, plan.qmgr)
    kinds = [each.kind for each in objects]
    assert kinds.count("SUB") == len(plan.subscriptions)
    assert kinds.count("RETAINED") == len(plan.retained)
    named = [each.name for each in objects if each.kind not in ("SUB", "RETAINED")]
    wanted = {(kind_of(step.definition), step.definition.name) for step in plan.definitions}
    assert sorted(map(str, named)) == sorted(name for _, name in wanted)
