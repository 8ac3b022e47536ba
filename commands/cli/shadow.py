"""``qpubsub shadow``: a running queue manager compared with version 7, each difference as it occurs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import click
from pydantic import ValidationError

from commands.options.captures import STDIN
from commands.options.replays import (
    CaptureReader,
    ReplayOptions,
    ReportForms,
    read_gate,
    replay_options,
    report_options,
)
from commands.options.verb import FILE_THAT_IS, verb
from commands.pages import Cell, Column, ColumnKind, Figure, Section, Severity, document, table
from commands.replay.differences import PutDifference
from commands.replay.differences.report import FINDING, RULES, DifferenceReport
from commands.replay.differences.shadow import Shadow, ShadowReport
from commands.replay.differences.text import example_text
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captured import CapturedMessage

T = TypeVar("T")

_PAUSE_S: Final = 0.5


@verb(
    "qpubsub shadow capture.jsonl --setup streams.mqsc --old v6-broker",
    "qpubsub shadow --follow capture.jsonl --html shadow.html --fail-on accepted.txt",
    exit_codes={
        0: "no difference; with --fail-on, FILE accepts all",
        1: "something differs, was not processed or could not be read; with --fail-on, more than FILE accepts",
    },
)
@replay_options(both_versions=True, on_spark=False)
@click.option(
    "--follow",
    is_flag=True,
    help="Do not end with FILE, which is JSON Lines, or the directory of a capture; wait for more. Ctrl-C ends it.",
)
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With --follow: end when no message has arrived for this time.",
)
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long, in the time of the capture, a publication waits for its copy on the subscriber queue.",
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="QUEUE",
    help="This subscriber queue is in the capture, also before its first message; you can repeat it.",
)
@click.option(
    "--fail-on",
    type=FILE_THAT_IS,
    metavar="FILE",
    help="End with 1 if there is more than FILE accepts. Each line of FILE is a rule and a number: D01 12.",
)
@report_options
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: ReplayOptions,
    follow: bool,
    idle_s: float | None,
    grace_s: float,
    queues: tuple[str, ...],
    fail_on: Path | None,
    forms: ReportForms,
) -> ExitCode:
    """Carry out the commands of a capture, and compare the result with what the queue manager's subscribers got.

    FILE has what arrived on the control queue and the stream queues, and what the queue manager put on subscriber
    queues. Each publication there is compared with what version 7 would put, and the other way round. A difference is
    printed when --grace has passed, with its rule, D01 to D34; a finding is a difference without a rule. At the end, or
    with Ctrl-C, the report says what was compared.
    """
    if follow and len(options.files) != 1:
        raise click.UsageError("--follow needs one FILE or directory")
    if idle_s is not None and not follow:
        raise click.UsageError("--idle needs --follow")
    gate = None if fail_on is None else read_gate(fail_on)
    reader = _Following(console, options.files[0], idle_s) if follow else CaptureReader(console, options)
    as_lines = not forms.as_json and str(forms.page) != "-"

    # A file that turns out not to be in order is read again: what it shows is told when it was read whole.
    at_once = follow or options.files == (STDIN,)

    def followed(messages: Iterable[CapturedMessage]) -> tuple[Shadow, list[str]]:
        shadow, held = Shadow(options.setup, options.semantics, grace_s, queues), list[str]()
        tell = console.data if at_once and as_lines else held.append
        try:
            for message in messages:
                _tell(console, shadow.take(message), tell)
        except KeyboardInterrupt:
            if not follow:
                raise
        _tell(console, shadow.end(), tell)
        return shadow, held

    shadow, held = reader.in_order(followed)
    for line in held if as_lines else ():
        console.data(line)
    report = shadow.report()
    forms.show(console, report, lambda: page(report, shadow.judged(), options.label), lambda: lines_of(report))
    if gate is None:
        failed = bool(report.differences or report.not_processed)
    else:
        exceeded = list(gate.exceeded(shadow.judged()))
        for line in exceeded:
            console.warn(f"--fail-on: {line}")
        failed = bool(exceeded)
    return ExitCode.PROBLEMS if failed or reader.problems else ExitCode.DONE


def _tell(console: Console, found: Iterator[PutDifference], tell: Callable[[str], object]) -> None:
    for each in found:
        tell(f"{each.time:%Y-%m-%d %H:%M:%S}  {each.rule}  {example_text(each)}")
        console.flush()


class _Following:
    """The messages of a file of JSON Lines that grows, or of a directory that gets such files from ``capture``."""

    def __init__(self, console: Console, path: Path, idle_s: float | None) -> None:
        self._console, self._path, self._idle_s = console, path, idle_s
        self.problems = 0

    def in_order(self, work: Callable[[Iterable[CapturedMessage]], T]) -> T:
        """As ``CaptureReader.in_order``; a capture that grows is in order."""
        return work(self._messages())

    def _messages(self) -> Iterator[CapturedMessage]:
        last = time.monotonic()
        for found in _files(self._path) if self._path.is_dir() else _lines(self._path, is_whole=False):
            if found is None:
                if self._idle_s is not None and time.monotonic() - last >= self._idle_s:
                    return
                time.sleep(_PAUSE_S if self._idle_s is None else min(_PAUSE_S, self._idle_s))
                continue
            where, line = found
            last = time.monotonic()
            try:
                yield CapturedMessage.model_validate_json(line)
            except ValidationError as error:
                self.problems += 1
                self._console.warn(f"{where}: {error.errors()[0]['msg']}")


def _files(directory: Path) -> Iterator[tuple[str, str] | None]:
    """The lines of its files in the order of their names; None where there are no more as yet. A file is whole when it
    has its name."""
    done: set[Path] = set()
    while True:
        for path in sorted(set(directory.glob("[!.]*.jsonl")) - done):
            yield from _lines(path, is_whole=True)
            done.add(path)
        yield None


def _lines(path: Path, *, is_whole: bool) -> Iterator[tuple[str, str] | None]:
    """Each line with its place; None where there are no more as yet."""
    with path.open(encoding="utf-8") as file:
        number, line = 0, ""
        while True:
            line += file.readline()
            if line.endswith("\n"):
                number += 1
                yield f"{path}, line {number}", line
                line = ""
            elif is_whole:
                return
            else:
                yield None


# The report of a shadow as text, and as the page that a change board reads.

_SECONDS_A_DAY = 86_400
_DIFFERENCES = "Differences by rule"
_UNWATCHED = "Queues that were not compared"


def lines_of(report: ShadowReport) -> Iterator[str]:
    """The report, line by line."""
    yield f"{counted(report.messages, 'message')}{_span(report)}"
    yield f"{report.same:,} publications on subscriber queues are what version 7 puts"
    yield f"{counted(report.differences, 'difference')}, {report.findings:,} of them without a rule"
    for rule, count in report.rules.items():
        yield f"  {rule}  {count:,}  {_title(rule)}"
    if report.unwatched:
        total, names = sum(report.unwatched.values()), ", ".join(list(report.unwatched)[:10])
        yield f"not compared: {counted(total, 'publication')} for {names}, where nothing was captured; see --queue"
    for stream, count in report.not_processed.items():
        yield f"not processed by either version: {counted(count, 'message')} on {stream}"


def page(report: ShadowReport, judged: DifferenceReport, source: str) -> str:
    """The page. judged: the differences with their examples. source: the capture, for its head."""
    rules: list[list[Cell]] = [
        [rule, _title(rule), count, "; ".join(_examples(judged, rule))] for rule, count in report.rules.items()
    ]
    unwatched: list[list[Cell]] = [[queue, count] for queue, count in report.unwatched.items()]
    sections = [
        Section(
            _DIFFERENCES,
            table(
                [Column("rule"), Column("what"), Column("differences", ColumnKind.NUMBER), Column("for example")], rules
            ),
            f"{report.differences:,}",
        ),
        Section(
            _UNWATCHED,
            table([Column("queue"), Column("publications", ColumnKind.NUMBER)], unwatched),
            f"{len(unwatched):,}",
        ),
    ]
    filled = [each for each, rows in zip(sections, (rules, unwatched), strict=True) if rows]
    lead = [
        f"{counted(report.messages, 'message')}{_span(report)}. The old queue manager went on; version 7 has done the "
        "same commands beside it, and every publication on a subscriber queue was compared with what version 7 puts."
    ]
    return document(f"Shadow of {source}", lead, list(_figures(report)), filled)


def _figures(report: ShadowReport) -> Iterator[Figure]:
    bad = Severity.BAD if report.findings else Severity.WARNING if report.differences else Severity.GOOD
    yield Figure(f"{report.differences:,}", "differences", bad, _DIFFERENCES if report.rules else "")
    yield Figure(f"{report.same:,}", "publications are the same", Severity.GOOD)
    yield Figure(f"{report.messages:,}", "messages")


def _span(report: ShadowReport) -> str:
    if report.since is None or report.until is None:
        return ""
    days = (report.until - report.since).total_seconds() / _SECONDS_A_DAY
    return f" in {days:,.1f} days, {report.since:%Y-%m-%d %H:%M:%S} to {report.until:%Y-%m-%d %H:%M:%S} UTC"


def _title(rule: str) -> str:
    return "no rule explains it" if rule == FINDING else RULES[rule].title


def _examples(judged: DifferenceReport, rule: str) -> Iterator[str]:
    for line in judged.rules:
        if line.name == rule:
            yield from (example_text(each) for each in line.examples[:2])
