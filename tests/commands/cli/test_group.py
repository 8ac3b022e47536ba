"""The command line as a whole: help, exit codes, one line for each failure."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from commands.cli import ELSEWHERE, VERBS, main, report_error
from commands.terminal.console import Console, ExitCode
from rfh2.errors import CaptureError, QPubSubError, StoreError
from tests.commands.cli_runs import run
from tests.waiting import PATIENCE_S

THERE = [verb for verb in VERBS if verb not in ELSEWHERE]


def qpubsub(*args: str, home: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from commands.cli import main; main()", *args]
    environment = {**os.environ, "QPUBSUB_HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, input=stdin, check=False)


def console(*, quiet: bool = False, debug: bool = False) -> Console:
    return Console(io.BytesIO(), io.StringIO(), quiet=quiet, debug=debug)


def talk(of: Console) -> str:
    assert isinstance(of.stderr, io.StringIO)
    return of.stderr.getvalue()


EVERY = list(main.every_command())


@pytest.mark.parametrize(("words", "command"), EVERY, ids=[words for words, _ in EVERY])
def test_every_command_and_option_is_explained(words: str, command: click.Command) -> None:
    assert command.help
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    assert [option.name for option in options if not option.help] == []
    shown = CliRunner().invoke(main, [*words.split(), "--help"]).output
    assert isinstance(command, click.Group) or f"  qpubsub {words}" in shown, "no example on a line of its own"


def test_help_lists_the_verbs_that_exist_and_imports_none() -> None:
    program = """
import sys
from commands.cli import main
try:
    main(["--help"])
except SystemExit:
    rooms = ("commands.cli.", "commands.options", "commands.running.")
    print(sorted(m for m in sys.modules if m.startswith(rooms)))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    *shown, modules = result.stdout.splitlines()
    listed = [line.split()[0] for line in shown[shown.index("Look:") + 1 :] if line.startswith("  ")]
    assert [verb for verb in THERE if verb not in listed] == []
    assert modules == "['commands.options', 'commands.options.verb']"


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.startswith("qpubsub, version ")


FAILURES = [
    ("usage", click.UsageError("bad option"), 2, "bad option"),
    ("store", StoreError("no room"), 2, "qpubsub: no room"),
    ("capture", CaptureError("file", 3, "no hex"), 2, "qpubsub: file, line 3: no hex"),
    ("missing-file", FileNotFoundError(2, "No such file or directory", "a.txt"), 2, "qpubsub: a.txt: no such file"),
    ("interrupted", KeyboardInterrupt(), 130, "qpubsub: interrupted"),
    ("several-lines", StoreError("one\ntwo"), 2, "qpubsub: one two\n"),
    ("broken-pipe", BrokenPipeError(), 141, ""),
]


@pytest.mark.parametrize(("error", "code", "words"), [c[1:] for c in FAILURES], ids=[c[0] for c in FAILURES])
def test_a_failure_is_one_line_and_a_code(error: BaseException, code: int, words: str) -> None:
    to = console()

    assert report_error(error, to) == code
    assert words in talk(to)
    assert len(talk(to).splitlines()) <= 1
    assert words or talk(to) == ""


def test_notes_go_with_their_error() -> None:
    to, error = console(), QPubSubError("no room")
    error.add_note("3 messages were put before")
    report_error(error, to)

    assert talk(to) == "qpubsub: no room; 3 messages were put before\n"


def test_debug_brings_the_stack() -> None:
    to = console(debug=True)
    report_error(StoreError("no room"), to)

    assert "StoreError: no room" in talk(to)
    assert talk(to).endswith("qpubsub: no room\n")


def test_a_fault_of_ours_shows_its_stack_and_has_a_code_of_its_own() -> None:
    to = console()

    assert report_error(ZeroDivisionError("x"), to) == ExitCode.INTERNAL
    assert "ZeroDivisionError: x" in talk(to)
    assert "please report" in talk(to)


def test_an_unknown_verb_is_usage(tmp_path: Path) -> None:
    result = qpubsub("nosuch", home=tmp_path)

    assert (result.returncode, result.stdout) == (2, "")
    assert "nosuch" in result.stderr


