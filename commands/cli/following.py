"""The continuous side of ``qpubsub replay``: batch after batch, until told to end."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from commands.broker.puts import PutKind
from commands.cli.console import Console, ExitCode
from commands.cli.replay_options import MOST_SHOWN
from commands.cli.stopping import stopping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from commands.replay.spark.following import Batch, Following

_LOOK_S: Final = 1
_NAP_S: Final = 0.1


def run_continuous(console: Console, spark: SparkSession, following: Following, *, once: bool) -> ExitCode:
    """Run a continuous replay; once: end when what is there now is done. *following* is checked."""
    from commands.replay.spark.following import LATE_FILE, PROBLEM_FILE  # noqa: PLC0415 - Spark is an extra
    from commands.replay.spark.streaming import LATE, PROBLEM  # noqa: PLC0415

    stop = threading.Event()
    kinds: Counter[str] = Counter()
    with stopping(stop), console.progress("puts written") as advance:

        def show(batch: Batch) -> None:
            before = kinds[PROBLEM]
            kinds.update(batch.kinds)
            advance(sum(batch.kinds.values()))
            for line in batch.told[: max(0, MOST_SHOWN - before)]:
                console.warn(line)

        with following.running(spark, show, once=once) as query:
            if not once:
                console.say(f"waiting for captures in {following.source}; Ctrl-C ends it")
            while not stop.is_set() and not query.awaitTermination(_LOOK_S):
                pass
            interrupted = stop.is_set()
            if interrupted:
                _settle(console, query, stop)
                # Of a batch that is broken off, which is tried again the next time, Spark would say much.
                spark.sparkContext.setLogLevel("OFF")
    target = following.target
    if kinds[PROBLEM]:
        console.warn(f"{kinds[PROBLEM]} records could not be read; they are told in {target}/batch=*/{PROBLEM_FILE}")
    if kinds[LATE]:
        console.warn(
            f"{kinds[LATE]} messages came too late, or with a seq that another one has, and were not replayed: "
            f"they are in {target}/batch=*/{LATE_FILE}"
        )
    made = f"{kinds[PutKind.PUBLICATION]} publications, {kinds[PutKind.RESPONSE]} responses"
    console.say(f"{made}, {kinds[PutKind.DEADLETTER]} dead letters written to {target}")
    if interrupted:
        console.say("the same command goes on from here")
    return ExitCode.PROBLEMS if kinds[PROBLEM] or kinds[LATE] or kinds[PutKind.DEADLETTER] else ExitCode.DONE


def _settle(console: Console, query: StreamingQuery, stop: threading.Event) -> None:
    """Let the batch that is under way come to its end, unless somebody asks again."""
    stop.clear()
    if query.status["isTriggerActive"]:
        console.say("ending after this batch; Ctrl-C breaks it off")
    while query.isActive and query.status["isTriggerActive"] and not stop.wait(_NAP_S):
        pass
