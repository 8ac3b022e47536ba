"""Verbs that maintain a queue manager.

``qpubsub cleanup``: what JMS subscribers that ended abnormally have left behind.
``qpubsub passwd``: the passwords of programs that connect to ``run --listen``.
``qpubsub transactions``: branches of global transactions that are in doubt, and their end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.connections import Order
from commands.broker.objects import ADMIN_QUEUE
from commands.config.access import changed_users, password_hash, valid_user
from commands.config.home import Home
from commands.disk.files import to_disk
from commands.explain.command_text import is_response
from commands.headers.registry import is_command
from commands.options.queue_manager import queue_manager
from commands.options.verb import FILE, json_option, verb
from commands.qmgr.jms_cleanup import CleanupItem, Identify, JmsCleaner, Level, MessageKind
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listeners import AskedListeners
from commands.qmgr.store.port import StoredMessage
from commands.terminal.console import Console, ExitCode
from commands.terminal.output_file import OutputFile
from rfh2.channel.segments import Xid
from rfh2.errors import QPubSubError
from rfh2.message import decode
from rfh2.mqmd import name_of
from rfh2.terminal_escape import visible


@verb(
    "qpubsub cleanup -m QM1 --rehearse",
    "qpubsub cleanup -m QM1 --level strong --json",
    prints=True,
    exit_codes={1: "done, and SYSTEM.JMS.ADMIN.QUEUE has records that cannot be read", 2: "nothing was changed"},
)
@queue_manager
@click.option(
    "--level",
    type=click.Choice([level.name.lower() for level in Level], case_sensitive=False),
    default=Level.SAFE.name.lower(),
    show_default=True,
    help="How much cleanup removes; see above.",
)
@click.option("--rehearse", is_flag=True, help="Change nothing. Report what cleanup would do.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.pass_obj
def cleanup_command(console: Console, qmgr: str, home: Home, level: str, rehearse: bool, as_json: bool) -> ExitCode:
    """Remove what JMS publish/subscribe programs left on SYSTEM.JMS.* queues when they ended without closing.

    SAFE removes subscriptions whose dynamic queue no longer exists, and publications on SYSTEM.JMS.ND.* queues that
    cannot belong to a subscription. You can use it while JMS programs run. STRONG also removes other messages on these
    queues, and messages on SYSTEM.JMS.REPORT.QUEUE that are not responses. Use FORCE and NONDUR only when no JMS
    program is active. FORCE also removes all messages on the report queue, and the messages and dynamic queues,
    SYSTEM.JMS.D.* too, that no subscription and no record names. NONDUR removes all non-durable subscriptions with
    their messages and dynamic queues. Use it before you change SUBSTORE.

    cleanup keeps durable subscriptions and their messages at every level. It commits each step. If it is interrupted,
    run it again.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        items, records = JmsCleaner(store, Level[level.upper()], identifier(store.name), rehearse).clean()
    if as_json:
        form = {
            "qmgr": qmgr,
            "level": level.upper(),
            "rehearsed": rehearse,
            "records": len(records.entries),
            "unread_records": records.unread,
            "items": [_form(item) for item in items],
        }
        console.json(form)
    else:
        for item in items:
            console.data(visible(_line(item, rehearse)))
    if records.unread:
        console.warn(
            f"{records.unread} of the messages on {ADMIN_QUEUE} cannot be read; messages on SYSTEM.JMS.D.* that no "
            "subscription is for are left, because one of these records may be theirs. Look at them with qpubsub decode"
        )
    console.say(_summary(items, rehearse))
    return ExitCode.PROBLEMS if records.unread else ExitCode.DONE


def identifier(qmgr: str) -> Identify:
    """Says what a message on a subscriber's or the report queue of *qmgr* is, by its headers.

    The ReplyToQMgr of a publication is the queue manager whose broker sent it (guide 6.7.9).
    """

    def identify(message: StoredMessage) -> MessageKind:
        try:
            decoded = decode(message.body, message.md)
            if is_response(decoded):
                return MessageKind.RESPONSE
            if not is_command(decoded):
                return MessageKind.OTHER
        except QPubSubError:
            return MessageKind.OTHER
        is_ours = name_of(decoded.mqmd.reply_to_qmgr) in ("", qmgr)
        return MessageKind.PUBLICATION if is_ours else MessageKind.ELSEWHERE

    return identify


