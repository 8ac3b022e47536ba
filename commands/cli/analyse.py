"""``qpubsub analyse``: what is in a capture, by tables that people ask for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from commands.cli.console import Console, ExitCode
from commands.cli.reading import Reading, tell_problems
from commands.replay.analysis import AnalysisReport, LocalAnalysis
from commands.replay.analysis.html import page
from commands.replay.analysis.report import report_of
from commands.replay.analysis.text import lines_of
from commands.replay.local import OutOfOrderError
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS
from rfh2.distribution import how_to_install

ENGINES: Final = ("local", "spark")
_MOST_ROWS: Final = 1000


@click.command(
    epilog="\b\nExamples:\n  qpubsub analyse --input captures/ --setup streams.mqsc\n"
    "  qpubsub analyse --input captures/ --html analysis.html --output tables/"
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
    "--semantics",
    type=click.Choice(["v7", "v6"]),
    default="v7",
    show_default=True,
    help="Whose behaviour, where versions 6 and 7 differ.",
)
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="MQSC for every queue manager to start with.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Every table whole, as Parquet."
)
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
    semantics: str,
    setup: Path | None,
    output: Path | None,
    html: Path | None,
    as_json: bool,
) -> ExitCode:
    """Replay INPUT and tell what is in it.

    Traffic by stream, topic and application; subscriptions never matched; topics never subscribed; duplicate deliveries
    from overlapping subscriptions; retained publications that nobody reads; errors by reason and program. The report,
    as JSON and as a page, has the first thousand rows of each table; --output has all.
    """
    if master is not None and engine != "spark":
        raise click.UsageError("--master needs --engine spark")
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    if engine == "spark":
        report, problems = _on_spark(console, source, form, script, semantics, output, master)
    else:
        report, problems = _here(console, source, form, script, semantics, output)
    if html is not None:
        html.write_text(page(report, str(source)), encoding="utf-8")
    if as_json:
        console.data(report.model_dump_json())
    else:
        for line in lines_of(report):
            console.data(line)
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


def _here(
    console: Console, source: Path, form: str, script: str, semantics: str, output: Path | None
) -> tuple[AnalysisReport, int]:
    if output is not None:
        try:
            from commands.replay.analysis.files import check_place, write_tables  # noqa: PLC0415 - pyarrow is an extra
        except ImportError as error:
            raise click.ClickException(f"Parquet needs pyarrow: {how_to_install('parquet')}") from error
        check_place(output)
    reading = Reading(console, source, form)
    try:
        analysis = _analysed(console, reading.messages(), script, semantics)
    except OutOfOrderError:
        reading.problems = 0
        in_order = sorted(reading.messages(), key=lambda message: message.seq)
        analysis = _analysed(console, in_order, script, semantics)
    if output is not None:
        write_tables(analysis.rows, output)
    return report_of(analysis.look, semantics, _MOST_ROWS), reading.problems


def _analysed(console: Console, messages: Iterable[CapturedMessage], script: str, semantics: str) -> LocalAnalysis:
    analysis = LocalAnalysis(script, semantics)
    with console.progress("messages analysed") as advance:
        for message in messages:
            analysis.take(message)
            advance(1)
    return analysis


def _on_spark(
    console: Console, source: Path, form: str, script: str, semantics: str, output: Path | None, master: str | None
) -> tuple[AnalysisReport, int]:
    try:
        from commands.replay.spark import LOCAL, session  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.analysing import analyse, check  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed: {how_to_install('spark')}") from error
    check(source, script)
    spark = session(master or LOCAL)
    try:
        report, capture = analyse(spark, source, form, script, semantics, output, _MOST_ROWS)
    finally:
        spark.stop()
    tell_problems(console, capture.told, capture.problems)
    return report, capture.problems
