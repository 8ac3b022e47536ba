"""The files of deploy: they name options, files and ports that exist, and systemd takes the unit."""

from __future__ import annotations

import copy
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from commands.cli import main
from commands.cli.check import findings
from commands.config.home import PostgresqlHome, parse_home
from commands.config.settings import read_config
from tests.commands.links.mosquitto import free_port
from tests.postgresql import needs_postgresql
from tests.waiting import PATIENCE_S, until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "qpubsub@.service"
CONTAINER = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
INSTANCES = {name: service for name, service in COMPOSE["services"].items() if name.startswith("qpubsub")}
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())


def of_kind(kind: str) -> Any:
    """The resource of the manifest for Kubernetes."""
    (found,) = (each for each in KUBERNETES if each["kind"] == kind)
    return found


POD = of_kind("Deployment")["spec"]["template"]["spec"]


def _verb(name: str) -> click.Command:
    return dict(main.every_command())[name]


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
    unit = tmp_path / "qpubsub@.service"
    unit.write_text(UNIT.read_text().replace("/opt/qpubsub/bin/qpubsub", str(program)))
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(unit).replace("@", "@QM1")], capture_output=True, text=True, check=False
    )
    assert [line for line in ran.stderr.splitlines() if "qpubsub" in line] == []


def test_the_unit_names_the_directories_of_its_configuration() -> None:
    text = UNIT.read_text()
    config = read_config(DEPLOY / "qpubsub.toml")
    assert config.run.home == Path("/var/lib/qpubsub")
    assert {"StateDirectory=qpubsub", "ConfigurationDirectory=qpubsub"} <= set(text.splitlines())
    assert text.count("/etc/qpubsub/%i.toml") == 2


def test_the_image_is_made_from_what_is_there() -> None:
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER, re.MULTILINE):
        assert [source for source in sources.split() if not (ROOT / source).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(re.findall(r"^COPY (\w+) \w+$", CONTAINER, re.MULTILINE))
    extras = re.search(r"^ARG EXTRAS=([\w,]+)$", CONTAINER, re.MULTILINE)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])


