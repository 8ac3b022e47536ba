"""What a program wanted with a command that was refused: the subscriptions of a RegSub, the topics of a Publish.

The broker stops at the first fault of a command. For a subscriber who waits, the rest of it matters: where the
publications were to go, and on which topics. So it is with a dead letter that was a publication.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.broker.context import prefix_of_sub_point, stream_prefix
from commands.broker.core import BrokerCore
from commands.broker.objects import DEFAULT_STREAM
from commands.broker.outcome import Arrival
from commands.explain.command_text import command_text
from commands.explain.why.near import place_prefix
from commands.explain.why.verdict import Reason
from commands.headers.registry import parse
from commands.model import Command, Publish, RegisterSubscriber, RegOpt
from rfh2.constants import (
    MQFMT_DEAD_LETTER_HEADER,
    MQRC_Q_FULL,
    MQRC_UNKNOWN_OBJECT_NAME,
    MQRC_UNKNOWN_REMOTE_Q_MGR,
    reason_text,
)
from rfh2.dlh import Dlh
from rfh2.errors import CommandError, DecodeError
from rfh2.message import Message, decode
from rfh2.mqi_constants import MQCI_NONE, MQRC_Q_DELETED
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2
from streams.operations import Publication, PublishToTopic
from streams.patterns import add_pattern_prefix
from streams.selectors import compile_selector
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from streams.topic_strings import add_prefix

_REFUSED: Final = b"\xff"
_BY_CODE: Final = {
    MQRC_Q_FULL: Reason.QUEUE_FULL,
    MQRC_UNKNOWN_OBJECT_NAME: Reason.QUEUE_GONE,
    MQRC_Q_DELETED: Reason.QUEUE_GONE,
    MQRC_UNKNOWN_REMOTE_Q_MGR: Reason.TRANSMISSION,
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command as its text shows it, refused or not. word: ``RegSub``, ``Publish`` ..."""

    word: str
    topics: tuple[str, ...]
    queue: str
    qmgr: str
    stream: str | None
    sub_point: str | None
    name: str | None
    selector: str | None
    correl_id: bytes
    header: PublicationFormat
    message: Message


def attempt(arrival: Arrival, command: Command | None = None) -> Attempt | None:
    """What a message asks for; None where that cannot be read. command: what the parser made of it, if it could."""
    try:
        message = decode(arrival.body, arrival.md)
    except DecodeError:
        return None
    if command is None:
        with suppress(DecodeError, CommandError):
            command = parse(message)
    return _of_text(message) if command is None else _of_command(command, message)


def _of_command(command: Command, message: Message) -> Attempt:
    correl_id = MQCI_NONE
    name = selector = sub_point = None
    if isinstance(command, RegisterSubscriber):
        name, selector, sub_point = command.sub_name, command.filter, command.sub_point
        correl_id = message.mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE
    elif isinstance(command, Publish):
        sub_point = command.sub_point
    return Attempt(
        command.word,
        command.topics,
        name_of(command.q_name or "") or name_of(message.mqmd.reply_to_q),
        name_of(command.qmgr_name or "") or name_of(message.mqmd.reply_to_qmgr),
        command.stream_name,
        sub_point,
        name,
        selector,
        correl_id,
        command.header,
        message,
    )


def _of_text(message: Message) -> Attempt | None:
    text = command_text(message)
    if text is None:
        return None
    values = {pair.tag: pair.text for pair in text.pairs}
    if "Command" not in values:
        return None
    by_correl_id = any(p.tag == "RegOpt" and p.text == RegOpt.CORREL_AS_ID.value for p in text.pairs)
    return Attempt(
        values["Command"],
        tuple(pair.text for pair in text.pairs if pair.tag == "Topic"),
        name_of(values.get("QName", "")) or name_of(message.mqmd.reply_to_q),
        name_of(values.get("QMgrName", "")) or name_of(message.mqmd.reply_to_qmgr),
        values.get("StreamName"),
        values.get("SubPoint"),
        values.get("SubName"),
        values.get("Filter"),
        message.mqmd.correl_id if by_correl_id else MQCI_NONE,
        PublicationFormat.RFH2 if isinstance(text.holder, Rfh2) else PublicationFormat.RFH1,
        message,
    )


def subscriptions_of(wanted: Attempt, broker: BrokerCore, arrival: Arrival) -> Iterator[Subscription]:
    """The subscriptions that a RegSub would have made, with identifiers that no real subscription has."""
    stream = None if wanted.stream in (None, DEFAULT_STREAM) else wanted.stream
    if stream is None:
        prefix = prefix_of_sub_point(wanted.sub_point, broker.objects, broker.semantics)
        prefix = wanted.sub_point or "" if prefix is None else prefix
    else:
        prefix = stream_prefix(stream, broker.objects, broker.semantics)
    scheme = broker.rfh2_wildcards if wanted.header is PublicationFormat.RFH2 else WildcardScheme.CHAR
    for n, topic in enumerate(dict.fromkeys(wanted.topics)):
        yield Subscription(
            _REFUSED + arrival.seq.to_bytes(12, "big") + n.to_bytes(11, "big"),
            add_pattern_prefix(prefix, topic, scheme),
            wanted.queue,
            wanted.qmgr or broker.qmgr,
            arrival.now,
            name=wanted.name,
            wildcard=scheme,
            prefix=prefix,
            stream=stream,
            sub_point=wanted.sub_point,
            correl_id=wanted.correl_id,
            selector=_valid(wanted.selector),
            format=wanted.header,
        )


def publications_of(wanted: Attempt, broker: BrokerCore, arrival: Arrival) -> Iterator[tuple[str, PublishToTopic]]:
    """What a Publish would have published: each topic as it was written, and the operation."""
    stream = None if arrival.queue == DEFAULT_STREAM else arrival.queue
    prefix = place_prefix(stream, wanted.sub_point, broker)
    publication = Publication(wanted.message, arrival.now, None, False, stream, wanted.sub_point)
    for topic in wanted.topics:
        yield topic, PublishToTopic(add_prefix(prefix, topic), publication)


def _valid(selector: str | None) -> str | None:
    """The Filter, if it is one: what is wrong with it may be the reason of the refusal."""
    try:
        return selector if selector is None else compile_selector(selector).text
    except CommandError:
        return None


@dataclass(frozen=True, slots=True)
class DeadPublication:
    """A dead letter that was a publication for a subscriber's queue. topics: as the publication names them."""

    queue: str
    topics: tuple[str, ...]
    reason: Reason
    why: str


def dead_publication(arrival: Arrival) -> DeadPublication | None:
    """What a captured dead letter says about a subscriber's queue; None for another message."""
    if arrival.md is None:
        return None
    try:
        if Mqmd.decode(arrival.md).format != MQFMT_DEAD_LETTER_HEADER:
            return None
        header = decode(arrival.body, arrival.md).headers[0]
    except (DecodeError, IndexError):
        return None
    wanted = attempt(arrival)
    if not isinstance(header, Dlh) or wanted is None or not wanted.topics:
        return None
    queue, code = name_of(header.dest_q_name), header.reason
    why = f"message {arrival.seq} on {arrival.queue} is the dead letter: {code} {reason_text(code)}".rstrip()
    return DeadPublication(queue, wanted.topics, _BY_CODE.get(code, Reason.DEAD_LETTER), f"{why} (queue {queue})")
