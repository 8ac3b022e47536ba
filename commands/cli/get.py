"""``qpubsub get``: messages off a queue, as captured messages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import click

from commands.cli.options.queue_manager import queue_manager
from commands.qmgr.store import DYNAMIC_NAME, Close, QueueManagerStore, UnknownQueueError
from commands.terminal.console import Console

_BATCH: Final = 100
_WAIT: Final = "Wait this long for messages when there are none left."
_DYNAMIC: Final = "Name of the dynamic queue where QUEUE is a model queue; * at its end becomes unique. Default: AMQ.*"
_CLOSE: Final = "What becomes of a permanent dynamic queue at the end: deleted if it is empty, or purged and deleted."


@click.command(
    epilog="\b\nExample:\n  qpubsub get -m QM1 SUB.Q --limit 10 >messages.jsonl\n"
    "  qpubsub get -m QM1 SYSTEM.JMS.TEMPQ.MODEL --dynamic 'MY.REPLY.*' --wait 30"
)
@queue_manager
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N messages.")
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS", help=_WAIT)
@click.option("--dynamic", metavar="NAME", help=_DYNAMIC)
@click.option("--close", "close", type=click.Choice([option.name.lower() for option in Close]), help=_CLOSE)
@click.argument("queue")
@click.pass_obj
def command(
    console: Console,
    *,
    qmgr: str,
    home: Path,
    limit: int | None,
    wait_s: float,
    dynamic: str | None,
    close: str | None,
    queue: str,
) -> None:
    """Take the messages off QUEUE and print them as captured messages, JSON Lines.

    A message is removed once it was written; when the command is ended in between, or the reader of its output goes
    away, it stays on the queue.

    Where QUEUE is a model queue, a dynamic queue is made, and its name printed on stderr; a temporary one goes with the
    command, and what subscribed with it too.
    """
    option = Close.NONE if close is None else Close[close.upper()]
    with QueueManagerStore.open(home, qmgr) as store, store.connect() as connection:
        opened = connection.open(queue, dynamic or DYNAMIC_NAME)
        if dynamic is not None and not opened.made:
            raise click.UsageError(f"--dynamic {dynamic}: {queue} is not a model queue")
        if opened.made:
            console.say(f"dynamic queue {opened.name}")
        done = _get_all(console, store, opened.name, limit, wait_s)
        gone = connection.close(opened, option)
    console.say(f"{done} messages got from {opened.name}")
    if gone:
        console.say(f"queue {opened.name} was deleted")


def _get_all(console: Console, store: QueueManagerStore, queue: str, limit: int | None, wait_s: float) -> int:
    done, end = 0, time.monotonic() + wait_s
    with console.progress("messages got") as advance:
        while True:
            wanted = _BATCH if limit is None else min(_BATCH, limit - done)
            got = _batch(console, store, queue, wanted)
            done += got
            advance(got)
            if done == limit:
                return done
            if got < wanted:
                left_s = end - time.monotonic()
                if left_s <= 0:
                    return done
                store.wait_for_change(left_s)


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
