"""``qpubsub differences``: what version 7 does differently from version 6 with a captured workload."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import click

from commands.cli.console import Console, ExitCode
from commands.cli.reading import Reading, tell_problems
from commands.replay.differences import DifferenceReport, PutDifference
from commands.replay.differences.html import page
from commands.replay.differences.local import LocalDifferences
from commands.replay.differences.text import lines_of
from commands.replay.local import OutOfOrderError
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS
from rfh2.distribution import how_to_install

ENGINES: Final = ("local", "spark")
_BATCH_ROWS: Final = 10_000


class _Sink(Protocol):
    def add(self, difference: PutDifference) -> None: ...

    def close(self) -> None: ...


@click.command(
    epilog="\b\nExamples:\n  qpubsub differences --input captures/ --setup streams.mqsc\n"
    "  qpubsub differences --input captures/ --html report.html --output differences.parquet\n\n"
    "\b\nExit codes: 0 every difference is explained by a rule, 1 some are not, or records could not be read."
)
@click.option(
    "--input", "source", required=True, type=click.Path(path_type=Path), help="A capture, or a directory of them."
)
@click.option(
    "--format", "form", default="auto", show_default=True, type=click.Choice(["auto", *FORMATS]), help="Its format."
)
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True, help="What does the work.")
@click.option("--master", metavar="URL", help="The Spark cluster; local[*], this machine, where none is given.")
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="MQSC for every queue manager to start with, in both versions.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Every difference, as .jsonl or .parquet.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="The report as one page, with plots.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON on stdout.")
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    source: Path,
    form: str,
    engine: str,
    master: str | None,
    setup: Path | None,
    output: Path | None,
    html: Path | None,
    as_json: bool,
) -> ExitCode:
    """Replay INPUT under version 6 and version 7, and explain every put that differs.

    A difference is explained by one of the known ones, D01 to D32, or is a finding. Where the capture has what was put
    on subscriber queues, that is compared too.
    """
    if output is not None and output.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--output {output}: the name has to end in .jsonl or .parquet")
    if master is not None and engine != "spark":
        raise click.UsageError("--master needs --engine spark")
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    if engine == "spark":
        report, problems = _on_spark(console, source, form, script, output, master)
    else:
        report, problems = _here(console, source, form, script, output)
    if html is not None:
        html.write_text(page(report, str(source)), encoding="utf-8")
    if as_json:
        console.data(report.model_dump_json())
    else:
        for line in lines_of(report):
            console.data(line)
    return ExitCode.PROBLEMS if problems or report.findings else ExitCode.DONE


def _here(console: Console, source: Path, form: str, script: str, output: Path | None) -> tuple[DifferenceReport, int]:
    reading = Reading(console, source, form)
    try:
        report = _compared(console, reading.messages(), script, output)
    except OutOfOrderError:
        reading.problems = 0
        report = _compared(console, sorted(reading.messages(), key=lambda message: message.seq), script, output)
    return report, reading.problems


def _compared(
    console: Console, messages: Iterable[CapturedMessage], script: str, output: Path | None
) -> DifferenceReport:
    differences = LocalDifferences(script)
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


def _on_spark(
    console: Console, source: Path, form: str, script: str, output: Path | None, master: str | None
) -> tuple[DifferenceReport, int]:
    try:
        from commands.replay.spark import LOCAL, session  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.comparison import check, compare  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed: {how_to_install('spark')}") from error
    check(source, script)
    spark = session(master or LOCAL)
    try:
        report, capture = compare(spark, source, form, script, output)
    finally:
        spark.stop()
    tell_problems(console, capture.told, capture.problems)
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
        try:
            from pyarrow import parquet  # noqa: PLC0415

            from commands.replay.differences.columns import DIFFERENCES, table_of  # noqa: PLC0415 - pyarrow is an extra
        except ImportError as error:
            raise click.ClickException(f"Parquet needs pyarrow: {how_to_install('parquet')}") from error
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
