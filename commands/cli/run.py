"""``qpubsub run``: the command-queue processor."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from commands.broker.budget import Budget
from commands.broker.puts import Put
from commands.cli.options.queue_manager import queue_manager
from commands.links.engine.config import exposed_secrets, read_config
from commands.links.opening import Places
from commands.mqsc.pcf.server import PcfCommandServer
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.processor import BATCH, LONGEST_PAUSE_S, Processor
from commands.qmgr.store import Durability, permissions
from commands.qmgr.store.home import directory_of
from commands.qmgr.tally import ProcessorTally
from commands.running.journal import Journal, last_status
from commands.running.recorder import Recorder
from commands.running.supervisor import SupervisedWatch, supervised
from commands.running.work_page import WorkPage
from commands.terminal.console import Console, ExitCode
from commands.terminal.stopping import stopping
from commands.terminal.users import groups_of

_log = logging.getLogger("qpubsub.run")

_MEGABYTE: Final = 1_000_000
_DEFAULT: Final = Budget()


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
@click.option(
    "--command-seconds",
    type=click.FloatRange(min=0),
    default=_DEFAULT.time_s,
    show_default=True,
    help="Time for one command; one that takes longer is a dead letter. 0: no limit.",
)
@click.option(
    "--command-topics",
    type=click.IntRange(min=0),
    default=_DEFAULT.topics,
    show_default=True,
    help="Topics that one command may name. 0: no limit.",
)
@click.option(
    "--command-puts",
    type=click.IntRange(min=0),
    default=_DEFAULT.changes,
    show_default=True,
    help="Publications, and changes of state, that one command may cause. 0: no limit.",
)
@click.option(
    "--command-megabytes",
    type=click.IntRange(min=0),
    default=_DEFAULT.size_bytes // _MEGABYTE,
    show_default=True,
    help="What all publications that one command causes may have in all. 0: no limit.",
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
    command_seconds: float,
    command_topics: int,
    command_puts: int,
    command_megabytes: int,
    queues: str | None,
    topics: str | None,
    config: Path | None,
) -> int:
    """Process the commands on SYSTEM.BROKER.CONTROL.QUEUE and on the stream queues of queue manager QMGR.

    A command and all that it causes are committed together: killed at any moment and started again, no persistent
    message is lost and none is processed twice. Without --once it waits for messages until it is stopped (Ctrl-C,
    SIGTERM). Commands that failed are reported on stderr; what cannot be answered is on the dead-letter queue.

    With --topics, publications reach the programs of a topic tree elsewhere too, and theirs reach legacy subscribers;
    --once then waits until the tree has got, and has sent, all that there is.

    A command that takes more than its limits is set aside on the dead-letter queue with reason 2102, and so is, with
    reason 2362, a message on which the processor ended or hung twice: it is started again by itself. Exit codes: 0 or 1
    after an orderly end, 1 where there were dead letters; 130 where it had to be ended by force in the middle of a
    command, which is on its queue again.
    """
    budget = Budget(command_seconds, command_topics, command_puts, command_megabytes * _MEGABYTE)
    page = None
    if console.is_the_process:
        worker = supervised(console, directory_of(home, qmgr), budget.time_s)
        if not isinstance(worker, WorkPage):
            return worker
        page = worker
    stop = threading.Event()
    settings = read_config(config)
    for exposed in exposed_secrets(settings):
        console.warn(exposed)
    places = Places.of(home, qmgr, settings, queues, topics, Durability[durability.upper()])
    with places.manager() as manager, manager.processor_lock(), _recorder(record) as write:
        with places.store() as store:
            directory, deadq = store.directory, store.load_state()[0].qmgr.deadq
            if store.is_open_to_others:
                console.warn(permissions.warning(directory))
        places.prepare()
        link = places.link(deadq)
        watch = None if page is None else SupervisedWatch(page, stop, directory)
        accused = None if watch is None else watch.accused(directory)
        errors = [] if accused is None else last_status(directory).get("last_errors", [])
        journal = Journal(console, directory, log, None if page is None else os.getppid(), errors)
        there = places.config.queues
        processor = Processor(
            manager,
            lambda: datetime.now(UTC),
            write,
            batch=BATCH if places.queues is None else there.batch,
            groups_of=groups_of,
            committed=journal.batch,
            link=link,
            longest_pause_s=LONGEST_PAUSE_S if places.queues is None else there.reconnect_s,
            budget=budget,
            watch=watch,
            command_server=PcfCommandServer if places.queues is None else None,
        )
        unsettled = False
        if link is not None:
            journal.watch(link)
        with (
            journal.following(),
            stopping(stop),
            _linked(link, places.config.topics.patience_s, stop),
            nullcontext() if watch is None else watch.watched(),
        ):
            if accused is not None:
                _log.error("%s", accused)
            processor.start()
            if once:
                unsettled = not _drained(processor, link, stop)
            else:
                console.say(f"queue manager {qmgr}: waiting for commands; stop with Ctrl-C")
                processor.run(stop)
    console.say(_sum(processor.tally))
    if unsettled and link is not None and not stop.is_set():
        console.say(f"not all went to and from the topic tree, and waits: {link.trouble or 'it was too slow'}")
    if link is not None and link.fault:
        console.warn(f"ended by a fault: {link.fault}")
        return ExitCode.INTERNAL
    refused = 0 if link is None else link.refused
    if refused:
        console.say(f"{refused} publications, which the topic tree refused, are on {deadq}")
    if once and processor.owed:
        console.say(f"{processor.owed} publications could not be delivered and are kept; qpubsub status shows for whom")
    problems = processor.tally.dead_letters or refused or unsettled or (once and processor.owed)
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


def _drained(processor: Processor, link: ManagedLink | None, stop: threading.Event) -> bool:
    """Process what there is here and, where there is a link, in the tree; whether the tree had and got all."""
    while True:
        processor.drain(stop)
        if link is None:
            return True
        # What came from there meanwhile are commands here, and those may cause more to go there.
        if not link.settle(stop):
            return False
        if processor.drain(stop) == 0:
            return True


def _sum(tally: ProcessorTally) -> str:
    to_tree = f", {tally.linked} publications for the topic tree" if tally.linked else ""
    return (
        f"{tally.commands} commands ({tally.errors} in error): {tally.publications} publications, "
        f"{tally.responses} responses, {tally.dead_letters} dead letters{to_tree}"
    )


@contextmanager
def _linked(link: ManagedLink | None, patience_s: float, stop: threading.Event) -> Iterator[None]:
    if link is None:
        yield
        return
    link.start(ended=stop.set)
    try:
        # A moment for the connection: a RegSub processed without one would be greeted late.
        end = time.monotonic() + patience_s
        while not stop.is_set() and not link.wait_up(0.1) and time.monotonic() < end:
            pass
        yield
    finally:
        link.stop()


@contextmanager
def _recorder(path: Path | None) -> Iterator[Callable[[Put], None] | None]:
    if path is None:
        yield None
        return
    recorder = Recorder(path)
    try:
        yield recorder.write
    finally:
        recorder.close()
