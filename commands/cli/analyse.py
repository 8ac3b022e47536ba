"""``qpubsub analyse``: what is in a capture, by tables that people ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from commands.explain.selection import Choosing, MessageSelection
from commands.options import replays
from commands.options.captures import selection_options
from commands.options.replays import ReportForms, report_options
from commands.options.rows import RowForm, row_options
from commands.options.verb import DIRECTORY, verb
from commands.pages import MOST_ROWS
from commands.replay.analysis import AnalysisReport, LocalAnalysis
from commands.replay.analysis.html import page
from commands.replay.analysis.report import SECTIONS, columns_of, lines_of, report_of
from commands.replay.file_transfer import rows_of
from commands.replay.file_transfer.rows import FORMATS, TransferTables
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage

# Rows of each table on a terminal, where only the first few are shown.
_FEW_ROWS: Final = 100
_TABLES: Final = {asked.of.name: columns_of(asked) for asked in SECTIONS}


def _columns(own: Mapping[str, Any]) -> tuple[str, ...]:
    if own["table"] is None:
        raise click.UsageError(f"--csv and --line print one table: give --table {'|'.join(_TABLES)}")
    return _TABLES[own["table"]]


@verb(
    "qpubsub analyse captures/ --setup streams.mqsc",
    "qpubsub analyse capture.jsonl --html analysis.html --out tables/",
    "qpubsub analyse capture.jsonl --table never_matched --csv",
    "qpubsub analyse captures/ --since 2009-01-28T09:00 --until 2009-01-28T10:00",
    "qpubsub analyse captures/ --setup coordination.mqsc --file-transfers transfers/",
    former={"-o": "--out", "--output": "--out"},
    exit_codes={1: "some records could not be read"},
)
@replays.replay_options()
@selection_options("Report only")
@click.option(
    "--out",
    "output",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="Write all rows of every table to this directory, as Parquet.",
)
@click.option(
    "--file-transfers",
    "transfers",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="Write what agents of Managed File Transfer published to this directory, as tables.",
)
@click.option(
    "--file-transfers-as",
    "transfers_form",
    type=click.Choice(FORMATS),
    default="parquet",
    show_default=True,
    help="The format of these tables.",
)
@click.option(
    "--table",
    type=click.Choice(list(_TABLES)),
    help="With --csv or --line: the table whose rows are printed.",
)
@row_options(_columns)
@report_options
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    output: Path | None,
    transfers: Path | None,
    transfers_form: str,
    table: str | None,
    rows: RowForm | None,
    forms: ReportForms,
) -> ExitCode:
    """Replay the captured messages in each FILE, or on standard input, and report what is in them.

    The report shows traffic by stream, topic and application, subscriptions that no publication matched, topics
    without subscribers, duplicate deliveries from overlapping subscriptions, retained publications that no program
    reads, and errors by reason and program. As JSON, as CSV and as a page it has the first 100,000 rows of each table;
    --out writes all of them. --file-transfers also reads the messages of SYSTEM.FTE.

    --where, --since, --until, --seq and --limit choose what is reported. All messages are replayed anyway,
    because the result of one depends on those before it.
    """
    options.check(selection)
    if table is not None and rows is None:
        raise click.UsageError("--table needs --csv or --line")
    wanted = None if transfers is None else _Transfers(transfers, transfers_form)
    most = MOST_ROWS if forms.has_every_row or rows is not None else _FEW_ROWS
    if options.on_spark:
        report, problems = _on_spark(console, options, selection, output, wanted, most)
    else:
        report, problems = _here(console, options, selection, output, wanted, most)
    if wanted is not None:
        problems += wanted.problems
        counts = ", ".join(f"{count:,} {table}" for table, count in wanted.counts.items())
        bad = f"; {wanted.problems:,} of them with a problem" if wanted.problems else ""
        console.say(f"file transfers written to {wanted.directory}: {counts}{bad}")

    def lines() -> Iterable[str]:
        if rows is None or table is None:
            return lines_of(report, console.width)
        return rows.lines(report.section(table).model_dump(mode="json")["rows"])

    forms.show(console, report, lambda: page(report, options.label), lines)
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


@dataclass
class _Transfers:
    """Where the tables of file transfers go, and, once they are written, how many rows they have."""

    directory: Path
    form: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: int = 0

    @contextmanager
    def written(self) -> Iterator[Callable[[CapturedMessage], None]]:
        """Write them while inside: what is given takes each message. Raises FileExistsError."""
        with replays.importing(replays.PYARROW_MISSING):
            tables = TransferTables(self.directory, self.form)
        try:
            yield lambda message: tables.add(rows_of(message))
            tables.finish()
        except BaseException:
            tables.discard()
            raise
        self.counts, self.problems = tables.counts, tables.problems


@contextmanager
def _nothing_written() -> Iterator[Callable[[CapturedMessage], None]]:
    yield lambda _: None


def _here(
    console: Console,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    output: Path | None,
    transfers: _Transfers | None,
    most: int,
) -> tuple[AnalysisReport, int]:
    if output is not None:
        with replays.importing(replays.PYARROW_MISSING):
            from commands.replay.analysis.files import check_place, write_tables  # noqa: PLC0415 - pyarrow is an extra
        check_place(output)

    def analysed(messages: Iterable[CapturedMessage]) -> LocalAnalysis:
        analysis = LocalAnalysis(options.setup, options.semantics)
        written = _nothing_written() if transfers is None else transfers.written()
        with written as write_transfers, reader.progress("messages analysed") as advance:
            choosing = Choosing(selection)
            for message in messages:
                chosen = choosing.chooses(message)
                analysis.take(message, counted=chosen)
                if chosen:
                    write_transfers(message)
                advance(1)
                if choosing.is_over:
                    break
        return analysis

    reader = replays.CaptureReader(console, options)
    analysis = reader.in_order(analysed)
    if output is not None:
        write_tables(analysis.rows, output)
    return report_of(analysis.look, options.semantics, most), reader.problems


def _on_spark(
    console: Console,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    output: Path | None,
    transfers: _Transfers | None,
    most: int,
) -> tuple[AnalysisReport, int]:
    with replays.importing(replays.SPARK_MISSING):
        from commands.replay.spark.analysing import analyse  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.file_transfers import write_tables  # noqa: PLC0415
        from commands.replay.spark.piece_reader import NATURAL  # noqa: PLC0415
        from commands.replay.spark.prepare import selected  # noqa: PLC0415
        from commands.replay.spark.replay_setup import check  # noqa: PLC0415
        from commands.replay.spark.source import FORMAT  # noqa: PLC0415
    check(options.source, options.setup, options.semantics)
    with replays.spark_session(options) as spark:
        given = (options.source, options.form, options.setup, options.semantics)
        report, capture = analyse(spark, *given, output, most, selection, monotonic_clock=options.monotonic_clock)
        if transfers is not None:
            read = spark.read.format(FORMAT).option("format", options.form).option("defaultQueue", NATURAL)
            captured = selected(read.load(str(options.source)), selection)
            transfers.counts, transfers.problems = write_tables(captured, transfers.directory, transfers.form)
    replays.show_problems(console, capture.problem_texts, capture.problems)
    return report, capture.problems
