"""``qpubsub replay``: captured commands through the bridge, without a queue manager."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from commands.broker.context import not_read
from commands.broker.puts import PutKind
from commands.cli.options.replays import (
    MOST_SHOWN,
    PYARROW_MISSING,
    SPARK_MISSING,
    CaptureReader,
    ReplayOptions,
    check_suffix,
    importing,
    replay_options,
    spark_session,
)
from commands.replay import LocalReplay
from commands.replay.local import ReplayCounts
from commands.replay.put_lines import PutLines
from commands.replay.transcript import transcript_lines
from commands.terminal.console import Console, ExitCode
from commands.terminal.stopping import stopping
from rfh2.captured import CapturedMessage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from commands.replay.put_columns import PutsParquet
    from commands.replay.spark.following import Batch, Following

_LOOK_S: Final = 1
_NAP_S: Final = 0.1
_TRANSCRIPT_IN_MEMORY: Final = 8 * 1024 * 1024


@click.command(
    epilog="\b\nExamples:\n  qpubsub replay --input capture.jsonl --output puts.jsonl --transcript\n"
    "  qpubsub replay --engine spark --input captures/ --output puts.parquet\n"
    "  qpubsub replay --engine spark --follow --checkpoint place/ --input arriving/ --output puts.jsonl"
)
@replay_options()
@click.option(
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    help="The puts: a .jsonl or .parquet file; with Spark a directory of that name.",
)
@click.option("--transcript", is_flag=True, help="Print the result of each command, and who received what.")
@click.option("--tell", is_flag=True, hidden=True, help="The former name of --transcript.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With Spark: replay what has come into INPUT since the last time; its place is kept here.",
)
@click.option("--follow", is_flag=True, help="With --checkpoint: do not end, wait for more.")
@click.option(
    "--hold",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="With --checkpoint: a message waits until one with a seq that much higher has come.",
)
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --hold and --follow: or until nothing has come for so long.",
)
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: ReplayOptions,
    target: Path,
    transcript: bool,
    tell: bool,
    checkpoint: Path | None,
    follow: bool,
    hold: int,
    idle_s: float | None,
) -> ExitCode:
    """Replay the captured messages in INPUT, in the order of seq, and write every put to OUTPUT.

    The clock is the messages' own, identifiers come from seq: two replays are equal byte for byte. A message that
    cannot be decoded becomes a dead letter, and the exit code 1. Messages on queues that a broker does not read are
    passed over. On Spark the output is a directory of files in the order of seq; a replay that was interrupted goes on
    where it was. With --checkpoint, files are replayed as they are moved into INPUT, and each batch of puts is a
    directory of its own: killed at any moment and started again, no put is lost and none is there twice.
    """
    check_suffix(target)
    if tell:
        console.say("--tell is now --transcript")
        transcript = True
    if checkpoint is not None:
        if not options.on_spark or transcript:
            raise click.UsageError("--checkpoint needs --engine spark, and no --transcript")
        if idle_s is not None and not (hold and follow):
            raise click.UsageError("--idle needs --hold and --follow")
        return _continuous(console, options, target, checkpoint, follow=follow, hold=hold, idle_s=idle_s)
    if follow or hold or idle_s is not None:
        raise click.UsageError("--follow, --hold and --idle need --checkpoint")
    if not options.on_spark:
        return _here(console, options, target, transcript=transcript)
    if transcript:
        raise click.UsageError("--transcript is for the local engine: that of a replay on Spark would be too long")
    return _on_spark(console, options, target)


def _here(console: Console, options: ReplayOptions, target: Path, *, transcript: bool) -> ExitCode:
    as_columns = _puts_parquet() if target.suffix == ".parquet" else None
    partial = target.with_name(target.name + ".partial")

    def replayed(messages: Iterable[CapturedMessage]) -> ReplayCounts:
        replay = LocalReplay(options.setup, options.semantics)
        # The transcript waits until the whole capture has proved to be in order, on disk where it grows long.
        with (
            tempfile.SpooledTemporaryFile(_TRANSCRIPT_IN_MEMORY) as lines,
            partial.open("wb") as file,
            console.progress("messages replayed") as advance,
        ):
            with closing(PutLines(file) if as_columns is None else as_columns(file)) as sink:
                for message in messages:
                    outcome, puts = replay.replay(message)
                    if isinstance(sink, PutLines):
                        for put in puts:
                            sink.write(put)
                    else:
                        sink.add(message.seq, outcome.puts)
                    if outcome.undecodable:
                        console.warn(f"message {message.seq} on {message.queue}: {outcome.why}")
                    if transcript:
                        lines.writelines(line.encode() + b"\n" for line in transcript_lines(message, outcome, puts))
                    advance(1)
            _to_disk(file)
            lines.seek(0)
            for line in lines:
                console.data(line.decode().rstrip("\n"))
        console.stdout.flush()
        return replay.counts

    reader = CaptureReader(console, options)
    counts = reader.in_order(replayed)
    partial.replace(target)
    return _sum_up(console, counts, reader.problems, target)


def _on_spark(console: Console, options: ReplayOptions, target: Path) -> ExitCode:
    with importing(SPARK_MISSING):
        from commands.replay.spark.engine import Order, run  # noqa: PLC0415 - Spark is an extra, and slow to load
    order = Order(options.source, options.form, target, options.setup, options.semantics)
    order.check()
    with spark_session(options) as spark, console.progress("messages replayed") as advance:
        done = run(spark, order, advance, console.say)
    for line in done.problem_texts[:MOST_SHOWN]:
        console.warn(line)
    if len(done.problem_texts) > MOST_SHOWN:
        console.warn(f"and more: {done.problems} records could not be read, {done.undecodable} not decoded")
    return _sum_up(console, done.counts, done.problems, target)


def _continuous(
    console: Console,
    options: ReplayOptions,
    target: Path,
    checkpoint: Path,
    *,
    follow: bool,
    hold: int,
    idle_s: float | None,
) -> ExitCode:
    with importing(SPARK_MISSING):
        from commands.replay.spark.following import Following  # noqa: PLC0415 - Spark is an extra, and slow to load
    setup, semantics = options.setup, options.semantics
    order = Following(options.source, options.form, target, checkpoint, setup, semantics, hold, idle_s)
    order.check()
    with spark_session(options) as spark:
        return _follow(console, spark, order, once=not follow)


def _follow(console: Console, spark: SparkSession, following: Following, *, once: bool) -> ExitCode:
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
            for line in batch.problem_texts[: max(0, MOST_SHOWN - before)]:
                console.warn(line)

        with following.running(spark, show, once=once) as query:
            if not once:
                console.say(f"waiting for captures in {following.source}; Ctrl-C ends it")
            while not stop.is_set() and not query.awaitTermination(_LOOK_S):
                pass
            interrupted = stop.is_set()
            if interrupted:
                _end_after_batch(console, query, stop)
                # Of a batch that is broken off, which is tried again the next time, Spark would say much.
                spark.sparkContext.setLogLevel("OFF")
    target = following.target
    if kinds[PROBLEM]:
        console.warn(f"{kinds[PROBLEM]} records could not be read; see {target}/batch=*/{PROBLEM_FILE}")
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


def _end_after_batch(console: Console, query: StreamingQuery, stop: threading.Event) -> None:
    """Wait for the end of the batch that is under way; a second signal breaks it off."""
    stop.clear()
    if query.status["isTriggerActive"]:
        console.say("ending after this batch; Ctrl-C breaks it off")
    while query.isActive and query.status["isTriggerActive"] and not stop.wait(_NAP_S):
        pass


def _sum_up(console: Console, counts: ReplayCounts, problems: int, target: Path) -> ExitCode:
    for queue, passed in sorted(counts.passed_over.items()):
        console.say(f"{passed} messages on {queue or 'no queue'} not processed: {not_read(queue)}")
    made = f"{counts.puts[PutKind.PUBLICATION]} publications, {counts.puts[PutKind.RESPONSE]} responses"
    made += f", {counts.puts[PutKind.DEADLETTER]} dead letters"
    console.say(f"{counts.messages} messages ({counts.errors} in error): {made} written to {target}")
    return ExitCode.PROBLEMS if problems or counts.puts[PutKind.DEADLETTER] else ExitCode.DONE


def _puts_parquet() -> type[PutsParquet]:
    with importing(PYARROW_MISSING):
        from commands.replay.put_columns import PutsParquet  # noqa: PLC0415 - pyarrow is an extra, and slow to load
    return PutsParquet


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
