"""What ``decode`` says of a message on the queues where JMS classes keep subscriptions with SUBSTORE(QUEUE)."""

from __future__ import annotations

from commands.broker.jms_queues import RECORD_QUEUES
from rfh2.errors import DecodeError
from rfh2.explain.form import Json
from rfh2.explain.reading import PartialMessage
from rfh2.jms_entry import JmsEntry, decode_entry, is_entry


def jms_entry(partial: PartialMessage) -> JmsEntry | None:
    """The subscription that the message is, where it can be read."""
    message = partial.message
    if message.headers or not is_entry(message.body):
        return None
    try:
        return decode_entry(message.body, message.mqmd.encoding)
    except DecodeError:
        return None


def jms_sentence(partial: PartialMessage) -> str | None:
    """One sentence; None for a message that has nothing to do with it."""
    entry = jms_entry(partial)
    if entry is not None:
        selector = f", selector {entry.selector}" if entry.selector else ""
        whose = f"client {entry.client_id or '(none)'}, name {entry.name or '(none)'}"
        correl_id = partial.assumed.msg_id.hex().upper()
        what = (
            f"JMS subscription of SUBSTORE(QUEUE), probably: {whose}, to {entry.topic} for {entry.queue_name}{selector}"
        )
        return f"{what}; its messages have CorrelId {correl_id}"
    on_record_queue = (partial.captured.queue or "") in RECORD_QUEUES
    if on_record_queue or (not partial.headers and is_entry(partial.message.body)):
        return "A record that JMS classes keep with SUBSTORE(QUEUE), probably: IBM does not document its format"
    return None


def jms_form(partial: PartialMessage) -> Json | None:
    """The same for ``decode --json``."""
    entry = jms_entry(partial)
    if entry is None:
        return None
    return {
        "version": entry.version,
        "client_id": entry.client_id,
        "name": entry.name,
        "topic": entry.topic,
        "queue": entry.queue_name,
        "selector": entry.selector or None,
        "flags": entry.flags.hex(),
        "correl_id": partial.assumed.msg_id.hex(),
    }