def _form(item: CleanupItem) -> dict[str, Any]:
    return {
        "action": "remove" if item.goes else "leave",
        "what": item.what,
        "queue": item.queue,
        "subscription": item.subscription,
        "correl_id": None if item.correl_id is None else item.correl_id.hex(),
        "count": item.count,
        "why": item.why,
    }


def _line(item: CleanupItem, rehearse: bool) -> str:
    done = ("to remove" if rehearse else "removed") if item.goes else "left"
    correl_id = "" if item.correl_id is None else f" with CorrelId {item.correl_id.hex().upper()}"
    match item.what:
        case "messages":
            what = f"{item.count} {'message' if item.count == 1 else 'messages'} on {item.queue}{correl_id}"
        case "subscription":
            what = f"subscription {item.subscription} for {item.queue}{correl_id}"
        case _:
            what = f"queue {item.queue}"
    return f"{done}: {what}: {item.why}"


def _summary(items: list[CleanupItem], rehearse: bool) -> str:
    counts = []
    for what in ("subscription", "messages", "queue"):
        count = sum(item.count for item in items if item.goes and item.what == what)
        word = what.removesuffix("s")
        counts.append(f"{count:,} {word if count == 1 else f'{word}s'}")
    return f"{', '.join(counts)} {'would be removed; nothing was changed' if rehearse else 'removed'}"


_MOST_BYTES: Final = 256
_OWNER_ONLY: Final = 0o600


@verb("qpubsub passwd --users users alice", "pass show mq/alice | qpubsub passwd --users users alice", prints=True)
@click.argument("user")
@click.option(
    "--users",
    type=FILE,
    metavar="FILE",
    help="Change the user's line in this file, or add it, instead of printing it. A new file can be read by you only.",
)
@click.option("--delete", is_flag=True, help="Remove the user from the file. No password is asked for.")
@json_option
@click.pass_obj
def passwd_command(console: Console, user: str, users: Path | None, delete: bool, as_json: bool) -> None:
    """Make the line of a users file for USER: the name, and a hash of the password.

    passwd asks for the password twice, and does not show it. If standard input is not a terminal, its first line is the
    password. A
    listener compares the passwords of programs with the file that users_file in the table [listener] of its
    configuration names. It notices a change at once.
    """
    try:
        name = valid_user(user)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="USER") from error
    if delete and users is None:
        raise click.UsageError("--delete needs --users FILE")
    if users is not None and not users.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(users.parent))
    stored = None if delete else password_hash(_password(console, name))
    if users is not None:
        there = _rewrite(users, name, stored)
        if delete and not there:
            raise click.BadParameter(f"{name} is not in {users}", param_hint="USER")
        console.say(f"{users}: {name} {'removed' if delete else 'changed' if there else 'added'}")
    if as_json:
        console.json({"user": name, "hash": stored, "users_file": None if users is None else str(users)})
    elif users is None:
        console.data(f"{name}:{stored}")


def _password(console: Console, user: str) -> str:
    if console.stdin.isatty():
        password: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = console.stdin.readline().decode("utf-8", "replace").rstrip("\r\n")
    if not 0 < len(password.encode()) <= _MOST_BYTES or "\0" in password or "�" in password:
        raise click.UsageError(f"the password must be 1 to {_MOST_BYTES} bytes of UTF-8 text: give it on stdin")
    return password


def _rewrite(path: Path, user: str, stored: str | None) -> bool:
    """Put the user's line into the file, or take it away; whether it was there. Raises OSError."""
    mode, lines = _OWNER_ONLY, []
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding="utf-8").splitlines()
    changed = changed_users(lines, user, stored)
    there = changed_users(lines, user, None) != lines
    if changed != lines:
        output = OutputFile(path)
        with output.open() as file:
            if output.working != path:  # it is a file
                output.working.chmod(mode)
            file.write("".join(f"{line}\n" for line in changed).encode())
            to_disk(file)
        output.finish()
    return there


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
def transactions_command(
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
