"""The workload generator: reproducible in any slice, as its knobs say, and with something of everything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from commands.cli import main
from commands.model import Command, Publish, RegisterSubscriber
from commands.replay import LocalReplay
from commands.replay.workload import Knobs, Workload, WorkloadError, setup_script
from commands.replay.workload.draw import Zipf, draws
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, read_captures


def _commands(knobs: Knobs) -> list[tuple[CapturedMessage, Command | None, str | None, int | None]]:
    replay = LocalReplay(setup_script(knobs))
    found = []
    for message in Workload(knobs).messages():
        outcome, _ = replay.replay(message)
        completion = None if outcome.completion is None else outcome.completion.value
        found.append((message, outcome.command, completion, outcome.reason))
    return found


def test_golden_draws_are_the_same_on_every_machine() -> None:
    assert draws(7, 1, 2)[:2] == (0.039812748808774945, 0.014599352213813477)


@given(seed=st.integers(0, 2**31), cut=st.integers(0, 300))
def test_any_slice_is_what_it_is_in_the_whole(seed: int, cut: int) -> None:
    workload = Workload(Knobs(seed=seed, messages=300, subscribers=20, topics=30, control=0.2, errors=0.05, qmgrs=2))
    assert [*workload.rows(0, cut), *workload.rows(cut)] == list(workload.rows())


def test_rows_and_messages_are_the_same() -> None:
    workload = Workload(Knobs(messages=200))
    for row, message in zip(workload.rows(), workload.messages(), strict=True):
        got = (message.seq, message.time, message.qmgr, message.queue, message.user, message.md, message.body)
        assert got == tuple(row)


def test_another_seed_is_another_workload() -> None:
    one, two = (list(Workload(Knobs(messages=50, seed=seed)).rows()) for seed in (1, 2))
    assert one != two


def test_every_command_and_every_outcome_occurs() -> None:
    knobs = Knobs(messages=6000, control=0.2, errors=0.03, strays=0.01, expiring=0.2, several=0.05, per_second=20)
    found = _commands(knobs)
    words = Counter(command.word if command else None for _, command, _, _ in found)
    assert set(words) == {"RegSub", "DeregSub", "Publish", "DeletePub", "ReqUpdate", None}
    reasons = {reason for _, _, _, reason in found}
    assert {None, 3072, 3073, 3077, 3079, 2334, 2336, 2339, 2421, 3084} <= reasons
    registered = [command for _, command, _, _ in found if isinstance(command, RegisterSubscriber)]
    assert {command.header.value for command in registered} == {"rfh2", "rfh1"}
    assert any(command.sub_name for command in registered)
    assert any(command.filter for command in registered)
    assert any(len(command.topics) > 1 for _, command, _, _ in found if isinstance(command, Publish))


def test_shares_are_what_they_say() -> None:
    knobs = Knobs(messages=8000, subscribers=100, control=0.1, retained=0.5, errors=0, strays=0, topics=5000)
    found = _commands(knobs)[100:]
    publications = [command for _, command, _, _ in found if isinstance(command, Publish)]
    assert len(publications) / len(found) == pytest.approx(0.9 + 0.01, abs=0.011)
    retained = sum("RetainPub" in command.options for command in publications)
    assert retained / len(publications) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(("exponent", "first"), [(0.0, 0.01), (1.0, 0.19), (2.0, 0.61)])
def test_popularity(exponent: float, first: float) -> None:
    popularity = Zipf(100, exponent)
    counted = Counter(popularity(n / 10_000) for n in range(10_000))
    assert counted[0] / 10_000 == pytest.approx(first, abs=0.01)
    assert max(counted) <= 99


@pytest.mark.parametrize(
    "knobs",
    [{"messages": -1}, {"control": 1.5}, {"unknown": 1}, {"body_bytes": -1}],
    ids=["negative", "share-above-1", "unknown", "negative-size"],
)
def test_bad_knobs(knobs: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Knobs(**knobs)  # type: ignore[arg-type]


def test_shares_that_are_more_than_all() -> None:
    with pytest.raises(WorkloadError, match="more than all messages"):
        Knobs(control=0.6, errors=0.5)


@pytest.mark.parametrize("form", [entry.name for entry in FORMATS.values() if entry.writer is not None])
def test_verb_writes_every_format(tmp_path: Path, form: str) -> None:
    target = tmp_path / f"capture.{form}"
    arguments = ["generate", "--messages", "40", "--subscribers", "5", "--output", str(target)]
    result = CliRunner().invoke(main, arguments)
    expected = 1 if form == "raw" else 40
    assert result.exit_code == (0 if expected == 40 else 1)
    bodies = [record.message.body for record in read_captures(target) if record.message is not None]
    whole = [row.body for row in Workload(Knobs(messages=40, subscribers=5)).rows()]
    assert bodies == whole[:expected]


def test_verb_writes_files_and_their_setup(tmp_path: Path) -> None:
    target, setup = tmp_path / "capture", tmp_path / "streams.mqsc"
    arguments = ["generate", "--messages", "100", "--files", "3", "--to", "parquet", "--output", str(target)]
    result = CliRunner().invoke(main, [*arguments, "--setup", str(setup)])
    assert result.exit_code == 0
    assert [path.name for path in sorted(target.iterdir())] == [f"part-0000{n}.parquet" for n in range(3)]
    seqs = [record.message.seq for record in read_captures(target) if record.message is not None]
    assert seqs == list(range(1, 101))
    assert setup.read_text() == setup_script(Knobs())
