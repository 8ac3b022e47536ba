"""``qpubsub stop``: end ``qpubsub run`` of a queue manager."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Final

import click

from commands.broker.connections import NotAnsweredError
from commands.config.home import Home, process_here
from commands.disk.errors import QueueManagerInUseError
from commands.options.queue_manager import queue_manager
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import processor_of
from commands.running.tenure import STOP
from commands.terminal.console import Console, ExitCode

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
def command(console: Console, qmgr: str, home: Home, wait: float, as_json: bool) -> ExitCode:
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
