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
from commands.processor import Processor, Tally
from commands.puts import Put
from commands.queues import Durability, QueueManagerStore


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
@click.pass_obj
def command(
    console: Console, qmgr: str, home: Path, once: bool, record: Path | None, log: Path | None, durability: str
) -> ExitCode:
    """Process the commands on SYSTEM.BROKER.CONTROL.QUEUE and on the stream queues of queue manager QMGR.

    A command and all that it causes are committed together: killed at any moment and started again, no persistent
    message is lost and none is processed twice. Without --once it waits for messages until it is told to stop (Ctrl-C,
    SIGTERM). Commands that failed, and why, are told on stderr; what cannot be answered is on the dead-letter queue.
    """
    stop = threading.Event()
    with (
        QueueManagerStore.open(home, qmgr, durability=Durability[durability.upper()]) as store,
        store.processor_lock(),
        _recorder(record) as write,
    ):
        journal = Journal(console, store.directory, log)
        processor = Processor(store, lambda: datetime.now(UTC), write, groups_of=groups_of, committed=journal.batch)
        with journal.following(), _stopping(stop):
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
