"""Shell completion: what the lines of docs/shell.md make a shell do, and what TAB then gives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from commands.cli import VERBS, main
from tests.commands.cli_runs import run

PAGE = (Path(__file__).parents[3] / "docs/shell.md").read_text()
SHELLS = ("bash", "zsh", "fish")


def takes_queue_manager(verb: str) -> bool:
    command = main.get_command(click.Context(main), verb)
    return command is not None and any("-m" in parameter.opts for parameter in command.params)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The command ``qpubsub`` of this checkout, alone in a directory."""
    path = tmp_path / "qpubsub"
    path.write_text(f"#!{sys.executable}\nfrom commands.cli import main\nmain()\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("QM1", "QM2", "OTHER.QM"):
        assert run("create", name, "--home", str(home)).code == 0
    return home


def _environment(program: Path, **more: str) -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    search = os.pathsep.join([root, *(each for each in sys.path if each)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("_QPUBSUB", "QPUBSUB"))}
    return kept | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": search, **more}


def answered(**environment: str) -> str:
    """What the program prints for a shell that asks by *environment*."""
    result = CliRunner().invoke(main, [], prog_name="qpubsub", env=environment)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_line_of_the_page_is_a_script(shell: str) -> None:
    assert re.search(rf"^\| {shell}\b.*\b_QPUBSUB_COMPLETE={shell}_source qpubsub\b", PAGE, re.MULTILINE)
    assert f"_QPUBSUB_COMPLETE={shell}_complete" in answered(_QPUBSUB_COMPLETE=f"{shell}_source")


@pytest.mark.parametrize(("shell", "word"), [("bash", "1"), ("zsh", "1"), ("fish", "dec")])
def test_a_verb(shell: str, word: str) -> None:
    asked = answered(_QPUBSUB_COMPLETE=f"{shell}_complete", COMP_WORDS="qpubsub dec", COMP_CWORD=word)
    lines = asked.splitlines()
    found = lines[1::3] if shell == "zsh" else [re.split("[,\t]", line, maxsplit=2)[1] for line in lines]
    assert found == ["decode"]


def offered(*words: str) -> list[str]:
    """The same in this process."""
    *before, incomplete = words
    shell = ShellComplete(main, {}, "qpubsub", "_QPUBSUB_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


def test_every_verb_comes_with_what_it_does() -> None:
    items = ShellComplete(main, {}, "qpubsub", "_QPUBSUB_COMPLETE").get_completions([], "")
    assert {item.value: item.help for item in items} == VERBS


def test_options_and_their_values() -> None:
    assert offered("convert", "--t") == ["--to"]
    assert offered("translate", "--to", "mq") == ["mqsc", "mqi"]
    assert "--quiet" in offered("--q")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if takes_queue_manager(verb) and verb != "dev"])
def test_queue_managers_under_the_home(verb: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(verb, "--home", str(home), "-m", "O") == ["OTHER.QM"]
    assert offered(verb, "--home", f"{home}/none", "-m", "") == []
    monkeypatch.setenv("QPUBSUB_HOME", str(home))
    assert offered(verb, "-m", "QM") == ["QM1", "QM2"]
    assert offered(verb, "--qmgr", "") == ["OTHER.QM", "QM1", "QM2"]


@pytest.mark.parametrize("verb", ["get", "browse", "put", "why"])
def test_queues_of_the_queue_manager_on_the_line(verb: str, home: Path) -> None:
    words = (verb, "--home", str(home), "-m", "QM1")
    assert offered(*words, "SYSTEM.BROKER.C") == ["SYSTEM.BROKER.CONTROL.QUEUE"]
    assert offered(*words[:-1], "NONE", "S") == []
    assert offered(verb, "--home", str(home), "S") == [], "it is one of three"


def test_a_directory_that_is_no_queue_manager_is_not_offered(tmp_path: Path) -> None:
    for name in ("QM9", "a\x1b[2Jb", "x y", "empty"):
        (tmp_path / name).mkdir()
        if name != "empty":
            (tmp_path / name / "qmgr.sqlite3").touch()
    assert offered("status", "--home", str(tmp_path), "-m", "") == ["QM9"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself(program: Path, home: Path) -> None:
    line = re.search(r"`(eval .*bash_source qpubsub\)\")`", PAGE)
    assert line is not None
    script = f"""{line[1]}
complete -p qpubsub
COMP_WORDS=(qpubsub status -m QM); COMP_CWORD=3
_qpubsub_completion qpubsub
echo "${{COMPREPLY[@]}}"
"""
    result = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(program, QPUBSUB_HOME=str(home)),
    )
    assert result.stderr == ""
    assert result.stdout.splitlines()[-2:] == ["complete -o nosort -F _qpubsub_completion qpubsub", "QM1 QM2"]
