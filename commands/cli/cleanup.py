"""``qpubsub cleanup``: what JMS subscribers that ended abnormally have left behind."""

from __future__ import annotations

from typing import Any

import click

from commands.broker.queue_names import ADMIN_QUEUE
from commands.config.home import Home
from commands.explain.command_text import is_response
from commands.headers.registry import is_command
from commands.options.queue_manager import queue_manager
from commands.options.verb import verb
from commands.qmgr.jms_cleanup import CleanupItem, Identify, JmsCleaner, Level, MessageKind
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from commands.terminal.console import Console, ExitCode
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
def command(console: Console, qmgr: str, home: Home, level: str, rehearse: bool, as_json: bool) -> ExitCode:
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
