"""``qpubsub home``: queue managers go from a directory to PostgreSQL, and back."""

from __future__ import annotations

import click

from commands.config.home import Home
from commands.options.queue_manager import HomeType
from commands.options.verb import json_option, verb_group
from commands.qmgr.store import opening, queue_managers
from commands.terminal.console import Console, ExitCode
from rfh2.errors import StoreError


@verb_group
def command() -> None:
    """Copy queue managers between homes: directories, and databases of PostgreSQL."""


@command.verb(
    "qpubsub home copy ./qmgrs postgresql://bridge@db/mq",
    "qpubsub home copy postgresql://bridge@db/mq ./qmgrs -m QM1",
    exit_codes={1: "a queue manager could not be copied; the others were", 2: "usage, or there is nothing to copy"},
)
@click.argument("source", metavar="FROM", type=HomeType())
@click.argument("target", metavar="TO", type=HomeType())
@click.option(
    "--qmgr", "-m", "wanted", multiple=True, metavar="QMGR", help="Copy only this queue manager; you can repeat it."
)
@json_option
@click.pass_obj
def copy(console: Console, source: Home, target: Home, wanted: tuple[str, ...], as_json: bool) -> ExitCode:
    """Copy queue managers from home FROM to home TO: a directory, or postgresql://[USER@]HOST/DATABASE.

    End all programs that use them first. A queue manager is copied whole or not at all, and stays where it was. If the
    copy is interrupted, give the same command again: queue managers that are copied already are skipped.
    """
    names = wanted or queue_managers(source)
    if not names:
        raise StoreError(f"{source} holds no queue managers")
    worst = ExitCode.DONE
    for name in names:
        try:
            is_new = opening.copy(source, target, name)
        except StoreError as error:
            console.warn(f"queue manager {name} was not copied: {error}")
            worst = ExitCode.PROBLEMS
            continue
        if as_json:
            console.json({"qmgr": name, "to": str(target), "was_there": not is_new})
        console.say(f"queue manager {name} {'copied to' if is_new else 'was copied before to'} {target}")
    return worst
