"""``qpubsub pub`` and ``sub``: publish on a topic; subscribe to topics, and print the publications as they arrive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any, Final

import click

from commands.broker.objects import DEFAULT_STREAM
from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.explain.build import CommandSpec, command_message
from commands.options.captures import say_that_stdin_is_read
from commands.options.queue_manager import queue_manager_or_remote, typed_property
from commands.options.remote import publications, publish, refuse
from commands.options.rows import RowForm, row_options
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.running.subscriber import Received, Subscriber
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from commands.terminal.users import current_user
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import CommandError
from rfh2.mqmd import Mqmd
from streams.patterns import check_publication_topic

_BATCH: Final = 100


@verb(
    "qpubsub pub -m QM1 Sport/Soccer '1 0'",
    "echo Sunny | qpubsub pub -m QM1 --retain News/Weather -",
    "qpubsub pub -m QM1 --lines Log/App < browse.txt",
)
@queue_manager_or_remote
@click.option("--retain", is_flag=True, help="Retain the publication: later subscribers receive it, too.")
@click.option("--stream", default=DEFAULT_STREAM, show_default=True, metavar="QUEUE", help="The stream queue.")
@click.option("--property", "properties", multiple=True, metavar="NAME[:TYPE]=VALUE", help="A property, for filters.")
@click.option("--persistent", is_flag=True, help="Publish a persistent message. The default is that of the queue.")
@click.option("--lines", is_flag=True, help="Publish each line of standard input as it arrives.")
@json_option
@click.argument("topic")
@click.argument("data", required=False, metavar="[DATA|-]")
@click.pass_obj
def pub_command(
    console: Console,
    qmgr: str,
    home: Home,
    retain: bool,
    stream: str,
    properties: tuple[str, ...],
    persistent: bool,
    lines: bool,
    as_json: bool,
    topic: str,
    data: str | None,
) -> ExitCode:
    """Publish DATA, or standard input, on TOPIC: put a Publish command on the stream queue.

    The processor of qpubsub run delivers the publication to the subscribers. Until it runs, the command waits on the
    queue. With -m mq://..., pub puts DATA on the topic itself.
    """
    if lines and data not in (None, "-"):
        raise click.UsageError("--lines reads standard input; it takes no DATA")
    try:
        check_publication_topic(topic)
    except CommandError as error:
        raise click.UsageError(f"TOPIC {topic!r}: {error.why}") from error
    usr = dict(typed_property("--property", text) for text in properties)
    if is_mq_address(qmgr):
        refuse({"--stream": stream != DEFAULT_STREAM and stream})
        texts = _texts(console, data, lines)
        done = publish(qmgr, topic, texts, retain=retain, persistent=persistent, properties=usr)
        console.say(f"{counted(done, 'publication')} put on topic {topic}")
        if as_json:
            console.json({"qmgr": qmgr, "queue": "", "topic": topic, "put": done, "processor": True})
        return ExitCode.DONE
    done = 0
    with QueueManagerStore.open(home, qmgr) as store:
        for text in _texts(console, data, lines):
            mqmd = Mqmd(
                persistence=1 if persistent else 2, coded_char_set_id=UTF8_CCSID, user_identifier=current_user()
            )
            options = ("RetainPub",) if retain else ()
            message = command_message(CommandSpec("Publish", (topic,), options, usr=usr, data=text, mqmd=mqmd))
            with store.unit_of_work() as unit:
                unit.put(stream, message.md, message.body, user=current_user(), application="qpubsub pub")
            done += 1
        waits = not store.has_processor()
    console.say(f"{counted(done, 'publication')} put on {stream}")
    if waits:
        console.warn(f"no processor is running: publications are delivered when qpubsub run -m {qmgr} is started")
    if as_json:
        console.json({"qmgr": qmgr, "queue": stream, "topic": topic, "put": done, "processor": not waits})
    return ExitCode.DONE


def _texts(console: Console, data: str | None, lines: bool) -> Iterator[str]:
    """The data of each publication. Raises UsageError for standard input that is not text."""
    if data not in (None, "-"):
        assert data is not None
        yield data
        return
    say_that_stdin_is_read(console, "the data")
    pieces = (line.rstrip(b"\r\n") for line in console.stdin) if lines else iter([console.stdin.read()])
    for piece in pieces:
        try:
            yield piece.decode()
        except UnicodeDecodeError as error:
            why = f"standard input is not UTF-8 at byte {error.start}; qpubsub put takes messages with any data"
            raise click.UsageError(why) from None


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
def sub_command(
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
    stop, show = threading.Event(), _shower(console, as_json, rows)
    welcome = f"subscribed to {', '.join(topics)}; Ctrl-C ends it"
    if is_mq_address(qmgr):
        with stopping(stop), closing(publications(qmgr, topics, selector, retained=not new_only)) as arriving:
            next(arriving)
            console.say(welcome)
            received = _receive(lambda _most: _one(arriving, show, console.flush), None, stop, count, wait_s)
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
            console.say(welcome)
            received = _receive(
                lambda most: subscriber.take(show, console.flush, most), subscriber.wait, stop, count, wait_s
            )
        elif not stop.is_set():
            console.warn(f"queue manager {qmgr} did not answer the subscription in {wait_s:g} s")
        if there or not subscriber.withdraw():
            subscriber.deregister(_FAREWELL_S if store.has_processor() else 0, threading.Event())
    console.say(f"{counted(received, 'publication')} received")
    missed = not there or (count is not None and received < count)
    return ExitCode.PROBLEMS if missed and not stop.is_set() else ExitCode.DONE


def _receive(
    take: Callable[[int | None], int],
    wait: Callable[[], None] | None,
    stop: threading.Event,
    count: int | None,
    wait_s: float | None,
) -> int:
    """Print publications until *count*, *stop* or *wait_s* without one; how many there were.

    take: prints at most so many that have come, and returns how many. wait: for more, where *take* does not.
    """
    done, last = 0, time.monotonic()
    while not stop.is_set() and done != count:
        if more := take(None if count is None else count - done):
            done, last = done + more, time.monotonic()
        elif wait_s is not None and time.monotonic() - last >= wait_s:
            break
        elif wait is not None:
            wait()
    return done


def _one(arriving: Iterator[Received | None], show: Callable[[Received], None], flush: Callable[[], None]) -> int:
    publication = next(arriving)
    if publication is None:
        return 0
    show(publication)
    flush()
    return 1


def _shower(console: Console, as_json: bool, rows: RowForm | None) -> Callable[[Received], None]:
    def show(publication: Received) -> None:
        if as_json:
            console.json(_form(publication))
        elif rows is not None:
            rows.show(console, {"topic": publication.topic, "data": _data(publication), **asdict(publication)})
        else:
            console.data(_line(publication))

    return show


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
