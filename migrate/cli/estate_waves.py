"""Carrying an action on an estate out, wave by wave, and what is said of it at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import click

from commands.config.home import Home
from commands.network.estate_file import Estate, EstateQueueManager
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.cli import choices
from migrate.estate.collisions import some
from migrate.estate.jobs import BrokerJob, BrokerResult, current, job_of
from migrate.estate.live_acting import checkpoints_of
from migrate.estate.overview import (
    EstateOverview,
    as_json,
    of_checkpoints,
    of_overview,
    of_reports,
    of_result,
    overview,
)
from migrate.estate.records import DONE, BrokerState
from migrate.estate.workers import ACTIONS, results
from rfh2.errors import MigrationError

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
