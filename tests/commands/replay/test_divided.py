"""A replay whose messages are divided between processes writes what one process writes, byte for byte."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.options.local_replay import SharedReplay
from commands.replay import LocalReplay, OutOfOrderError, divided
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.divided import ClockWentBackError
from commands.replay.local import ReplayCounts
from commands.replay.put_lines import PutLines
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from tests.commands.cli_runs import run
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, START, messages
from tests.examples import FEW

STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


def _alone(capture: Sequence[CapturedMessage], setup: str, semantics: str) -> tuple[bytes, ReplayCounts]:
    replay, file = LocalReplay(setup, semantics), BytesIO()
    for message in capture:
        PutLines(file).add(message.seq, message.qmgr or DEFAULT_QMGR, replay.replay(message)[0].puts)
    return file.getvalue(), replay.counts


def _together(
    capture: Sequence[CapturedMessage], setup: str, semantics: str, processes: int
) -> tuple[bytes, ReplayCounts]:
    """What *processes* make, of which each gets its shares as bytes."""
    works = [pickle.loads(pickle.dumps(SharedReplay(setup, semantics))) for _ in range(processes)]
    lines, counts = b"", ReplayCounts()
    for turn, share in enumerate(divided.shares(capture, processes)):
        done = works[turn % processes].replayed(pickle.loads(pickle.dumps(share)))
        lines += done.lines
        counts.add(done.counts)
    return lines, counts


def _with_clocks_that_go_on(capture: Sequence[CapturedMessage]) -> list[CapturedMessage]:
    latest = START
    made = []
    for message in capture:
        if message.time is not None:
            latest = max(latest, message.time)
            made.append(message.model_copy(update={"time": latest}))
        else:
            made.append(message)
    return made


@pytest.mark.parametrize(("setup", "semantics"), [(SETUP, "v7"), (EXPIRING, "v6")])
def test_any_small_capture(setup: str, semantics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @FEW
    @given(capture=messages(None), processes=st.integers(1, 3), run_messages=st.integers(1, 4))
    def check(capture: list[CapturedMessage], processes: int, run_messages: int) -> None:
        monkeypatch.setattr(divided, "_RUN_MESSAGES", run_messages)
        given_messages = _with_clocks_that_go_on(capture)
        assert _together(given_messages, setup, semantics, processes) == _alone(given_messages, setup, semantics)

    check()


def test_a_workload_is_mostly_divided() -> None:
    options = WorkloadOptions(messages=1200, topics=30, subscribers=40, control=0.03, errors=0.02, strays=0.01, qmgrs=2)
    capture, setup = list(Workload(options).messages()), setup_script(options)
    assert _together(capture, setup, "v7", 2) == _alone(capture, setup, "v7")
    processed = sum(len(share.messages) for share in divided.shares(capture, 2))
    assert processed < 1.5 * len(capture)


def _published(seq: int, seconds: int, qmgr: str | None = None) -> CapturedMessage:
    return CapturedMessage(seq=seq, time=START + timedelta(seconds=seconds), qmgr=qmgr, queue=STREAM, body_hex="")


@pytest.mark.parametrize(
    ("capture", "error"),
    [
        pytest.param([_published(1, 5), _published(2, 4)], ClockWentBackError, id="clock"),
        pytest.param([_published(2, 4), _published(1, 5)], OutOfOrderError, id="order"),
    ],
)
def test_what_cannot_be_divided(capture: list[CapturedMessage], error: type[Exception]) -> None:
    with pytest.raises(error):
        list(divided.shares(capture, 2))


def test_each_queue_manager_has_a_clock_of_its_own() -> None:
    (share,) = divided.shares([_published(1, 5, "A"), _published(2, 4, "B"), _published(3, 5, "B")], 2)
    assert share.counted == 3


@pytest.mark.parametrize("clock_goes_back", [False, True])
def test_the_verb_writes_the_same_with_any_number_of_processes(tmp_path: Path, clock_goes_back: bool) -> None:
    options = WorkloadOptions(messages=1200, topics=30, subscribers=40, errors=0.02)
    capture = list(Workload(options).messages())
    if clock_goes_back:
        capture.append(capture[-1].model_copy(update={"seq": capture[-1].seq + 1, "time": capture[0].time}))
    source, setup = tmp_path / "capture.jsonl", tmp_path / "setup.mqsc"
    source.write_text("".join(message.model_dump_json() + "\n" for message in capture))
    setup.write_text(setup_script(options))
    written, said = [], []
    for jobs in ("1", "2"):
        puts = tmp_path / f"puts{jobs}.jsonl"
        ran = run("replay", "--jobs", jobs, "--setup", str(setup), "-o", str(puts), str(source))
        assert ran.code == 1, "some messages of the workload are wrong, and become dead letters"
        written.append(puts.read_bytes())
        lines = ran.talk.replace(puts.name, "puts.jsonl").splitlines()
        # What was said before the clock went back is said again.
        said.append({line for line in lines if "in one process" not in line})
    assert written[0] == written[1]
    assert said[0] == said[1]


@pytest.mark.parametrize("more", [("--transcript",), ("--limit", "1"), ("--output", "puts.parquet")])
def test_what_needs_one_process_says_so(tmp_path: Path, more: tuple[str, ...]) -> None:
    source = tmp_path / "capture.jsonl"
    source.write_text(_published(1, 1).model_dump_json() + "\n")
    ran = run("replay", "--jobs", "2", str(source), *more)
    assert ran.code == 2
    assert "--jobs writes puts as JSON Lines" in ran.talk
