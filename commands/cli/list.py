"""``qpubsub list``: the queue managers of a home."""

from __future__ import annotations

import click

from commands.config.home import Home
from commands.options.queue_manager import HOME
from commands.options.rows import RowForm, row_options
from commands.options.verb import json_option, verb
from commands.qmgr.store.opening import directory_of, processor_of, queue_managers
from commands.terminal.console import Console


@verb("qpubsub list", "qpubsub list --home /var/lib/qpubsub --json")
@json_option
@row_options(("qmgr", "status", "directory"))
@HOME
@click.pass_obj
def command(console: Console, home: Home, as_json: bool, rows: RowForm | None) -> None:
    """List the queue managers of the home, and whether qpubsub run works for each, as dspmq does."""
    for name in queue_managers(home):
        status = "Ended" if processor_of(home, name) is None else "Running"
        row = {"qmgr": name, "status": status, "directory": str(directory_of(home, name))}
        if rows is not None:
            rows.show(console, row)
        elif as_json:
            console.json(row)
        else:
            console.data(f"QMNAME({name}) STATUS({status})")
    console.say(f"home {home}")
