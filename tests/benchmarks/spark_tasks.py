"""What the control plane of a replay on Spark leaves, and how much of it one task is given: in bytes, without Spark.

    python -m tests.benchmarks.spark_tasks --control 20000 --subscribers 2000 --ranges 20

All messages are control messages, as if the publications between them were left out: 20,000 are those of a workload of
2,000,000 messages with 1% of them. Memory is what Python counts (tracemalloc), not that of the process.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from commands.replay.arrivals import Arrivals
from commands.replay.spark.control import INTERVAL, LOOKUP, NOTES, ControlPlaneSetup, notes_of
from commands.replay.spark.control_tasks import KEY_FIELDS, Keys, deal_out, keyed
from commands.replay.spark.journal import SubscriptionJournal
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.retained import LooksByTopic, LookupTable, PatternLookups
from commands.replay.spark.schemas import batch_of, columns
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from streams.subscriptions import WildcardScheme

_ROWS = pa.schema(
    [
        ("seq", pa.int64()),
        ("now", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in ("qmgr", "queue", "user")),
        *((name, pa.binary()) for name in ("md", "body")),
    ]
)
_BATCH_ROWS = 2000


def _batches(options: WorkloadOptions) -> Iterator[pa.RecordBatch]:
    arrivals = Arrivals()
    rows = []
    for message in Workload(options).messages():
        qmgr, a = arrivals.of(message)
        rows.append((a.seq, a.now, qmgr, a.queue, a.user, a.md, a.body))
        if len(rows) == _BATCH_ROWS:
            yield batch_of(rows, _ROWS)
            rows = []
    if rows:
        yield batch_of(rows, _ROWS)


def _held(make: Callable[[], object]) -> int:
    """The bytes of what *make* makes."""
    tracemalloc.start()
    made = make()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return size


def _divided(batches: list[pa.RecordBatch], options: WorkloadOptions, tasks: int) -> str:
    """What it takes to divide the control plane, and how evenly that is done."""
    setting = ReplaySetup(setup_script(options))
    began = time.process_time()
    with_keys = list(keyed(batches))
    keys_s = time.process_time() - began
    names = [field.name for field in KEY_FIELDS]
    rows = (row for batch in with_keys for row in columns(batch, "qmgr", *names))
    counted = Counter((qmgr, Keys(key, tuple(of_names), *more)) for qmgr, key, of_names, *more in rows)
    began = time.process_time()
    dealt = deal_out(counted, lambda qmgr: setting.broker(qmgr).space.subscriptions(), tasks)
    deal_s = time.process_time() - began
    loads = Counter(task for batch in with_keys for task in dealt.of(batch.column("key").to_numpy()).tolist())
    return (
        f"in {tasks} tasks: {keys_s / options.messages * 1e6:.0f} us a message for its keys; {len(counted):,} rows to "
        f"the driver, {deal_s:.1f} s there; {min(loads.values()):,} to {max(loads.values()):,} messages a task"
    )


def measured(control: int, subscribers: int, ranges: int, tasks: int) -> list[str]:
    """The figures, in lines.

    control: messages of the control plane. ranges: of the replay. tasks: of its first pass.
    """
    options = WorkloadOptions(messages=control, control=1.0, errors=0, strays=0, subscribers=subscribers)
    batches = list(_batches(options))
    least, most = batches[0].column("seq")[0].as_py(), batches[-1].column("seq")[-1].as_py()
    starts = (*(least + (most + 1 - least) * number // ranges for number in range(ranges)), most + 1)
    began = time.process_time()
    made = list(notes_of(ControlPlaneSetup(ReplaySetup(setup_script(options)), starts))(batches))
    cpu_s = time.process_time() - began
    divided = _divided(batches, options, tasks)
    notes = [note for batch in made for note in columns(batch, *NOTES.names)]
    intervals = [note for note in notes if note[1] == INTERVAL]
    by_range: list[list[tuple[int, int, str]]] = [[] for _ in range(ranges)]
    for _, _, after, until, first, last, text, *_ in intervals:
        for number in range(first, last + 1):
            by_range[number].append((after, until, text))
    largest = max(by_range, key=lambda given: sum(len(text) for _, _, text in given))
    places: dict[tuple[str, str, str], set[int]] = {}
    for qmgr, kind, after, _, _, _, text, scheme, _, _, operation in notes:
        if kind == LOOKUP and operation is None:
            places.setdefault((qmgr, text, scheme), set()).add(after - least)
    lookups = sum(map(len, places.values()))

    def journal() -> object:
        # The texts are copied, as they are when they come to a worker.
        return SubscriptionJournal.of([(after, until, text.encode().decode()) for after, until, text in largest])

    def table() -> object:
        found: dict[str, list[PatternLookups]] = {}
        for (qmgr, text, scheme), at in places.items():
            theirs = PatternLookups(text, WildcardScheme(scheme), np.array(sorted(at), np.uint32))
            found.setdefault(qmgr, []).append(theirs)
        whole = LookupTable(least, 0, found)
        return whole, [LooksByTopic(whole, qmgr) for qmgr in found]

    whole = sum(len(note[6]) for note in intervals)
    most_bytes = sum(len(text) for _, _, text in largest)
    return [
        f"{control:,} control messages, {subscribers:,} subscribers, {ranges} ranges",
        f"control plane: {cpu_s / control * 1e6:.0f} us of processor time a message",
        divided,
        f"intervals in all: {len(intervals):,}, {whole:,} bytes",
        f"the range that is given most: {len(largest):,}, {most_bytes:,} bytes; in memory {_held(journal):,}",
        f"lookups, in every worker: {lookups:,} with {len(places):,} patterns; in memory {_held(table):,} bytes",
    ]


if __name__ == "__main__":
    about = str(__doc__).split("\n", maxsplit=1)[0]
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.spark_tasks", description=about)
    arguments.add_argument("--control", type=int, default=20_000)
    arguments.add_argument("--subscribers", type=int, default=2_000)
    arguments.add_argument("--ranges", type=int, default=20)
    arguments.add_argument("--tasks", type=int, default=16)
    given = arguments.parse_args()
    sys.stdout.write("\n".join(measured(given.control, given.subscribers, given.ranges, given.tasks)) + "\n")
