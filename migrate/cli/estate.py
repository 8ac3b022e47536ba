"""``qpubsub estate``: extract, plan, rehearse, apply, verify and undo the migration of many brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.disk.errors import QueueManagerInUseError
from commands.disk.files import make_directory
from commands.disk.lock import exclusive, require_locks
from commands.network.estate_file import Estate, EstateQueueManager, read_estate
from commands.options.queue_manager import HOME
from commands.options.verb import DIRECTORY, FILE_THAT_IS, F, Verb, verb_group
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.cli import choices, live
from migrate.estate.jobs import BrokerJob, BrokerResult, current, job_of
from migrate.estate.live_acting import ACTIONS, checkpoints_of, default_processes, results
from migrate.estate.overview import (
    EstateOverview,
    as_json,
    of_checkpoints,
    of_overview,
    of_reports,
    of_result,
    overview,
    some,
)
from migrate.estate.pack.collecting import Applications, read_applications
from migrate.estate.pack.files import write_pack
from migrate.estate.records import DONE, FATES, WORK, BrokerState, plan_differences, unpacked
from rfh2.errors import MigrationError
from rfh2.terminal_escape import one_line

_LOCK: Final = "estate.lock"
EXIT_CODES: Final = {
    0: "done",
    1: "done, and a person must look: something is lost, means something else, collides, differs or was refused",
    2: "nothing was changed",
}


@verb_group
def command() -> None:
    """Migrate all the brokers that estate.toml in DIRECTORY lists.

    An embedded queue manager is migrated completely or not at all; on a live one, apply carries out the next checkpoint
    of its plan. After an interruption, run the same command again: what is done stays done. A queue manager that cannot
    be reached is named, and the others go on. The work is kept in DIRECTORY/migration.
    """


def _on_estate(*examples: str, exit_codes: Mapping[int, str] = EXIT_CODES, **settings: Any) -> Callable[[F], Verb]:
    """A verb of the group, with the options that all have: its function gets *asked*, and its own options."""

    def made(function: F) -> Verb:
        action = function.__name__

        @wraps(function)
        def acting(console: Console, directory: Path, home: Home, as_json: bool, **own: Any) -> Any:
            estate = read_estate(directory)
            only, jobs = own.pop("only"), own.pop("jobs", None)
            chosen = tuple(_chosen(estate, only, own.pop("wave")))
            if action in ACTIONS and not only:
                chosen = tuple(each for each in chosen if each.is_migrated)
            if not chosen:
                none = "no queue manager of estate.toml that is chosen has a source: there is nothing to do"
                raise click.UsageError(none)
            asked = Asked(console, action, estate, home, chosen, jobs or default_processes(), as_json, bool(only))
            return function(asked, **own)

        options: list[Callable[[F], F]] = [
            click.pass_obj,
            _JSON,
            *([_JOBS] if action in ACTIONS else []),
            _WAVE,
            _ONLY,
            HOME,
            _DIRECTORY,
        ]
        verb: F = acting
        for option in options:
            verb = option(verb)
        return command.verb(*examples, prints=True, exit_codes=exit_codes, **settings)(verb)

    return made


_DIRECTORY: Final = click.argument(
    "directory", type=click.Path(path_type=Path, exists=True), default=".", metavar="[DIRECTORY]"
)
_ONLY: Final = click.option("--only", multiple=True, metavar="QMGR", help="Only this queue manager; you can repeat it.")
_WAVE: Final = click.option(
    "--wave", multiple=True, type=int, metavar="N", help="Only the brokers of this wave; you can repeat it."
)
_JOBS: Final = click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many brokers at once; the default is the number of processors. Each needs memory for one broker.",
)
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


@_on_estate("qpubsub estate extract bank/")
@click.option("--again", is_flag=True, help="Do it again for brokers for which it is done.")
@live.wait
def extract(asked: Asked, **given: Any) -> ExitCode:
    """Take sources from live queue managers, and the objects that are there; estate.toml says how to reach them."""
    return _acted(asked, given)


@_on_estate("qpubsub estate plan bank/")
@click.option("--again", is_flag=True, help="Do it again for brokers for which it is done.")
@click.option("--scripts", is_flag=True, help="Write the files for IBM MQ too, into migration/QMGR/plans/N/scripts.")
def plan(asked: Asked, **given: Any) -> ExitCode:
    """Read the sources of each broker and plan its migration; nothing is changed."""
    return _acted(asked, given)


@_on_estate("qpubsub estate rehearse bank/")
def rehearse(asked: Asked) -> ExitCode:
    """Carry each plan out on a copy, and take it back."""
    return _acted(asked, {})


@_on_estate(
    "qpubsub estate apply bank/ --wave 1 --create",
    "qpubsub estate apply bank/ --wave 1 --all --confirm stopped",
    former={"--until": "--through"},
)
@click.option("--create", is_flag=True, help="Make the queue managers that do not exist, with their setup.")
@click.option("--initial", is_flag=True, help="Only the initial phase of Event Brokers and Message Brokers.")
@click.option("--all", "every", is_flag=True, help="All checkpoints of a live queue manager, not only the next one.")
@click.option("--through", "until", metavar="CHECKPOINT", help="The checkpoints up to this one, and this one.")
@click.option(
    "--confirm",
    "confirmed",
    multiple=True,
    metavar="CHECKPOINT",
    help="A person has done what this checkpoint needs, on all chosen queue managers; you can repeat it.",
)
@click.option(
    "--accept-old", is_flag=True, help="Also plans whose sources are older than a day, or than estate.toml allows."
)
@live.wait
def apply(asked: Asked, confirmed: tuple[str, ...], until: str | None, **given: Any) -> ExitCode:
    """Carry the plans out, wave after wave; a wave begins when all brokers of the wave before are done."""
    named = (*confirmed, *([] if until is None else [until]))
    return _acted(asked, {**given, "confirmed": frozenset(confirmed), "until": until}, named)


@_on_estate("qpubsub estate verify bank/ --wave 1")
def verify(asked: Asked) -> ExitCode:
    """Compare the queue managers with their plans."""
    return _acted(asked, {})


@_on_estate("qpubsub estate undo bank/ --only BANKFX")
@click.option("--force", is_flag=True, help="Also undo what others have changed since.")
def undo(asked: Asked, **given: Any) -> ExitCode:
    """Undo the migrations, the last wave first."""
    return _acted(asked, given)


def _acted(asked: Asked, given: dict[str, Any], checkpoints: tuple[str, ...] = ()) -> ExitCode:
    asked.given.update(given)
    with _alone(asked.estate):
        if asked.action == "apply":
            if not asked.named:
                check_earlier_waves(asked)
            check_checkpoints(asked, checkpoints)
        _warn_of_exposed_secrets(asked)
        return act(asked)


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
        raise MigrationError(f"{work} is in use{by}; wait until that has ended. Nothing was changed") from error


@_on_estate("qpubsub estate status bank/ --json", exit_codes={})
def status(asked: Asked) -> ExitCode:
    """Show how far each broker is, the sums, and what collides across brokers."""
    found = overview_of(asked)
    if asked.as_json:
        asked.console.json(as_json(found))
        return ExitCode.DONE
    for line in of_overview(found, asked.chosen, with_collisions=True):
        asked.console.data(line)
    return ExitCode.DONE


@_on_estate(
    "qpubsub estate pack bank/ --out board --applications applications.toml",
    exit_codes={1: "done, and some brokers have no plan, or were undone"},
)
@click.option("--out", type=DIRECTORY, required=True, metavar="DIRECTORY", help="Write the report here.")
@click.option(
    "--applications",
    "mapping",
    type=FILE_THAT_IS,
    metavar="FILE",
    help="Names of applications by queue, user and program; without it, applications are found.",
)
def pack(asked: Asked, out: Path, mapping: Path | None) -> ExitCode:
    """Write a report for a change board, by application, with runbook, rollback criteria and sign-off."""
    applications = Applications() if mapping is None else read_applications(mapping)
    found = overview_of(asked)
    if not any(record.plan for record in found.records):
        raise MigrationError("no broker has a plan: run estate plan first")
    with asked.console.progress("items packed", found.sums.items) as advance:
        impact = write_pack(out, found, asked.estate, asked.home, applications, choices.utc_now(), advance)
    if asked.as_json:
        each = [{"application": one.name, **one.sums.model_dump()} for one in impact.applications]
        asked.console.json({"applications": each, "sums": impact.sums.model_dump()})
    sums = f"{counted(len(impact.applications), 'application')}, {counted(impact.sums.items, 'item')}"
    asked.console.say(f"{sums}: {out / 'pack.html'}")
    without = [name for name in impact.without_plan if asked.estate.named(name).is_migrated]
    if without:
        asked.console.warn(f"without a plan, and not in the pack: {some(without)}")
    undone = [record.qmgr for record in found.records if record.state is BrokerState.UNDONE]
    if undone:
        asked.console.warn(f"undone, to be planned again before they can be applied: {some(undone)}")
    return ExitCode.PROBLEMS if without or undone else ExitCode.DONE


@_on_estate("qpubsub estate diff bank/", exit_codes={0: "the plans are the same", 1: "the plans differ"})
@click.option("--before", type=click.IntRange(1), metavar="N", help="Compare with plan N, not with the one before.")
def diff(asked: Asked, before: int | None) -> ExitCode:
    """Show how the latest plan of each broker differs from the one before it."""
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
                asked.console.json(one.as_json(each.name))
            continue
        asked.console.data(
            f"{each.name}: plan {earlier[-1]} to plan {record.plan}: {counted(len(found), 'difference')}"
        )
        for one in found:
            asked.console.data(f"  {one_line(one.line())}")
    return ExitCode.PROBLEMS if is_different else ExitCode.DONE


# Carrying an action on an estate out, wave by wave, and what is said of it at the end.

_DONE: Final = {
    "extract": "extracted",
    "plan": "planned",
    "rehearse": "rehearsed",
    "apply": "applied",
    "verify": "compared",
    "undo": "undone",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call is to do."""

    console: Console
    action: str
    estate: Estate
    home: Home
    chosen: tuple[EstateQueueManager, ...]
    jobs: int
    as_json: bool
    named: bool  # the brokers, by --only
    given: dict[str, Any] = field(default_factory=dict)

    def job(self, of: EstateQueueManager) -> BrokerJob:
        """The job for one queue manager."""
        return job_of(self.estate, of, self.home, choices.utc_now(), **self.given)


