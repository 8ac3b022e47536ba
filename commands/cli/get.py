"""``qpubsub get``: messages off a queue, as captured messages."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click

from commands.cli.options.queue_manager import queue_manager
from commands.cli.options.verb import verb
from commands.qmgr.store import QueueManagerStore, UnknownQueueError
from commands.terminal.console import Console
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping

_BATCH: Final = 100
_LOOK_S: Final = 0.5
"""So often it looks whether Ctrl-C was pressed, and whether a message has expired."""


@verb(
    "qpubsub get -m QM1 SUB.Q --limit 10 -o messages.jsonl",
    "qpubsub get -m QM1 SUB.Q --follow | qpubsub decode --brief",
    prints=True,
)
@queue_manager
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Get at most N messages.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait so long for another message when the queue is empty.",
)
@click.option("--follow", is_flag=True, help="Wait for messages until Ctrl-C or --limit ends it.")
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON Lines, as always.")
@click.argument("queue")
@click.pass_obj
def command(
    console: Console, qmgr: str, home: Path, limit: int | None, wait_s: float | None, follow: bool, queue: str
) -> None:
    """Remove the messages from QUEUE and print them as captured messages, JSON Lines.

    get removes a message after it was written. If get is ended before, or the program that reads its output ends, the
    message stays on the queue.
    """
    if follow and wait_s is not None:
        raise click.UsageError("--follow and --wait exclude each other")
    done, stop = 0, threading.Event()
    patience_s = None if follow else wait_s or 0.0
    with (
        QueueManagerStore.open(home, qmgr) as store,
        stopping(stop) if follow else nullcontext(),
        console.progress("messages got") as advance,
    ):
        while not stop.is_set():
            wanted = _BATCH if limit is None else min(_BATCH, limit - done)
            got = _batch(console, store, queue, wanted)
            done += got
            advance(got)
            if got < _BATCH and (done == limit or not _waited(store, queue, patience_s, stop)):
                break
    console.say(f"{counted(done, 'message')} got from {queue}")


def _waited(store: QueueManagerStore, queue: str, patience_s: float | None, stop: threading.Event) -> bool:
    """Wait for a message; whether there is one. patience_s: for how long; None is until *stop*."""
    end = None if patience_s is None else time.monotonic() + patience_s
    while not stop.is_set():
        if next(store.browse(queue), None) is not None:
            return True
        left = _LOOK_S if end is None else min(_LOOK_S, end - time.monotonic())
        if left <= 0:
            return False
        store.wait_for_change(left)
    return False


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
