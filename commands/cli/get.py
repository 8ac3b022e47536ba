"""``qpubsub get``: messages off a queue, as captured messages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from commands.cli.options.queue_manager import queue_manager
from commands.qmgr.store import QueueManagerStore, UnknownQueueError
from commands.terminal.console import Console

_BATCH: Final = 100


@click.command(epilog="\b\nExample:\n  qpubsub get -m QM1 SUB.Q --limit 10 >messages.jsonl")
@queue_manager
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N messages.")
@click.argument("queue")
@click.pass_obj
def command(console: Console, qmgr: str, home: Path, limit: int | None, queue: str) -> None:
    """Take the messages off QUEUE and print them as captured messages, JSON Lines.

    A message is removed once it was written; when the command is ended in between, or the reader of its output goes
    away, it stays on the queue.
    """
    done = 0
    with QueueManagerStore.open(home, qmgr) as store, console.progress("messages got") as advance:
        while True:
            wanted = _BATCH if limit is None else min(_BATCH, limit - done)
            got = _batch(console, store, queue, wanted)
            done += got
            advance(got)
            if got < _BATCH:
                break
    console.say(f"{done} messages got from {queue}")


def _batch(console: Console, store: QueueManagerStore, queue: str, wanted: int) -> int:
    with store.unit_of_work() as unit:
        if unit.find_queue(queue) is None:
            raise UnknownQueueError(queue)
        got = 0
        while got < wanted and (message := unit.get(queue)) is not None:
            console.data(message.captured(store.name).model_dump_json())
            got += 1
        # The commit comes after this: a message may be written twice, but is never gone unwritten.
        console.flush()
    return got