def check_earlier_waves(asked: Asked) -> None:
    """Raises MigrationError if a broker of a wave before the first chosen one is not applied."""
    first = min(each.wave for each in asked.chosen)
    earlier = [each for each in asked.estate.queue_managers if each.wave < first and each.is_migrated]
    waiting = [each.name for each in earlier if current(asked.job(each)).state not in DONE]
    if waiting:
        raise MigrationError(
            f"wave {first} does not begin before the waves before it are done: {some(waiting)} "
            f"{'is' if len(waiting) == 1 else 'are'} not applied. --only takes brokers out of their turn"
        )


def check_checkpoints(asked: Asked, named: Iterable[str]) -> None:
    """Raises click.UsageError for a checkpoint that the plan of no chosen live queue manager has."""
    if not named:
        return
    known: dict[str, None] = {}
    for each in asked.chosen:
        if each.is_live and (record := current(asked.job(each))).plan:
            known |= dict.fromkeys(checkpoints_of(asked.job(each), record))
    for name in named:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "no live queue manager that is chosen has a plan"
            raise click.UsageError(f"there is no checkpoint {name}; {there}")


@dataclass(slots=True)
class _Tally:
    """How an action went."""

    acted: list[BrokerResult] = field(default_factory=list)
    already: list[BrokerResult] = field(default_factory=list)
    refused: list[BrokerResult] = field(default_factory=list)

    def add(self, result: BrokerResult) -> None:
        """Count one broker."""
        (self.refused if result.refused else self.acted if result.acted else self.already).append(result)

    def exit_code(self, needs_a_person: bool) -> ExitCode:
        """Of the verb."""
        if self.refused and not self.acted and not self.already:
            return ExitCode.USAGE
        return ExitCode.PROBLEMS if self.refused or needs_a_person else ExitCode.DONE


