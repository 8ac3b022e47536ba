"""``qpubsub dev``: a queue manager for tests and laptops."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click

from commands.config.home import Home
from commands.config.settings import read_config
from commands.options.queue_manager import HomeType
from commands.options.verb import FILE, FILE_OR_DASH, json_option, verb
from commands.running.bridge import Bridge
from commands.running.developer import ADMIN, ADMIN_CHANNEL, APP, APP_CHANNEL, Developer, passing_home
from commands.terminal.console import Console

_ANY: Final = {"0.0.0.0": "localhost", "[::]": "localhost"}
_STDIN: Final = 0


@verb(
    "qpubsub dev",
    "qpubsub dev --port 0 --json",
    "MQ_APP_PASSWORD=secret12 qpubsub dev -m QM2 --mqsc definitions --home qmgrs",
    exit_codes={1: "an orderly end, with dead letters"},
)
@click.option(
    "--qmgr",
    "-m",
    envvar="MQ_QMGR_NAME",
    default="QM1",
    show_default=True,
    show_envvar=True,
    metavar="QMGR",
    help="The queue manager.",
)
@click.option(
    "--port",
    "--listen",
    "listen",
    default="1414",
    show_default=True,
    metavar="[HOST:]PORT",
    help="Where programs connect. 0: any free port. The host is 127.0.0.1 if you give only a port.",
)
@click.option(
    "--home",
    type=HomeType(),
    metavar="DIRECTORY|URL",
    help="Keep the queue manager in this directory, or in postgresql://[USER@]HOST/DATABASE. "
    "Without it, all is in memory, and gone at the end.",
)
@click.option(
    "--mqsc",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIRECTORY",
    help="Apply the scripts *.mqsc in this directory, in order of their names, and again when they change.",
)
@click.option(
    "--app-password",
    envvar="MQ_APP_PASSWORD",
    show_envvar=True,
    metavar="PASSWORD",
    help=f"The password of user {APP}. With it, {APP_CHANNEL} refuses programs without the password.",
)
@click.option(
    "--admin-password",
    envvar="MQ_ADMIN_PASSWORD",
    show_envvar=True,
    metavar="PASSWORD",
    help=f"The password of user {ADMIN}, for {ADMIN_CHANNEL}.",
)
@click.option(
    "--defaults/--no-defaults",
    envvar="MQ_DEV",
    default=True,
    show_envvar=True,
    help="Whether IBM's developer defaults are defined.",
)
@click.option("--metrics", metavar="[HOST:]PORT", help="Serve metrics and probes here, as run does.")
@click.option("--log", type=FILE_OR_DASH, metavar="FILE|-", help="Append a log to this file, as run does.")
@click.option("--config", type=FILE, metavar="FILE", help="A file as for run --config: TLS, limits, more channels.")
@click.option("--until-eof", is_flag=True, help="End when standard input ends, so also when the calling program ends.")
@json_option
@click.pass_obj
def command(
    console: Console,
    /,
    home: Home | None,
    app_password: str | None,
    admin_password: str | None,
    config: Path | None,
    until_eof: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Run queue manager QMGR with IBM's developer defaults, in memory, until you stop it (Ctrl-C, SIGTERM).

    It has queues DEV.QUEUE.1 to 3, DEV.DEAD.LETTER.QUEUE, topic DEV.BASE.TOPIC (dev/), channel DEV.APP.SVRCONN for
    user app, and channel DEV.ADMIN.SVRCONN for user admin, as IBM's container image has them. Passwords are required
    if you set one. dev makes the queue manager if it is not there, prints how to connect when it is ready, and with
    --json one line of JSON on stdout.
    """
    passwords = {user: given for user, given in ((APP, app_password), (ADMIN, admin_password)) if given}
    developer = Developer(passwords=passwords, **given)
    with passing_home() if home is None else nullcontext(home) as place:
        bridge = Bridge(console, developer.settings(place, read_config(config)))
        code = bridge.fork()
        if code is not None:
            return code
        with bridge:
            if until_eof:
                threading.Thread(target=_at_eof, args=(bridge.stop,), daemon=True).start()
            _say_ready(console, developer.qmgr, bridge.listening[0], place, as_json)
            bridge.serve()
        return bridge.exit_code()


def _at_eof(stop: threading.Event) -> None:
    while os.read(_STDIN, 4096):
        pass
    stop.set()


def _say_ready(console: Console, qmgr: str, where: str, home: Home, as_json: bool) -> None:
    """How to connect; then what those wait for who wait for IBM's container."""
    host, _, port = where.rpartition(":")
    host = _ANY.get(host, host)
    name = f"{host}({port})"
    for kind, text in (
        ("JMS", f"hostName={host} port={port} queueManager={qmgr} channel={APP_CHANNEL} user={APP}"),
        ("Spring", f"ibm.mq.queueManager={qmgr} ibm.mq.connName={name} ibm.mq.channel={APP_CHANNEL} ibm.mq.user={APP}"),
        ("C, Python", f"MQSERVER='{APP_CHANNEL}/TCP/{name}'"),
        ("this program", f"qpubsub mqsc -m {qmgr} --home {home}"),
    ):
        console.say(f"  {kind:<12}  {text}")
    console.say(f"AMQ5026I: The listener 'DEV.LISTENER.TCP' has started. ProcessId({os.getppid()}).")
    console.say("Started queue manager")
    if as_json:
        about = {"qmgr": qmgr, "host": host, "port": int(port), "conn_name": name, "channel": APP_CHANNEL}
        users = {"user": APP, "admin_channel": ADMIN_CHANNEL, "admin_user": ADMIN}
        console.json({**about, **users, "home": str(home), "pid": os.getppid()})
        console.flush()
