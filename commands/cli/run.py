"""``qpubsub run``: the command-queue processor."""

from __future__ import annotations

import gc
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.budget import Budget
from commands.broker.puts import Put
from commands.cli.options.queue_manager import queue_manager
from commands.cli.options.verb import json_option, verb
from commands.config.settings import Config, exposed_secrets, read_config
from commands.console.opening import ConsoleOptions, console_options
from commands.console.reading.source import Source, store_of_pages
from commands.disk import permissions
from commands.disk.errors import SupersededError
from commands.links.channels.channels import Channels
from commands.links.opening import Places
from commands.listener.opening import listener_of
from commands.monitoring.health import Health, Phase
from commands.monitoring.opening import Monitoring
from commands.qmgr.admin.pcf_server import PcfCommandServer
from commands.qmgr.delivery import STRANDED_HELP, is_stranding
from commands.qmgr.event_numbers import ENDED, LOST_OWNERSHIP, STARTED
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.mqi.subscription_server import SubscriptionServer
from commands.qmgr.processor import BATCH, LONGEST_PAUSE_S, Processor
from commands.qmgr.store import Durability
from commands.qmgr.tally import ProcessorTally
from commands.running.exit_opening import PublishExits
from commands.running.instances import Plan, Worker, instance
from commands.running.journal import Events, Journal, last_status, reporting
from commands.running.listening import Beside, Service, listener_beside
from commands.running.log_file import LogFile, LogFormat
from commands.running.recorder import Recorder
from commands.running.supervisor import SupervisedWatch
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from commands.terminal.users import groups_of

_log = logging.getLogger("qpubsub.run")

_MEGABYTE: Final = 1_000_000
_DEFAULT: Final = Budget()
# One command may make 50,000 puts. With Python's own threshold (700), a third of the time for them would go into
# looking through their objects for cycles, of which there are none.
GARBAGE_THRESHOLD: Final = 10_000