def act(asked: Asked) -> ExitCode:
    """Do the action for all chosen brokers; for apply and undo wave by wave."""
    tally = _Tally()
    not_begun: list[str] = []
    behind: list[str] = []
    # What a person has confirmed is true of the wave that is at work.
    is_confirmed = False
    waves = sorted({each.wave for each in asked.chosen}, reverse=asked.action == "undo")
    in_order = asked.action in ("apply", "undo")
    with asked.console.progress(f"brokers {_DONE[asked.action]}", len(asked.chosen)) as advance:
        for number in waves if in_order else (0,):
            of_wave = [each for each in asked.chosen if each.wave == number or not in_order]
            if asked.action == "apply" and (tally.refused or behind or is_confirmed):
                not_begun += (each.name for each in of_wave)
                continue
            for result in results(ACTIONS[asked.action], [asked.job(each) for each in of_wave], asked.jobs):
                tally.add(result)
                advance(1)
                record = result.record
                if record is not None and record.state is BrokerState.APPLYING:
                    behind.append(result.qmgr)
                is_confirmed = is_confirmed or (result.acted and bool(asked.given.get("confirmed")))
                for line in of_result(result):
                    asked.console.warn(line)
    found = overview_of(asked)
    _show(asked, found, tally, not_begun)
    if asked.action == "verify":
        differing = any(result.said for result in tally.acted)
        return tally.exit_code(differing)
    concerned = any(result.needs_a_person for result in (*tally.acted, *tally.already))
    collides = asked.action == "plan" and found.needs_a_person
    return tally.exit_code((asked.action != "undo" and (concerned or collides)) or any(r.said for r in tally.acted))


