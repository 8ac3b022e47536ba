"""Apply a plan from the command line: failures occur before anything is changed, or are reported afterwards.

log       opened, and what was read is written to it
outputs   written whole, beside their places
apply     one transaction, with the report in the queue manager's directory
--------- now the migration is done: a file that cannot be written is reported, and the exit code is 1
outputs   moved to their places
log       what was done
stdout    the report
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TextIO, TypeVar

import click

from commands.disk.files import directory_to_disk, make_directory, private
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate import embedded, log as lines
from migrate.cli import choices
from migrate.cli.choices import MigrationOptions, exit_code
from migrate.contents import Content, StagedFiles, disk
from migrate.ledger import Severity
from migrate.log import LogWriter
from migrate.plan import MigrationPlan, Phase, Tool, outcome_of
from migrate.plan_files import plan_files
from migrate.report.facts import facts
from migrate.report.outputs import encoded, outline, report_contents
from migrate.target import Target
from rfh2.errors import MigrationError, QPubSubError, system_words
from rfh2.terminal_escape import one_line, printable

OptionsT = TypeVar("OptionsT", bound=MigrationOptions)


@dataclass(slots=True)
class MigrationLog:
    """The log file of one call. is_done: whether the migration is in the queue manager."""

    path: Path
    writer: LogWriter
    began: float = field(default_factory=time.monotonic)
    is_done: bool = False

    def write_all(self, text: Iterator[str]) -> None:
        """Lines, on the disk when this returns. Raises MigrationError before the migration is done, OSError after."""
        try:
            self.writer.write_all(text)
            self.writer.sync()
        except OSError as error:
            if self.is_done:
                raise
            raise MigrationError(f"log {self.path}: {system_words(error)}; nothing was changed") from error


@contextmanager
def migration_log(path: Path, mode: Literal["a", "w"]) -> Iterator[MigrationLog]:
    """The log at *path*; its last line is the error that ends the call. Raises MigrationError if it is not writable."""
    with disk(f"log {path}", "; nothing was changed"):
        make_directory(path.parent)
        stream: TextIO = open(path, mode, encoding="utf-8", opener=private)  # noqa: SIM115 - closed below
        directory_to_disk(path.parent)
    log = MigrationLog(path, LogWriter(stream, choices.utc_now))
    try:
        yield log
    except BaseException as error:
        with suppress(OSError):
            log.writer.write(_ending(error, log.is_done))
        raise
    finally:
        # What the stream has buffered is either on the disk by now, or has been reported.
        with suppress(OSError):
            stream.close()


def _ending(error: BaseException, is_done: bool) -> str:
    if isinstance(error, QPubSubError):
        return f"Error: {error}"
    changed = "the migration is done" if is_done else "nothing was changed"
    return f"Interrupted, {changed}: {type(error).__name__}"


@dataclass(frozen=True, slots=True)
class Run(Generic[OptionsT]):
    """One call of strmqbrk or migmbbrk."""

    console: Console
    options: OptionsT
    log: MigrationLog
    known: Target  # the queue manager as it was before
    store: QueueManagerStore | None  # None for a queue manager of IBM MQ, for which files are written


def carry_out(
    run: Run[Any],
    plan: MigrationPlan,
    runbooks: Mapping[str, str],
    before_applying: Callable[[], None] = lambda: None,
) -> ExitCode:
    """Apply *plan* to the store, unless it is a rehearsal or there is none, and report; the verb's exit code.

    runbooks: files for ``--out``, by name. before_applying: called after all checks. Raises MigrationError, StoreError,
    OSError before anything is changed.
    """
    console, log, store, out = run.console, run.log, run.store, run.options.out
    files = None if out is None else plan_files(plan, run.known)
    if files is not None and store is None:
        plan = files.reported(plan)
    log.write_all(lines.reading(plan))
    found = facts(plan, run.known)
    reports = report_contents(found)
    contents: dict[str, Content] = {}
    if files is not None:
        contents = {**reports, **encoded(files, {**runbooks, **run.options.racf_files(plan)})}
    staged = None if out is None else StagedFiles(out, contents)
    kept: Path | None = None
    try:
        if store is not None and plan.phase is not Phase.REHEARSE:
            before_applying()
            with console.progress("steps applied", len(plan.steps)) as advance:
                kept = embedded.apply(store, plan, advance, reports)
            log.is_done = True
    except BaseException:
        if staged is not None:
            staged.discard()
        raise
    after = _Afterwards(console, kept)
    if kept is not None:
        console.say(f"backup, journal and report are in {kept}")
    if staged is not None and after.does(f"the files of --out {out} could not be moved there", staged.publish):
        console.say(f"scripts and report are in {out}")
    after.does(f"log {log.path} could not be finished", lambda: _finish_log(log, plan))
    after.does("the report could not be written", lambda: _print_report(console, found, run.options.as_json))
    warn_of_errors(console, plan)
    return exit_code(outcome_of(plan), detailed=run.options.detailed_exit_code, failed=after.failed)


@dataclass(slots=True)
class _Afterwards:
    """Actions after the migration. If nothing was changed, a failure is raised like any other."""

    console: Console
    kept: Path | None
    failed: bool = False

    def does(self, complaint: str, action: Callable[[], object]) -> bool:
        """Whether *action* succeeded. If nothing was changed, raises what it raises; BrokenPipeError always."""
        try:
            action()
        except BrokenPipeError:
            raise
        except OSError as error:
            if self.kept is None:
                raise
            self.failed = True
            again = f"the migration is done, and its report is in {self.kept / embedded.REPORT}"
            self.console.warn(f"{complaint}: {system_words(error)}; {again}")
            return False
        return True


def _finish_log(log: MigrationLog, plan: MigrationPlan) -> None:
    log.write_all(lines.applying(plan))
    log.write_all(lines.closing(plan, time.monotonic() - log.began))


def _print_report(console: Console, found: dict[str, object], as_json: bool) -> None:
    try:
        for line in outline(found, as_json):
            console.data(line)
        console.flush()
    except BrokenPipeError:
        raise
    except OSError:
        console.abandon_data()
        raise


def warn_of_errors(console: Console, plan: MigrationPlan) -> None:
    """Print errors on the terminal as well: each is something that would be lost unless a person acts."""
    errors = [fate for fate in plan.fates if fate.severity is Severity.ERROR]
    for reason in plan.warnings:
        if reason.severity is Severity.ERROR:
            console.warn(printable(reason.text))
    for fate in errors[:10]:
        why = next(reason.text for reason in fate.reasons if reason.severity is Severity.ERROR)
        console.warn(f"{printable(fate.label)} ({fate.source}): {printable(why)}")
    if len(errors) > 10:
        console.warn(f"and {len(errors) - 10} more errors; the log and the report have them all")


def already_migrated(console: Console, log: MigrationLog, qmgr: str, report: Path | None) -> ExitCode:
    """No action is taken (guide 7.1). report: the path of the first migration's report, if it was kept."""
    where = "" if report is None else f"; the report of that migration is in {report}"
    log.writer.write(f"Queue manager {qmgr} has already been migrated: no action is taken{where}")
    console.say(f"queue manager {qmgr} has already been migrated: no action was taken{where}")
    return ExitCode.DONE


def undo(console: Console, options: MigrationOptions, tool: Tool) -> ExitCode:
    """Restore what the last migration changed; a rehearsal prints what that would be, an object a line."""
    rehearse = options.rehearse
    with QueueManagerStore.open(options.home, options.qmgr) as store:
        undone = embedded.undo(store, tool, rehearse=rehearse, force=options.force)
    if rehearse:
        for change in undone.changes:
            console.data(one_line(change))
        console.say(f"rehearsal: {counted(undone.given_back, 'object')} would be taken back; nothing was changed")
    else:
        console.say(f"{undone.given_back} objects, subscriptions and retained publications were taken back")
    for left in undone.left:
        console.warn(f"{'would be left' if rehearse else 'left'}: {left}")
    for line in undone.others:
        console.warn(lines.changed_since(one_line(line), rehearse=rehearse, force=options.force))
    return ExitCode.PROBLEMS if undone.left or undone.others else ExitCode.DONE


def no_others(undoing: str, **given: object) -> None:
    """Raises UsageError if an option does not apply to *undoing*. given: option names and values."""
    others = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if others:
        raise click.UsageError(f"{undoing} can be used with --rehearse, not with {', '.join(others)}")
