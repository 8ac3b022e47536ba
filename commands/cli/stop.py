"""``qpubsub stop``: end ``qpubsub run`` of a queue manager."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import click

from commands.disk.errors import QueueManagerInUseError
from commands.disk.lock import HolderLock, is_held
from commands.options.queue_manager import queue_manager
from commands.options.verb import json_option, verb
from commands.qmgr.store.opening import PROCESSOR_LOCK, database_path
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
def command(console: Console, qmgr: str, home: Path, wait: float, as_json: bool) -> ExitCode:
    """End the run that works for queue manager QMGR on this machine, as endmqm -w does: SIGTERM, then wait.

    It ends the command under way first. A standby (run --standby) takes over; stop it before.
    """
    directory = database_path(home, qmgr).parent
    was_running = is_held(directory)
    if was_running:
        _end(qmgr, directory, wait)
    if as_json:
        console.json({"qmgr": qmgr, "was_running": was_running})
    console.say(f"queue manager {qmgr} {'has ended' if was_running else 'was not running'}")
    return ExitCode.DONE if was_running else ExitCode.PROBLEMS


def _end(qmgr: str, directory: Path, wait: float) -> None:
    holder = HolderLock(directory / PROCESSOR_LOCK).holder()
    if not holder.isdecimal():  # it has begun to hold the lock, and has not said who it is
        raise QueueManagerInUseError(qmgr, holder)
    os.kill(int(holder), signal.SIGTERM)
    deadline = time.monotonic() + wait
    while is_held(directory):
        if time.monotonic() >= deadline:
            raise QueueManagerInUseError(qmgr, holder)
        time.sleep(_NAP_S)
