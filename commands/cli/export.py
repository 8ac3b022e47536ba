"""``qpubsub export``: the definitions of a queue manager as a file, for it or for another broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import click

from commands.config.home import Home
from commands.mqsc.export import exported
from commands.mqsc.other_brokers import Exported, artemis, rabbitmq
from commands.options.queue_manager import queue_manager_to_read
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted

_OTHERS: Final = {"rabbitmq": rabbitmq, "artemis": artemis}


@verb(
    "qpubsub export -m QM1 -o QM1.mqsc",
    "qpubsub export -m QM1 --to rabbitmq -o definitions.json",
    "qpubsub export -m QM1 --to artemis",
    prints=True,
    exit_codes={1: "something has no meaning in the other broker: stderr says what"},
)
@queue_manager_to_read
@click.option(
    "--to",
    "form",
    type=click.Choice(["mqsc", *_OTHERS]),
    default="mqsc",
    show_default=True,
    help="A script of MQSC, or definitions for another broker.",
)
@json_option
@click.pass_obj
def command(console: Console, qmgr: str, home: Home, form: str, as_json: bool) -> ExitCode:
    """Print the definitions and subscriptions of QMGR.

    The script of MQSC has what differs from a new queue manager, as dmpmqcfg writes it: run it with "qpubsub mqsc" on
    a new queue manager of the same name. For RabbitMQ it is a file for "rabbitmqctl import_definitions", for Artemis
    the element addresses of broker.xml. What is lost there is named on stderr.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        objects, subscriptions, retained = store.load_state()
    if form == "mqsc":
        found = Exported("".join(f"{line}\n" for line in exported(objects, subscriptions, datetime.now(UTC))), ())
    else:
        found = _OTHERS[form](objects, list(subscriptions), len(list(retained)))
    if as_json:
        console.json({"qmgr": qmgr, "to": form, "text": found.text, "lost": list(found.lost)})
    else:
        for line in found.text.splitlines():
            console.data(line)
    for each in found.lost:
        console.warn(f"lost: {each}")
    console.say(f"queue manager {qmgr}: {counted(len(subscriptions), 'subscription')} exported to {form}")
    return ExitCode.PROBLEMS if found.lost else ExitCode.DONE
