"""Rules for which a capture has signs, though no put differs in a replay: a person has to check them."""

from __future__ import annotations

from collections.abc import Iterator

from commands.broker.dynamic_names import is_dynamic_name
from commands.broker.objects import ADMIN_STREAM
from commands.model import (
    Command,
    DeregisterPublisher,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterPublisher,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from commands.replay.differences.commands_compared import of_metatopics
from commands.replay.differences.observe import ComparedMessage
from commands.replay.differences.subscribers import identity_of
from rfh2.constants import MQPER_PERSISTENT, MQRCCF_DUPLICATE_SUBSCRIPTION
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of
from streams.char_wildcards import has_char_wildcards
from streams.subscriptions import PublicationFormat


def signs_of(step: ComparedMessage) -> list[str]:
    """The ids of the rules that the command of a step is a sign of."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None:
        return []
    try:
        mqmd = Mqmd() if step.arrival.md is None else Mqmd.decode(step.arrival.md)
    except DecodeError:
        return []
    if isinstance(command, Publish):
        return list(_of_publication(command, step, mqmd))
    return list(_of_registration(command, step, mqmd))


def _of_publication(command: Publish, step: ComparedMessage, mqmd: Mqmd) -> Iterator[str]:
    if ADMIN_STREAM in (command.stream_name, step.arrival.queue):
        yield "D05"
    # "As its queue" most often means nonpersistent, and the queue of version 6 is not known.
    if command.has(PubOpt.RETAIN_PUB) and mqmd.persistence != MQPER_PERSISTENT:
        yield "D28"
    if any(delivery.subscription.format is not command.header for delivery in step.new.deliveries):
        yield "D31"


def _of_registration(command: Command, step: ComparedMessage, mqmd: Mqmd) -> Iterator[str]:
    if ADMIN_STREAM in (command.stream_name, step.arrival.queue):
        yield "D05"
    if isinstance(command, RegisterPublisher | DeregisterPublisher):
        yield "D06"
    if isinstance(command, RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        # Version 7 reads those of MQRFH by character as version 6 did.
        if command.header is PublicationFormat.RFH2 and any(map(has_char_wildcards, command.topics)):
            yield "D14"
        if is_dynamic_name(command.q_name or name_of(mqmd.reply_to_q)):
            yield "D17"
            yield "D18"
    if isinstance(command, RegisterSubscriber):
        yield from _of_name(command, step)
        # Both versions answer ok, and a replay has none of the publications that version 6 made there itself.
        metatopic = of_metatopics(command.topics)
        if metatopic is not None:
            yield metatopic[0]
        if command.filter:
            yield "D30"
    if isinstance(command, RegisterSubscriber | DeregisterSubscriber) and command.sub_identity is not None:
        yield "D32"


def _of_name(command: RegisterSubscriber, step: ComparedMessage) -> Iterator[str]:
    """A name registered for another queue, which MQSUB does not alter; or a second name for a subscription."""
    if command.sub_name is None:
        return
    named = step.new.named
    queue = identity_of(command, step.arrival, step.qmgr)[:2]
    if named is not None and queue != (named.dest_qmgr, named.dest_queue) and not command.has(RegOpt.NO_ALTER):
        yield "D10"
    if named is None and step.new.outcome.reason == MQRCCF_DUPLICATE_SUBSCRIPTION:
        yield "D25"
