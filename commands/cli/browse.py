"""``qpubsub browse``: what is on a queue, as captured messages."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from commands.cli.options.queue_manager import queue_manager
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console


@click.command(epilog="\b\nExample:\n  qpubsub browse -m QM1 SUB.Q --limit 1 | qpubsub decode")
@queue_manager
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N messages.")
@click.argument("queue")
@click.pass_obj
def command(console: Console, qmgr: str, home: Path, limit: int | None, queue: str) -> None:
    """Print the messages on QUEUE as captured messages, JSON Lines, in the order in which gets would give them.

    They stay where they are.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        for message in islice(store.browse(queue), limit):
            console.data(message.captured(store.name).model_dump_json())
    console.flush()
