"""What metrics and traces cost: the same commands processed without them, with metrics, and with metrics and traces.

``python -m tests.benchmarks.metrics [--turns N]``; ``--parts``: only what metrics do on their own, in seconds

All in one run: three queue managers, which take turns, so that what else the machine does hits all. A figure is
processor time for a command, of all threads, the median of the turns; the ratio is that of the turns that stood side
by side: the median, the middle half, and an interval for the true median. Spans are encoded as for a collector (OTLP),
and not sent. One publication in a hundred is traced by its publisher.

    alike        equal headers: what templates answer, so that measuring costs most in proportion
    numbered     a number in each header
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from math import comb
from pathlib import Path
from statistics import median
from typing import cast

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry

from commands.broker.counts import Counts
from commands.broker.objects import QueueManager
from commands.config.settings import TracingConfig
from commands.monitoring.metrics import ProcessorMetrics
from commands.monitoring.opening import Observing
from commands.monitoring.tracing import Tracing
from commands.qmgr.observer import Committed, Observer, ProcessorTally
from commands.qmgr.processor import BATCH, Processor, ProcessorSettings
from commands.qmgr.store import Durability, QueueManagerStore
from tests.commands.monitoring.traffic import SAMPLED, STREAM, put, register, traced

TOPICS, TRACED_OF, TURN = 200, 100, 5_000
TRAFFIC = ("alike", "numbered")


class _Encoded(SpanExporter):
    """Does with spans what the exporter does, but for the network."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


def _nothing() -> None:
    """No end."""


def _off() -> tuple[Observer | None, Callable[[], object]]:
    return None, _nothing


def _metrics() -> tuple[Observer | None, Callable[[], object]]:
    return Observing(ProcessorMetrics(CollectorRegistry(), "QM1"), None), _nothing


def _both() -> tuple[Observer | None, Callable[[], object]]:
    tracing = Tracing(_Encoded(), "QM1", TracingConfig().load, 0.0)
    # Spans are sent every few seconds; here, with the unit of work that made them.
    return Observing(ProcessorMetrics(CollectorRegistry(), "QM1"), tracing), tracing._provider.force_flush


WAYS: dict[str, Callable[[], tuple[Observer | None, Callable[[], object]]]] = {
    "off": _off,
    "metrics": _metrics,
    "metrics and traces": _both,
}
"""How a processor is measured: its observer, and what ends that."""


def _loaded(home: Path, commands: int, traffic: str) -> QueueManagerStore:
    """A queue manager with *commands* publications for one subscriber."""
    store = QueueManagerStore.create(home, QueueManager("QM1"), durability=Durability.NORMAL)
    with store.unit_of_work() as unit:
        register(unit, "S", "t/#")
    Processor(store, lambda: datetime.now(UTC)).drain()
    with store.unit_of_work() as unit:
        for n in range(commands):
            number = f"<SeqNum>{n}</SeqNum>" if traffic == "numbered" else ""
            usr = traced(SAMPLED) if n % TRACED_OF == 0 else "<region>EMEA</region>"
            put(unit, STREAM, f"<Command>Publish</Command><Topic>t/{n % TOPICS}</Topic>{number}", usr, b"x" * 200)
    return store


class _After:
    """Stops a processor when it has processed *count* commands more."""

    def __init__(self, processor: Processor, count: int) -> None:
        self._processor, self._end = processor, processor.tally.commands + count

    def is_set(self) -> bool:
        return self._processor.tally.commands >= self._end

    def wait(self, timeout: float | None = None) -> bool:
        return True


def _spent_us(processor: Processor, end: Callable[[], object], count: int) -> float:
    """Microseconds of processor time for a command, of *count* commands."""
    before = time.process_time()
    done = processor.drain(_After(processor, count))
    end()
    spent_s = time.process_time() - before
    assert done == count
    return spent_s / done * 1e6


def measured(turns: int, turn: int, traffic: str) -> dict[str, list[float]]:
    """Of each way, its figure in each turn of *turn* commands."""
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        processors = {}
        for name, make in WAYS.items():
            store = stack.enter_context(_loaded(Path(home) / name, turns * turn, traffic))
            observer, end = make()
            batch = min(BATCH, turn)
            processors[name] = (
                Processor(store, lambda: datetime.now(UTC), settings=ProcessorSettings(batch=batch), observer=observer),
                end,
            )
        names = list(WAYS)
        gc.collect()
        for number in range(turns):
            at = number % len(names)
            for name in names[at:] + names[:at]:
                found[name].append(_spent_us(*processors[name], turn))
    return found


def rows(traffic: str, figures: dict[str, list[float]]) -> Iterator[str]:
    """The rows of the table."""
    for name, taken in figures.items():
        ratios = sorted(one / off for one, off in zip(taken, figures["off"], strict=True))
        quarter, outside = len(ratios) // 4, outside_interval(len(ratios))
        spread, sure = (f"{ratios[at]:.3f} to {ratios[-1 - at]:.3f}" for at in (quarter, outside))
        yield f"| {traffic}, {name} | {median(taken):,.1f} | {median(ratios):.3f} | {spread} | {sure} |"


def parts_us() -> dict[str, float]:
    """What metrics do, on its own: processor time, the least of many tries, which other programs disturb least.

    The rest of their cost is that of commands measured step by step, which is bounded by what it is (``_SHARE``).
    """
    metrics = ProcessorMetrics(CollectorRegistry(), "QM1")
    metrics.due_s = float("inf")
    observer, tally, counts = Observing(metrics, None), ProcessorTally(commands=1, publications=1), Counts()

    def unit() -> None:
        observer.begun(tally)
        observer.committing()
        observer.committed(Committed(tally, {}, counts, 500))

    def least(call: Callable[[], object], times: int) -> float:
        return min(timeit.repeat(call, number=times, repeat=50, timer=time.process_time)) / times * 1e6

    sample = cast(Callable[[object], object], observer.sample)
    return {
        "a command that is only counted": least(lambda: sample(None), 20_000) - least(lambda: None, 20_000),
        "a unit of work": least(unit, 1_000),
    }


def outside_interval(count: int, risk: float = 0.05) -> int:
    """How many of *count* sorted figures to leave out at each end, so that their median is in what is left.

    risk: how likely it may be outside. This needs no assumption on how figures are distributed: each is above the
    median or below it like a coin. With fewer than six of them nothing is left out, and the risk is greater.
    """
    below, left_out = 0.5**count, 0
    while 2 * (below + comb(count, left_out + 1) * 0.5**count) <= risk:
        left_out += 1
        below += comb(count, left_out) * 0.5**count
    return left_out


def table(turns: int, turn: int = TURN) -> Iterator[str]:
    """The table, line by line, as it is measured."""
    yield "| | us a command | ratio | middle half | median, with 95 % confidence |"
    yield "|---|---|---|---|---|"
    for traffic in TRAFFIC:
        yield from rows(traffic, measured(turns, turn, traffic))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.metrics", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--turns", type=int, default=12, metavar="N", help=f"of {TURN} commands each")
    parser.add_argument("--parts", action="store_true", help="only the costs of metrics alone")
    options = parser.parse_args()
    for name, cost in parts_us().items():
        print(f"metrics, {name}: {cost:.2f} us", flush=True)
    if options.parts:
        return
    for line in table(options.turns):
        print(line, flush=True)


if __name__ == "__main__":
    main()
