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


EXAMPLE = """\
Migrating Pub/Sub state from Websphere Message Broker: TEST_BROKER
Into queue manager: TEST_QM
Command switches:
Starting to parse subscriptions ...
Migrating subscriptions for topic string RFH2/EU/France/Toison
[1] Migrating subscription for:
    Format: mqrh2
    Queue Manager: PSMIG_QM
    Queue: PUBSUB.FRANCE.QUEUE
Migrating subscriptions for topic string RFH2/EU/France/Carnac
[2] Migrating subscription for:
... finished parsing subscriptions
Starting to parse topics ...
Migrating ACLs for topic string
Migrating ACLs for topic string RFH2/EU/France/Toison
    None found.
... finished parsing topics
Starting to parse retained publications ...
Migrating retained publications for topic string $SYS/Broker/TEST_BROKER/Status
Migrating retained publication for default subscription point.
... finished parsing retained publicatons
All Pub/Sub data has been retrieved from the broker.
Applying changes to queue manager Pub/Sub state.
Defining subscription [1]
Defining subscription [8]
Migration completion message written.
"""


@pytest.mark.rule("MB-3")
def test_8_4_the_log_has_the_lines_of_the_example_in_its_order() -> None:
    """What a monitor of logs looks for: a line of each kind, letter for letter."""
    written = iter((LEGACY / "log-example" / "expected" / "log.txt").read_text(encoding="utf-8").splitlines())
    assert [line for line in EXAMPLE.splitlines() if line not in written] == []


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
