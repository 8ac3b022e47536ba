"""The workload generator: reproducible in any slice, as its knobs say, and with something of everything."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from pydantic import ValidationError

from commands.broker.objects import CONTROL_QUEUE
from commands.cli import main
from commands.cli.generate import command as generate
from commands.headers.registry import parse
from commands.model import Command, DeregisterSubscriber, Publish, RegisterSubscriber
from commands.replay import LocalReplay
from commands.replay.workload import Workload, WorkloadError, WorkloadOptions, Zipf, draws, setup_script
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, read_captures
from rfh2.mqmd import Mqmd
from streams.subscriptions import PublicationFormat
from tests.examples import FEW

START = datetime(2026, 3, 1, tzinfo=UTC)


def _is_registration(command: Command) -> bool:
    return isinstance(command, RegisterSubscriber)


def _is_mqrfh2_publication(command: Command) -> bool:
    return isinstance(command, Publish) and command.header is PublicationFormat.RFH2


def _descriptor(message: CapturedMessage) -> Mqmd:
    mqmd = message.descriptor()
    assert mqmd is not None
    return mqmd


def _commands(knobs: WorkloadOptions) -> list[tuple[CapturedMessage, Command | None, str | None, int | None]]:
    replay = LocalReplay(setup_script(knobs))
    found = []
    for message in Workload(knobs).messages():
        outcome, _ = replay.replay(message)
        completion = None if outcome.completion is None else outcome.completion.value
        found.append((message, outcome.command, completion, outcome.reason))
    return found


def test_golden_draws_are_the_same_on_every_machine() -> None:
    assert draws(7, 1, 2)[:2] == (0.039812748808774945, 0.014599352213813477)


EVERYTHING = WorkloadOptions(
    messages=3000, streams=3, qmgrs=2, control=0.1, errors=0.05, strays=0.02, several=0.1, subscribers=50, topics=200
)


def test_a_golden_workload_is_the_same_on_every_machine() -> None:
    """Whatever the version of Python, and whatever its hashes begin with; who changes it says so in the changelog."""
    told = sha256()
    for row in Workload(EVERYTHING).rows():
        told.update(repr((*row[:1], row.time.isoformat(), *row[2:])).encode())
    assert told.hexdigest() == "dd221a5b2cc86ffdb45f77e60ea9f9851264851119c1a27cec93c3b9be89fd3e"


MEASURED = """
import resource, sys
from commands.replay.workload import WorkloadOptions, Workload
for _ in Workload(WorkloadOptions(messages=int(sys.argv[1]), several=0.1, properties=0.5)).rows():
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_workload() -> None:
    peaks_kib = []
    for messages in (50_000, 400_000):
        arguments = [sys.executable, "-c", MEASURED, str(messages)]
        peaks_kib.append(int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout))
    print(f"peak memory: {peaks_kib[0] >> 10} MiB for 50,000 messages, {peaks_kib[1] >> 10} MiB for 400,000")
    assert peaks_kib[1] < peaks_kib[0] + 16 * 1024


@pytest.mark.parametrize("knob", sorted(WorkloadOptions.model_fields))
def test_every_knob_is_an_option_with_help(knob: str) -> None:
    (option,) = [each for each in generate.params if each.name == knob]
    assert isinstance(option, click.Option)
    assert option.help
    assert option.opts == [CALLED.get(knob, f"--{knob.replace('_', '-')}")]


CALLED = {"topics": "--topic-strings", "persistent": "--persistent-share", "rfh1": "--rfh1-share"}
SOME: dict[str, Any] = {"messages": 1500, "subscribers": 200, "topics": 300, "errors": 0.0, "strays": 0.0}

# knob, its value, what it is the share of, what counts, how far off it may be
SHARES: list[tuple[str, float, Callable[[Command], bool], Callable[[CapturedMessage, Command], bool], float]] = [
    ("rfh1", 0.4, lambda c: isinstance(c, Publish), lambda _, c: c.header is PublicationFormat.RFH1, 0.05),
    ("several", 0.3, lambda c: isinstance(c, Publish), lambda _, c: len(c.topics) > 1, 0.05),
    ("persistent", 0.7, lambda c: isinstance(c, Publish), lambda m, _: _descriptor(m).persistence == 1, 0.05),
    ("properties", 0.6, _is_mqrfh2_publication, lambda m, _: b"<usr>" in m.body, 0.05),
    ("named", 0.5, _is_registration, lambda _, c: getattr(c, "sub_name", None) is not None, 0.12),
    ("filters", 0.5, _is_registration, lambda _, c: getattr(c, "filter", None) is not None, 0.12),
    ("wildcards", 0.5, _is_registration, lambda _, c: any(set(t) & set("*?#+") for t in c.topics), 0.1),
    ("expiring", 0.5, _is_registration, lambda m, _: _descriptor(m).expiry > 0, 0.1),
]


@pytest.mark.parametrize(("knob", "value", "of", "counted", "off"), SHARES, ids=[row[0] for row in SHARES])
def test_each_share_is_what_it_says(
    knob: str,
    value: float,
    of: Callable[[Command], bool],
    counted: Callable[[CapturedMessage, Command], bool],
    off: float,
) -> None:
    chosen = [
        counted(message, command)
        for message in Workload(WorkloadOptions(**{**SOME, "rfh1": 0.0, knob: value})).messages()
        if of(command := parse(message.decode()))
    ]
    assert sum(chosen) / len(chosen) == pytest.approx(value, abs=off)


