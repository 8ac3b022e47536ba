"""``qpubsub transactions``: branches of global transactions that are in doubt, and their end."""

from __future__ import annotations

from typing import Final

import click

from commands.broker.connections import Order
from commands.config.home import Home
from commands.options.queue_manager import queue_manager
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listeners import AskedListeners
from commands.terminal.console import Console, ExitCode
from rfh2.channel.segments import Xid

_NONE_IN_DOUBT: Final = "no transaction is in doubt"


class _Number(click.ParamType[int]):
    """0.7, as DISPLAY CONN shows QMURID; 7 and IBM's 0,7 are taken too."""

    name = "TRANSACTION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = str(value).replace(",", ".").removeprefix("0.")
        if not number.isdecimal() or not number.isascii() or not 0 < int(number) < 1 << 62:
            self.fail(f"{value!r} is not a transaction's number, such as 0.7", param, ctx)
        return int(number)


@verb(
    "qpubsub transactions -m QM1",
    "qpubsub transactions -m QM1 --commit 0.7",
    prints=True,
    exit_codes={1: "there is no such transaction, or it was not ended", 2: "nothing was changed"},
)
@queue_manager
@click.option("--commit", type=_Number(), help="Commit this one.")
@click.option("--backout", type=_Number(), help="Back this one out.")
@json_option
@click.pass_obj
def command(
    console: Console, qmgr: str, home: Home, commit: int | None, backout: int | None, as_json: bool
) -> ExitCode:
    """Show the branches of global transactions (XA) that are prepared, and wait to be committed or backed out.

    A transaction manager ends them when it recovers. If it is lost, find out how the transaction ended, and end its
    branch here in the same way: --commit puts and gets its messages, --backout returns them to where they were. A
    transaction manager that comes back learns that there is no such branch.
    """
    if commit is not None and backout is not None:
        raise click.UsageError("--commit and --backout cannot be used together")
    with QueueManagerStore.open(home, qmgr) as store:
        number = commit if commit is not None else backout
        if number is not None:
            return _end(console, store, number, commit is not None, as_json)
        with store.unit_of_work() as unit:
            found = [(each, xid, unit.prepared.counts(each)) for each, xid in unit.prepared.in_doubt()]
    for each, xid, (put, got) in found:
        shown = str(Xid.read(bytearray(xid), 0, "big"))
        if as_json:
            console.json({"transaction": f"0.{each}", "xid": shown, "put": put, "got": got})
        else:
            console.data(f"0.{each}  {shown}  messages put: {put}, got: {got}")
    if not found:
        console.say(_NONE_IN_DOUBT)
    return ExitCode.DONE


def _end(console: Console, store: QueueManagerStore, number: int, commits: bool, as_json: bool) -> ExitCode:
    listeners = AskedListeners(store.database)
    if listeners.reports():
        # It does it: its programs may wait for the messages.
        is_done = any(each.resolved for each in listeners.obey(Order(branch=number, commits=commits)))
    else:
        with store.unit_of_work() as unit:
            is_done = unit.prepared.resolve(number, commits) is not None
    if as_json:
        console.json({"transaction": f"0.{number}", "committed": commits, "done": is_done})
    if is_done:
        console.say(f"transaction 0.{number} was {'committed' if commits else 'backed out'}")
        return ExitCode.DONE
    console.say(f"transaction 0.{number} is not in doubt, or the listener has not answered: look again")
    return ExitCode.PROBLEMS
