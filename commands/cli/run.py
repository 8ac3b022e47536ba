"""``qpubsub run``: the command-queue processor."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from commands.cli.console import Console, ExitCode
from commands.cli.journal import Journal
from commands.cli.options import queue_manager
from commands.cli.users import groups_of
from commands.live.config import read_config
from commands.live.opening import Link, Places
from commands.processor import Processor
from commands.puts import Put
from commands.queues import Durability
from commands.tally import Tally


@click.command(epilog="\b\nExamples:\n  qpubsub run -m QM1\n  qpubsub run -m QM1 --once --record puts.jsonl")
@queue_manager
@click.option("--once", is_flag=True, help="Process what is on the queues, then end.")
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append every put to this file, as JSON Lines, once it is committed.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append what happens to this file: a JSON object a line.",
)
@click.option(
    "--durability",
    type=click.Choice([level.name.lower() for level in Durability]),
    default=Durability.FULL.name.lower(),
    show_default=True,
    help="When a commit is safe: from a power failure, or (normal) only from a crash of this program.",
)
@click.option("--queues", metavar="URL", help="Where the queues are, when not embedded: ibmmq://host:1414/QMGR.")
@click.option("--topics", metavar="URL", help="The topic tree to link to: mqtt://host, mqtts://host, ibmmq://...")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="TOML: passwords, TLS, and what else the URLs do not say.",
)
@click.pass_obj
def command(
    console: Console,
    qmgr: str,
    home: Path,
    once: bool,
    record: Path | None,
    log: Path | None,
    durability: str,
    queues: str | None,
    topics: str | None,
    config: Path | None,
) -> ExitCode:
    """Process the commands on SYSTEM.BROKER.CONTROL.QUEUE and on the stream queues of queue manager QMGR.

    A command and all that it causes are committed together: killed at any moment and started again, no persistent
    message is lost and none is processed twice. Without --once it waits for messages until it is told to stop (Ctrl-C,
    SIGTERM). Commands that failed, and why, are told on stderr; what cannot be answered is on the dead-letter queue.

    With --topics, publications reach the programs of a topic tree elsewhere too, and theirs reach legacy subscribers.
    """
    stop = threading.Event()
    places = Places.of(home, qmgr, read_config(config), queues, topics, Durability[durability.upper()])
    with places.manager() as manager, manager.processor_lock(), _recorder(record) as write:
        with places.store() as store:
            directory, deadq = store.directory, store.load_state()[0].qmgr.deadq
        link = places.link(deadq)
        journal = Journal(console, directory, log)
        processor = Processor(
            manager, lambda: datetime.now(UTC), write, groups_of=groups_of, committed=journal.batch, link=link
        )
        with journal.following(), _stopping(stop), _linked(link):
            processor.start()
            if once:
                processor.drain(stop)
            else:
                console.say(f"queue manager {qmgr}: waiting for commands; stop with Ctrl-C")
                processor.run(stop)
    console.say(_sum(processor.tally))
    return ExitCode.PROBLEMS if processor.tally.dead_letters else ExitCode.DONE


def _sum(tally: Tally) -> str:
    return (
        f"{tally.commands} commands ({tally.errors} in error): {tally.publications} publications, "
        f"{tally.responses} responses, {tally.dead_letters} dead letters"
    )


@contextmanager
def _linked(link: Link | None) -> Iterator[None]:
    if link is None:
        yield
        return
    link.start()
    try:
        yield
    finally:
        link.stop()


@contextmanager
def _recorder(path: Path | None) -> Iterator[Callable[[Put], None] | None]:
    if path is None:
        yield None
        return
    with path.open("a", encoding="utf-8") as file:

        def write(put: Put) -> None:
            file.write(put.model_dump_json() + "\n")
            file.flush()

        yield write


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT end the processor after the unit of work that it is in."""

    def asked(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
