"""``qpubsub get`` and ``browse``: the messages on a queue, taken off it or left there, as captured messages."""

from __future__ import annotations

import threading
import time
from contextlib import closing, nullcontext
from itertools import islice
from typing import Final

import click

from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.links.ibmmq.manager import MqMessages
from commands.options.queue_manager import QUEUE, queue_manager_or_remote, queue_manager_to_read_or_remote
from commands.options.remote import messages_at, refuse
from commands.options.rows import MESSAGE_COLUMNS, RowForm, row_options, show_message
from commands.options.verb import verb
from commands.qmgr.store import DYNAMIC_NAME, Close, QueueManagerStore, UnknownQueueError
from commands.terminal.console import Console
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping

_BATCH: Final = 100
_LOOK_S: Final = 0.5
"""So often it looks whether Ctrl-C was pressed, and whether a message has expired."""

_WAIT: Final = "When the queue is empty, wait this long for another message."
_DYNAMIC: Final = (
    "The name of the dynamic queue, if QUEUE is a model queue; digits that no other queue has replace a * at its end. "
    "The default is AMQ.*"
)
_CLOSE: Final = "Close a permanent dynamic queue at the end with this option: delete it if it is empty, or purge it."


@verb(
    "qpubsub get -m QM1 SUB.Q --limit 10 -o messages.jsonl",
    "qpubsub get -m QM1 SUB.Q --follow | qpubsub decode --brief",
    "qpubsub get -m QM1 SYSTEM.JMS.TEMPQ.MODEL --dynamic 'MY.REPLY.*' --wait 30",
    prints=True,
)
@queue_manager_or_remote
@click.option("--limit", "-C", type=click.IntRange(min=0), metavar="N", help="Get at most N messages.")
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), metavar="SECONDS", help=_WAIT)
@click.option("--follow", is_flag=True, help="Wait for messages until Ctrl-C or --limit ends it.")
@click.option("--dynamic", metavar="NAME", help=_DYNAMIC)
@click.option("--close", "close", type=click.Choice([option.name.lower() for option in Close]), help=_CLOSE)
@row_options(MESSAGE_COLUMNS)
@click.option("--json", is_flag=True, expose_value=False, help="Print captured messages, JSON Lines; the default.")
@QUEUE
@click.pass_obj
def get_command(
    console: Console,
    *,
    qmgr: str,
    home: Home,
    limit: int | None,
    wait_s: float | None,
    follow: bool,
    dynamic: str | None,
    close: str | None,
    rows: RowForm | None,
    queue: str,
) -> None:
    """Remove the messages from QUEUE and print them as captured messages, JSON Lines.

    get removes a message after it was written. If get is ended before, or the program that reads its output ends, the
    message stays on the queue. --line and --csv print what is in a message instead.

    If QUEUE is a model queue, get makes a dynamic queue and prints its name on stderr. A temporary dynamic queue is
    deleted when get ends, with its subscriptions.
    """
    if follow and wait_s is not None:
        raise click.UsageError("--follow and --wait cannot be used together")
    option = Close.NONE if close is None else Close[close.upper()]
    stop = threading.Event()
    patience_s = None if follow else wait_s or 0.0
    if is_mq_address(qmgr):
        refuse({"--dynamic": dynamic, "--close": close})
        with (
            closing(messages_at(qmgr, "qpubsub get")) as elsewhere,
            stopping(stop) if follow else nullcontext(),
        ):
            done = _get_all(console, elsewhere, queue, rows, limit, patience_s, stop)
        console.say(f"{counted(done, 'message')} got from {queue}")
        return
    with (
        QueueManagerStore.open(home, qmgr) as store,
        store.connect() as connection,
        stopping(stop) if follow else nullcontext(),
    ):
        opened = connection.open(queue, dynamic or DYNAMIC_NAME)
        if dynamic is not None and not opened.made:
            raise click.UsageError(f"--dynamic {dynamic}: {queue} is not a model queue")
        if opened.made:
            console.say(f"dynamic queue {opened.name}")
        done = _get_all(console, store, opened.name, rows, limit, patience_s, stop)
        gone = connection.close(opened, option)
    console.say(f"{counted(done, 'message')} got from {opened.name}")
    if gone:
        console.say(f"queue {opened.name} was deleted")


def _get_all(
    console: Console,
    store: QueueManagerStore | MqMessages,
    queue: str,
    rows: RowForm | None,
    limit: int | None,
    patience_s: float | None,
    stop: threading.Event,
) -> int:
    """How many messages were got. patience_s: how long to wait for another message; None is until *stop*."""
    done, last = 0, time.monotonic()
    with console.progress("messages removed") as advance:
        while not stop.is_set():
            wanted = _BATCH if limit is None else min(_BATCH, limit - done)
            got = _batch(console, store, queue, rows, wanted)
            done += got
            advance(got)
            if done == limit:
                break
            if got:
                last = time.monotonic()
            if got < wanted:
                left_s = _LOOK_S if patience_s is None else last + patience_s - time.monotonic()
                if left_s <= 0:
                    break
                if isinstance(store, MqMessages):
                    store.wait_for_message(queue, min(left_s, _LOOK_S))
                else:
                    store.wait_for_change(min(left_s, _LOOK_S))
    return done


def _batch(
    console: Console, store: QueueManagerStore | MqMessages, queue: str, rows: RowForm | None, wanted: int
) -> int:
    with store.unit_of_work() as unit:
        if unit.find_queue(queue) is None:
            raise UnknownQueueError(queue)
        got = 0
        while got < wanted and (message := unit.get(queue)) is not None:
            show_message(console, message.captured(store.name), rows)
            got += 1
        # The commit comes after this: a message may be written twice, but is never gone unwritten.
        console.flush()
    return got


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
def browse_command(
    console: Console, qmgr: str, home: Home, limit: int | None, rows: RowForm | None, queue: str
) -> None:
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
