"""File to file, batch after batch: each put once, whenever the program is killed and however often."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from commands.cli import main
from commands.replay import LocalReplay
from commands.replay.spark import following as following_module, streaming
from commands.replay.spark.following import LATE_FILE, PROBLEM_FILE, Batch, FollowError, Following
from commands.replay.spark.streaming import READ
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures, write_captures
from rfh2.errors import CaptureError, QPubSubError

KNOBS = WorkloadOptions(
    messages=900, control=0.1, subscribers=40, topics=40, qmgrs=2, retained=0.5, expiring=0.3, per_second=20
)
SETUP = setup_script(KNOBS)
CAPTURE = list(Workload(KNOBS).messages())
ROOT = Path(__file__).parents[4]


def move_in(directory: Path, name: str, messages: Iterable[CapturedMessage]) -> None:
    """Let a whole file of captured messages appear."""
    directory.mkdir(exist_ok=True)
    partial = directory.parent / "partial"
    with partial.open("wb") as file:
        write_captures(messages, file, "jsonl")
    partial.rename(directory / f"{name}.jsonl")


def expected(capture: Iterable[CapturedMessage]) -> list[str]:
    return [put.model_dump_json() for put in LocalReplay(SETUP).puts(capture)]


def written(target: Path) -> list[str]:
    """The puts in *target*, batch after batch, as any program would read them."""
    return [line for path in sorted(target.glob("batch=*/puts.jsonl")) for line in path.read_text().splitlines()]


@pytest.fixture
def following(tmp_path: Path) -> Following:
    (tmp_path / "in").mkdir()
    return Following(tmp_path / "in", "auto", tmp_path / "puts.jsonl", tmp_path / "place", SETUP)


# What belongs together


def test_what_is_begun_goes_on(following: Following) -> None:
    following.check()
    following.claim()
    following.check()
    replace(following, source=following.source / ".." / "in").check()


CHANGES = [
    ("setup", {"setup": SETUP + "DEFINE TOPIC(X) TOPICSTR('X')"}, "another setup"),
    ("semantics", {"semantics": "v6"}, "other semantics"),
    ("format", {"form": "raw"}, "in another format"),
    ("kind-of-output", {"target": Path("puts.parquet")}, "another kind of output"),
    ("timers", {"hold": 10, "idle_s": 1.0}, "--idle"),
]


@pytest.mark.parametrize(("change", "why"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_another_replay_is_refused(following: Following, change: dict[str, Any], why: str) -> None:
    following.claim()
    with pytest.raises(FollowError, match=why):
        replace(following, **change).check()


def test_a_checkpoint_of_an_earlier_version_is_refused(following: Following) -> None:
    following.claim()
    mark = following.checkpoint / "_qpubsub.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"version": 1}))
    with pytest.raises(FollowError, match="was written by another version of qpubsub"):
        following.check()


def test_a_longer_hold_is_the_same_replay(following: Following) -> None:
    following.claim()
    replace(following, hold=100).check()


def test_another_directory_is_refused(following: Following, tmp_path: Path) -> None:
    following.claim()
    (tmp_path / "other").mkdir()
    with pytest.raises(FollowError, match="another directory"):
        replace(following, source=tmp_path / "other").check()


def test_an_output_that_others_wrote_is_refused(following: Following) -> None:
    (following.target / "batch=0000000000").mkdir(parents=True)
    with pytest.raises(FollowError, match="needs a new output"):
        following.check()


def test_an_output_that_is_gone_is_missed(following: Following) -> None:
    following.claim()
    (following.checkpoint / "commits").mkdir()
    (following.checkpoint / "commits" / "0").touch()
    shutil.rmtree(following.target)
    with pytest.raises(FollowError, match="is not the output"):
        following.check()


def test_a_checkpoint_that_is_gone_is_missed(following: Following) -> None:
    following.claim()
    (following.target / "batch=0000000000").mkdir()
    shutil.rmtree(following.checkpoint)
    with pytest.raises(FollowError, match="needs a new output"):
        following.check()


def test_two_outputs_are_not_mixed_up(following: Following, tmp_path: Path) -> None:
    other = replace(following, target=tmp_path / "others.jsonl", checkpoint=tmp_path / "others")
    following.claim()
    other.claim()
    with pytest.raises(FollowError, match="other than that of"):
        replace(following, target=other.target).check()


def test_a_strange_directory_is_no_checkpoint(following: Following) -> None:
    following.checkpoint.mkdir()
    (following.checkpoint / "letters.txt").touch()
    with pytest.raises(FollowError, match="not the checkpoint"):
        following.check()


def test_a_source_has_to_be_there(following: Following) -> None:
    with pytest.raises(CaptureError, match="no such directory"):
        replace(following, source=following.source / "none").check()


def test_a_setup_that_fails_is_told_before_spark_starts(following: Following) -> None:
    with pytest.raises(QPubSubError, match="line 1"):
        replace(following, setup="DEFINE NONSENSE(X)").check()


def test_what_waits_for_silence_has_no_end(following: Following) -> None:
    endless = replace(following, hold=1, idle_s=1.0)
    session: Any = None
    with (
        pytest.raises(ValueError, match="never ends"),
        endless.running(session, lambda _batch: None, once=True),
    ):
        pass


IDLE = ["--hold", "5", "--idle", "3"]
USAGES = [
    ("follow-without-checkpoint", ["--engine", "spark", "--follow"], "need --checkpoint"),
    ("checkpoint-of-the-local-engine", ["--checkpoint", "place"], "needs --engine spark"),
    ("idle-without-follow", ["--engine", "spark", "--checkpoint", "place", *IDLE], "--idle needs"),
    ("idle-without-hold", ["--engine", "spark", "--checkpoint", "place", "--follow", "--idle", "3"], "--idle needs"),
    ("strange-output", ["--engine", "spark", "--checkpoint", "place", "--output", "puts.xml"], "must end in"),
    ("a-table-of-one-replay", ["--engine", "spark", "--output", "puts.delta"], "must end in .jsonl or .parquet"),
]


@pytest.mark.parametrize(("arguments", "why"), [case[1:] for case in USAGES], ids=[case[0] for case in USAGES])
def test_usage(tmp_path: Path, arguments: list[str], why: str) -> None:
    result = CliRunner().invoke(
        main, ["replay", "--input", str(tmp_path), "--output", str(tmp_path / "puts.jsonl"), *arguments]
    )
    assert (result.exit_code, why in result.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


# Running


def run(spark: SparkSession, following: Following) -> list[Batch]:
    batches: list[Batch] = []
    with following.running(spark, batches.append, once=True) as query:
        query.awaitTermination()
    return batches


def test_each_put_once(spark: SparkSession, following: Following) -> None:
    late = CAPTURE[50]
    move_in(following.source, "0", [*CAPTURE[:50], *CAPTURE[51:300]])
    move_in(following.source, "1", CAPTURE[300:600])
    batches = run(spark, replace(following, batch_bytes=1))
    assert [path.name for path in sorted(following.target.glob("b*"))] == ["batch=0000000000", "batch=0000000001"]
    puts = written(following.target)
    assert puts == expected([m for m in CAPTURE[:600] if m is not late])
    assert sum(sum(batch.kinds.values()) for batch in batches) == len(puts)

    # Killed between the renaming and Spark's note of it: the batch is tried again, and changes nothing.
    for path in (following.checkpoint / "commits").glob("*1*"):
        path.unlink()
    run(spark, following)
    assert written(following.target) == puts

    move_in(following.source, "2", [late, *CAPTURE[600:]])
    (following.source / "bad.jsonl").write_text("no JSON\n")
    (batch,) = run(spark, following)
    assert written(following.target) == expected([m for m in CAPTURE if m is not late])
    last = following.target / "batch=0000000002"
    assert [record.message for record in read_captures(last / LATE_FILE)] == [late]
    assert "bad.jsonl" in (last / PROBLEM_FILE).read_text()
    assert [batch.kinds["late"], batch.kinds["problem"], len(batch.problem_texts)] == [1, 1, 1]

    with (
        following.running(spark, lambda _batch: None, once=True),
        pytest.raises(FollowError, match="in use by another"),
        replace(following).running(spark, lambda _batch: None, once=True),
    ):
        pass


def test_parquet_which_may_be_a_delta_table(spark: SparkSession, following: Following) -> None:
    is_delta = find_spec("deltalake") is not None
    following = replace(following, target=following.target.with_suffix(".delta" if is_delta else ".parquet"))
    move_in(following.source, "0", CAPTURE[:100])
    run(spark, following)
    found = spark.read.parquet(str(following.target))
    assert found.columns[-1] == "batch"
    assert found.count() == len(expected(CAPTURE[:100]))
    if is_delta:
        from deltalake import DeltaTable

        table = DeltaTable(following.target)
        mark = json.loads((following.checkpoint / "_qpubsub.json").read_text())["id"]
        assert table.to_pyarrow_table().num_rows == found.count()
        assert table.transaction_version(f"qpubsub-{mark}") == 0


@pytest.mark.parametrize("version", READ)
def test_a_checkpoint_of_each_format_that_is_read_is_one_of_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Half of a capture was replayed into it. Its texts name the directory that it was made in."""
    newest = max(READ) + 1
    for module in (streaming, following_module):
        monkeypatch.setattr(module, "READ", (*READ, newest))
    with tarfile.open(ROOT / "fixtures" / "checkpoints" / f"{version}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for path in tmp_path.rglob("*"):
        if path.is_file() and b"/replay/" in (held := path.read_bytes()):
            path.write_bytes(held.replace(b"/replay/", bytes(tmp_path) + b"/"))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    setup = (tmp_path / "setup.mqsc").read_text()
    (tmp_path / "later.jsonl").rename(tmp_path / "in" / "later.jsonl")
    following = Following(tmp_path / "in", "auto", tmp_path / "puts.jsonl", tmp_path / "place", setup)
    run(spark, following)
    capture = [record.message for name in ("a", "later") for record in read_captures(tmp_path / "in" / f"{name}.jsonl")]
    wanted = [put.model_dump_json() for put in LocalReplay(setup).puts(m for m in capture if m is not None)]
    assert len(list(following.target.glob("batch=*"))) == 2
    assert written(following.target) == wanted
    assert json.loads((following.checkpoint / "_qpubsub.json").read_text())["version"] == newest
    following.check()


# Killed

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def _until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while not true() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("[0-9]*")}


