"""Rules that a capture gives a sign of, though no put differs in a replay: for a person to think about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commands.broker.core import Arrival
from commands.broker.objects import ADMIN_STREAM
from commands.model import (
    Command,
    DeregisterPublisher,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterPublisher,
    RegisterSubscriber,
    RequestUpdate,
)
from commands.replay.differences.commands_compared import of_metatopics
from commands.replay.differences.observe import ComparedMessage
from rfh2.constants import MQPER_PERSISTENT
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of
from streams.char_wildcards import has_char_wildcards
from streams.subscriptions import PublicationFormat

_DYNAMIC: Final = "AMQ."


def signs_of(step: ComparedMessage) -> list[str]:
    """The ids of the rules that the command of a step is a sign of."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None:
        return []
    try:
        mqmd = Mqmd() if step.arrival.md is None else Mqmd.decode(step.arrival.md)
    except DecodeError:
        return []
    return list(_signs_of(command, step.arrival, mqmd))


def _signs_of(command: Command, arrival: Arrival, mqmd: Mqmd) -> Iterator[str]:
    if ADMIN_STREAM in (command.stream_name, arrival.queue):
        yield "D05"
    if isinstance(command, RegisterPublisher | DeregisterPublisher):
        yield "D06"
    if isinstance(command, RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        if any(map(has_char_wildcards, command.topics)):
            yield "D14"
        if (command.q_name or name_of(mqmd.reply_to_q)).startswith(_DYNAMIC):
            yield "D17"
            yield "D18"
    if isinstance(command, RegisterSubscriber):
        # Both versions say ok, and what version 6 published there itself is in no replay.
        metatopic = of_metatopics(command.topics)
        if metatopic is not None:
            yield metatopic[0]
        if command.filter:
            yield "D30"
        if command.header is not PublicationFormat.RFH2:
            yield "D31"
    if isinstance(command, RegisterSubscriber | DeregisterSubscriber) and command.sub_identity is not None:
        yield "D32"
    # As its queue has it is most often not, and the queue of version 6 is not known.
    if isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB) and mqmd.persistence != MQPER_PERSISTENT:
        yield "D28"