def _configured(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Config:
    """The configuration; its table [run] gives the options that nothing else gives."""
    if ctx.resilient_parsing:
        return Config()
    config = read_config(path)
    ctx.default_map = {**(ctx.default_map or {}), **config.run.defaults()}
    return config


@verb(
    "qpubsub run -m QM1",
    "qpubsub run -m QM1 --once --record puts.jsonl",
    "QPUBSUB_RUN_DURABILITY=normal qpubsub run -m QM1",
    "qpubsub run -m QM1 --standby",
    exit_codes={
        0: "an orderly end",
        1: "an orderly end, and there are dead letters or what could not be delivered",
        130: "ended by force in the middle of a command, which is on its queue again",
    },
    environment="QPUBSUB_RUN",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=_configured,
    is_eager=True,
    help="A TOML file with options, passwords, TLS and all other settings; qpubsub config check FILE checks it.",
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
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE|-",
    help="Append a log to this file, one event on each line; SIGHUP opens it again. -: log on stderr.",
)
@click.option(
    "--log-format",
    type=click.Choice([each.value for each in LogFormat]),
    default=LogFormat.JSON.value,
    show_default=True,
    help="How --log writes an event.",
)
@click.option(
    "--durability",
    type=click.Choice([level.name.lower() for level in Durability]),
    default=Durability.FULL.name.lower(),
    show_default=True,
    help="What a commit survives: a power failure (full), or only a crash of this program (normal).",
)
@click.option(
    "--standby",
    is_flag=True,
    help="If another run works for this queue manager, wait, and take over when it ends or is held up.",
)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.5),
    default=3.0,
    show_default=True,
    help="Seconds without a sign of life after which a standby takes over from this run.",
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
    help="Megabytes of all publications together that one command may cause, for which it takes two to five times as "
    "much memory. 0: no limit.",
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
@click.option(
    "--topics",
    metavar="URL",
    help="The topic tree to link to: mqtt://host, mqtts://host, nats://host, tls://host, kafka://host, kafkas://host, ibmmq://...",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve metrics for Prometheus, /healthz and /readyz here; the host is 127.0.0.1 if you give only a port.",
)
@click.option(
    "--console",
    "console_at",
    metavar="[HOST:]PORT",
    help="Serve the console for browsers here; the host is 127.0.0.1 if you give only a port.",
)
@click.option(
    "--tracing",
    metavar="URL|console",
    help="Send traces of publications to this OTLP collector, or show them on stderr.",
)
@json_option
@click.pass_obj
def command(
    console: Console,
    config: Config,
    qmgr: str,
    home: Path,
    once: bool,
    record: Path | None,
    log: Path | None,
    log_format: str,
    durability: str,
    standby: bool,
    lease: float,
    command_seconds: float,
    command_topics: int,
    command_puts: int,
    command_megabytes: int,
    queues: str | None,
    listen: str | None,
    topics: str | None,
    metrics: str | None,
    console_at: str | None,
    tracing: str | None,
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

    Each option can also be an environment variable, QPUBSUB_RUN_LOG_FORMAT for --log-format, or a key of the file of
    --config. The command line comes first, then the environment, then the file.
    """
    budget = Budget(command_seconds, command_topics, command_puts, command_megabytes * _MEGABYTE)
    listener = listener_of(config.listener, listen, home, qmgr, Durability[durability.upper()], groups_of)
    reported = partial(reporting, console, log, LogFormat(log_format))
    beside = (
        None if listener is None else listener_beside(listener),
        None if console_at is None else _console(qmgr, home, console_options(config.console, console_at, "--console")),
    )
    servers = tuple(replace(each, reported=reported) for each in beside if each is not None)
    monitoring = Monitoring.of(config, metrics, tracing)
    if once and standby:
        raise click.UsageError("--standby waits to take over, and --once ends: give only one of them")
    places = Places.of(home, qmgr, config, queues, topics, Durability[durability.upper()])
    worker = None
    if console.is_the_process:
        plan = Plan(
            *(home, qmgr, places.durability, standby, lease, budget.time_s),
            takes_hangup=log is not None,
            servers=servers,
            takes_places=bool(servers) or monitoring.where is not None or places.queues is not None,
            waiting=partial(monitoring.standing_by, qmgr, console),
            lost=partial(_lost, console, log, LogFormat(log_format), not standby),
        )
        begun = instance(console, plan)
        if not isinstance(begun, Worker):
            return begun
        worker = begun
        places = replace(places, epoch=worker.epoch)
        gc.set_threshold(GARBAGE_THRESHOLD)
    page = None if worker is None else worker.page
    stop = threading.Event()
    for exposed in exposed_secrets(config):
        console.warn(exposed)
    with places.manager() as manager, manager.processor_lock(), _recorder(record) as write, ExitStack() as stack:
        with places.store() as store:
            directory, own = store.directory, places.definition(store)
            if store.is_open_to_others:
                console.warn(permissions.warning(directory))
        places.prepare()
        link = places.link(own.deadq)
        watch = None if page is None else SupervisedWatch(page, stop, directory)
        accused = None if watch is None else watch.accused(directory)
        errors = [] if accused is None else last_status(directory).get("last_errors", [])
        log_file = None if log is None else LogFile(log, LogFormat(log_format), console.lines)
        journal = Journal(console, directory, log_file, None if page is None else os.getppid(), errors)
        there = places.config.queues
        health = Health(qmgr, journal, budget.time_s, link)
        observer = stack.enter_context(monitoring.observing(qmgr, places.store, journal, health, link, console))
        publish_exit = stack.enter_context(PublishExits(config.publish_exit)).of(qmgr)
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
            observer=observer,
            publish_exit=publish_exit,
        )
        unsettled = False
        if link is not None:
            journal.watch(link)
        carriers = places.channels(groups_of)
        with (
            journal.following(),
            stopping(stop),
            _carried(carriers, stop, once),
            _linked(link, places.config.topics.patience_s, stop),
            nullcontext() if watch is None else watch.watched(),
        ):
            if worker is not None and worker.took_over:
                _log.warning("took over from %s", worker.took_over)
            if accused is not None:
                _log.error("%s", accused)
            processor.start()
            health.phase = Phase.RUNNING
            _log.info("queued publish/subscribe started for queue manager %s", qmgr, extra=_event(STARTED))
            if once:
                unsettled = not _drained(processor, link, carriers, stop)
            else:
                console.say(f"queue manager {qmgr}: waiting for commands; stop with Ctrl-C")
                processor.run(stop)
            health.phase = Phase.ENDING
            _log.info("queued publish/subscribe ended for queue manager %s", qmgr, extra=_event(ENDED))
    console.say(_sum(processor.tally))
    if as_json:
        console.data(json.dumps(processor.tally.as_dict()))
    return _exit_code(console, places, processor, link, carriers, once, unsettled and not stop.is_set(), own.deadq)


def _console(qmgr: str, home: Path, options: ConsoleOptions) -> Beside:
    """The console, served beside the processor."""

    def made() -> Service:
        from commands.console.server import console_service  # noqa: PLC0415 - an extra, and slow to load

        def source() -> Source:
            return Source(partial(store_of_pages, home, qmgr), groups_of)

        return console_service(qmgr, options, source, "--console")

    return Beside("console", made, f"console on {options.scheme}://{{}}/")


def _exit_code(
    console: Console,
    places: Places,
    processor: Processor,
    link: ManagedLink | None,
    carriers: Channels | None,
    once: bool,
    unsettled: bool,
    deadq: str,
) -> ExitCode:
    """How it ended; what is left to do is said. unsettled: whether the topic tree had time and did not take all."""
    if unsettled and link is not None:
        console.say(f"not all went to and from the topic tree, and waits: {link.trouble or 'it was too slow'}")
    faults = [each.fault for each in (link, carriers) if each is not None and each.fault]
    if faults:
        console.warn(f"ended by a fault: {faults[0]}")
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


def _lost(console: Console, log: Path | None, style: LogFormat, is_told: bool, error: SupersededError) -> None:
    """Say, also in the log, that another instance has taken over: the worker, which has the log, was ended by force.

    is_told: for the log alone, since the program ends with this error.
    """
    file = None if log is None else LogFile(log, style, console.lines)
    events = Events(console, file)
    about = {"numbers": (LOST_OWNERSHIP,), "is_told": is_told}
    events.emit(_log.makeRecord(_log.name, logging.ERROR, __file__, 0, "%s", (error,), None, extra=about))
    if file is not None:
        file.close()


def _event(number: int) -> dict[str, Any]:
    """An event for the log alone: the console says it in other words."""
    return {"numbers": (number,), "is_told": True}


def _stranded(console: Console, places: Places) -> bool:
    """Whether messages are on transmission queues that no channel reads; it is said on which."""
    with places.store() as store:
        queues = [queue for queue in store.overview().queues if queue.depth and is_stranding(queue.definition)]
    for queue in queues:
        what = counted(queue.depth, "message")
        console.warn(f"transmission queue {queue.definition.name} holds {what} for that queue manager: {STRANDED_HELP}")
    return bool(queues)


def _drained(processor: Processor, link: ManagedLink | None, carriers: Channels | None, stop: threading.Event) -> bool:
    """Process what there is here and, where there is a link, in the tree; whether the tree had and got all.

    Then what is for other queue managers of the home is carried to them.
    """
    while True:
        processor.drain(stop)
        if carriers is not None:
            carriers.carry()
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
def _carried(carriers: Channels | None, stop: threading.Event, once: bool) -> Iterator[None]:
    """Messages for other queue managers of the home are carried; with *once*, the caller does it at the end."""
    if carriers is None:
        yield
        return
    if once:
        with closing(carriers):
            yield
        return
    carriers.start(ended=stop.set)
    try:
        yield
    finally:
        carriers.stop()


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
