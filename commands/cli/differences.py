"""``qpubsub differences``: what version 7 does differently from version 6 with a captured workload."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import click

from commands.disk.files import to_disk
from commands.explain.selection import Choosing, MessageSelection
from commands.options import replays
from commands.options.captures import MomentType, selection_options
from commands.options.replays import ReportForms, read_gate, report_options
from commands.options.verb import FILE, FILE_THAT_IS, verb
from commands.replay.columns import DIFFERENCES, arrow_schema
from commands.replay.differences import DifferenceReport, PutDifference
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.differences.observe import Cutover
from commands.replay.differences.text import lines_of, page
from commands.replay.network.comparison import (
    NetworkChange,
    NetworkComparison,
    network_page,
    network_picture,
    network_report_lines,
)
from commands.replay.network.local import network_problems
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.output_file import OutputFile
from rfh2.captured import CapturedMessage

_BATCH_ROWS: Final = 10_000


class _Sink(Protocol):
    def add(self, difference: PutDifference) -> None: ...

    def close(self) -> None: ...


@verb(
    "qpubsub differences captures/ --setup streams.mqsc",
    "qpubsub differences capture.jsonl --html report.html --output differences.jsonl",
    "qpubsub differences capture.jsonl --old v6-broker --fail-on accepted.txt",
    "qpubsub differences capture.jsonl --old v6-broker --cutover 2009-01-28T12:00",
    "qpubsub differences captures/ --before estate.toml --after cluster.toml --svg network.svg",
    exit_codes={
        0: "a rule explains every difference; with --fail-on, FILE accepts all",
        1: "no rule explains some, neither version processed some messages, or records could not be read; with "
        "--fail-on, there is more than FILE accepts; "
        "with --after, a subscriber gets less, or something twice",
    },
)
@replays.replay_options(both_versions=True)
@selection_options("Report only")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every difference to FILE; its name ends in .jsonl or .parquet.",
)
@report_options
@click.option(
    "--fail-on",
    type=FILE_THAT_IS,
    metavar="FILE",
    help="End with 1 if there is more than FILE accepts. Each line of FILE is a rule and a number: D01 12.",
)
@click.option(
    "--cutover",
    type=MomentType(),
    metavar="TIME",
    help="Migrate what version 6 has at TIME, UTC, and let version 7 begin with that. Messages before it are version "
    "6's alone.",
)
@click.option(
    "--before", type=replays.ESTATE_PATH, metavar="ESTATE", help="Compare networks: the estate.toml of today."
)
@click.option("--after", type=replays.ESTATE_PATH, metavar="ESTATE", help="With --before: the estate.toml of tomorrow.")
@click.option(
    "--svg", type=FILE, metavar="FILE", help="With --after: draw tomorrow's network with its publications to FILE."
)
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    output: Path | None,
    forms: ReportForms,
    fail_on: Path | None,
    cutover: datetime | None,
    before: Path | None,
    after: Path | None,
    svg: Path | None,
) -> ExitCode:
    """Replay each FILE, or standard input, under version 6 and version 7, and explain every put that differs.

    A known rule, D01 to D34, explains a difference; a difference without a rule is a finding. If the capture has the
    messages on subscriber queues, they are compared too.

    With --cutover, version 7 has the subscriptions and retained publications that a migration gives it at that time,
    by strmqbrk for --old v6-broker, else by migmbbrk.

    With --before and --after, replay the capture through two networks of queue managers, and say who gets more, less,
    twice or later, with the traffic between queue managers. A message of a queue manager that is not in the second
    network is put at the only one that is there.

    --where, --since, --until, --seq and --limit choose the messages that are reported. All messages are replayed
    anyway, because the result of one depends on those before it.
    """
    options.check(selection)
    if before is not None or after is not None or svg is not None:
        if before is None or after is None:
            raise click.UsageError("--before, --after and --svg compare two networks: give --before and --after")
        if output is not None or fail_on is not None or cutover is not None or options.on_spark:
            raise click.UsageError(
                "--before and --after cannot be used with --output, --fail-on, --cutover and --engine spark"
            )
        return _networks(console, options, selection, (before, after), svg, forms)
    if output is not None:
        replays.check_suffix(output)
    gate = None if fail_on is None else read_gate(fail_on)
    if options.on_spark:
        if cutover is not None:
            raise click.UsageError("--cutover needs the local engine: leave out --engine spark")
        report, problems = _on_spark(console, options, selection, output)
    else:
        report, problems = _here(console, options, selection, output, cutover)
    forms.show(console, report, lambda: page(report, options.label), lambda: lines_of(report))
    if gate is None:
        return ExitCode.PROBLEMS if problems or report.findings or report.not_processed else ExitCode.DONE
    exceeded = list(gate.exceeded(report))
    for line in exceeded:
        console.warn(f"--fail-on: {line}")
    return ExitCode.PROBLEMS if problems or exceeded else ExitCode.DONE


def _networks(
    console: Console,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    estates: tuple[Path, Path],
    svg: Path | None,
    forms: ReportForms,
) -> ExitCode:
    """Compare two networks. Ends with 1 where somebody gets less, or something twice."""
    before, after = (replays.network_setup(estate, options.setup) for estate in estates)

    def compared(messages: Iterable[CapturedMessage]) -> NetworkComparison:
        comparison, choosing = NetworkComparison(before, after), Choosing(selection)
        with reader.progress("messages compared") as advance:
            for message in messages:
                advance(1)
                comparison.compare(message, counted=choosing.chooses(message))
                if choosing.is_over:
                    break
        return comparison

    reader = replays.CaptureReader(console, options)
    comparison = reader.in_order(compared)
    for network, estate in zip(comparison.networks, estates, strict=True):
        for problem in network_problems(network):
            console.warn(f"{estate}: {problem}")
    report = comparison.report()
    picture = network_picture(comparison.networks[1], f"{estates[1]}: publications")
    forms.show(
        console,
        report,
        lambda: network_page(report, (str(estates[0]), str(estates[1])), picture),
        lambda: network_report_lines(report),
    )
    if svg is not None:
        svg.write_text(picture, encoding="utf-8")
    worse = report.totals[NetworkChange.LESS] + report.totals[NetworkChange.TWICE]
    return ExitCode.PROBLEMS if worse or reader.problems else ExitCode.DONE


def _here(
    console: Console,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    output: Path | None,
    at: datetime | None,
) -> tuple[DifferenceReport, int]:
    # A package that this one must not import: found by name, as its verbs are.
    cutover = None if at is None else Cutover(at, import_module("migrate.cli.cutover").migrated)

    def compared(messages: Iterable[CapturedMessage]) -> tuple[DifferenceReport, int]:
        differences = LocalDifferences(options.setup, options.semantics, cutover=cutover)
        choosing = Choosing(selection)
        with ExitStack() as stack:
            advance = stack.enter_context(reader.progress("messages compared"))
            sink: _Sink | None = None
            if output is not None:
                written = OutputFile(output)
                stack.callback(written.discard)
                file = stack.enter_context(written.open())
                sink = _Lines(file) if output.suffix == ".jsonl" else _Rows(file)
            for message in messages:
                advance(1)
                for difference in differences.compare(message, counted=choosing.chooses(message)):
                    if sink is not None:
                        sink.add(difference)
                if choosing.is_over:
                    break
            if sink is not None:
                sink.close()
                to_disk(file)
                file.close()
                written.finish()
        return differences.report(), differences.before_cutover

    reader = replays.CaptureReader(console, options)
    report, before = reader.in_order(compared)
    if at is not None:
        console.say(f"{counted(before, 'message')} before {at:%Y-%m-%d %H:%M:%S} UTC: version 6 alone processed them")
        if not report.messages:
            console.warn("--cutover: no message was compared, because none is that late")
    return report, reader.problems


def _on_spark(
    console: Console, options: replays.ReplayOptions, selection: MessageSelection, output: Path | None
) -> tuple[DifferenceReport, int]:
    with replays.importing(replays.SPARK_MISSING):
        from commands.replay.spark.differing import compare  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.replay_setup import check  # noqa: PLC0415
    check(options.source, options.setup)
    with replays.spark_session(options) as spark:
        report, capture = compare(
            spark,
            options.source,
            options.form,
            options.setup,
            options.semantics,
            output,
            selection,
            monotonic_clock=options.monotonic_clock,
        )
    replays.show_problems(console, capture.problem_texts, capture.problems)
    return report, capture.problems


class _Lines:
    """Differences as JSON Lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, difference: PutDifference) -> None:
        self._file.write(difference.model_dump_json().encode() + b"\n")

    def close(self) -> None:
        self._file.flush()


class _Rows:
    """Differences as Parquet."""

    def __init__(self, file: BinaryIO) -> None:
        with replays.importing(replays.PYARROW_MISSING):
            from pyarrow import RecordBatch, parquet  # noqa: PLC0415
        self._schema, self._batch = arrow_schema(DIFFERENCES), RecordBatch
        self._writer = parquet.ParquetWriter(file, self._schema)
        self._held: list[PutDifference] = []

    def add(self, difference: PutDifference) -> None:
        self._held.append(difference)
        if len(self._held) >= _BATCH_ROWS:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        rows = [difference.model_dump() for difference in self._held]
        self._writer.write_batch(self._batch.from_pylist(rows, schema=self._schema))
        self._held = []
