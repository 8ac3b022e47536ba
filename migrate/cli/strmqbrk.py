"""``qpubsub strmqbrk``: migrate a version 6 broker's state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from commands.broker.stream_names import NAME_SEPARATOR
from commands.options.queue_manager import queue_manager
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from migrate import embedded, extract as extraction, log as lines, strmqbrk
from migrate.cli import choices, running
from migrate.cli.choices import GivenSources
from migrate.plan import MigrationPlan, PlanOptions, Tool
from migrate.report.runbooks import cluster_runbook, hierarchy_runbook, topology_of
from migrate.source_checks import check_sources
from migrate.target import Target, existing_target
from rfh2.captures import write_captures

LOG_NAME = "psmigr.log"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one call of the verb is to do."""

    console: Console
    options: PlanOptions
    given: GivenSources
    now: datetime
    rehearse: bool
    out: Path | None
    as_json: bool
    detailed_exit_code: bool
    cluster: str | None
    racf: str | None


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
@click.option("--force", "-f", is_flag=True, help="Replace objects of the same name. Without it they are skipped.")
@click.option(
    "--log",
    "-l",
    "log_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The migration log.",
)
@click.option("--rehearse", is_flag=True, help="Plan and report everything; change nothing.")
@click.option(
    "--prefix", multiple=True, metavar="STREAM=TOPICSTR", help="A topic string for a stream instead of its name."
)
@click.option(
    "--name-separator",
    default=NAME_SEPARATOR,
    show_default=True,
    metavar="TEXT",
    help="The text between a subscription's name and the name of its stream.",
)
@click.option("--undo", is_flag=True, help="Restore what the last migration changed.")
@click.option("--extract", is_flag=True, help="Write the command messages that ask a version 6 broker for its state.")
@click.option("--stream", multiple=True, metavar="NAME", help="With --extract: a stream besides the default one.")
@choices.trust
@choices.cluster
@choices.outputs
@choices.detailed_exit_code
@choices.sources
@click.pass_obj
def command(
    console: Console,
    qmgr: str,
    home: Path,
    parent: str | None,
    force: bool,
    log_file: Path | None,
    rehearse: bool,
    prefix: tuple[str, ...],
    name_separator: str,
    undo: bool,
    extract: bool,
    stream: tuple[str, ...],
    source: tuple[str, ...],
    more: tuple[str, ...],
    target: str,
    existing: Path | None,
    racf: str | None,
    out: Path | None,
    as_json: bool,
    detailed_exit_code: bool,
    cluster: str | None,
    accept_unread: bool,
    from_qmgr: str | None,
) -> ExitCode:
    """Migrate the state of queue manager QMGR's version 6 broker into the queue manager.

    Sources are captured command traffic, metatopic publications, listings of amqspsd, retained publications in a queue
    unload, qm.ini, authority scripts, and JSON; several together make one state. Nothing is dropped: each item is
    migrated, changed with a reason, or reported. The log and the report have every item. If the queue manager has been
    migrated already, no action is taken.
    """
    given = (*source, *more)
    if undo:
        running.no_others("--undo", source=given, extract=extract, force=force, out=out, accept_unread=accept_unread)
        return running.undo(console, qmgr, home, Tool.STRMQBRK, rehearse=rehearse)
    if extract:
        return _extract(console, qmgr, stream)
    if not given:
        raise click.UsageError("FILE is missing: give the files with the legacy state")
    shown = _shown(parent, force, rehearse, name_separator, prefix, given)
    options = PlanOptions(
        parent,
        force,
        name_separator,
        choices.pairs("--prefix", prefix, "STREAM=TOPICSTR"),
        (*shown, *choices.trust_shown(accept_unread, from_qmgr)),
        accept_unread,
        from_qmgr,
    )
    now = choices.utc_now()
    sources = GivenSources.of(console, given)
    asked = _Asked(console, options, sources, now, rehearse, out, as_json, detailed_exit_code, cluster, racf)
    choices.check_existing(existing, target)
    choices.check_racf(racf, out)
    if target == "files":
        if out is None:
            raise click.UsageError("--target files needs --out DIRECTORY")
        script = choices.script(existing)
        return _run(asked, existing_target(qmgr, script, now), None, log_file or out / LOG_NAME)
    with QueueManagerStore.open(home, qmgr) as store:
        return _run(asked, embedded.load(store), store, log_file or store.directory / LOG_NAME)


def _run(asked: _Asked, known: Target, store: QueueManagerStore | None, log_file: Path) -> ExitCode:
    qmgr = known.objects.qmgr.name
    with running.migration_log(log_file, "a") as log:
        log.write_all(lines.opening(Tool.STRMQBRK, asked.options.from_qmgr or qmgr, qmgr, asked.options.shown))
        if strmqbrk.is_migrated(known):
            report = None if store is None else embedded.report_of(store, Tool.STRMQBRK)
            return running.already_migrated(asked.console, log, qmgr, report)
        state = asked.given.read(asked.options.from_qmgr or qmgr)
        log.write_all(lines.retrieved(state))
        if store is None and not asked.rehearse:
            check_sources(state, asked.options, Tool.STRMQBRK)
        # Writing files changes no queue manager, so their plan is that of a rehearsal.
        rehearse = asked.rehearse or store is None
        with asked.console.progress("items planned", sum(1 for _ in state.items())) as advance:
            plan = strmqbrk.plan(state, known, asked.options, asked.now, rehearse=rehearse, progress=advance)
        runbooks = {} if asked.out is None else _runbooks(plan, asked) | choices.racf_files(plan, asked.racf)
        wanted = running.Wanted(asked.out, asked.as_json, asked.detailed_exit_code, runbooks)
        return running.carry_out(asked.console, log, plan, known, store, wanted)


def _runbooks(plan: MigrationPlan, asked: _Asked) -> dict[str, str]:
    """Runbooks for the hierarchy in the sources; none if there is no neighbour."""
    topology = topology_of([plan.state, *asked.given.read_others(plan.state.qmgr)])
    made = {"runbook-hierarchy.md": hierarchy_runbook(topology)} if len(topology.parents) > 1 else {}
    if asked.cluster is not None:
        made["runbook-cluster.md"] = cluster_runbook(topology, asked.cluster)
    return made


def _extract(console: Console, qmgr: str, streams: tuple[str, ...]) -> ExitCode:
    messages = extraction.commands(qmgr, streams, choices.utc_now())
    count = write_captures(messages, console.binary, "jsonl")
    console.say(
        f"{count} command messages: put each on the queue that it names; {extraction.REPLY_QUEUE} gets the answers"
    )
    return ExitCode.DONE


def _shown(
    parent: str | None,
    force: bool,
    rehearse: bool,
    separator: str,
    prefix: tuple[str, ...],
    given: tuple[str, ...],
) -> tuple[str, ...]:
    """The options as the log lists them."""
    shown = [f"-p {parent}"] if parent else []
    shown += ["-f"] * force + ["--rehearse"] * rehearse
    shown += [f"--prefix {one}" for one in prefix]
    shown += [f"--name-separator {separator}"] if separator != NAME_SEPARATOR else []
    return (*shown, *(f"--source {one}" for one in given))
