"""``qpubsub strmqbrk``: migrate a version 6 broker's state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from commands.broker.identity import NAME_SEPARATOR
from commands.options.queue_manager import queue_manager
from commands.options.verb import FILE, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate import embedded, extract as extraction, log as lines, strmqbrk
from migrate.cli import choices, running
from migrate.cli.choices import GivenSources, MigrationOptions
from migrate.plan import MigrationPlan, PlanOptions, Tool
from migrate.report.runbooks import cluster_runbook, hierarchy_runbook, topology_of
from migrate.source_checks import check_sources
from rfh2.captures import write_captures

LOG_NAME = "psmigr.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(MigrationOptions):
    """What an administrator gives to strmqbrk."""

    parent: str | None
    log_file: Path | None
    name_separator: str
    extract: bool
    stream: tuple[str, ...]  # with --extract: besides the default one

    @property
    def shown(self) -> tuple[str, ...]:
        """As the log lists them."""
        shown = [f"-p {self.parent}"] if self.parent else []
        shown += ["-f"] * self.force + ["--rehearse"] * self.rehearse
        shown += [f"--prefix {one}" for one in self.prefix]
        shown += [f"--name-separator {self.name_separator}"] if self.name_separator != NAME_SEPARATOR else []
        return (*shown, *(f"--source {one}" for one in self.given), *self.trust_shown)

    def of_plan(self) -> PlanOptions:
        own = MigrationOptions.of_plan(self)
        return replace(own, parent=self.parent, overwrite=self.force, separator=self.name_separator)


@verb(
    "qpubsub strmqbrk -m QM1 --rehearse capture.jsonl qm.ini",
    "qpubsub strmqbrk -m QM1 -l psmigr.log state/ --out migration",
    "qpubsub strmqbrk -m QM1 --undo",
    "qpubsub strmqbrk -m QM1 --extract --stream Sport -o extract.jsonl",
    prints=True,
    exit_codes=choices.HELP,
)
@queue_manager
@click.option(
    "--parent",
    "-p",
    metavar="QMGR",
    help="Deprecated: the parent is migrated without it. Another parent than the recorded one is an error.",
)
@click.option(
    "--force",
    "-f",
    is_flag=True,
    help="Replace objects of the same name; else they are skipped. With --undo: also undo what others have changed.",
)
@click.option("--log", "-l", "log_file", type=FILE, metavar="FILE", help="The migration log.")
@click.option("--rehearse", is_flag=True, help="Plan and report everything; change nothing.")
@click.option(
    "--name-separator",
    default=NAME_SEPARATOR,
    show_default=True,
    metavar="TEXT",
    help="The text between a subscription's name and the name of its stream.",
)
@click.option(
    "--undo",
    is_flag=True,
    help="Undo the last migration. What others have changed since is kept, and listed; --force undoes it too.",
)
@click.option("--extract", is_flag=True, help="Write the command messages that ask a version 6 broker for its state.")
@click.option("--stream", multiple=True, metavar="QUEUE", help="With --extract: a stream besides the default.")
@choices.shared
@click.pass_obj
def command(console: Console, /, **given: Any) -> ExitCode:
    """Migrate the state of queue manager QMGR's version 6 broker into the queue manager.

    Sources are captured command traffic, metatopic publications, listings of amqspsd, retained publications in a queue
    unload, qm.ini, authority scripts, and JSON; several together make one state. Nothing is dropped: each item is
    migrated, changed with a reason, or reported. The log and the report have every item. If the queue manager has been
    migrated already, no action is taken.
    """
    options = _Options(**given)
    if options.undo:
        others = {"source": options.given, "extract": options.extract, "out": options.out}
        running.no_others("--undo", **others, accept_unread=options.accept_unread)
        return running.undo(console, options, Tool.STRMQBRK)
    if options.extract:
        return _extract(console, options)
    if not options.given:
        raise click.UsageError("FILE is missing: give the files with the legacy state")
    of_plan = options.of_plan()
    sources = GivenSources.of(console, options.given)
    options.check()
    with options.known() as (known, store):
        directory = options.out if store is None else store.directory
        assert directory is not None
        with running.migration_log(options.log_file or directory / LOG_NAME, "a") as log:
            return _run(running.Run(console, options, log, known, store), of_plan, sources)


def _run(run: running.Run[_Options], of_plan: PlanOptions, given: GivenSources) -> ExitCode:
    options, store, qmgr = run.options, run.store, run.options.qmgr
    run.log.write_all(lines.opening(Tool.STRMQBRK, options.from_qmgr or qmgr, qmgr, of_plan.shown))
    if strmqbrk.is_migrated(run.known):
        report = None if store is None else embedded.report_of(store, Tool.STRMQBRK)
        return running.already_migrated(run.console, run.log, qmgr, report)
    state = given.read(options.from_qmgr or qmgr)
    run.log.write_all(lines.retrieved(state))
    if store is None and not options.rehearse:
        check_sources(state, of_plan, Tool.STRMQBRK)
    # Writing files changes no queue manager, so their plan is that of a rehearsal.
    rehearse = options.rehearse or store is None
    with run.console.progress("items planned", sum(1 for _ in state.items())) as advance:
        plan = strmqbrk.plan(state, run.known, of_plan, options.now, rehearse=rehearse, progress=advance)
    return running.carry_out(run, plan, {} if options.out is None else _runbooks(plan, options, given))


def _runbooks(plan: MigrationPlan, options: _Options, given: GivenSources) -> dict[str, str]:
    """Runbooks for the hierarchy in the sources; none if there is no neighbour."""
    topology = topology_of([plan.state, *given.read_others(plan.state.qmgr)])
    made = {"runbook-hierarchy.md": hierarchy_runbook(topology)} if len(topology.parents) > 1 else {}
    if options.cluster is not None:
        made["runbook-cluster.md"] = cluster_runbook(topology, options.cluster)
    return made


def _extract(console: Console, options: _Options) -> ExitCode:
    messages = extraction.commands(options.qmgr, options.stream, options.now)
    count = write_captures(messages, console.binary, "jsonl")
    console.say(
        f"{counted(count, 'command message')}: put each on the queue that it names; "
        f"{extraction.REPLY_QUEUE} gets the answers"
    )
    return ExitCode.DONE