def test_the_home_is_not_made_by_looking(tmp_path: Path) -> None:
    result = qpubsub("browse", "-m", "QM1", "Q", home=tmp_path / "none")

    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_stdout_is_told(tmp_path: Path) -> None:
    assert run("create", "QM1", "--home", str(tmp_path)).code == 0
    line = '{"seq":1,"queue":"Q","body_hex":"00"}\n'
    assert run("put", "-m", "QM1", "--home", str(tmp_path), "Q", stdin=line).code == 0
    program = "from commands.cli import main; main(['get', '-m', 'QM1', 'Q'])"
    with Path("/dev/full").open("w") as full:
        environment = {**os.environ, "QPUBSUB_HOME": str(tmp_path)}
        result = subprocess.run(
            [sys.executable, "-c", program],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )

    assert (result.returncode, result.stderr) == (2, "qpubsub: stdout: no space left on device\n")
    assert len(run("browse", "-m", "QM1", "--home", str(tmp_path), "Q").lines) == 1


VERBS_THAT_WAIT = [
    ("put", "-m", "QM1", "Q"),
    *[
        pytest.param((verb,), marks=pytest.mark.nightly)
        for verb in ("decode", "replay", "analyse", "differences", "encode")
    ],
    pytest.param(("convert", "--to", "hex"), marks=pytest.mark.nightly),
    pytest.param(("strmqbrk", "-m", "QM1", "--rehearse", "-"), marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("words", VERBS_THAT_WAIT, ids=lambda words: words[0])
def test_ctrl_c_ends_with_130_and_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    assert run("create", "QM1", "--home", str(tmp_path)).code == 0
    # As on a terminal, also where what runs the tests ignores the signal.
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from commands.cli import main; print('r', file=sys.stderr, flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "QPUBSUB_HOME": str(tmp_path)},
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(0.5)  # it loads, or waits for stdin by now
    process.send_signal(signal.SIGINT)
    code = process.wait(PATIENCE_S)

    assert (code, process.stderr.read()) == (130, "qpubsub: interrupted\n")


def test_ctrl_c_that_a_library_turned_into_its_own_error_is_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def library(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ValueError("Error serializing to JSON: KeyboardInterrupt") from error

    monkeypatch.setattr("commands.cli.decode.record_view", library)
    (tmp_path / "a.jsonl").write_text('{"seq":1,"queue":"Q","body_hex":"00"}\n')
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ran = run("decode", str(tmp_path / "a.jsonl"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ran.code, ran.talk) == (ExitCode.INTERRUPTED, "qpubsub: interrupted\n")


class _InterruptedWhenDropped:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_a_verb_is_loaded_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def importing(name: str) -> object:
        _InterruptedWhenDropped()
        return import_module(name)

    monkeypatch.setattr("commands.cli.import_module", importing)
    (tmp_path / "a.jsonl").write_text('{"seq":1,"queue":"Q","body_hex":"00"}\n')
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ran = run("decode", str(tmp_path / "a.jsonl"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ran.code, ran.talk) == (ExitCode.INTERRUPTED, "qpubsub: interrupted\n")


NO_TEXT = "a\udcff"


@pytest.mark.parametrize(
    "arguments",
    [
        ("encode", "--command", "Publish", "--topic", NO_TEXT),
        ("encode", "--command", "Publish", "--topic", "a", "--queue", NO_TEXT),
        ("encode", "--command", "Publish", "--topic", "a", "--data", NO_TEXT),
        ("encode", "--command", "Publish", "--topic", "a", "--property", f"Note={NO_TEXT}"),
        ("encode", "--command", "RegSub", "--pcf", "--topic", NO_TEXT),
        ("create", NO_TEXT),
        ("get", "-m", "QM1", NO_TEXT),
        ("get", "-m", NO_TEXT, "Q"),
        ("topics", "-m", "QM1", "--under", NO_TEXT),
        ("strmqbrk", "-m", "QM1", "--prefix", NO_TEXT),
        ("migmbbrk", "-m", "QM1", "-r", "-b", NO_TEXT),
    ],
    ids=" ".join,
)
def test_an_argument_that_is_no_text_is_usage(arguments: tuple[str, ...]) -> None:
    """So Python hands over bytes that are no characters: $'a\\xff' in a shell."""
    ran = run(*arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "is not text in" in ran.talk


def test_the_name_of_a_file_need_not_be_text(tmp_path: Path) -> None:
    name = tmp_path / NO_TEXT
    name.write_text('{"seq":1,"queue":"Q","body_hex":"00"}\n')
    ran = run("decode", "--brief", str(name))
    assert (ran.code, ran.talk) == (ExitCode.DONE, "1 message, 0 with errors, 1 with warnings\n")
    assert "a\\udcff, message 1" in ran.out