def test_one_port_for_metrics_everywhere() -> None:
    listen = read_config(DEPLOY / "container.toml").metrics.listen
    assert listen is not None
    port = listen.rpartition(":")[2]
    assert f"EXPOSE {port}\n" in CONTAINER
    assert f"http://127.0.0.1:{port}/healthz" in CONTAINER
    published = [each for service in INSTANCES.values() for each in service["ports"]]
    assert [each.rpartition(":")[2] for each in published] == [port] * len(INSTANCES)
    assert len(set(published)) == len(INSTANCES), "each has a port of its own on this machine"
    (scraped,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": [f"{name}:{port}" for name in INSTANCES]}]
    (container,) = POD["containers"]
    assert {"name": "metrics", "containerPort": int(port)} in container["ports"]
    assert of_kind("Service")["spec"]["ports"][0]["port"] == int(port)


def test_the_bridges_of_the_compose_file_share_its_database_and_nothing_else() -> None:
    assert len(INSTANCES) == 2
    server = COMPOSE["services"]["postgres"]["environment"]
    for service in INSTANCES.values():
        assert "volumes" not in service
        home = parse_home(service["environment"]["QPUBSUB_HOME"])
        assert str(home) == f"postgresql://{server['POSTGRES_USER']}@postgres/{server['POSTGRES_DB']}"
        assert service["environment"]["PGPASSWORD"] == server["POSTGRES_PASSWORD"]
        built = service["build"]
        assert (DEPLOY / built["context"] / built["dockerfile"]).samefile(DEPLOY / "Containerfile")
    assert "state" in COMPOSE["volumes"]
    mounted = [each.split(":")[0] for each in COMPOSE["services"]["prometheus"]["volumes"]]
    assert [name for name in mounted if not (DEPLOY / name).exists()] == []


def answers(port: int, probe: str) -> bool:
    """Whether the probe answers 200."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/{probe}", timeout=20) as answer:
        return bool(answer.status == 200)
    return False


@needs_postgresql
@pytest.mark.servers
@pytest.mark.nightly
def test_the_command_of_the_image_works_from_two_places_in_front_of_one_database(
    postgresql_home: PostgresqlHome, tmp_path: Path
) -> None:
    """As in the compose file and on Kubernetes, with directories for containers. Both are started at once."""
    script = tmp_path / "entrypoint.sh"
    written = (DEPLOY / "entrypoint.sh").read_text()
    script.write_text(written.replace("/etc/qpubsub/qpubsub.toml", str(DEPLOY / "container.toml")))
    program = tmp_path / "bin" / "qpubsub"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m commands.cli "$@"\n')
    program.chmod(0o755)
    here = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    ports = {name: free_port() for name in INSTANCES}
    told = {
        name: {
            **here,
            **service["environment"],
            "HOME": str(tmp_path / name),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "QPUBSUB_HOME": postgresql_home.url,
            "QPUBSUB_RUN_METRICS": f"127.0.0.1:{ports[name]}",
        }
        for name, service in INSTANCES.items()
    }
    with ExitStack() as stack:
        bridges = {}
        for name in INSTANCES:
            (tmp_path / name).mkdir()
            bridges[name] = stack.enter_context(subprocess.Popen(["sh", str(script)], env=told[name]))
            stack.callback(bridges[name].kill)

        def ready() -> list[str]:
            return [name for name in bridges if answers(ports[name], "readyz")]

        until(lambda: all(answers(port, "healthz") for port in ports.values()) and ready(), "both to live")
        (works,) = ready()
        (waits,) = bridges.keys() - {works}
        shown = subprocess.run([program, "status", "-m", "QM1"], env=told[waits], capture_output=True, check=True)
        assert b"running as standby" in shown.stdout
        bridges.pop(works).kill()
        until(lambda: ready() == [waits], "the other one to take over")
        bridges[waits].terminate()
        assert bridges[waits].wait(PATIENCE_S) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["1.29", "latest"])
@pytest.mark.parametrize("resource", KUBERNETES, ids=[each["kind"] for each in KUBERNETES])
def test_kubernetes_takes_each_resource(resource: dict[str, Any], version: str) -> None:
    checker = pytest.importorskip("kubernetes_validate")
    checker.validate(resource, checker.latest_version() if version == "latest" else version, strict=True)


@pytest.mark.nightly
def test_a_wrong_resource_is_found() -> None:
    checker = pytest.importorskip("kubernetes_validate")
    wrong = copy.deepcopy(of_kind("Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0]["liveness"] = {}
    with pytest.raises(checker.ValidationError, match="liveness"):
        checker.validate(wrong, checker.latest_version(), strict=True)


def test_the_parts_of_the_manifest_fit_each_other_and_the_image(tmp_path: Path) -> None:
    ((name, text),) = of_kind("ConfigMap")["data"].items()
    (tmp_path / name).write_text(text)
    assert read_config(tmp_path / name) == read_config(DEPLOY / "container.toml")
    (container,) = POD["containers"]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts.keys() == {each["name"] for each in POD["volumes"]}
    assert f"{mounts['configuration']}/{name}" in CONTAINER
    assert f"VOLUME {mounts['state']}\n" in CONTAINER
    user = POD["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in CONTAINER
    assert {POD["securityContext"][key] for key in ("runAsGroup", "fsGroup")} == {user}
    labels = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert of_kind("Deployment")["spec"]["selector"]["matchLabels"] == of_kind("Service")["spec"]["selector"] == labels
    probes = {key: container[key]["httpGet"]["path"] for key in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert (of_kind("Deployment")["spec"]["replicas"], of_kind("Deployment")["spec"]["strategy"]) == (
        2,
        {"type": "Recreate"},
    )
    (home,) = (each["value"] for each in container["env"] if each["name"] == "QPUBSUB_HOME")
    assert isinstance(parse_home(home), PostgresqlHome)


def test_the_image_has_each_extra_but_those_of_one_platform_or_of_programs() -> None:
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert {"console", "kafka", "metrics", "mqtt", "nats", "pam", "postgresql", "tracing"} == set(extras.split(","))
    assert "EXPOSE 1414 8414\nEXPOSE 9157\n" in (DEPLOY / "Containerfile").read_text()


def test_grafana_of_the_compose_file_finds_the_board_and_prometheus() -> None:
    grafana = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]
    mounted = dict(each.removesuffix(":ro").split(":") for each in grafana["volumes"])
    assert all((DEPLOY / source).exists() for source in mounted)
    provisioning = DEPLOY / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "qpubsub.yaml").read_text())["providers"]
    assert f"{provider['options']['path']}/qpubsub.json" in mounted.values()
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", "http://prometheus:9090", True)
