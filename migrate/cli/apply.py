"""``qpubsub apply``: send a plan to a live queue manager, one checkpoint at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from commands.options.verb import FILE, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.cli import live_options
from migrate.cli.live_options import Reached
from migrate.live.applying import Applier, advance, wanted_checkpoints
from migrate.live.journal import JOURNAL, Checkpoint, Journal
from migrate.live.undoing import Undoing
from migrate.log import changed_since


@verb(
    "qpubsub apply -m QM1 migration --admin https://mq:9443 --queues 'mq://mq/QM1?channel=A' --rehearse",
    "qpubsub apply -m QM1 migration --config live.toml",
    "qpubsub apply -m QM1 migration --config live.toml --all --confirm stopped",
    "qpubsub apply -m QM1 migration --config live.toml --undo",
    prints=True,
    former={"--until": "--through"},
    exit_codes={
        0: "done",
        1: "stopped in the middle, something could not be taken back, or others have changed something since, which "
        "--undo keeps; each is named",
        2: "nothing was changed",
    },
)
@live_options.live_queue_manager
@click.option("--all", "every", is_flag=True, help="All checkpoints that are left, not only the next one.")
@click.option("--through", "until", metavar="CHECKPOINT", help="All checkpoints up to this one, and this one.")
@click.option(
    "--confirm",
    multiple=True,
    metavar="CHECKPOINT",
    help="What a person has to do at this checkpoint is done; you can repeat it.",
)
@click.option("--rehearse", is_flag=True, help="Print what would be sent, and what is there already; change nothing.")
@click.option("--undo", is_flag=True, help="Undo what was applied, by the journal.")
@click.option("--force", is_flag=True, help="With --undo: also undo what others have changed since.")
@click.option(
    "--journal",
    "journal_file",
    type=FILE,
    metavar="FILE",
    help="Where to note what was confirmed. Default: apply.journal in DIRECTORY.",
)
@live_options.wait
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@live_options.directory_of_plan
@click.pass_obj
def command(
    console: Console,
    reached: Reached,
    every: bool,
    until: str | None,
    confirm: tuple[str, ...],
    rehearse: bool,
    undo: bool,
    force: bool,
    journal_file: Path | None,
    wait_s: float,
    as_json: bool,
    directory: Path,
) -> ExitCode:
    """Send the plan in DIRECTORY to queue manager QMGR, one checkpoint at a time.

    DIRECTORY is what --out of strmqbrk or migmbbrk wrote. Each run carries out the next checkpoint, and says which one
    follows. What the queue manager has already is left as it is. After an interruption at any moment, run the same
    command again: it goes on, and does nothing twice. A refusal stops the run and names the line.
    """
    if force and not undo:
        raise click.UsageError("--force needs --undo")
    heading, planned = reached.planned(directory)
    path = journal_file or directory / JOURNAL
    with reached.opened(console) as live:
        administrator = live.administrator
        applier = Applier(administrator, live.messages, directory, heading, planned, wait_s, frozenset(confirm))
        known = [each.name for each in applier.checkpoints]
        for name in (*confirm, *([until] if until is not None else [])):
            if name not in known:
                raise click.UsageError(f"there is no checkpoint {name}; there are {', '.join(known)}")
        if rehearse and not path.exists():
            if undo:
                raise click.UsageError(f"{path}: there is no journal, so nothing was applied")
            return _rehearse(console, applier, None, as_json)
        if undo and not path.exists():
            raise click.UsageError(f"{path}: there is no journal, so nothing was applied")
        with closing(Journal.open(path, heading, administrator.where)) as journal:
            if undo:
                undoing = Undoing(administrator, heading, planned, live.retained_data, force)
                return _undo(console, undoing, journal, rehearse=rehearse)
            if rehearse:
                return _rehearse(console, applier, journal, as_json)
            wanted = wanted_checkpoints(applier.remaining(journal), every=every, until=until)
            return _apply(console, applier, journal, wanted, as_json)


def _apply(console: Console, applier: Applier, journal: Journal, wanted: list[Checkpoint], as_json: bool) -> ExitCode:
    @contextmanager
    def shown(checkpoint: Checkpoint) -> Iterator[Callable[[int], None]]:
        with console.progress(f"{checkpoint.name}: sent") as progress:
            yield progress
        console.say(f"checkpoint {checkpoint.name}: done")

    found = advance(applier, journal, wanted, shown)
    stopped, remaining = found.stopped, found.left
    following = remaining[0].name if remaining else None
    if as_json:
        told: dict[str, Any] = {"qmgr": applier.heading.qmgr, "where": applier.administrator.where, "done": found.done}
        told |= {"sent": found.sent, "next": following, "remaining": [each.name for each in remaining]}
        told["stopped"] = None if stopped is None else {"checkpoint": stopped.checkpoint, "why": stopped.why}
        console.json(told)
    if stopped is not None:
        console.warn(str(stopped))
        return ExitCode.PROBLEMS if found.has_changed else ExitCode.USAGE
    if following is None:
        console.say("all checkpoints are done; qpubsub verify compares the queue manager with the plan")
    else:
        asks = remaining[0].asks
        console.say(f"next: checkpoint {following}" + (f", where a person has to act: {asks}" if asks else ""))
    return ExitCode.DONE


def _rehearse(console: Console, applier: Applier, journal: Journal | None, as_json: bool) -> ExitCode:
    stops = 0
    listed: list[dict[str, Any]] = []
    for checkpoint in applier.remaining(journal):
        lines = list(applier.rehearsal(checkpoint, journal))
        stops += any(would_stop for _, would_stop in lines)
        listed.append({"checkpoint": checkpoint.name, "lines": [line for line, _ in lines]})
        if not as_json:
            for line, _ in lines:
                console.data(f"{checkpoint.name}: {line}")
    if as_json:
        console.json({"qmgr": applier.heading.qmgr, "rehearsal": listed})
    said = f"{stops} of which would stop the run" if stops else "none of which would stop the run"
    console.say(f"rehearsal: {counted(len(listed), 'checkpoint')} left, {said}; nothing was changed")
    return ExitCode.DONE


def _undo(console: Console, undoing: Undoing, journal: Journal, *, rehearse: bool) -> ExitCode:
    if rehearse:
        for line in undoing.rehearsal(journal):
            console.data(line)
        console.say("rehearsal: nothing was changed")
    else:
        undoing.carry_out(journal)
        journal.set_aside()
        console.say(f"what was applied was taken back with {counted(len(undoing.done), 'command')}")
    for left in undoing.left:
        console.warn(f"it would be left: {left}" if rehearse else f"left: {left}")
    for line in undoing.others:
        console.warn(changed_since(line, rehearse=rehearse, force=undoing.force))
    return ExitCode.PROBLEMS if undoing.left or undoing.others else ExitCode.DONE
