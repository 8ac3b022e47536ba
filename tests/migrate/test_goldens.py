"""The guide's examples of migration, from the sources to log, scripts and state (guide 6.1, 6.2, 7.1, 8.1 to 8.4).

What is expected lies beside the sources in fixtures/legacy; ``python -m tests.migrate.test_goldens`` writes it anew,
and the difference is for a person to read before it is committed.
"""

from __future__ import annotations

import pytest

from tests.migrate.cases import LEGACY, Case

CASES = sorted(path.parent.name for path in LEGACY.glob("*/case.json"))


def test_there_are_cases() -> None:
    assert CASES == ["access-control", "log-example", "metatopics", "streams", "subscription-points"]


@pytest.mark.rule("D-29", "MB-3")
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_as_expected(name: str) -> None:
    outputs = Case.of(name).outputs()
    expected = {path.name: path.read_text(encoding="utf-8") for path in (LEGACY / name / "expected").iterdir()}
    assert outputs.keys() == expected.keys()
    for file, text in expected.items():
        assert outputs[file] == text, file


def test_two_runs_are_equal() -> None:
    assert Case.of("streams").outputs() == Case.of("streams").outputs()


if __name__ == "__main__":
    for case in CASES:
        directory = LEGACY / case / "expected"
        directory.mkdir(exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        for file, text in Case.of(case).outputs().items():
            (directory / file).write_text(text, encoding="utf-8")
