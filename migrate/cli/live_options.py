"""Options of the verbs that administer a live queue manager: extract, apply, verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.options.queue_manager import queue_manager
from commands.options.verb import FILE
from commands.terminal.console import Console
from migrate.live.opening import LiveQueueManager, open_live
from migrate.planned_state import FILE_NAME, PlannedHeading, PlannedObject, read_planned

F = TypeVar("F", bound=Callable[..., Any])

WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reached:
    """Which queue manager, and how it is reached."""

    qmgr: str
    home: Home
    admin: str | None
    queues: str | None
    config: Path | None

    @contextmanager
    def opened(self, console: Console) -> Iterator[LiveQueueManager]:
        """The queue manager, closed at the end. Raises ConfigError, StoreError."""
        settings = read_config(self.config)
        for exposed in exposed_secrets(settings):
            console.warn(exposed)
        with closing(open_live(self.home, self.qmgr, settings, self.admin, self.queues)) as live:
            yield live

    def planned(self, directory: Path) -> tuple[PlannedHeading, list[PlannedObject]]:
        """The plan in *directory*. Raises UsageError for that of another queue manager, MigrationError."""
        heading, planned = read_planned(directory / FILE_NAME)
        if heading.qmgr != self.qmgr:
            raise click.UsageError(f"{directory} is the plan for queue manager {heading.qmgr}, not {self.qmgr}")
        return heading, planned


def live_queue_manager(function: Callable[..., Any]) -> Callable[..., Any]:
    """``-m``, ``--home``, ``--admin``, ``--queues``, ``--config``: the verb gets *reached* (Reached)."""

    @wraps(function)
    def reaching(*args: Any, **given: Any) -> Any:
        own = {each.name: given.pop(each.name) for each in fields(Reached)}
        return function(*args, reached=Reached(**own), **given)

    verb: Callable[..., Any] = reaching
    for option in (
        click.option(
            "--config",
            type=FILE,
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
        verb = option(verb)
    return queue_manager(verb)


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
