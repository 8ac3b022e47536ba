"""``qpubsub replay``: captured commands through the bridge, without a queue manager."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from commands.broker.context import not_read
from commands.broker.puts import PutKind
from commands.cli.console import Console, ExitCode
from commands.cli.replay_options import (
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
from rfh2.captured import CapturedMessage

if TYPE_CHECKING:
    from commands.replay.put_columns import PutsParquet

_TRANSCRIPT_IN_MEMORY: Final = 8 * 1024 * 1024


@click.command(
    epilog="\b\nExamples:\n  qpubsub replay --input capture.jsonl --output puts.jsonl --tell\n"
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
@click.option("--tell", is_flag=True, help="Tell on stdout what each command came to, and who received what.")
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
    if checkpoint is not None:
        if not options.on_spark or tell:
            raise click.UsageError("--checkpoint needs --engine spark, and no --tell")
        if idle_s is not None and not (hold and follow):
            raise click.UsageError("--idle needs --hold and --follow")
        return _continuous(console, options, target, checkpoint, follow=follow, hold=hold, idle_s=idle_s)
    if follow or hold or idle_s is not None:
        raise click.UsageError("--follow, --hold and --idle need --checkpoint")
    if not options.on_spark:
        return _here(console, options, target, transcript=tell)
    if tell:
        raise click.UsageError("--tell is for the local engine: a replay on Spark has too much to tell")
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
        from commands.cli.following import run_continuous  # noqa: PLC0415
        from commands.replay.spark.following import Following  # noqa: PLC0415 - Spark is an extra, and slow to load
    setup, semantics = options.setup, options.semantics
    order = Following(options.source, options.form, target, checkpoint, setup, semantics, hold, idle_s)
    order.check()
    with spark_session(options) as spark:
        return run_continuous(console, spark, order, once=not follow)


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
