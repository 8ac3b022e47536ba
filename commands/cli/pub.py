"""``qpubsub pub``: publish on a topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from commands.broker.objects import DEFAULT_STREAM
from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.explain.build import CommandSpec, command_message
from commands.options.captures import say_that_stdin_is_read
from commands.options.queue_manager import queue_manager_or_remote, typed_property
from commands.options.remote import publish, refuse
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
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
def command(
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
