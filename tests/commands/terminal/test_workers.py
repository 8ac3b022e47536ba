"""Work in several processes: results in the order of the batches, errors as in one process, nobody left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commands.terminal.workers import WorkerError, cores, worked
from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError
from tests.commands.cli_runs import run

FIXTURES = Path(__file__).parents[3] / "fixtures"
CAPTURE = FIXTURES / "results-service" / "capture.jsonl"


@pytest.mark.parametrize("count", [1, 3])
def test_results_are_in_the_order_of_the_batches(count: int) -> None:
    batches = [("x" * size) for size in (200_000, 1, 3, 300_000, 0, 7, 9)]
    assert list(worked(len, batches, count)) == [len(batch) for batch in batches]


def test_batches_are_read_as_they_are_needed() -> None:
    taken = []

    def batches() -> object:
        for number in range(100):
            taken.append(number)
            yield [number]

    results = worked(sum, batches(), 2)  # type: ignore[arg-type]
    assert next(results) == 0
    assert len(taken) == 3
    results.close()  # type: ignore[attr-defined]


def test_an_error_comes_back_as_it_was_raised() -> None:
    with pytest.raises(ValueError, match="non-hexadecimal"):
        list(worked(bytes.fromhex, ["00", "xx", "01"], 2))
    with pytest.raises(DecodeError):
        list(worked(CapturedMessage.decode, [CapturedMessage(seq=1, queue="Q", md_hex="00", body_hex="")], 1))


def test_a_worker_that_ends_is_reported() -> None:
    with pytest.raises(WorkerError, match="exit code 7; --jobs 1 starts none"):
        list(worked(os._exit, [7, 7], 1))


def test_a_worker_that_is_killed_is_reported() -> None:
    with pytest.raises(WorkerError, match="signal 9"):
        list(worked(lambda number: os.kill(os.getpid(), number), [9, 9], 2))


def test_a_worker_has_what_is_kept_here() -> None:
    kept = {"a": 1}
    assert list(worked(lambda key: kept.pop(key, None), ["a", "a", "b"], 2)) == [1, 1, None]
    assert kept == {"a": 1}


def test_no_workers_where_nothing_can_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert list(worked(lambda _batch: os.getpid(), ["a", "b"], 2)) == [os.getpid()] * 2


def test_no_worker_outlives_its_work() -> None:
    """The work gives the identifier of the process that does it."""
    results = worked(eval, ["__import__('os').getpid()"] * 6, 2)
    pids = [next(results), next(results)]
    results.close()  # type: ignore[attr-defined]
    assert len({*pids, os.getpid()}) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_cores() -> None:
    assert cores() >= 1


OPTIONS = [(), ("--json",), ("--brief",), ("--explain", "--brief"), ("--color", "always"), ("--where", "seq > 7")]


@pytest.mark.parametrize("given", OPTIONS, ids=" ".join)
def test_decode_prints_the_same_in_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    monkeypatch.setattr("commands.cli.decode._BATCH_MESSAGES", 4)
    monkeypatch.setattr("commands.cli.decode._FIRST", 3)
    capture = tmp_path / "c.jsonl"
    lines = CAPTURE.read_text().splitlines(keepends=True)
    odd = lines[3].replace('"queue": "', '"queue": "\\u001b[31m')
    capture.write_text("".join([*lines[:9], "nonsense\n", *lines[9:20], odd, "{}\n"]))
    one = run("decode", str(capture), *given, "--jobs", "1")
    assert one.out
    for jobs in (("--jobs", "2"), ("--jobs", "3"), ()):
        ran = run("decode", str(capture), *given, *jobs)
        assert (ran.out, ran.talk, ran.code) == (one.out, one.talk, one.code)
