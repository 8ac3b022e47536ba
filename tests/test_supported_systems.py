"""docs/install.md: without fcntl, grp, pwd and fork, as on Windows, what needs no queue manager works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Absent on Windows, or there under the same name only. What Python's own modules want of them is imported before.
_AS_ON_WINDOWS = """
import getpass, multiprocessing, os, shutil, signal, subprocess, sys, tempfile
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for of, names in {
    os: "fork geteuid getuid fchmod pread pwrite O_CLOEXEC O_DIRECTORY O_NONBLOCK WNOHANG getgrouplist",
    signal: "SIGUSR1 SIGUSR2 SIGKILL SIG_BLOCK SIG_UNBLOCK pthread_sigmask SIGALRM",
}.items():
    for name in names.split():
        delattr(of, name)
from commands.cli import main
main()
"""

WORKS = [
    "decode capture.dat",
    "decode --json --explain --setup streams.mqsc capture.jsonl",
    "encode --command Publish --topic a/b --data hello",
    "convert --to jsonl browse.txt",
    "translate --to mqi regsub.dat",
    "replay --input capture.jsonl --output puts.jsonl --transcript",
    "differences --input captures/ --setup streams.mqsc --html differences.html",
    "analyse --input captures/ --html analysis.html",
    "generate --messages 100 --output workload.jsonl",
    "demo",
    "strmqbrk -m QM1 --rehearse --source state/ --target files --out migration",
    "migmbbrk -r -b TEST_BROKER -m TEST_QM --source outfile.txt --target files --out migration",
]
NEEDS_A_QUEUE_MANAGER = [
    "create QM2",
    "mqsc -m QM1 streams.mqsc",
    "put -m QM1 SUB.Q capture.jsonl",
    "get -m QM1 SUB.Q",
    "browse -m QM1 SUB.Q",
    "run -m QM1 --once",
    "check -m QM1",
    "cleanup -m QM1",
    "pub -m QM1 a b",
    "sub -m QM1 a",
    "topics -m QM1",
    "status -m QM1",
    "strmqbrk -m QM1 --source state/",
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("windows")
    subprocess.run([sys.executable, "-m", "commands.cli", "demo", "--copy", "files"], cwd=here, check=True)
    subprocess.run([sys.executable, "-m", "commands.cli", "create", "QM1"], cwd=here / "files", check=True)
    return here / "files"


def _there(line: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _AS_ON_WINDOWS, *line.split()]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.nightly
@pytest.mark.parametrize("line", WORKS, ids=lambda line: line.split()[0])
def test_without_a_queue_manager_it_works(line: str, directory: Path) -> None:
    here = subprocess.run(
        [sys.executable, "-m", "commands.cli", *line.split()],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    there = _there(line, directory)
    assert here.returncode in (0, 1)
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout)


@pytest.mark.nightly
@pytest.mark.parametrize("line", NEEDS_A_QUEUE_MANAGER, ids=lambda line: line.split()[0])
def test_a_verb_that_needs_a_queue_manager_says_so_in_one_line(line: str, directory: Path) -> None:
    refused = _there(line, directory)
    assert refused.returncode == 2
    (told,) = refused.stderr.splitlines()
    assert "needs the file locks of Linux or macOS" in told
    assert not (directory / "qmgrs/QM2").exists()
