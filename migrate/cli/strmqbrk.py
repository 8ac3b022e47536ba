"""``qpubsub strmqbrk``: migrate a version 6 broker's state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from commands.cli.console import Console, ExitCode
from commands.cli.options import queue_manager
from commands.queues import QueueManagerStore
from commands.queues.permissions import make_directory, private
from commands.stream_names import NAME_SEPARATOR
from migrate import extract as extraction
from migrate import log as lines
from migrate import strmqbrk
from migrate.cli import choices
from migrate.legacy_state import LegacyState
from migrate.plan import Plan, PlanOptions, Tool
from migrate.readers import read_others, read_sources
from migrate.report import outline, write_outputs
from migrate.runbooks import cluster_runbook, hierarchy_runbook, topology_of
from migrate.target import Target
from migrate.targets import embedded
from rfh2.captures import write_captures
from rfh2.errors import MigrationError

LOG_NAME = "psmigr.log"


@dataclass(frozen=True, slots=True)
class _Telling:
    """Where and how the result is told."""

    out: Path | None
    as_json: bool
    cluster: str | None
    given: tuple[str, ...]


@click.command(
    epilog="\b\nExamples:\n  qpubsub strmqbrk -m QM1 --rehearse --source capture.jsonl qm.ini\n"
    "  qpubsub strmqbrk -m QM1 -l psmigr.log --source state/ --out migration\n"
    "  qpubsub strmqbrk -m QM1 --undo\n"
    "  qpubsub strmqbrk -m QM1 --extract --stream Sport > extract.jsonl"
)
@queue_manager
@click.option(
    "--parent", "-p", metavar="QMGR", help="Deprecated: the parent migrates by itself; another one is an error."
)
@click.option("--force", "-f", is_flag=True, help="Replace objects of the same name; without it they are skipped.")
@click.option(
    "--log",
    "-l",
    "log_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The migration log.",
)
@click.option("--rehearse", is_flag=True, help="Decide and report everything; change nothing.")
@click.option(
    "--prefix", multiple=True, metavar="STREAM=TOPICSTR", help="A topic string for a stream instead of its name."
)
@click.option(
    "--name-separator",
    default=NAME_SEPARATOR,
    show_default=True,
    metavar="TEXT",
    help="Between a subscription's name and the stream's that is appended to it.",
)
@click.option("--undo", is_flag=True, help="Give back what the last migration changed.")
@click.option(
    "--extract", is_flag=True, help="Write the command messages that get the state out of a version 6 broker."
)
@click.option("--stream", multiple=True, metavar="NAME", help="With --extract: a stream besides the default one.")
@choices.cluster
@choices.outputs
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
    out: Path | None,
    as_json: bool,
    cluster: str | None,
) -> ExitCode:
    """Migrate the state of queue manager QMGR's version 6 broker into the queue manager.

    Sources are captured command traffic, metatopic publications, listings of amqspsd, retained publications in a queue
    unload, qm.ini, authority scripts, and JSON; several together make one state. Nothing is dropped: each item is
    migrated, changed with a reason, or reported, in the log and in the report. A queue manager that has been migrated
    is left alone.
    """
    if extract:
        return _extract(console, qmgr, stream)
    if undo:
        return _undo(console, qmgr, home)
    given = (*source, *more)
    if not given:
        raise click.UsageError("--source is needed: where is the legacy state?")
    shown = _shown(parent, force, rehearse, name_separator, prefix, given)
    options = PlanOptions(parent, force, name_separator, choices.pairs("--prefix", prefix, "STREAM=TOPICSTR"), shown)
    now = choices.utc_now()
    if target == "files":
        if out is None:
            raise click.UsageError("--target files needs --out: where are they to go?")
        script = existing.read_text(encoding="utf-8") if existing is not None else ""
        known = Target.of_script(qmgr, script, now)
        telling = _Telling(out, as_json, cluster, given)
        return _files(console, known, options, now, given, log_file or out / LOG_NAME, telling)
    with QueueManagerStore.open(home, qmgr) as store:
        telling = _Telling(out, as_json, cluster, given)
        return _embedded(console, store, options, now, given, log_file, rehearse, telling)


def _embedded(
    console: Console,
    store: QueueManagerStore,
    options: PlanOptions,
    now: datetime,
    given: tuple[str, ...],
    log_file: Path | None,
    rehearse: bool,
    telling: _Telling,
) -> ExitCode:
    began = time.monotonic()
    with open(log_file or store.directory / LOG_NAME, "a", encoding="utf-8", opener=private) as stream:
        log = choices.log_to(stream)
        known = embedded.load(store)
        log.write_all(lines.opening(Tool.STRMQBRK, store.name, store.name, options.shown))
        if strmqbrk.is_migrated(known):
            log.write(f"Queue manager {store.name} has already been migrated: no action is taken")
            console.say(f"queue manager {store.name} has already been migrated: no action was taken")
            return ExitCode.DONE
        changed = "nothing was changed"
        try:
            state = read_sources(given, store.name)
            plan = _planned(console, state, known, options, now, rehearse)
            log.write_all(lines.reading(plan))
            if not rehearse:
                with console.progress("steps applied", len(plan.steps)) as advance:
                    directory = embedded.apply(store, plan, advance)
                changed = "the migration is done"
                console.say(f"backup and journal are in {directory}")
            log.write_all(lines.applying(plan))
            log.write_all(lines.closing(plan, time.monotonic() - began))
        except MigrationError as error:
            log.write(f"Error: {error}")
            raise
        except BaseException as error:
            log.write(f"Interrupted, {changed}: {type(error).__name__}")
            raise
    return _told(console, plan, known, telling)


def _files(
    console: Console,
    known: Target,
    options: PlanOptions,
    now: datetime,
    given: tuple[str, ...],
    log_file: Path,
    telling: _Telling,
) -> ExitCode:
    make_directory(log_file.parent)
    with open(log_file, "a", encoding="utf-8", opener=private) as stream:
        log = choices.log_to(stream)
        qmgr = known.objects.qmgr.name
        log.write_all(lines.opening(Tool.STRMQBRK, qmgr, qmgr, options.shown))
        if strmqbrk.is_migrated(known):
            log.write(f"Queue manager {qmgr} has already been migrated: no action is taken")
            console.say(f"queue manager {qmgr} has already been migrated: no action was taken")
            return ExitCode.DONE
        try:
            plan = _planned(console, read_sources(given, qmgr), known, options, now, rehearse=True)
        except MigrationError as error:
            log.write(f"Error: {error}")
            raise
        log.write_all(lines.reading(plan))
        log.write_all(lines.applying(plan))
        log.write_all(lines.closing(plan))
    return _told(console, plan, known, telling)


def _planned(
    console: Console, state: LegacyState, known: Target, options: PlanOptions, now: datetime, rehearse: bool
) -> Plan:
    total = sum(1 for _ in state.items())
    with console.progress("items planned", total) as advance:
        return strmqbrk.plan(state, known, options, now, rehearse=rehearse, progress=advance)


def _told(console: Console, plan: Plan, known: Target, telling: _Telling) -> ExitCode:
    if telling.out is not None:
        write_outputs(plan, known, telling.out, _runbooks(plan, telling))
        console.say(f"scripts and report are in {telling.out}")
    for line in outline(plan, known, telling.as_json):
        console.data(line)
    choices.tell_errors(console, plan)
    return choices.exit_code(plan)


def _runbooks(plan: Plan, telling: _Telling) -> dict[str, str]:
    """Runbooks for the hierarchy that the sources tell of; none where there is no neighbour."""
    topology = topology_of([plan.state, *read_others(telling.given, plan.state.qmgr)])
    made = {"runbook-hierarchy.md": hierarchy_runbook(topology)} if len(topology.parents) > 1 else {}
    if telling.cluster is not None:
        made["runbook-cluster.md"] = cluster_runbook(topology, telling.cluster)
    return made


def _undo(console: Console, qmgr: str, home: Path) -> ExitCode:
    with QueueManagerStore.open(home, qmgr) as store:
        undone = embedded.undo(store, Tool.STRMQBRK)
    console.say(f"{undone.given_back} objects, subscriptions and retained publications are as they were")
    for left in undone.left:
        console.warn(left)
    return ExitCode.PROBLEMS if undone.left else ExitCode.DONE


def _extract(console: Console, qmgr: str, streams: tuple[str, ...]) -> ExitCode:
    messages = extraction.commands(qmgr, streams, choices.utc_now())
    count = write_captures(messages, console.binary, "jsonl")
    console.say(f"{count} command messages: put each on the queue it names; answers come to {extraction.REPLY_QUEUE}")
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


__all__ = ["command"]
