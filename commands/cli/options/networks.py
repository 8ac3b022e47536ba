"""``--network``: several queue managers as one network, from estate.toml."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from commands.network.estate_file import read_estate
from commands.replay.network.local import NetworkSetup

ESTATE_PATH = click.Path(path_type=Path, exists=True)

F = Callable[..., Any]


def network_option(does: str) -> Callable[[F], F]:
    """``--network FILE``: the verb gets *network*, a path or None. does: the verb's sentence about it."""
    return click.option("--network", type=ESTATE_PATH, metavar="ESTATE", help=does)


def network_setup(path: Path, setup: str = "") -> NetworkSetup:
    """The network of an estate. setup: MQSC that runs first on each. Raises TableFileError."""
    return NetworkSetup.of(read_estate(path), setup)
