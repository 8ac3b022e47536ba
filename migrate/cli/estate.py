"""``qpubsub estate``: extract, plan, rehearse, apply, verify and undo the migration of many brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.disk.errors import QueueManagerInUseError
from commands.disk.lock import exclusive, require_locks
from commands.disk.permissions import make_directory
from commands.network.estate_file import Estate, EstateQueueManager, read_estate
from commands.options.queue_manager import HOME
from commands.options.verb import given_on_the_line, verb
from commands.terminal.console import Console, ExitCode
from migrate.cli import choices, live_options
from migrate.cli.estate_waves import Asked, act, check_checkpoints, check_earlier_waves, overview_of
from migrate.estate.item_rows import plan_differences, unpacked
from migrate.estate.overview import as_json, of_overview, some
from migrate.estate.pack import Applications, read_applications, write_pack
from migrate.estate.records import FATES, WORK, BrokerState
from migrate.estate.workers import ACTIONS, default_processes
from migrate.log import one_line
from rfh2.errors import MigrationError

_LOCK: Final = "estate.lock"
_ACTIONS: Final = (*ACTIONS, "status", "diff", "pack")
_OWN_OPTIONS: Final = {
    "again": ("extract", "plan"),
    "scripts": ("plan",),
    "create": ("apply",),
    "initial": ("apply",),
    "every": ("apply",),
    "until": ("apply",),
    "confirm": ("apply",),
    "wait_s": ("extract", "apply"),
    "before": ("diff",),
    "out": ("pack",),
    "applications": ("pack",),
    "jobs": tuple(ACTIONS),
}
_CALLED: Final = {"every": "all", "wait_s": "wait"}
EXIT_CODES: Final = {
    0: "done; diff: the plans are the same",
    1: "done, and a person must look: something is lost, means something else, collides, differs or was refused",
    2: "nothing was changed",
}


@verb(
    "qpubsub estate extract bank/",
    "qpubsub estate plan bank/",
    "qpubsub estate rehearse bank/",
    "qpubsub estate status bank/ --json",
    "qpubsub estate apply bank/ --wave 1",
    "qpubsub estate apply bank/ --wave 1 --all --confirm stopped",
    "qpubsub estate verify bank/ --wave 1",
    "qpubsub estate undo bank/ --only BANKFX",
    "qpubsub estate pack bank/ --out board --applications applications.toml",
    prints=True,
    exit_codes=EXIT_CODES,
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="|".join(_ACTIONS))
@click.argument("directory", type=click.Path(path_type=Path, exists=True), default=".", metavar="[DIRECTORY]")
@HOME
@click.option("--only", multiple=True, metavar="QMGR", help="Only this queue manager; may be repeated.")
@click.option("--wave", multiple=True, type=int, metavar="N", help="Only the brokers of this wave; may be repeated.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many brokers at once; the default is the number of processors. Each needs memory for one broker.",
)
@click.option("--again", is_flag=True, help="extract, plan: also the brokers for which it was done.")
@click.option(
    "--scripts", is_flag=True, help="plan: write the files for IBM MQ too, into migration/QMGR/plans/N/scripts."
)
@click.option("--create", is_flag=True, help="apply: make the queue managers that do not exist, with their setup.")
@click.option("--initial", is_flag=True, help="apply: only the initial phase of Event Brokers and Message Brokers.")
@click.option(
    "--all", "every", is_flag=True, help="apply: all checkpoints of a live queue manager, not only the next one."
)
@click.option("--until", metavar="CHECKPOINT", help="apply: its checkpoints up to this one.")
@click.option(
    "--confirm",
    multiple=True,
    metavar="CHECKPOINT",
    help="apply: what a person has to do at this checkpoint is done on all chosen queue managers; may be repeated.",
)
@live_options.wait
@click.option("--accept-old", is_flag=True, help="apply: also plans whose sources are older than estate.toml allows.")
@click.option("--force", is_flag=True, help="undo: take back also what others have changed since.")
@click.option(
    "--before", type=click.IntRange(1), metavar="N", help="diff: compare with plan N, not with the one before."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help="pack: write it here.",
)
@click.option(
    "--applications",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="pack: names of applications by queue, user and program; without it, applications are found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
@click.pass_obj
def command(
    console: Console,
    action: str,
    directory: Path,
    home: Home,
    only: tuple[str, ...],
    wave: tuple[int, ...],
    jobs: int | None,
    again: bool,
    scripts: bool,
    create: bool,
    initial: bool,
    every: bool,
    until: str | None,
    confirm: tuple[str, ...],
    wait_s: float,
    accept_old: bool,
    force: bool,
    before: int | None,
    out: Path | None,
    applications: Path | None,
    as_json: bool,
) -> ExitCode:
    """Migrate all the brokers that estate.toml in DIRECTORY lists.

    extract takes sources from live queue managers, and the objects that are there; estate.toml says how to reach them.
    plan reads the sources of each broker and plans it; nothing is changed. rehearse carries each plan out on a copy and
    takes it back. apply does it, wave after wave; a wave begins when all brokers of the wave before are done. verify
    compares the queue managers with their plans. undo takes the migrations back, the last wave first. status shows how
    far each broker is, the sums, and what collides across brokers; diff shows what differs from the plan before. pack
    writes a report for a change board, by application, with runbook, rollback criteria and sign-off.

    An embedded queue manager is done as a whole or not at all; on a live one, apply carries out the next checkpoint of
    its plan. After an interruption, run the same command again: what is done stays done. One that cannot be reached is
    named, and the others go on. The work is kept in DIRECTORY/migration.
    """
    _check_options(action)
    estate = read_estate(directory)
    chosen = tuple(_chosen(estate, only, wave))
    if action in ACTIONS and not only:
        chosen = tuple(each for each in chosen if each.is_migrated)
    if not chosen:
        raise click.UsageError("no queue manager of estate.toml that is chosen has a source: there is nothing to do")
    given: dict[str, Any] = {"again": again, "scripts": scripts, "create": create, "initial": initial}
    given |= {
        "every": every,
        "until": until,
        "confirmed": frozenset(confirm),
        "wait_s": wait_s,
        "accept_old": accept_old,
        "force": force,
    }
    asked = Asked(console, action, estate, home, chosen, jobs or default_processes(), as_json, given)
    if action == "status":
        return _status(asked)
    if action == "diff":
        return _diff(asked, before)
    if action == "pack":
        return _pack(asked, out, applications)
    with _alone(estate):
        if action == "apply":
            if not only:
                check_earlier_waves(asked)
            check_checkpoints(asked, (*confirm, *([] if until is None else [until])))
        _warn_of_exposed_secrets(asked)
        return act(asked)


def _check_options(action: str) -> None:
    for name, actions in _OWN_OPTIONS.items():
        if given_on_the_line(name) and action not in actions:
            raise click.UsageError(f"--{_CALLED.get(name, name)} goes with {', '.join(actions)}, not with {action}")


def _chosen(estate: Estate, only: tuple[str, ...], waves: tuple[int, ...]) -> Iterator[EstateQueueManager]:
    named = {estate.named(name).name for name in only}
    for number in waves:
        if number not in estate.waves:
            there = ", ".join(map(str, estate.waves))
            raise click.UsageError(f"--wave {number}: estate.toml has no such wave; it has {there}")
    for each in estate.queue_managers:
        if (not named or each.name in named) and (not waves or each.wave in waves):
            yield each


def _warn_of_exposed_secrets(asked: Asked) -> None:
    """Of each file with users and passwords once."""
    configs = {asked.estate.config_of(each) for each in asked.chosen if each.is_live}
    configs |= {asked.estate.source_config_of(each) for each in asked.chosen if each.extract is not None}
    for path in sorted(config for config in configs if config is not None):
        for exposed in exposed_secrets(read_config(path)):
            asked.console.warn(exposed)


@contextmanager
def _alone(estate: Estate) -> Iterator[None]:
    """No other process works on this estate. Raises MigrationError."""
    work = estate.directory / WORK
    try:
        require_locks("an estate")
        make_directory(work)
        with exclusive(work / _LOCK, "") as held:
            yield held
    except QueueManagerInUseError as error:
        by = f" by process {error.holder}" if error.holder else ""
        raise MigrationError(f"{work} is being worked on{by}; wait for its end. Nothing was changed") from error


def _status(asked: Asked) -> ExitCode:
    found = overview_of(asked)
    if asked.as_json:
        asked.console.data(json.dumps(as_json(found), ensure_ascii=False))
        return ExitCode.DONE
    for line in of_overview(found, asked.chosen, with_collisions=True):
        asked.console.data(line)
    return ExitCode.DONE


def _pack(asked: Asked, out: Path | None, mapping: Path | None) -> ExitCode:
    if out is None:
        raise click.UsageError("pack needs --out: where is it to go?")
    applications = Applications() if mapping is None else read_applications(mapping)
    found = overview_of(asked)
    if not any(record.plan for record in found.records):
        raise MigrationError("no broker has a plan: run estate plan first")
    with asked.console.progress("items packed", found.sums.items) as advance:
        impact = write_pack(out, found, asked.estate, asked.home, applications, choices.utc_now(), advance)
    if asked.as_json:
        each = [{"application": one.name, **one.sums.model_dump()} for one in impact.applications]
        asked.console.data(json.dumps({"applications": each, "sums": impact.sums.model_dump()}, ensure_ascii=False))
    asked.console.say(f"{len(impact.applications)} applications, {impact.sums.items:,} items: {out / 'pack.html'}")
    without = [name for name in impact.without_plan if asked.estate.named(name).is_migrated]
    if without:
        asked.console.warn(f"without a plan, and not in the pack: {some(without)}")
    undone = [record.qmgr for record in found.records if record.state is BrokerState.UNDONE]
    if undone:
        asked.console.warn(f"undone, to be planned again before they can be applied: {some(undone)}")
    return ExitCode.PROBLEMS if without or undone else ExitCode.DONE


def _diff(asked: Asked, before: int | None) -> ExitCode:
    """The latest plan of each broker with the one before it, or with plan *before*."""
    is_different = False
    for each in asked.chosen:
        files = asked.job(each).files
        record, plans = files.record(), files.plans()
        if record is None or not record.plan:
            asked.console.say(f"{each.name}: it has no plan")
            continue
        earlier = [number for number in plans if number < record.plan and (before is None or number == before)]
        if not earlier:
            asked.console.say(
                f"{each.name}: plan {record.plan} is the only one"
                if before is None
                else f"{each.name}: there is no plan {before} before plan {record.plan}"
            )
            continue
        found = plan_differences(unpacked(files.plan(earlier[-1]) / FATES), unpacked(files.plan(record.plan) / FATES))
        is_different = is_different or bool(found)
        if asked.as_json:
            for one in found:
                asked.console.data(json.dumps(one.as_json(each.name), ensure_ascii=False))
            continue
        asked.console.data(f"{each.name}: plan {earlier[-1]} to plan {record.plan}: {len(found)} differences")
        for one in found:
            asked.console.data(f"  {one_line(one.line())}")
    return ExitCode.PROBLEMS if is_different else ExitCode.DONE
