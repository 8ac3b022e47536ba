"""``qpubsub run``: the command-queue processor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.budget import Budget
from commands.config.home import Home
from commands.config.settings import NO_STANDBY, Config, read_config
from commands.console.access import console_options
from commands.console.source import Source, store_of_pages
from commands.options.queue_manager import queue_manager
from commands.options.verb import FILE, FILE_OR_DASH, json_option, verb
from commands.qmgr.store import Durability
from commands.running.bridge import Bridge
from commands.running.journal import LogFormat
from commands.running.listening import Beside, Service
from commands.running.run_settings import RunSettings
from commands.terminal.console import Console
from commands.terminal.users import groups_of

_MEGABYTE: Final = 1_000_000
_DEFAULT_BUDGET: Final = Budget()


def _home_of(config: Config) -> dict[str, Home]:
    return {} if config.home is None else {"home": config.home}


def _configured(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Config:
    """The configuration; its table [run] gives the options that nothing else gives."""
    if ctx.resilient_parsing:
        return Config()
    config = read_config(path)
    ctx.default_map = {**(ctx.default_map or {}), **config.run.defaults(), **_home_of(config)}
    return config


def _without_standby(_ctx: click.Context, _parameter: click.Parameter, standby: bool) -> None:
    if standby:
        raise click.UsageError(f"--standby: {NO_STANDBY}")


@verb(
    "qpubsub run -m QM1",
    "qpubsub run -m QM1 --once --record puts.jsonl",
    "QPUBSUB_RUN_DURABILITY=normal qpubsub run -m QM1",
    "qpubsub run -m QM1 --home postgresql://db/mq",
    exit_codes={
        0: "an orderly end",
        1: "an orderly end, with dead letters or publications that could not be delivered",
        130: "ended by force in the middle of a command, which is on its queue again",
    },
    environment="QPUBSUB_RUN",
)
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    callback=_configured,
    is_eager=True,
    help="A TOML file with options, passwords, TLS and all other settings; qpubsub config check FILE checks it.",
)
@queue_manager
@click.option("--once", is_flag=True, help="Process the messages that are on the queues, then end.")
@click.option(
    "--record", type=FILE, metavar="FILE", help="Append every put to this file as JSON Lines, after its commit."
)
@click.option(
    "--log",
    type=FILE_OR_DASH,
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
@click.option("--standby", is_flag=True, hidden=True, expose_value=False, callback=_without_standby)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.5),
    metavar="SECONDS",
    help="In PostgreSQL: another run takes over if this one gives no sign of life for this time (3).",
)
@click.option(
    "--command-seconds",
    type=click.FloatRange(min=0),
    default=_DEFAULT_BUDGET.time_s,
    show_default=True,
    metavar="SECONDS",
    help="The time for one command. A command that takes longer becomes a dead letter. 0: no limit.",
)
@click.option(
    "--command-topics",
    type=click.IntRange(min=0),
    default=_DEFAULT_BUDGET.topics,
    show_default=True,
    metavar="N",
    help="Topics that one command may name. 0: no limit.",
)
@click.option(
    "--command-puts",
    type=click.IntRange(min=0),
    default=_DEFAULT_BUDGET.changes,
    show_default=True,
    metavar="N",
    help="Publications and changes of state that one command may cause. 0: no limit.",
)
@click.option(
    "--command-megabytes",
    type=click.IntRange(min=0),
    default=_DEFAULT_BUDGET.size_bytes // _MEGABYTE,
    show_default=True,
    metavar="N",
    help="Megabytes of all publications that one command may cause; the memory for them is two to five times that. "
    "0: no limit.",
)
@click.option(
    "--queues",
    metavar="URL",
    help="The queue manager that has the queues, if it is not the embedded one: mq://host:1414/QMGR?channel=NAME.",
)
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    help="Let MQ client programs connect here, as to a queue manager; the host is 127.0.0.1 if you give only a port.",
)
@click.option(
    "--topics",
    metavar="URL",
    help="The topic tree to link to: mqtt://host, mqtts://, nats://, tls://, kafka://, kafkas://, mq:// or ibmmq://.",
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
    /,
    console_at: str | None,
    command_seconds: float,
    command_topics: int,
    command_puts: int,
    command_megabytes: int,
    durability: str,
    log_format: str,
    as_json: bool,
    **given: Any,
) -> int:
    """Process the commands on SYSTEM.BROKER.CONTROL.QUEUE and on the stream queues of queue manager QMGR.

    run commits a command together with all its results. If it is killed and started again, no persistent message is
    lost and none is processed twice. Without --once it waits for messages until you stop it (Ctrl-C, SIGTERM). It
    reports failed commands on stderr, and puts messages that it cannot answer on the dead-letter queue.

    In a home in PostgreSQL, start as many as you like, on any machines: one works, and the others wait to take over.
    In a directory a second one is refused.

    With --topics, publications also go to the programs of another topic tree, and their publications go to legacy
    subscribers. With --once, run then waits until the tree has received and sent everything.

    run puts a command that exceeds its limits on the dead-letter queue with reason 2102. It puts a message on which
    the processor ended or hung twice there with reason 2362; the processor is restarted automatically.

    Each option can also be an environment variable, QPUBSUB_RUN_LOG_FORMAT for --log-format, or a key of the file of
    --config. The command line comes first, then the environment, then the file.
    """
    settings = RunSettings(
        budget=Budget(command_seconds, command_topics, command_puts, command_megabytes * _MEGABYTE),
        durability=Durability[durability.upper()],
        log_format=LogFormat(log_format),
        **given,
    )
    bridge = Bridge(console, settings, () if console_at is None else (_console(settings, console_at),))
    if console.is_the_process:
        code = bridge.fork()
        if code is not None:
            return code
    with bridge:
        if settings.once:
            bridge.drain()
        else:
            bridge.serve()
    console.say(bridge.summary)
    if as_json:
        console.json(bridge.tally.as_dict())
    return bridge.exit_code()


def _console(settings: RunSettings, where: str) -> Beside:
    """The console at *where*, served beside the processor."""
    options = console_options(settings.config.console, where, "--console")

    def made() -> Service:
        from commands.console.server import console_service  # noqa: PLC0415 - an extra, and slow to load

        def source() -> Source:
            return Source(partial(store_of_pages, settings.home, settings.qmgr), groups_of)

        return console_service(settings.qmgr, options, source, "--console")

    return Beside("console", made, f"console on {options.scheme}://{{}}/")
