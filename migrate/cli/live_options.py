"""Options of the verbs that administer a live queue manager: extract, apply, verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.options.queue_manager import queue_manager
from commands.terminal.console import Console
from migrate.live.opening import LiveQueueManager, open_live
from migrate.planned_state import FILE_NAME

F = TypeVar("F", bound=Callable[..., Any])

WAIT_S: Final = 60.0


def live_queue_manager(function: F) -> F:
    """``-m``, ``--home``, ``--admin``, ``--queues``, ``--config``: which queue manager, and how it is reached."""
    for option in (
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="The file with users, passwords and certificates: tables [admin] and [queues].",
        ),
        click.option(
            "--queues",
            metavar="URL",
            help="IBM MQ through its client, for messages and, without --admin, for commands as PCF: "
            "mq://host/QMGR?channel=NAME, or ibmmq:// with IBM's library.",
        ),
        click.option("--admin", metavar="URL", help="IBM MQ by its REST interface: https://host:9443."),
    ):
        function = option(function)
    return queue_manager(function)


def wait(function: F) -> F:
    """``--wait SECONDS``: the verb gets *wait_s*."""
    return click.option(
        "--wait",
        "wait_s",
        type=click.FloatRange(min=0),
        default=WAIT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for answers, and for a queue to become empty.",
    )(function)


def directory_of_plan(function: F) -> F:
    """The argument DIRECTORY: what ``--out`` of strmqbrk or migmbbrk wrote."""
    return click.argument(
        "directory", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIRECTORY"
    )(function)


@contextmanager
def opened(
    console: Console, home: Home, qmgr: str, admin: str | None, queues: str | None, config: Path | None
) -> Iterator[LiveQueueManager]:
    """The queue manager that the options name, closed at the end. Raises ConfigError, StoreError."""
    settings = read_config(config)
    for exposed in exposed_secrets(settings):
        console.warn(exposed)
    live = open_live(home, qmgr, settings, admin, queues)
    try:
        yield live
    finally:
        live.close()


def planned_file(directory: Path) -> Path:
    """The file with what is planned."""
    return directory / FILE_NAME
