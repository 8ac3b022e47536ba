"""``qpubsub delete``: delete a queue manager."""

from __future__ import annotations

import click

from commands.config.home import Home
from commands.options.queue_manager import HOME
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import delete, directory_of
from commands.terminal.console import Console
from commands.terminal.counted import counted


@verb("qpubsub delete QM1", "qpubsub delete QM1 --yes", exit_codes={2: "usage, or it is running, or not empty"})
@click.argument("qmgr")
@click.option("--yes", is_flag=True, help="Delete it with its messages and subscriptions.")
@json_option
@HOME
@click.pass_obj
def command(console: Console, qmgr: str, yes: bool, home: Home, as_json: bool) -> None:
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