@pytest.mark.parametrize("knob", ["errors", "strays"])
def test_what_no_broker_takes(knob: str) -> None:
    knobs = WorkloadOptions(**{**SOME, "messages": 1000, knob: 0.2})
    outcomes = [(outcome, reason) for _, _, outcome, reason in _commands(knobs)][knobs.subscribers :]
    wrong = [
        outcome is None if knob == "strays" else outcome == "error" and reason != 3077 for outcome, reason in outcomes
    ]
    assert sum(wrong) / len(wrong) == pytest.approx(0.2, abs=0.03)


def test_sizes_and_times() -> None:
    knobs = WorkloadOptions(**{**SOME, "body_bytes": 64, "per_second": 50.0, "streams": 4, "qmgrs": 3, "start": START})
    messages = list(Workload(knobs).messages())
    assert messages[0].time == START
    assert messages[-1].time == START + timedelta(seconds=(knobs.messages - 1) / 50)
    assert {message.qmgr for message in messages} == {"QM1", "QM2", "QM3"}
    assert {message.queue for message in messages} == {CONTROL_QUEUE, *(knobs.stream(number) for number in range(4))}
    publications = [message for message in messages if message.queue != CONTROL_QUEUE]
    assert {len(m.decode().body) for m in publications if isinstance(parse(m.decode()), Publish)} == {64}


def test_subscribers_come_and_go() -> None:
    """One that left is back before it leaves again; in between what is published does not reach it."""
    knobs = WorkloadOptions(**{**SOME, "control": 0.5, "subscribers": 5, "expiring": 0.0})
    there: dict[object, bool] = {}
    left = 0
    for message in Workload(knobs).messages():
        command = parse(message.decode())
        if isinstance(command, RegisterSubscriber | DeregisterSubscriber):
            who = (command.topics, command.sub_name, _descriptor(message).reply_to_q)
            if isinstance(command, DeregisterSubscriber):
                assert there[who]
                left += 1
            there[who] = isinstance(command, RegisterSubscriber)
    assert left > 100


@FEW
@given(seed=st.integers(0, 2**31), cut=st.integers(0, 300))
def test_any_slice_is_what_it_is_in_the_whole(seed: int, cut: int) -> None:
    workload = Workload(
        WorkloadOptions(seed=seed, messages=300, subscribers=20, topics=30, control=0.2, errors=0.05, qmgrs=2)
    )
    assert [*workload.rows(0, cut), *workload.rows(cut)] == list(workload.rows())


def test_rows_and_messages_are_the_same() -> None:
    workload = Workload(WorkloadOptions(messages=200))
    for row, message in zip(workload.rows(), workload.messages(), strict=True):
        got = (message.seq, message.time, message.qmgr, message.queue, message.user, message.md, message.body)
        assert got == tuple(row)


def test_another_seed_is_another_workload() -> None:
    one, two = (list(Workload(WorkloadOptions(messages=50, seed=seed)).rows()) for seed in (1, 2))
    assert one != two


def test_every_command_and_every_outcome_occurs() -> None:
    knobs = WorkloadOptions(
        messages=1000, control=0.25, errors=0.05, strays=0.01, expiring=0.2, several=0.05, per_second=20
    )
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
    knobs = WorkloadOptions(messages=2000, subscribers=100, control=0.1, retained=0.5, errors=0, strays=0, topics=5000)
    found = [parse(message.decode()) for message in Workload(knobs).messages(100)]
    publications = [command for command in found if isinstance(command, Publish)]
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
        WorkloadOptions(**knobs)


def test_shares_that_are_more_than_all() -> None:
    with pytest.raises(WorkloadError, match="more than all messages"):
        WorkloadOptions(control=0.6, errors=0.5)


@pytest.mark.parametrize("form", [entry.name for entry in FORMATS.values() if entry.writer is not None])
def test_verb_writes_every_format(tmp_path: Path, form: str) -> None:
    target = tmp_path / f"capture.{form}"
    arguments = ["generate", "--messages", "40", "--subscribers", "5", "--output", str(target)]
    result = CliRunner().invoke(main, arguments)
    expected = 1 if form == "raw" else 40
    assert result.exit_code == (0 if expected == 40 else 1)
    bodies = [record.message.body for record in read_captures(target) if record.message is not None]
    whole = [row.body for row in Workload(WorkloadOptions(messages=40, subscribers=5)).rows()]
    assert bodies == whole[:expected]


def test_verb_writes_files_and_their_setup(tmp_path: Path) -> None:
    target, setup = tmp_path / "capture", tmp_path / "streams.mqsc"
    arguments = ["generate", "--messages", "100", "--files", "3", "--to", "parquet", "--output", str(target)]
    result = CliRunner().invoke(main, [*arguments, "--setup", str(setup)])
    assert result.exit_code == 0
    assert [path.name for path in sorted(target.iterdir())] == [f"part-0000{n}.parquet" for n in range(3)]
    seqs = [record.message.seq for record in read_captures(target) if record.message is not None]
    assert seqs == list(range(1, 101))
    assert setup.read_text() == setup_script(WorkloadOptions())
