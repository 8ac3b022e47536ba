"""``qpubsub sub``: subscribe to topics, and print the publications as they arrive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any, Final

import click

from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.options.queue_manager import queue_manager_or_remote
from commands.options.remote import publications
from commands.options.rows import RowForm, row_options
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.running.subscriber import Received, Subscriber
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from commands.terminal.users import current_user

_FAREWELL_S: Final = 5


@verb(
    "qpubsub sub -m QM1 'Sport/#'",
    "qpubsub sub -m QM1 -C 1 --json Sport/Soccer News/+",
    prints=True,
    former={"--count": "--limit"},
    exit_codes={
        0: "ended by Ctrl-C, or after -C publications",
        1: "--wait ended before the queue manager had answered, or before -C publications had arrived",
        2: "usage, or the queue manager refused the subscription",
    },
)
@queue_manager_or_remote
@click.option("--limit", "-C", "count", type=click.IntRange(min=1), metavar="N", help="End after N publications.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End if nothing arrives for this time: no answer of the queue manager, or no publication. The default is to "
    "wait until Ctrl-C.",
)
@click.option("--filter", "selector", metavar="SELECTOR", help="Receive only publications that match: Colour = 'red'.")
@click.option("--new-only", is_flag=True, help="Do not receive the retained publications at the beginning.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each publication.")
@row_options(("topic", "data", "retained", "properties"))
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.pass_obj
def command(
    console: Console,
    qmgr: str,
    home: Home,
    count: int | None,
    wait_s: float | None,
    selector: str | None,
    new_only: bool,
    as_json: bool,
    rows: RowForm | None,
    topics: tuple[str, ...],
) -> ExitCode:
    """Subscribe to each TOPIC, and print the publications, one line each: the topic, a tab, the data.

    TOPIC may have wildcards: # is any number of levels, + is one level. sub registers with a RegSub command, on a
    temporary dynamic queue, as a legacy program does; so qpubsub run must be running. When sub ends, the subscription
    and the queue are deleted, even if it is killed. With -m mq://..., sub subscribes by MQSUB.
    """
    stop = threading.Event()
    if is_mq_address(qmgr):
        with stopping(stop), closing(publications(qmgr, topics, selector, retained=not new_only)) as arriving:
            received = _receive_elsewhere(console, arriving, topics, stop, count, wait_s, as_json, rows)
        console.say(f"{counted(received, 'publication')} received")
        return ExitCode.PROBLEMS if count is not None and received < count and not stop.is_set() else ExitCode.DONE
    received = 0
    with QueueManagerStore.open(home, qmgr) as store, store.connect() as connection, stopping(stop):
        if not store.has_processor():
            console.warn(f"no processor is running: publications arrive when qpubsub run -m {qmgr} is started")
        subscriber = Subscriber(
            store,
            connection,
            topics,
            user=current_user(),
            application="qpubsub sub",
            selector=selector,
            retained=not new_only,
        )
        there = subscriber.register(wait_s, stop)
        if there:
            console.say(f"subscribed to {', '.join(topics)}; Ctrl-C ends it")
            received = _receive(console, subscriber, stop, count, wait_s, as_json, rows)
        elif not stop.is_set():
            console.warn(f"queue manager {qmgr} did not answer the subscription in {wait_s:g} s")
        if there or not subscriber.withdraw():
            subscriber.deregister(_FAREWELL_S if store.has_processor() else 0, threading.Event())
    console.say(f"{counted(received, 'publication')} received")
    missed = not there or (count is not None and received < count)
    return ExitCode.PROBLEMS if missed and not stop.is_set() else ExitCode.DONE


def _receive(
    console: Console,
    subscriber: Subscriber,
    stop: threading.Event,
    count: int | None,
    wait_s: float | None,
    as_json: bool,
    rows: RowForm | None,
) -> int:
    """Print publications until *count*, *stop* or *wait_s* without one; how many there were."""

    show = _shower(console, as_json, rows)
    done, last = 0, time.monotonic()
    while not stop.is_set() and done != count:
        if more := subscriber.take(show, console.flush, None if count is None else count - done):
            done, last = done + more, time.monotonic()
        elif wait_s is not None and time.monotonic() - last >= wait_s:
            break
        else:
            subscriber.wait()
    return done


def _shower(console: Console, as_json: bool, rows: RowForm | None) -> Callable[[Received], None]:
    def show(publication: Received) -> None:
        if as_json:
            console.json(_form(publication))
        elif rows is not None:
            rows.show(console, {"topic": publication.topic, "data": _data(publication), **asdict(publication)})
        else:
            console.data(_line(publication))

    return show


def _receive_elsewhere(
    console: Console,
    arriving: Iterator[Received | None],
    topics: tuple[str, ...],
    stop: threading.Event,
    count: int | None,
    wait_s: float | None,
    as_json: bool,
    rows: RowForm | None,
) -> int:
    """The same, from a queue manager elsewhere."""
    next(arriving)
    console.say(f"subscribed to {', '.join(topics)}; Ctrl-C ends it")
    show, done, last = _shower(console, as_json, rows), 0, time.monotonic()
    while not stop.is_set() and done != count:
        publication = next(arriving)
        if publication is not None:
            show(publication)
            console.flush()
            done, last = done + 1, time.monotonic()
        elif wait_s is not None and time.monotonic() - last >= wait_s:
            break
    return done


def _line(publication: Received) -> str:
    return f"{publication.topic}\t{_data(publication).replace(chr(10), ' ')}"


def _data(publication: Received) -> str:
    return publication.data_hex if publication.text is None else publication.text


def _form(publication: Received) -> dict[str, Any]:
    return {
        "topic": publication.topic,
        "text": publication.text,
        "data_hex": publication.data_hex,
        "retained": publication.retained,
        "properties": publication.properties,
    }