@pytest.mark.nightly
def test_killed_in_the_middle_of_a_batch(following: Following) -> None:
    """At another moment of a batch for each state of the sources."""
    batches = 8
    for number in range(batches):
        start, end = (len(CAPTURE) * at // batches for at in (number, number + 1))
        move_in(following.source, f"{number:02}", CAPTURE[start:end])
    paths = [str(path) for path in (following.source, following.target, following.checkpoint)]
    program = [sys.executable, "-m", "tests.commands.replay.spark.stream_program", *paths, SETUP]
    offsets, commits = following.checkpoint / "offsets", following.checkpoint / "commits"
    chance = random.Random(os.environ.get("QPUBSUB_TEST_SEED", "7"))
    process = subprocess.Popen(program, cwd=ROOT, env=ENVIRONMENT, start_new_session=True, stderr=subprocess.DEVNULL)
    batch = chance.randrange(batches // 2)
    _until(lambda: len(_names(commits)) > batch and bool(_names(offsets) - _names(commits)), process)
    time.sleep(chance.uniform(0, 0.4))
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(_names(commits)) < batches
    subprocess.run(program, cwd=ROOT, env=ENVIRONMENT, check=True, timeout=300, stderr=subprocess.DEVNULL)
    assert len(_names(commits)) == batches
    assert written(following.target) == expected(CAPTURE)
    assert not list(following.target.glob("_batch-*"))


@pytest.mark.nightly
def test_the_verb_ends_by_ctrl_c(following: Following, tmp_path: Path) -> None:
    (tmp_path / "setup.mqsc").write_text(SETUP)
    arguments = ["replay", "--engine", "spark", "--master", "local[1]", "--setup", "setup.mqsc", "--follow"]
    paths = ["--input", "in", "--output", "puts.jsonl", "--checkpoint", "place"]
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.cli", *arguments, *paths],
        cwd=tmp_path,
        env=ENVIRONMENT,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    move_in(following.source, "0", CAPTURE[:100])
    _until((following.target / "batch=0000000000").exists, process)
    move_in(following.source, "1", CAPTURE[100:200])
    _until((following.checkpoint / "offsets" / "1").exists, process)
    # In the middle of a batch, and as a terminal does it: every process of the group hears of it.
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told.decode()
    assert "run the same command again to go on from here" in told.decode()
    assert "Traceback" not in told.decode()
    assert "java" not in told.decode()
    assert written(following.target) == expected(CAPTURE[:200])
