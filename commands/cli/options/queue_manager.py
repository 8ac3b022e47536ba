"""``-m QMGR`` and ``--home``: the queue manager that a verb is for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from commands.broker.objects import is_object_name
from commands.qmgr.store.home import queue_managers

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_HOME: Final = "qmgrs"
_HOME_VARIABLE: Final = "QPUBSUB_HOME"


def complete_queue_manager(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the queue managers under --home, where that is on the line already."""
    home = ctx.params.get("home") or os.environ.get(_HOME_VARIABLE) or _DEFAULT_HOME
    try:
        found = queue_managers(Path(home))
    except OSError:
        return []
    return [name for name in found if is_object_name(name) and name.startswith(incomplete)]


HOME: Final = click.option(
    "--home",
    envvar=_HOME_VARIABLE,
    default=_DEFAULT_HOME,
    show_default="./qmgrs",
    show_envvar=True,
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the queue managers live.",
)

QMGR: Final = click.option(
    "--qmgr",
    "-m",
    required=True,
    metavar="QMGR",
    help="The queue manager.",
    shell_complete=complete_queue_manager,
)


def queue_manager(function: F) -> F:
    """``-m`` and ``--home``: the verb gets *qmgr* (str) and *home* (Path)."""
    return QMGR(HOME(function))
