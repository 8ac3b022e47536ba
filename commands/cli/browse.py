"""``qpubsub browse``: what is on a queue, as captured messages."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

import click

from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.options.queue_manager import QUEUE, queue_manager_to_read_or_remote
from commands.options.remote import messages_at
from commands.options.rows import MESSAGE_COLUMNS, RowForm, row_options, show_message
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console


@verb(
    "qpubsub browse -m QM1 SUB.Q --limit 1 | qpubsub decode",
    "qpubsub browse -m QM1 SUB.Q --line '{time} {topic} {data}'",
    prints=True,
)
@queue_manager_to_read_or_remote
@click.option("--limit", "-C", type=click.IntRange(min=0), metavar="N", help="Print at most N messages.")
@row_options(MESSAGE_COLUMNS)
@click.option("--json", is_flag=True, expose_value=False, help="Print captured messages, JSON Lines; the default.")
@QUEUE
@click.pass_obj
def command(console: Console, qmgr: str, home: Home, limit: int | None, rows: RowForm | None, queue: str) -> None:
    """Print the messages on QUEUE as captured messages, JSON Lines, in the order in which get would remove them.

    The messages stay on the queue. --line and --csv print what is in them instead.
    """
    if is_mq_address(qmgr):
        with closing(messages_at(qmgr, "qpubsub browse")) as elsewhere, elsewhere.unit_of_work() as unit:
            for message in islice(unit.browse(queue), limit):
                show_message(console, message.captured(elsewhere.name), rows)
        console.flush()
        return
    with QueueManagerStore.open(home, qmgr) as store:
        for message in islice(store.browse(queue), limit):
            show_message(console, message.captured(store.name), rows)
    console.flush()
