"""``qpubsub run``: the command-queue processor."""

from __future__ import annotations

import json
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
from commands.cli.options.verb import json_option, verb
from commands.links.engine.config import exposed_secrets, read_config
from commands.links.opening import Places
from commands.listener.opening import listener_of
from commands.mqsc.pcf.server import PcfCommandServer
from commands.qmgr.delivery import STRANDED_HELP, is_stranding
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.mqi.subscription_server import SubscriptionServer
from commands.qmgr.processor import BATCH, LONGEST_PAUSE_S, Processor
from commands.qmgr.store import Durability, permissions
from commands.qmgr.store.home import directory_of
from commands.qmgr.tally import ProcessorTally
from commands.running.journal import Journal, last_status
from commands.running.listening import listening
from commands.running.recorder import Recorder
from commands.running.supervisor import SupervisedWatch, supervised
from commands.running.work_page import WorkPage
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from commands.terminal.users import groups_of

_log = logging.getLogger("qpubsub.run")

_MEGABYTE: Final = 1_000_000
_DEFAULT: Final = Budget()


@verb(
    "qpubsub run -m QM1",
    "qpubsub run -m QM1 --once --record puts.jsonl",
    exit_codes={
        0: "an orderly end",
        1: "an orderly end, and there are dead letters or what could not be delivered",
        130: "ended by force in the middle of a command, which is on its queue again",
    },
)
@queue_manager
@click.option("--once", is_flag=True, help="Process the messages that are on the queues, then end.")
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append every put to this file as JSON Lines, after its commit.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append a log to this file: one JSON object on each line.",
)
@click.option(
    "--durability",
    type=click.Choice([level.name.lower() for level in Durability]),
    default=Durability.FULL.name.lower(),
    show_default=True,
    help="What a commit survives: a power failure (full), or only a crash of this program (normal).",
)
@click.option(
    "--command-seconds",
    type=click.FloatRange(min=0),
    default=_DEFAULT.time_s,
    show_default=True,
    help="Seconds for one command. A command that takes longer becomes a dead letter. 0: no limit.",
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
    help="Publications and changes of state that one command may cause. 0: no limit.",
)
@click.option(
    "--command-megabytes",
    type=click.IntRange(min=0),
    default=_DEFAULT.size_bytes // _MEGABYTE,
    show_default=True,
    help="Megabytes of all publications together that one command may cause. 0: no limit.",
)
@click.option(
    "--queues",
    metavar="URL",
    help="The queue manager that has the queues, if it is not the embedded one: ibmmq://host:1414/QMGR.",
)
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    help="Let MQ client programs connect here, as to a queue manager; the host is 127.0.0.1 if you give only a port.",
)
@click.option("--topics", metavar="URL", help="The topic tree to link to: mqtt://host, mqtts://host, ibmmq://...")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A TOML file with passwords, TLS and the settings that the URLs do not have.",
)
@json_option
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
    listen: str | None,
    topics: str | None,
    config: Path | None,
    as_json: bool,
) -> int:
    """Process the commands on SYSTEM.BROKER.CONTROL.QUEUE and on the stream queues of queue manager QMGR.

    run commits a command together with all its results. If it is killed and started again, no persistent message is
    lost and none is processed twice. Without --once it waits for messages until you stop it (Ctrl-C, SIGTERM). It
    reports failed commands on stderr, and puts messages that it cannot answer on the dead-letter queue.

    With --topics, publications also go to the programs of another topic tree, and their publications go to legacy
    subscribers. With --once, run then waits until the tree has received and sent everything.

    run puts a command that exceeds its limits on the dead-letter queue with reason 2102. It puts a message on which
    the processor ended or hung twice there with reason 2362; the processor is restarted automatically.
    """
    budget = Budget(command_seconds, command_topics, command_puts, command_megabytes * _MEGABYTE)
    settings = read_config(config)
    listener = listener_of(settings.listener, listen, home, qmgr, Durability[durability.upper()], groups_of)
    page = None
    if console.is_the_process:
        with nullcontext() if listener is None else listening(listener) as where:
            if where is not None:
                console.say(f"queue manager {qmgr}: listening on {where}")
            worker = supervised(console, directory_of(home, qmgr), budget.time_s)
            if not isinstance(worker, WorkPage):
                return worker
        page = worker
    stop = threading.Event()
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
            command_servers=(PcfCommandServer, SubscriptionServer) if places.queues is None else (),
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
    if as_json:
        console.data(json.dumps(processor.tally.as_dict()))
    if unsettled and link is not None and not stop.is_set():
        console.say(f"not all went to and from the topic tree, and waits: {link.trouble or 'it was too slow'}")
    if link is not None and link.fault:
        console.warn(f"ended by a fault: {link.fault}")
        return ExitCode.INTERNAL
    refused = 0 if link is None else link.refused
    if refused:
        console.say(f"{counted(refused, 'publication')} that the topic tree refused: see {deadq}")
    if once and processor.owed:
        owed = counted(processor.owed, "publication")
        console.say(f"kept until it can be delivered: {owed}; qpubsub status shows for whom")
    stranded = _stranded(console, places) if once and places.queues is None else False
    problems = processor.tally.dead_letters or refused or unsettled or stranded or (once and processor.owed)
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


def _stranded(console: Console, places: Places) -> bool:
    """Whether messages are on transmission queues that no channel reads; it is said on which."""
    with places.store() as store:
        queues = [queue for queue in store.overview().queues if queue.depth and is_stranding(queue.definition)]
    for queue in queues:
        what = counted(queue.depth, "message")
        console.warn(f"transmission queue {queue.definition.name} holds {what} for that queue manager: {STRANDED_HELP}")
    return bool(queues)


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
    to_tree = f", {counted(tally.linked, 'publication')} for the topic tree" if tally.linked else ""
    return (
        f"{counted(tally.commands, 'command')} ({tally.errors:,} in error): "
        f"{counted(tally.publications, 'publication')}, {counted(tally.responses, 'response')}, "
        f"{counted(tally.dead_letters, 'dead letter')}{to_tree}"
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
