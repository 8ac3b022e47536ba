"""``qpubsub differences``: what version 7 does differently from version 6 with a captured workload."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import click

from commands.cli.options.replays import (
    PYARROW_MISSING,
    SPARK_MISSING,
    CaptureReader,
    ReplayOptions,
    check_suffix,
    importing,
    replay_options,
    show_problems,
    spark_session,
)
from commands.replay.differences import DifferenceReport, PutDifference
from commands.replay.differences.gate import Gate, parse_gate
from commands.replay.differences.html import page
from commands.replay.differences.local import LocalDifferences
from commands.replay.differences.text import lines_of
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

_BATCH_ROWS: Final = 10_000


class _Sink(Protocol):
    def add(self, difference: PutDifference) -> None: ...

    def close(self) -> None: ...


@click.command(
    epilog="\b\nExamples:\n  qpubsub differences --input captures/ --setup streams.mqsc\n"
    "  qpubsub differences --input captures/ --html report.html --output differences.parquet\n"
    "  qpubsub differences --input captures/ --fail-on accepted.txt\n\n"
    "\b\nExit codes: 0 every difference is explained by a rule, 1 some are not, or records could not be read. With\n"
    "--fail-on: 0 there is no more than the file accepts, 1 there is more, or records could not be read."
)
@replay_options(both_versions=True)
@click.option("--output", type=click.Path(path_type=Path), help="Every difference, as .jsonl or .parquet.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="The report as one page, with plots.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON on stdout.")
@click.option(
    "--fail-on",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Exit code 1 where there is more than FILE accepts: lines of a rule and a number, such as D01 12.",
)
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: ReplayOptions,
    output: Path | None,
    html: Path | None,
    as_json: bool,
    fail_on: Path | None,
) -> ExitCode:
    """Replay INPUT under version 6 and version 7, and explain every put that differs.

    A difference is explained by one of the known ones, D01 to D34, or is a finding. Where the capture has what was put
    on subscriber queues, that is compared too.
    """
    if output is not None:
        check_suffix(output)
    gate = None if fail_on is None else _gate(fail_on)
    report, problems = (_on_spark if options.on_spark else _here)(console, options, output)
    if html is not None:
        html.write_text(page(report, str(options.source)), encoding="utf-8")
    if as_json:
        console.data(report.model_dump_json())
    else:
        for line in lines_of(report):
            console.data(line)
    if gate is None:
        return ExitCode.PROBLEMS if problems or report.findings else ExitCode.DONE
    exceeded = list(gate.exceeded(report))
    for line in exceeded:
        console.warn(f"--fail-on: {line}")
    return ExitCode.PROBLEMS if problems or exceeded else ExitCode.DONE


def _gate(path: Path) -> Gate:
    try:
        return parse_gate(path.read_text(encoding="utf-8"))
    except (QPubSubError, ValueError) as error:
        raise click.UsageError(f"--fail-on {path}: {error}") from error


def _here(console: Console, options: ReplayOptions, output: Path | None) -> tuple[DifferenceReport, int]:
    def compared(messages: Iterable[CapturedMessage]) -> DifferenceReport:
        differences = LocalDifferences(options.setup)
        with ExitStack() as stack:
            advance = stack.enter_context(console.progress("messages compared"))
            sink: _Sink | None = None
            partial = output.with_name(f".{output.name}.partial") if output is not None else None
            if partial is not None and output is not None:
                sink = _Lines(partial) if output.suffix == ".jsonl" else _Rows(partial)
                stack.callback(partial.unlink, missing_ok=True)
            for message in messages:
                for difference in differences.compare(message):
                    if sink is not None:
                        sink.add(difference)
                advance(1)
            if sink is not None and partial is not None and output is not None:
                sink.close()
                partial.replace(output)
        return differences.report()

    reader = CaptureReader(console, options)
    return reader.in_order(compared), reader.problems


def _on_spark(console: Console, options: ReplayOptions, output: Path | None) -> tuple[DifferenceReport, int]:
    with importing(SPARK_MISSING):
        from commands.replay.spark.differing import compare  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.replay_setup import check  # noqa: PLC0415
    check(options.source, options.setup)
    with spark_session(options) as spark:
        report, capture = compare(spark, options.source, options.form, options.setup, output)
    show_problems(console, capture.problem_texts, capture.problems)
    return report, capture.problems


class _Lines:
    """Differences as JSON Lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def add(self, difference: PutDifference) -> None:
        self._file.write(difference.model_dump_json().encode() + b"\n")

    def close(self) -> None:
        self._file.close()


class _Rows:
    """Differences as Parquet."""

    def __init__(self, path: Path) -> None:
        with importing(PYARROW_MISSING):
            from pyarrow import parquet  # noqa: PLC0415

            from commands.replay.differences.columns import DIFFERENCES, table_of  # noqa: PLC0415 - pyarrow is an extra
        self._table_of = table_of
        self._writer = parquet.ParquetWriter(path, DIFFERENCES)
        self._held: list[PutDifference] = []

    def add(self, difference: PutDifference) -> None:
        self._held.append(difference)
        if len(self._held) >= _BATCH_ROWS:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        self._writer.write_table(self._table_of(self._held))
        self._held = []
