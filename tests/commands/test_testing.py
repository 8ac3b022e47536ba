"""What there is for tests of others: a queue manager as an object, fixtures for pytest, an extension for JUnit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mq_qpubsub import DevError, DevQueueManager
from rfh2 import Mqmd
from rfh2.errors import StoreError
from tests.ibm_java import JARS, PEERS, needs_ibm_java
from tests.quick_java import JAVA, JAVAC

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.servers
ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "deploy" / "junit" / "src" / "main" / "java" / "qpubsub" / "junit" / "QueueManager.java"
PROGRAMS = {
    name: text
    for text in re.findall(r"^```java\n(.+?)^```", (ROOT / "docs" / "testing.md").read_text(), re.MULTILINE | re.DOTALL)
    for name in re.findall(r"^class (\w+) ", text, re.MULTILINE)
}
JUNIT = sorted((PEERS / "junit").glob("*.jar"))
SPRING = sorted((PEERS / "spring").glob("*.jar"))
needs_junit = pytest.mark.skipif(not JUNIT or not shutil.which("javac"), reason="JUnit is not here: .ci/run fetches it")


@pytest.fixture(scope="module")
def manager() -> Iterator[DevQueueManager]:
    with DevQueueManager.start("QM.2") as manager:
        yield manager
    assert not Path(manager.home).exists()
    with pytest.raises(StoreError, match=r"QM\.2 has ended"):
        manager.depth("DEV.QUEUE.1")


def test_messages_are_put_and_got(manager: DevQueueManager) -> None:
    manager.put("DEV.QUEUE.1", "bücher")
    manager.put("DEV.QUEUE.1", b"\1\2", Mqmd(correl_id=b"x" * 24))
    assert manager.depth("DEV.QUEUE.1") == 2
    text, data = manager.get("DEV.QUEUE.1"), manager.get("DEV.QUEUE.1")
    assert text is not None
    assert data is not None
    assert (text.body_text, text.mqmd.format, data.body, data.mqmd.correl_id) == ("bücher", "MQSTR", b"\1\2", b"x" * 24)
    assert manager.get("DEV.QUEUE.1", wait_s=0.01) is None


def test_what_is_refused_is_an_error(manager: DevQueueManager) -> None:
    with pytest.raises(DevError, match=r"DELETE QLOCAL\(NONE\): AMQ8147"):
        manager.mqsc("DELETE QLOCAL(NONE)")
    with pytest.raises(DevError, match="queue manager Q A did not start"), DevQueueManager.start("Q A"):
        pass


def test_the_fixtures_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nqpubsub_qmgr = QM.3\nqpubsub_mqsc = mqsc\n")
    (pytester.path / "mqsc").mkdir()
    (pytester.path / "mqsc" / "1.mqsc").write_text("DEFINE QLOCAL(ORDERS)\n")
    pytester.makepyfile(
        """
        def test_first(qpubsub_queue_manager):
            assert qpubsub_queue_manager.qmgr == "QM.3"
            assert qpubsub_queue_manager.mqserver == f"DEV.APP.SVRCONN/TCP/127.0.0.1({qpubsub_queue_manager.port})"
            qpubsub_queue_manager.put("ORDERS", "one")
            qpubsub_queue_manager.put("SYSTEM.BROKER.DEFAULT.STREAM", "left alone")

        def test_each_begins_without_messages(qpubsub_queue_manager, qpubsub_queue_manager_session):
            assert qpubsub_queue_manager_session is qpubsub_queue_manager
            assert qpubsub_queue_manager.depth("ORDERS") == 0
        """
    )
    # An installed package has them without an option.
    pytester.runpytest("-p", "no:qpubsub", "-p", "mq_qpubsub.pytest_plugin").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("variables", "secrets", "starts"),
    [
        ({}, {}, ["create QM1", "run --config /etc/qpubsub/qpubsub.toml"]),
        ({"LICENSE": "accept"}, {}, ["dev", "MQ_APP_PASSWORD=", "MQ_ADMIN_PASSWORD="]),
        ({"MQ_QMGR_NAME": "QM2", "MQ_APP_PASSWORD": "a"}, {}, ["dev", "MQ_APP_PASSWORD=a", "MQ_ADMIN_PASSWORD="]),
        (
            {"LICENSE": "accept"},
            {"mqAppPassword": "app", "mqAdminPassword": "admin\n"},
            ["dev", "MQ_APP_PASSWORD=app", "MQ_ADMIN_PASSWORD=admin"],
        ),
    ],
)
def test_what_the_image_starts(
    tmp_path: Path, variables: dict[str, str], secrets: dict[str, str], starts: list[str]
) -> None:
    for name, text in secrets.items():
        (tmp_path / name).write_text(text)
    program, script = tmp_path / "qpubsub", tmp_path / "entrypoint.sh"
    program.write_text(
        '#!/bin/sh\n[ "$1" != status ] || exit 1\necho "$*"\n'
        '[ "$1" != dev ] || printf "%s\\n" "MQ_APP_PASSWORD=${MQ_APP_PASSWORD:-}" '
        '"MQ_ADMIN_PASSWORD=${MQ_ADMIN_PASSWORD:-}"\n'
    )
    program.chmod(0o755)
    script.write_text((ROOT / "deploy" / "entrypoint.sh").read_text().replace("/run/secrets", str(tmp_path)))
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "QPUBSUB_HOME": str(tmp_path)}
    ran = subprocess.run(["sh", str(script)], env={**path, **variables}, capture_output=True, text=True, check=True)
    dev = "dev --listen 0.0.0.0:1414 --metrics 0.0.0.0:9157 --home /mnt/mqm --mqsc /etc/mqm"
    assert ran.stdout.splitlines() == [dev if line == "dev" else line for line in starts]


def _junit(made: Path, programs: Sequence[str], jars: Sequence[Path]) -> str:
    """What JUnit says of programs of docs/testing.md."""
    for name in programs:
        (made / f"{name}.java").write_text(PROGRAMS[name])
    path = ":".join(map(str, [made, *JUNIT, *jars]))
    sources = [EXTENSION, *(made / f"{name}.java" for name in programs)]
    subprocess.run([*JAVAC, "-cp", path, "-parameters", "-d", made, *sources], check=True, timeout=300)
    command = f"-Dqpubsub.command={sys.executable} -m commands.cli"
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", f"--scan-classpath={made}"]
    options = ["--disable-banner", "--disable-ansi-colors", "--details=summary"]
    ran = subprocess.run(
        [*JAVA, command, "-cp", path, *launcher, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=made,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return ran.stdout + ran.stderr


@pytest.mark.nightly
@needs_ibm_java
@needs_junit
def test_plain_java_with_junit(tmp_path: Path) -> None:
    said = _junit(tmp_path, ["OrdersTest"], JARS)
    assert re.search(r"\b1 tests successful", said), said


@pytest.mark.nightly
@needs_junit
@pytest.mark.skipif(not SPRING, reason="Spring Boot and Camel are not here: .ci/nightly fetches them")
def test_spring_boot_and_camel(tmp_path: Path) -> None:
    said = _junit(tmp_path, ["SpringTest", "CamelTest"], SPRING)
    assert re.search(r"\b2 tests successful", said), said
