"""Without metrics and traces, a message costs no call more: what is called is counted, so that no clock is needed."""

from __future__ import annotations

import cProfile
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from commands.qmgr.observer import Unobserved
from commands.qmgr.processor import Processor
from tests.commands.monitoring.traffic import publish, queue_manager, register

ROOT = Path(__file__).parents[3]
OBSERVER, MONITORING = "commands/qmgr/observer.py:Unobserved.", "commands/monitoring/"


class _Counting(Unobserved):
    """An observer that does nothing, in this module."""


def _calls(home: Path, messages: int, observer: Unobserved | None) -> Counter[str]:
    """How often each function is called to process so many publications in one unit of work."""
    with queue_manager(home) as store:
        with store.unit_of_work() as unit:
            register(unit, "S", "t")
        processor = Processor(store, lambda: datetime.now(UTC), observer=observer)
        processor.drain()
        for count in (50, messages):  # the first publications fill the caches
            with store.unit_of_work() as unit:
                for n in range(count):
                    publish(unit, "t", data=b"%d" % n)
            with cProfile.Profile(builtins=False) as profile:
                assert processor.drain() == count
    calls: Counter[str] = Counter()
    for entry in profile.getstats():
        if not isinstance(entry.code, str) and (path := Path(entry.code.co_filename)).is_relative_to(ROOT):
            calls[f"{path.relative_to(ROOT)}:{entry.code.co_qualname}"] += entry.callcount
    return calls


def _of(calls: Counter[str], place: str) -> int:
    return sum(count for name, count in calls.items() if name.startswith(place))


def test_what_is_not_observed_is_called_for_a_unit_of_work_and_not_for_a_message(tmp_path: Path) -> None:
    some, many = (_calls(tmp_path / f"{count}", count, None) for count in (50, 150))
    assert sum(many.values()) > sum(some.values()) + 100, "at least one call for each message more"
    assert _of(some, MONITORING) == _of(many, MONITORING) == 0
    # begun, committing and committed of the unit of work, and begun and committing of the empty one behind it.
    assert _of(some, OBSERVER) == _of(many, OBSERVER) <= 8


def test_an_observer_is_seen_by_the_same_count(tmp_path: Path) -> None:
    some, many = (_calls(tmp_path / f"{count}", count, _Counting()) for count in (50, 150))
    assert _of(many, OBSERVER) == _of(some, OBSERVER) + 100, "sample, for each message"


def test_the_libraries_that_measure_are_not_even_loaded() -> None:
    program = "import sys, commands.cli.run, commands.qmgr.processor; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "commands.qmgr.processor" in loaded
    assert [name for name in loaded if name.startswith(("prometheus_client", "opentelemetry"))] == []
