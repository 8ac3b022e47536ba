"""``qpubsub create``: make a queue manager."""

from __future__ import annotations

import click

from commands.broker.objects import QueueManager
from commands.config.home import Home
from commands.options.queue_manager import HOME, say_created
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console


@verb("qpubsub create QM1", exit_codes={2: "usage, or the queue manager exists"})
@click.argument("qmgr")
@click.option("--strict", is_flag=True, help="Do not create a queue when a message names it (2085, 3076).")
@json_option
@HOME
@click.pass_obj
def command(console: Console, qmgr: str, strict: bool, home: Home, as_json: bool) -> None:
    """Create queue manager QMGR, with the queues and namelists that queued publish/subscribe needs."""
    with QueueManagerStore.create(home, QueueManager(qmgr, strict=strict)) as store:
        say_created(console, store)
        if as_json:
            console.json({"qmgr": qmgr, "directory": str(store.directory), "strict": strict})
