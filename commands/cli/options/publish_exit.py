"""``--exit``: the publish exit that a replay calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from commands.config.settings import PublishExitConfig, read_config

F = TypeVar("F", bound=Callable[..., Any])


def _configured(ctx: click.Context, param: click.Parameter, path: Path | None) -> PublishExitConfig | None:
    if path is None or ctx.resilient_parsing:
        return None
    config = read_config(path).publish_exit
    if not config.is_there:
        raise click.BadParameter(
            f"{path} names no exit: table [publish_exit] needs path, entry_point or program", ctx, param
        )
    return config


def exit_option(function: F) -> F:
    """The verb gets *exit_config* (PublishExitConfig or None). Raises ConfigError."""
    option = click.option(
        "--exit",
        "exit_config",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        callback=_configured,
        metavar="FILE",
        help="Call the publish exit in table [publish_exit] of this configuration file of run.",
    )
    return option(function)
