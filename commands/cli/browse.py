"""``qpubsub browse``: what is on a queue, as captured messages."""

from __future__ import annotations

from itertools import islice

import click

from commands.config.home import Home
from commands.options.queue_manager import queue_manager_to_read
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console


@verb("qpubsub browse -m QM1 SUB.Q --limit 1 | qpubsub decode", prints=True)
@queue_manager_to_read
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Print at most N messages.")
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON Lines, as always.")
@click.argument("queue")
@click.pass_obj
def command(console: Console, qmgr: str, home: Home, limit: int | None, queue: str) -> None:
    """Print the messages on QUEUE as captured messages, JSON Lines, in the order in which get would remove them.

    The messages stay on the queue.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        for message in islice(store.browse(queue), limit):
            console.data(message.captured(store.name).model_dump_json())
    console.flush()
