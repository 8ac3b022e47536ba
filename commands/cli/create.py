"""``qpubsub create``: make a queue manager."""

from __future__ import annotations

from pathlib import Path

import click

from commands.broker.objects import QueueManager
from commands.cli.options.queue_manager import HOME
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console


@click.command(epilog="\b\nExample:\n  qpubsub create QM1")
@click.argument("qmgr")
@click.option("--strict", is_flag=True, help="Never make a queue because a message names it (2085, 3076).")
@HOME
@click.pass_obj
def command(console: Console, qmgr: str, strict: bool, home: Path) -> None:
    """Make queue manager QMGR, with the queues and namelists that queued publish/subscribe needs."""
    with QueueManagerStore.create(home, QueueManager(qmgr, strict=strict)) as store:
        console.say(f"queue manager {qmgr} made in {store.directory}")
