"""What all tests share: which examples Hypothesis makes, and which tests may be tried a second time.

Examples. A developer's are new ones in each run. Where CI is set they are the same in every run; QPUBSUB_TEST_SEED=N,
which ``.ci/test --all`` sets to a number made by chance, has them made from that number instead.

A second try. A test that starts a server of another make shares the machine's ports and time with it, and may fail for
that. One that measures processor time may fail for other programs, which take the processor's caches from it. Only such
tests are tried twice, and none of those that break, kill or starve something on purpose: what they show has to hold
each time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import needs_chromium
from tests.commands.links.kafka_server import needs_kafka
from tests.commands.links.mosquitto import needs_mosquitto
from tests.commands.links.mqi.harness import needs_mqi
from tests.commands.links.nats_server import needs_nats
from tests.quick_java import QUICK_JAVA

os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
# Tests that import ibmmq themselves must do it as the bridge does (commands.links.ibmmq.connection).
os.environ.setdefault("MQIPY_NOOTEL", "1")

SEED = os.environ.get("QPUBSUB_TEST_SEED")

settings.register_profile("ci", derandomize=True, print_blob=True)
# Who meets an example for the first time on a busy machine must not fail for its time.
settings.register_profile(
    "seeded", derandomize=False, print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
if SEED:
    settings.load_profile("seeded")
elif os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if SEED and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = int(SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark ``servers`` what needs one; it, and what is marked ``measured``, is tried twice unless marked ``faults``."""
    starting = (needs_mosquitto.mark, needs_mqi.mark, needs_nats.mark, needs_kafka.mark, needs_chromium.mark)
    for item in items:
        if any(mark in starting for mark in item.iter_markers()):
            item.add_marker(pytest.mark.servers)
        if may_be_tried_again(item) and config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(reruns=1))


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
