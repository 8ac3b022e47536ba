"""``qpubsub list``: the queue managers of a home."""

from __future__ import annotations

import json

import click

from commands.config.home import Home
from commands.options.queue_manager import HOME
from commands.options.verb import json_option, verb
from commands.qmgr.store.opening import directory_of, processor_of, queue_managers
from commands.terminal.console import Console


@verb("qpubsub list", "qpubsub list --home /var/lib/qpubsub --json")
@json_option
@HOME
@click.pass_obj
def command(console: Console, home: Home, as_json: bool) -> None:
    """List the queue managers of the home, and whether qpubsub run works for each, as dspmq does."""
    for name in queue_managers(home):
        status = "Ended" if processor_of(home, name) is None else "Running"
        if as_json:
            console.data(json.dumps({"qmgr": name, "status": status, "directory": str(directory_of(home, name))}))
        else:
            console.data(f"QMNAME({name}) STATUS({status})")
    console.say(f"home {home}")
