"""``qpubsub console``: a queue manager in the browser."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Final

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.console.access import ConsoleOptions, console_options
from commands.console.source import Source, store_of_pages
from commands.disk.errors import ListenError
from commands.disk.open_files import raise_limit
from commands.options.captures import format_option
from commands.options.queue_manager import only_queue_manager, queue_manager_or_none
from commands.options.replays import CaptureReader, ReplayOptions, semantics_option, setup_option, timeline
from commands.options.verb import FILE, json_option, verb
from commands.qmgr.store.opening import queue_managers
from commands.running.listening import where_of
from commands.terminal.console import Console
from commands.terminal.users import groups_of

_DEFAULT_PORT: Final = "8414"


@verb(
    "qpubsub console -m QM1",
    "qpubsub console -m QM1 --write",
    "qpubsub console --all",
    "qpubsub console -m QM1 --capture capture.jsonl --setup streams.mqsc",
    exit_codes={
        0: "ended by Ctrl-C or SIGTERM",
        2: "it cannot listen, or an address that other machines reach has no users or no TLS",
    },
)
@queue_manager_or_none("")
@click.option("--all", "every", is_flag=True, help="Show all queue managers of the home in one window.")
@click.option(
    "--listen",
    default=_DEFAULT_PORT,
    show_default=True,
    metavar="[HOST:]PORT",
    help="Serve the console here; the host is 127.0.0.1 if you give only a port.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Let the console put dead letters again, end programs, and apply MQSC. Without it, it changes nothing.",
)
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="A TOML file whose table [console] has users, TLS and names, as for run --config.",
)
@click.option(
    "--capture",
    "captures",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="A capture, or a directory of captures, for the page of time travel.",
)
@format_option
@semantics_option("With --capture: ")
@setup_option("With --capture: ")
@json_option
@click.pass_obj
def command(
    console: Console,
    qmgr: str | None,
    home: Home,
    every: bool,
    listen: str,
    write: bool,
    config: Path | None,
    captures: tuple[Path, ...],
    form: str,
    semantics: str,
    setup: Path | None,
    as_json: bool,
) -> None:
    """Show queue manager QMGR in the browser, until you stop it (Ctrl-C, SIGTERM).

    The pages show the state, the topic tree, subscriptions, queues with decoded messages, streams, definitions as MQSC,
    links, dead letters, errors and the flow over time; they decode a message that you paste, explain why publications
    arrive or not, and show the broker before and after each message of a capture. Each page is there as JSON too, for
    programs (/api/openapi.json). They need no network, and do not hold up the processor.

    The console is for this machine alone. On an address that other machines reach, it requires passwords and
    TLS: table [console] in the file of --config. qpubsub run --console serves it beside the processor.
    """
    if every and captures:
        raise click.UsageError("--capture is of one queue manager: give -m, not --all")
    names = queue_managers(home) if every else [qmgr or only_queue_manager(click.get_current_context(), home)]
    if not names:
        raise click.UsageError(f"{home} holds no queue manager; make one with: qpubsub create QM1")
    settings = read_config(config)
    options = console_options(settings.console, listen, "--listen", write)
    for exposed in exposed_secrets(settings):
        console.warn(exposed)

    if console.is_the_process:
        raise_limit()
    for name in names:
        store_of_pages(home, name).close()
    open_timeline = None
    if captures:
        script = "" if setup is None else setup.read_text(encoding="utf-8")
        replay = ReplayOptions(captures, form, "local", None, semantics, script)
        open_timeline = partial(timeline, console, CaptureReader(console, replay), replay, None)
    elif setup is not None:
        raise click.UsageError("--setup needs --capture FILE")
    sources = {name: Source(partial(store_of_pages, home, name), groups_of, open_timeline) for name in names}
    try:
        for source in sources.values():
            source.prepare()
        asyncio.run(_served(console, options, sources, every, as_json))
    except OSError as error:
        raise ListenError(where_of(options.host, options.port), error.strerror or str(error)) from error
    finally:
        for source in sources.values():
            source.close()


async def _served(
    console: Console, options: ConsoleOptions, sources: dict[str, Source], every: bool, as_json: bool
) -> None:
    from commands.console.server import ConsoleApp, ConsoleHome, serve  # noqa: PLC0415 - an extra, and slow to load

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)

    def started(port: int) -> None:
        url = f"{options.scheme}://{where_of(options.host, port)}/"
        shown = f"{'queue managers' if every else 'queue manager'} {', '.join(sources)}"
        console.say(f"{shown}: console on {url}; stop with Ctrl-C")
        if as_json:
            console.json({"qmgr": None if every else qmgr, "url": url, "write": options.write})
            console.flush()

    qmgr, source = next(iter(sources.items()))
    app = ConsoleHome(options, sources) if every else ConsoleApp(qmgr, options, source)
    await serve(app, options, ended, started)
