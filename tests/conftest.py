"""What all tests share: which examples Hypothesis makes, and what the gate leaves to the night.

The gate (``.ci/test``, ``.ci/run``) says the same twice: Hypothesis makes 40 examples of each property, always the
same ones. ``.ci/nightly`` runs everything, with five times as many examples, made from a number that it prints;
QPUBSUB_TEST_SEED=N makes those of a night again. ``faults`` and ``measured`` are of the night: they kill at random, or
judge by processor time.

A test that shares a server's ports and the machine's time with others, or measures that time, is tried a second time.
None of those that break, kill or starve something on purpose is: what they show has to hold each time.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator, Sequence
from importlib.util import find_spec
from itertools import cycle, groupby
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from commands.config.home import PostgresqlHome
from tests.browser import needs_chromium
from tests.commands.links.kafka_server import needs_kafka
from tests.commands.links.mosquitto import needs_mosquitto
from tests.commands.links.mqi.harness import needs_mqi
from tests.commands.links.nats_server import needs_nats
from tests.postgresql import PostgresqlServer, empty, postgresql_server
from tests.quick_java import QUICK_JAVA

os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
# Tests that import ibmmq themselves must do it as the bridge does (commands.links.ibmmq.connection).
os.environ.setdefault("MQIPY_NOOTEL", "1")
# Without --home, a queue manager is in the directory of the test.
os.environ["XDG_STATE_HOME"] = "."

HERE: Final = Path(__file__).parent
SEED = os.environ.get("QPUBSUB_TEST_SEED")
IS_NIGHT = SEED is not None

# No example fails for its time: who meets one first, on a busy machine, would be blamed for the machine.
_PATIENT: Final = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("gate", derandomize=True, max_examples=40, **_PATIENT)
# Of what one Python has tried already: .ci/pythons.
settings.register_profile("few", derandomize=True, max_examples=8, **_PATIENT)
settings.register_profile("nightly", max_examples=200, **_PATIENT)
settings.load_profile("nightly" if IS_NIGHT else "gate")
if not IS_NIGHT:
    # Else each process would first read all modules for constants to try, in seconds, and the examples of a test would
    # change with the modules that others import.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # What a thread logs between two tests, when nothing of pytest's listens, is for nobody's terminal.
    logging.root.addHandler(logging.NullHandler())
    if IS_NIGHT and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = int(SEED or 0)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return _is_left_out(collection_path, config) or None


def _is_left_out(path: Path, config: pytest.Config) -> bool:
    """Whether nothing of a folder need be imported: each benchmark is of the night, and Spark's tests need Spark."""
    if path == HERE / "commands/replay/spark":
        return find_spec("pyspark") is None
    return path == HERE / "benchmarks" and "not nightly" in config.option.markexpr


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of several processes each begins with other modules: what one of them has rewritten, the others read."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    gc.disable()
    if config.args != config.getini("testpaths"):
        return
    every = sorted(str(path) for path in HERE.rglob("test_*.py") if not _is_left_out(path.parent, config))
    first = int(worker["workerid"].removeprefix("gw")) * len(every) // worker["workercount"]
    config.args = [*every[first:], *every[:first]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """What has been collected stays to the end: nobody looks through it for garbage, neither meanwhile nor later."""
    if hasattr(session.config, "workerinput"):
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark ``servers`` what needs one, and ``nightly`` what is not for the gate. All processes have one order."""
    workers = getattr(config, "workerinput", {}).get("workercount")
    if workers is not None:
        items.sort(key=lambda item: item.path)
    starting = (needs_mosquitto.mark, needs_mqi.mark, needs_nats.mark, needs_kafka.mark, needs_chromium.mark)
    for item in items:
        if any(mark in starting for mark in item.iter_markers()):
            item.add_marker(pytest.mark.servers)
        if item.get_closest_marker("faults") or item.get_closest_marker("measured"):
            item.add_marker(pytest.mark.nightly)
        if may_be_tried_again(item) and config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    yield
    if workers is not None:
        items[:] = long_first(items, workers)


def long_first(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """An order for processes that begin with an equal part each; who is done takes over the end of another's.

    What takes long begins a part, so that the ends are short; one process has all that needs a session of Spark.
    """
    modules = [list(some) for _, some in groupby(items, key=lambda item: item.path)]
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    short: list[pytest.Item] = []
    turns = cycle(parts[1:] or parts)
    for some in modules:
        if not any(item.get_closest_marker("slow") for item in some):
            short += some
        elif "spark" in some[0].path.parts:
            parts[0] += some
        else:
            next(turns).extend(some)
    ordered: list[pytest.Item] = []
    for at, part in enumerate(parts):
        room = max(0, (len(items) - len(ordered)) // (workers - at) - len(part))
        ordered += [*part, *short[:room]]
        del short[:room]
    return [*ordered, *short]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test has logged of an example with half a character would end the process that reports it."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(autouse=True)
def _logging_is_left_as_it_was() -> Iterator[None]:
    """A test after one that silences the log would miss what it looks for there."""
    before = logging.root.manager.disable
    yield
    assert logging.root.manager.disable == before, "the test has left the log silenced"


def may_be_tried_again(item: pytest.Item) -> bool:
    """Whether a failure of the test may be the machine's."""
    shares_the_machine = item.get_closest_marker("servers") or item.get_closest_marker("measured")
    return shares_the_machine is not None and item.get_closest_marker("faults") is None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    if SEED and exitstatus:
        terminalreporter.write_line(
            f"Hypothesis made its examples from QPUBSUB_TEST_SEED={SEED}; set it to meet them again."
        )


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A server for all tests of the session; each leaves it empty."""
    with postgresql_server() as server:
        yield server


@pytest.fixture
def postgresql_home(
    postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresqlHome]:
    """An empty home in PostgreSQL."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    yield postgresql.home()
    empty(postgresql.home())
