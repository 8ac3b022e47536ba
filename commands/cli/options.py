"""Options that verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

HOME: Final = click.option(
    "--home",
    envvar="QPUBSUB_HOME",
    default="qmgrs",
    show_default="./qmgrs",
    show_envvar=True,
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the queue managers live.",
)

QMGR: Final = click.option("--qmgr", "-m", required=True, metavar="QMGR", help="The queue manager.")


def queue_manager(function: F) -> F:
    """``-m`` and ``--home``: the verb gets *qmgr* (str) and *home* (Path)."""
    return QMGR(HOME(function))
