"""``qpubsub create``, ``delete``, ``list``, ``home`` and ``stop``: the queue managers of a home."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Final

import click

from commands.broker.connections import NotAnsweredError
from commands.broker.objects import QueueManager
from commands.config.home import Home, process_here
from commands.disk.errors import QueueManagerInUseError
from commands.options.queue_manager import HOME, HomeType, queue_manager, say_created
from commands.options.rows import RowForm, row_options
from commands.options.verb import json_option, verb, verb_group
from commands.qmgr.store import QueueManagerStore, opening
from commands.qmgr.store.opening import delete, directory_of, processor_of, queue_managers
from commands.running.tenure import STOP
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.errors import StoreError


@verb("qpubsub create QM1", exit_codes={2: "usage, or the queue manager exists"})
@click.argument("qmgr")
@click.option("--strict", is_flag=True, help="Do not create a queue when a message names it (2085, 3076).")
@json_option
@HOME
@click.pass_obj
def create_command(console: Console, qmgr: str, strict: bool, home: Home, as_json: bool) -> None:
    """Create queue manager QMGR, with the queues and namelists that queued publish/subscribe needs."""
    with QueueManagerStore.create(home, QueueManager(qmgr, strict=strict)) as store:
        say_created(console, store)
        if as_json:
            console.json({"qmgr": qmgr, "directory": str(store.directory), "strict": strict})


@verb("qpubsub delete QM1", "qpubsub delete QM1 --yes", exit_codes={2: "usage, or it is running, or not empty"})
@click.argument("qmgr")
@click.option("--yes", is_flag=True, help="Delete it with its messages and subscriptions.")
@json_option
@HOME
@click.pass_obj
def delete_command(console: Console, qmgr: str, yes: bool, home: Home, as_json: bool) -> None:
    """Delete queue manager QMGR with all that is in its directory, as dltmqm does.

    It must have ended (qpubsub stop). One that holds messages, subscriptions or retained publications is deleted only
    with --yes. Only a backup can restore it.
    """

    def require_empty() -> None:
        held = "" if yes else _held(home, qmgr)
        if held:
            raise click.UsageError(f"{qmgr} holds {held}; to delete them with it: qpubsub delete {qmgr} --yes")

    directory = directory_of(home, qmgr)
    delete(home, qmgr, require_empty)
    if as_json:
        console.json({"qmgr": qmgr, "directory": str(directory)})
    console.say(f"queue manager {qmgr} deleted")


def _held(home: Home, qmgr: str) -> str:
    with QueueManagerStore.open(home, qmgr) as store:
        found = store.overview()
    counts = (
        (sum(queue.depth for queue in found.queues), "message"),
        (found.subscriptions, "subscription"),
        (found.retained, "retained publication"),
        (sum(waiting for _, waiting, _ in found.undelivered), "undelivered publication"),
    )
    return ", ".join(counted(count, noun) for count, noun in counts if count)


@verb("qpubsub list", "qpubsub list --home /var/lib/qpubsub --json")
@json_option
@row_options(("qmgr", "status", "directory"))
@HOME
@click.pass_obj
def list_command(console: Console, home: Home, as_json: bool, rows: RowForm | None) -> None:
    """List the queue managers of the home, and whether qpubsub run works for each, as dspmq does."""
    for name in queue_managers(home):
        status = "Ended" if processor_of(home, name) is None else "Running"
        row = {"qmgr": name, "status": status, "directory": str(directory_of(home, name))}
        if rows is not None:
            rows.show(console, row)
        elif as_json:
            console.json(row)
        else:
            console.data(f"QMNAME({name}) STATUS({status})")
    console.say(f"home {home}")


_NAP_S: Final = 0.05


@verb(
    "qpubsub stop -m QM1",
    "qpubsub stop -m QM1 --wait 60",
    exit_codes={0: "it has ended", 1: "it was not running", 2: "usage, or it had not ended after --wait"},
)
@queue_manager
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=30.0,
    metavar="SECONDS",
    show_default=True,
    help="Wait this long for its end.",
)
@json_option
@click.pass_obj
def stop_command(console: Console, qmgr: str, home: Home, wait: float, as_json: bool) -> ExitCode:
    """End the run that works for queue manager QMGR, as endmqm -w does: SIGTERM, then wait.

    The run finishes the command that it works on. In PostgreSQL it may be on another machine, and a run that waits
    takes over; stop that before.
    """
    found = processor_of(home, qmgr)
    was_running = found is not None
    if found is not None:
        _end(home, qmgr, found, wait)
    if as_json:
        console.json({"qmgr": qmgr, "was_running": was_running})
    console.say(f"queue manager {qmgr} {'has ended' if was_running else 'was not running'}")
    return ExitCode.DONE if was_running else ExitCode.PROBLEMS


def _end(home: Home, qmgr: str, holder: str, wait: float) -> None:
    pid = holder.partition(" on ")[0]
    with QueueManagerStore.open(home, qmgr) as store:
        is_told = False
        with suppress(NotAnsweredError):
            is_told = store.database.ask(STOP) is not None
    if not is_told:
        # It has begun to hold the lock and has not said who it is, or it is on another machine, and does not answer.
        if not pid.isdecimal() or holder not in (pid, process_here(int(pid))):
            raise QueueManagerInUseError(qmgr, holder)
        os.kill(int(pid), signal.SIGTERM)
    deadline = time.monotonic() + wait
    while processor_of(home, qmgr) == holder:
        if time.monotonic() >= deadline:
            raise QueueManagerInUseError(qmgr, holder)
        time.sleep(_NAP_S)


@verb_group
def home_command() -> None:
    """Copy queue managers between homes: directories, and databases of PostgreSQL."""


@home_command.verb(
    "qpubsub home copy ./qmgrs postgresql://bridge@db/mq",
    "qpubsub home copy postgresql://bridge@db/mq ./qmgrs -m QM1",
    exit_codes={1: "a queue manager could not be copied; the others were", 2: "usage, or there is nothing to copy"},
)
@click.argument("source", metavar="FROM", type=HomeType())
@click.argument("target", metavar="TO", type=HomeType())
@click.option(
    "--qmgr", "-m", "wanted", multiple=True, metavar="QMGR", help="Copy only this queue manager; you can repeat it."
)
@json_option
@click.pass_obj
def copy(console: Console, source: Home, target: Home, wanted: tuple[str, ...], as_json: bool) -> ExitCode:
    """Copy queue managers from home FROM to home TO: a directory, or postgresql://[USER@]HOST/DATABASE.

    End all programs that use them first. A queue manager is copied whole or not at all, and stays where it was. If the
    copy is interrupted, give the same command again: queue managers that are copied already are skipped.
    """
    names = wanted or queue_managers(source)
    if not names:
        raise StoreError(f"{source} holds no queue managers")
    worst = ExitCode.DONE
    for name in names:
        try:
            is_new = opening.copy(source, target, name)
        except StoreError as error:
            console.warn(f"queue manager {name} was not copied: {error}")
            worst = ExitCode.PROBLEMS
            continue
        if as_json:
            console.json({"qmgr": name, "to": str(target), "was_there": not is_new})
        console.say(f"queue manager {name} {'copied to' if is_new else 'was copied before to'} {target}")
    return worst
