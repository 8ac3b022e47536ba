"""``qpubsub replay``: captured commands through the bridge, without a queue manager."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from commands.broker.puts import PutKind
from commands.cli.console import Console, ExitCode
from commands.cli.reading import Reading
from commands.replay import LocalReplay, OutOfOrderError
from commands.replay.local import ReplayCounts
from commands.replay.put_lines import PutLines
from commands.replay.transcript import told
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS
from rfh2.distribution import how_to_install

if TYPE_CHECKING:
    from commands.replay.put_columns import PutsParquet

_MOST_TOLD: Final = 20
_TOLD_IN_MEMORY: Final = 8 * 1024 * 1024
ENGINES: Final = ("local", "spark")


@click.command(
    epilog="\b\nExamples:\n  qpubsub replay --input capture.jsonl --output puts.jsonl --tell\n"
    "  qpubsub replay --engine spark --input captures/ --output puts.parquet\n"
    "  qpubsub replay --engine spark --follow --checkpoint place/ --input arriving/ --output puts.jsonl"
)
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True, help="What does the work.")
@click.option(
    "--semantics",
    type=click.Choice(["v7", "v6"]),
    default="v7",
    show_default=True,
    help="Whose behaviour, where versions 6 and 7 differ.",
)
@click.option(
    "--input", "source", required=True, type=click.Path(path_type=Path), help="A capture, or a directory of them."
)
@click.option(
    "--format", "form", default="auto", show_default=True, type=click.Choice(["auto", *FORMATS]), help="Its format."
)
@click.option(
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    help="The puts: a .jsonl or .parquet file; with Spark a directory of that name.",
)
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="MQSC for every queue manager to start with.",
)
@click.option("--master", metavar="URL", help="The Spark cluster; local[*], this machine, where none is given.")
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
    engine: str,
    semantics: str,
    source: Path,
    form: str,
    target: Path,
    setup: Path | None,
    master: str | None,
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
    if checkpoint is not None:
        if engine != "spark" or tell:
            raise click.UsageError("--checkpoint needs --engine spark, and no --tell")
        return _following(console, source, form, target, checkpoint, setup, semantics, master, follow, hold, idle_s)
    if follow or hold or idle_s is not None:
        raise click.UsageError("--follow, --hold and --idle need --checkpoint")
    if engine == "spark":
        return _on_spark(console, source, form, target, setup, semantics, master, tell)
    if master is not None:
        raise click.UsageError("--master needs --engine spark")
    if target.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--output {target}: the name has to end in .jsonl or .parquet")
    as_columns = _puts_parquet() if target.suffix == ".parquet" else None
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    reading = Reading(console, source, form)
    partial = target.with_name(target.name + ".partial")
    try:
        replay = _replayed(
            console, reading, LocalReplay(script, semantics), partial, as_columns, tell, reading.messages()
        )
    except OutOfOrderError:
        reading.problems = 0
        ordered = sorted(reading.messages(), key=lambda message: message.seq)
        replay = _replayed(console, reading, LocalReplay(script, semantics), partial, as_columns, tell, ordered)
    partial.replace(target)
    return _sum_up(console, replay.counts, reading.problems, target)


def _sum_up(console: Console, counts: ReplayCounts, problems: int, target: Path) -> ExitCode:
    for queue, passed in sorted(counts.passed_over.items()):
        console.say(f"{passed} messages on {queue or 'no queue'} passed over: a broker does not read it")
    made = f"{counts.puts[PutKind.PUBLICATION]} publications, {counts.puts[PutKind.RESPONSE]} responses"
    made += f", {counts.puts[PutKind.DEADLETTER]} dead letters"
    console.say(f"{counts.messages} messages ({counts.errors} in error): {made} written to {target}")
    return ExitCode.PROBLEMS if problems or counts.puts[PutKind.DEADLETTER] else ExitCode.DONE


def _on_spark(
    console: Console,
    source: Path,
    form: str,
    target: Path,
    setup: Path | None,
    semantics: str,
    master: str | None,
    tell: bool,
) -> ExitCode:
    if tell:
        raise click.UsageError("--tell is for the local engine: a replay on Spark has too much to tell")
    if target.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--output {target}: the name has to end in .jsonl or .parquet")
    try:
        from commands.replay.spark import LOCAL, session  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.engine import Order, run  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed: {how_to_install('spark')}") from error
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    order = Order(source, form, target, script, semantics)
    order.check()
    spark = session(master or LOCAL)
    try:
        with console.progress("messages replayed") as advance:
            done = run(spark, order, advance, console.say)
    finally:
        spark.stop()
    for line in done.told[:_MOST_TOLD]:
        console.warn(line)
    if len(done.told) > _MOST_TOLD:
        console.warn(f"and more: {done.problems} records could not be read, {done.undecodable} not decoded")
    return _sum_up(console, done.counts, done.problems, target)


def _following(
    console: Console,
    source: Path,
    form: str,
    target: Path,
    checkpoint: Path,
    setup: Path | None,
    semantics: str,
    master: str | None,
    follow: bool,
    hold: int,
    idle_s: float | None,
) -> ExitCode:
    if target.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--output {target}: the name has to end in .jsonl or .parquet")
    if idle_s is not None and not (hold and follow):
        raise click.UsageError("--idle needs --hold and --follow")
    try:
        from commands.cli import following  # noqa: PLC0415
        from commands.replay.spark.following import Following  # noqa: PLC0415 - Spark is an extra, and slow to load
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed: {how_to_install('spark')}") from error
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    order = Following(source, form, target, checkpoint, script, semantics, hold, idle_s)
    order.check()
    return following.follow(console, order, master, once=not follow)


def _replayed(
    console: Console,
    reading: Reading,
    replay: LocalReplay,
    partial: Path,
    as_columns: type[PutsParquet] | None,
    tell: bool,
    messages: Iterable[CapturedMessage],
) -> LocalReplay:
    # What is told waits until the whole capture has proved to be in order, on disk where it grows long.
    with (
        tempfile.SpooledTemporaryFile(_TOLD_IN_MEMORY) as lines,
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
                if tell:
                    lines.writelines(line.encode() + b"\n" for line in told(message, outcome, puts))
                advance(1)
        _to_disk(file)
        lines.seek(0)
        for line in lines:
            console.data(line.decode().rstrip("\n"))
    console.stdout.flush()
    return replay


def _puts_parquet() -> type[PutsParquet]:
    try:
        from commands.replay.put_columns import PutsParquet  # noqa: PLC0415 - pyarrow is an extra, and slow to load
    except ImportError as error:
        raise click.ClickException(f"Parquet needs pyarrow: {how_to_install('parquet')}") from error
    return PutsParquet


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