def _show(asked: Asked, found: EstateOverview, tally: _Tally, not_begun: list[str]) -> None:
    if asked.as_json:
        said: dict[str, object] = {"action": asked.action, "not_begun": not_begun}
        said |= {
            word: [{"qmgr": each.qmgr, "why": each.refused, "said": list(each.said)} for each in getattr(tally, word)]
            for word in ("acted", "already", "refused")
        }
        asked.console.json(said | as_json(found))
    else:
        for line in of_overview(found, asked.chosen, asked.action == "plan"):
            asked.console.data(line)
    differing = sum(bool(each.said) for each in tally.acted) if asked.action == "verify" else 0
    done = f"{counted(len(tally.acted), 'broker')} {_DONE[asked.action]}" + (
        f", {differing} differ" if differing else ""
    )
    already = f", {len(tally.already)} left as they were" if tally.already else ""
    refused = f", {len(tally.refused)} refused" if tally.refused else ""
    asked.console.say(f"{done}{already}{refused}")
    if asked.action == "plan":
        names = {each.name for each in asked.chosen}
        for line in of_reports((each for each in found.records if each.qmgr in names), asked.estate.directory):
            asked.console.say(line)
    if asked.action == "extract" and not any(each.is_live or each.extract for each in asked.chosen):
        asked.console.say("no live queue manager is chosen: there is nothing to extract, estate.toml names all sources")
    if asked.action == "apply":
        for line in of_checkpoints(found.records, {each.name for each in asked.chosen}):
            asked.console.say(line)
    if not_begun:
        why = "was confirmed alone"
        if tally.refused:
            why = "has brokers that were refused"
        elif any(record.checkpoint for record in found.records):
            why = "has checkpoints left"
        asked.console.warn(f"a wave before {why}; not begun: {some(not_begun)}")


def overview_of(asked: Asked) -> EstateOverview:
    """The estate as it is now."""
    records = [current(asked.job(each)) for each in asked.estate.queue_managers]
    return overview(asked.estate, records)
