"""The package as it is installed: its name is ours, what the README says works, and type checkers find it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest

from rfh2.distribution import NAME, VERSION, how_to_install

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("rfh2", "streams", "commands", "migrate", "mq_qpubsub")
README = (ROOT / "README.md").read_text()
# An argument of pip's that is the distribution which is somebody else's, with extras or without.
STRANGER = re.compile(r"pip3? +(?:install|download)\b(?:(?!\n\n)[^`;|])*?[ '\"]qpubsub(?![\w-])")
WARNING = "**Do not run\n`pip install qpubsub`**"


def _texts() -> list[Path]:
    found = [ROOT / "pyproject.toml", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".ci").iterdir()]
    return found + [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def test_the_name_is_ours() -> None:
    assert (PROJECT["name"], NAME) == (NAME, "mq-qpubsub")
    assert PROJECT["scripts"] == {"qpubsub": "mq_qpubsub.__main__:main"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip install qpubsub", True),
        ("pip install 'qpubsub[mqtt]'", True),
        ("pip install --upgrade qpubsub", True),
        ("pip install .\n  ~/x/bin/qpubsub", False),
        ("pip install mq-qpubsub", False),
        (" -m pip install '.[mqtt]'", False),
    ],
)
def test_what_would_install_a_strangers_package_is_recognised(text: str, found: bool) -> None:
    assert bool(STRANGER.search(text)) is found


def test_nothing_says_to_install_a_strangers_package() -> None:
    assert WARNING in README
    named = {path: path.read_text().replace(WARNING, "") for path in _texts()}
    assert [str(path) for path, text in named.items() if STRANGER.search(text) or "qpubsub[" in text] == []


def test_every_extra_that_a_message_names_exists() -> None:
    call = re.compile(r"how_to_install\(['\"](\w+)['\"]\)")
    named = {extra for path in _texts() for extra in call.findall(path.read_text())}
    links = {"kafka", "mq", "mqtt", "nats"}
    assert named == links | {"console", "delta", "mcp", "pam", "pandas", "parquet", "postgresql", "spark", "step"}
    assert named <= PROJECT["optional-dependencies"].keys()
    assert " -m pip install '.[mqtt]'" in how_to_install("mqtt")


@pytest.mark.parametrize(("file", "package"), [("commands.py", "commands"), ("streams/__init__.py", "streams")])
def test_a_file_that_hides_a_package_is_named(file: str, package: str, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}

    done = subprocess.run(
        [sys.executable, "-m", "mq_qpubsub"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    said = f"qpubsub: {tmp_path / file} is imported as {package}, instead of {ROOT / package}; rename it"
    assert done.stderr.startswith(said)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, as somebody has it who just cloned it."""
    to = tmp_path_factory.mktemp("clone") / "checkout"
    to.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    return to


def _run(*command: str | Path, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, env=clean, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment(at: Path) -> Path:
    venv.create(at, with_pip=True)
    return at / "bin"


@pytest.mark.nightly
def test_installed_as_the_readme_says_it_works_away_from_the_checkout(checkout: Path, tmp_path: Path) -> None:
    assert "/bin/pip install .\n" in README
    programs, elsewhere = _environment(tmp_path / "environment"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    _run(programs / "pip", "install", "--quiet", "--disable-pip-version-check", ".", cwd=checkout)
    shutil.copy(ROOT / "fixtures/captures/ibm/single_rfh2.dat", elsewhere)
    shutil.copy(ROOT / "fixtures/results-service/capture.jsonl", elsewhere)

    def qpubsub(*arguments: str) -> str:
        return _run(programs / "qpubsub", *arguments, cwd=elsewhere)

    listed = _run(programs / "pip", "--disable-pip-version-check", "list", cwd=elsewhere)
    assert re.search(rf"^{NAME} +{re.escape(VERSION)}$", listed, re.MULTILINE)
    assert qpubsub("--version") == f"qpubsub, version {VERSION}\n"
    assert "MQRFH2" in qpubsub("decode", "single_rfh2.dat")
    told = qpubsub("replay", "--input", "capture.jsonl", "--output", "puts.jsonl", "--transcript")
    assert "SCOREBOARD receives Sport/Soccer/State/LatestScore/Liverpool ManUtd: 0 1" in told
    assert len((elsewhere / "puts.jsonl").read_text().splitlines()) == 28


@pytest.mark.nightly
def test_type_checkers_find_an_editable_install(checkout: Path, tmp_path: Path) -> None:
    programs, elsewhere = _environment(tmp_path / "environment"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    _run(programs / "pip", "install", *quiet, "--editable", ".", cwd=checkout)
    (elsewhere / "program.py").write_text("import commands\nreveal_type(commands.Broker)\n")

    mypy = (sys.executable, "-m", "mypy", "--python-executable", programs / "python", "--follow-imports", "silent")
    assert 'Revealed type is "def (' in _run(*mypy, "program.py", cwd=elsewhere)
