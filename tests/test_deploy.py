"""The files of deploy: they name options, files and ports that exist, and systemd takes the unit."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from commands.cli import main
from commands.cli.config import findings
from commands.links.engine.config import read_config

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "qpubsub.service"
CONTAINER = (DEPLOY / "Containerfile").read_text()
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())


def _verb(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.toml")), ids=lambda path: path.name)
def test_the_configurations_are_valid(path: Path) -> None:
    assert [finding for finding in findings(path) if finding.severity == "error"] == []
    assert read_config(path).run.qmgr == "QM1"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_command_and_variable_exists(path: Path) -> None:
    text = path.read_text()
    options = {parameter.name for parameter in _verb("run").params}
    variables = re.findall(r"QPUBSUB_RUN_([A-Z_]+[A-Z])", text)
    assert {name.lower() for name in variables} <= options
    for line in re.findall(r"(?:ExecStart(?:Pre)?=\S*/|exec |\|\| )qpubsub ([^;\"\n]+)", text):
        verb, *words = shlex.split(line)
        spelt = {option for parameter in _verb(verb).params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= spelt


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "qpubsub"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "qpubsub.service"
    unit.write_text(UNIT.read_text().replace("/opt/qpubsub/bin/qpubsub", str(program)))
    ran = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert [line for line in ran.stderr.splitlines() if "qpubsub" in line] == []


def test_the_unit_names_the_directories_of_its_configuration() -> None:
    text = UNIT.read_text()
    config = read_config(DEPLOY / "qpubsub.toml")
    assert config.run.home == Path("/var/lib/qpubsub")
    assert {"StateDirectory=qpubsub", "ConfigurationDirectory=qpubsub"} <= set(text.splitlines())
    assert text.count("/etc/qpubsub/qpubsub.toml") == 2


def test_the_image_is_made_from_what_is_there() -> None:
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER, re.MULTILINE):
        assert [source for source in sources.split() if not (ROOT / source).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(re.findall(r"^COPY (\w+) \w+$", CONTAINER, re.MULTILINE))
    extras = re.search(r"\.\[([\w,]+)\]", CONTAINER)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])


def test_one_port_for_metrics_everywhere() -> None:
    listen = read_config(DEPLOY / "container.toml").metrics.listen
    assert listen is not None
    port = listen.rpartition(":")[2]
    compose = (DEPLOY / "compose.yaml").read_text()
    assert f"EXPOSE {port}\n" in CONTAINER
    assert f"http://127.0.0.1:{port}/healthz" in CONTAINER
    assert f"127.0.0.1:{port}:{port}" in compose
    assert f"qpubsub:{port}" in (DEPLOY / "prometheus.yml").read_text()
    assert (DEPLOY / "compose.yaml").parent.joinpath("prometheus.yml").exists()
    assert "dockerfile: deploy/Containerfile" in compose
