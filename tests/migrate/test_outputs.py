"""What cannot be written is found before anything is changed, or told afterwards with where the report is kept.

Exit codes: 0 done, 1 done and a person must see something, 2 nothing was changed.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from migrate.contents import SUMS, StagedFiles, sums_of
from migrate.log import LogWriter
from rfh2.errors import MigrationError
from streams.operations import SubscriptionAdded
from tests.migrate.cases import LEGACY
from tests.migrate.verbs import Ran, state

STREAMS = LEGACY / "streams"
SOURCES = ("--source", *(str(STREAMS / name) for name in ("capture.jsonl", "qm.ini", "relations.json")))
FULL = Path("/dev/full")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")):
        return tmp_path / "home"


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full_out(patched: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    patched.setattr("migrate.contents.to_disk", full)
    return ("--out", str(directory / "out"))


def _out_is_a_file(_: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    (directory / "taken").write_text("mine")
    return ("--out", str(directory / "taken" / "out"))


def _report_is_a_directory(_: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    (directory / "out" / "report.json").mkdir(parents=True)
    return ("--out", str(directory / "out"))


def _no_log(_: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    (directory / "taken").write_text("mine")
    return ("-l", str(directory / "taken" / "log"))


def _full_log(_: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    return ("-l", str(FULL))


def _full_journal(patched: pytest.MonkeyPatch, directory: Path) -> tuple[str, ...]:
    patched.setattr("migrate.embedded._keep_reports", full)
    return ()


Making = Callable[[pytest.MonkeyPatch, Path], tuple[str, ...]]
BEFORE = [
    ("out-full", _full_out, "out: no space left on device; nothing was changed"),
    ("out-below-a-file", _out_is_a_file, "not a directory; nothing was changed"),
    ("out-taken", _report_is_a_directory, "report.json is a directory; nothing was changed"),
    ("log-below-a-file", _no_log, "nothing was changed"),
    ("log-full", _full_log, "log /dev/full: no space left on device; nothing was changed"),
    ("journal-full", _full_journal, "no space left on device; nothing was changed"),
]


@pytest.mark.rule("MIG-15")
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(("make", "says"), [case[1:] for case in BEFORE], ids=[case[0] for case in BEFORE])
def test_what_cannot_be_written_is_found_before_anything_is_changed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Making, says: str
) -> None:
    before = state(home)
    with monkeypatch.context() as patched:
        ran = Ran("strmqbrk", home, *make(patched, tmp_path), *SOURCES)
    assert (ran.code, says in ran.err) == (ExitCode.USAGE, True), ran.err
    assert state(home) == before
    assert not list((home / "QM1").glob("migration/*"))
    assert not list(tmp_path.rglob(".writing-*"))
    assert Ran("strmqbrk", home, "--out", str(tmp_path / "other"), *SOURCES).code == ExitCode.PROBLEMS


@pytest.mark.parametrize("phase", ["-t", "-c"])
def test_migmbbrk_too(home: Path, tmp_path: Path, phase: str) -> None:
    (tmp_path / "taken").write_text("mine")
    given = ("-b", "TEST_BROKER", "--directory", str(tmp_path / "here"), "--from-qmgr", "PSMIG_QM")
    source = ("--source", str(LEGACY / "log-example" / "outfile.txt"))
    if phase == "-c":
        assert Ran("migmbbrk", home, "-t", *given, *source).code != ExitCode.USAGE
    before = state(home)
    ran = Ran("migmbbrk", home, phase, *given, "--out", str(tmp_path / "taken" / "out"), *source)
    assert (ran.code, "nothing was changed" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before
    assert not (home / "QM1" / "migration" / "retrieved.json").exists()
    ran = Ran("migmbbrk", home, phase, *given[:2], "--directory", str(tmp_path / "taken" / "log"), *source)
    assert (ran.code, "nothing was changed" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before


def _publishing_fails(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(StagedFiles, "publish", full)


def _log_fails_at_the_end(patched: pytest.MonkeyPatch) -> None:
    write = LogWriter.write

    def fails(self: LogWriter, text: str) -> None:
        if text.startswith("Applying"):
            full()
        write(self, text)

    patched.setattr(LogWriter, "write", fails)


AFTER = [
    ("out", _publishing_fails, "the files of --out"),
    ("log", _log_fails_at_the_end, "could not be finished"),
]


@pytest.mark.parametrize(("fail", "says"), [case[1:] for case in AFTER], ids=[case[0] for case in AFTER])
def test_what_fails_afterwards_is_told_and_the_report_is_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[pytest.MonkeyPatch], None], says: str
) -> None:
    before = state(home)
    with monkeypatch.context() as patched:
        fail(patched)
        ran = Ran("strmqbrk", home, "--out", str(tmp_path / "out"), *SOURCES)
    assert ran.code == ExitCode.PROBLEMS
    assert says in ran.err
    assert "the migration is done, and its report is in " in ran.err
    assert state(home) != before
    (kept,) = (home / "QM1").glob("migration/*/report")
    assert json.loads((kept / "report.json").read_text())["phase"] == "complete"
    assert {path.name for path in kept.iterdir()} == {"report.json", "report.txt", "report.html", "items.csv"}
    again = Ran("strmqbrk", home, *SOURCES)
    assert again.code == ExitCode.DONE
    assert f"the report of that migration is in {kept}" in again.err


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_report_that_standard_output_does_not_take(home: Path) -> None:
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended, FULL.open("wb") as nowhere:
        main.main(["strmqbrk", "-m", "QM1", "--home", str(home), *SOURCES], obj=Console(nowhere, err))
    assert ended.value.code == ExitCode.PROBLEMS, err.getvalue()
    assert "the report could not be written: no space left on device; the migration is done" in err.getvalue()
    assert state(home)["objects"]["qmgr QM1"]["psmode"] == "ENABLED"  # type: ignore[index]


def test_a_full_disk_leaves_nothing_of_the_staged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrate.contents.to_disk", full)
    with pytest.raises(MigrationError, match="nothing was changed"):
        StagedFiles(tmp_path / "out", {"a": b"1", "b": b"2"})
    assert list((tmp_path / "out").iterdir()) == []


def test_staged_files_replace_those_of_an_earlier_run(tmp_path: Path) -> None:
    """What this run does not write is removed, unless a person has changed it."""
    StagedFiles(tmp_path, {"a": b"old", "gone": b"x", "edited": b"x"}).publish()
    (tmp_path / "edited").write_text("by a person")
    (tmp_path / "own").write_text("by a person")
    StagedFiles(tmp_path, {"a": b"new"}).publish()
    found = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != SUMS}
    assert found == {"a": "new", "edited": "by a person", "own": "by a person"}
    assert sums_of(tmp_path) == {"a": sha256(b"new").hexdigest()}


def test_files_of_a_run_that_was_killed_are_completed_by_the_next(tmp_path: Path) -> None:
    StagedFiles(tmp_path, {"a": b"old"}).publish()
    interrupted = StagedFiles(tmp_path, {"a": b"new", "b": b"new"})
    (tmp_path / SUMS).unlink()
    (next(tmp_path.glob(".writing-*")) / "a").replace(tmp_path / "a")
    assert sums_of(tmp_path) == {}
    del interrupted
    StagedFiles(tmp_path, {"a": b"new", "b": b"new"}).publish()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", SUMS}


class TestUndo:
    """--undo, and its rehearsal."""

    def test_a_rehearsal_says_what_undoing_would_do_and_does_nothing(self, home: Path) -> None:
        untouched = state(home)
        Ran("strmqbrk", home, *SOURCES)
        before = state(home)
        files = sorted(home.rglob("*"))
        rehearsed = Ran("strmqbrk", home, "--undo", "--rehearse")
        assert rehearsed.code == ExitCode.DONE
        assert (state(home), sorted(home.rglob("*"))) == (before, files)
        lines = rehearsed.out.splitlines()
        assert "topic Sport: deleted" in lines
        assert "qmgr QM1: as before" in lines
        assert "subscription news to News/* for NEWS.Q: deleted" in lines
        assert "retained publication on Sport/Soccer/Results: deleted" in lines
        assert f"rehearsal: {len(lines)} objects would be taken back; nothing was changed" in rehearsed.err
        undone = Ran("strmqbrk", home, "--undo")
        assert f"{len(lines)} objects, subscriptions and retained publications were taken back" in undone.err
        assert state(home) == untouched

    def test_it_says_what_would_be_left(self, home: Path) -> None:
        Ran("strmqbrk", home, *SOURCES)
        with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
            unit.put("RESULTS.Q", None, b"a publication")
        ran = Ran("strmqbrk", home, "--undo", "--rehearse")
        assert (ran.code, "would be left: qlocal RESULTS.Q" in ran.err) == (ExitCode.PROBLEMS, True)

    def test_it_names_subscriptions_made_since_on_what_is_removed(self, home: Path) -> None:
        Ran("strmqbrk", home, *SOURCES)
        with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
            other = unit.load_state()[1][0]
            made = [replace(other, sub_id=bytes([n]) * 24, topic_string=t, stream=None, name=f"s{n}")
                    for n, t in ((1, "Sport/Rugby"), (2, "Sports"))]  # fmt: skip
            unit.save_effects([SubscriptionAdded(each) for each in made])
        for flags in (["--rehearse"], []):
            ran = Ran("strmqbrk", home, "--undo", *flags)
            assert ran.code == ExitCode.PROBLEMS
            assert "subscription s1 to Sport/Rugby" in ran.err
            assert "made after the migration, on topic object Sport, which is removed" in ran.err
            assert "s2 to Sports for RESULTS.Q uses it" in ran.err

    def test_of_nothing(self, home: Path) -> None:
        ran = Ran("strmqbrk", home, "--undo", "--rehearse")
        assert (ran.code, "nothing to undo" in ran.err) == (ExitCode.USAGE, True)

    def test_of_migmbbrk(self, home: Path, tmp_path: Path) -> None:
        given = ("-b", "TEST_BROKER", "--directory", str(tmp_path / "here"))
        Ran("migmbbrk", home, "-t", *given, "--source", str(LEGACY / "log-example" / "outfile.txt"))
        before = state(home)
        ran = Ran("migmbbrk", home, "--undo", "-r")
        assert "topic MIGMBBRK.TOPIC.00001: deleted" in ran.out
        assert state(home) == before

    @pytest.mark.parametrize(
        ("verb", "arguments"),
        [("strmqbrk", SOURCES), ("strmqbrk", ("--extract",)), ("migmbbrk", ("-c",)), ("migmbbrk", ("-t", *SOURCES))],
        ids=["sources", "extract", "complete", "initial"],
    )
    def test_with_anything_else_it_is_a_usage_error(self, home: Path, verb: str, arguments: tuple[str, ...]) -> None:
        Ran("strmqbrk", home, *SOURCES)
        before = state(home)
        ran = Ran(verb, home, "--undo", *arguments)
        assert (ran.code, "--undo can be used with --rehearse" in ran.err) == (ExitCode.USAGE, True)
        assert state(home) == before
