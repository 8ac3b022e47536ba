"""Reading a message: what it is and which command is in it, whoever processes it and when.

``Reach`` is what a command on the control queue can find and change, as far as its message says it.

The broker finds subscriptions in two ways only (``identity``): by name, and by traditional identity. So two commands
whose reaches share neither a name nor an identity never meet: no subscription that one of them makes, finds, changes or
removes is ever found by the other, whatever their streams, topics, users and times, and in versions 6 and 7 alike.

The queue manager is left out of the identity: that makes a reach wider, and never too narrow. A stream or a topic is no
part of it. Version 7 has one space of names for all streams. Version 6 asks for the owner of an identity in all
streams. An MQRFH2 subscriber names no stream, and one command can name topics anywhere.

One kind of command has a reach that its message does not show. A RegSub that finds its subscription by name moves it,
and takes from the subscription what the command does not give: the queue, or without RegOpt the correlation identifier.
So it can make an identity of which each half was given by another command of that name. ``mixes`` says so.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from commands.broker.identity import name_in_stream
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.headers.registry import parse
from commands.model import Command, DeregisterSubscriber, QueuedCommand, RegisterSubscriber, RegOpt, RequestUpdate
from rfh2.captured import CapturedMessage
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.message import Message, decode, encode, is_resolved, kept_descriptor, resolved
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from streams.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a message, independent of the queue manager.

    command: the command in it, or the error for the response. md: the descriptor that it was read with. The processor
    makes it outside a unit of work if reading may take long, and the comparison of versions once for both.
    """

    message: Message | DecodeError
    command: Command | DecodeError | CommandError | None = None
    md: bytes | None = None

    @classmethod
    def of(cls, md: bytes | None, body: bytes) -> Reading:
        """Read a message. Raises nothing: an error is a result."""
        try:
            return cls._of(decode(body, md), md)
        except DecodeError as error:
            return cls(error, None, md)

    @classmethod
    def of_captured(cls, md: bytes | None, body: bytes) -> Reading | None:
        """The same as a queue manager would keep the message; None where it would keep other bytes."""
        try:
            message = decoded(md, body)
        except DecodeError as error:
            return cls(error, None, md)
        return cls._of(message, md) if is_resolved(message) else None

    @classmethod
    def _of(cls, message: Message, md: bytes | None) -> Reading:
        try:
            return cls(message, parse(message), md)
        except (DecodeError, CommandError) as error:
            return cls(message, error, md)

    def message_with(self, md: bytes | None) -> Message:
        """The message with this descriptor: its Expiry and BackoutCount may have changed since. None: as it was read.

        Raises DecodeError where the message or the descriptor cannot be read.
        """
        if isinstance(self.message, DecodeError):
            raise self.message
        return self.message if md is None or md is self.md else replace(self.message, mqmd=Mqmd.decode(md))


def decoded(md: bytes | None, body: bytes) -> Message:
    """A message, already with the descriptor that a queue manager keeps where that shows in its first bytes.

    *md* as it is counts where the message cannot be read as it is kept. Raises DecodeError.
    """
    if md is None:
        return decode(body)
    kept = kept_descriptor(md, body)
    if kept is not md:
        with suppress(DecodeError):
            return decode(body, Mqmd.decode(kept))
    return decode(body, Mqmd.decode(md))


def as_kept(body: bytes, message: Message) -> tuple[bytes, Message]:
    """A message and its bytes as a queue manager would keep them: a capture may show what a program gave to MQPUT.

    A message put by the broker has MQAT_BROKER and cannot inherit a CCSID; a dead letter has the message's own bytes.
    """
    kept = resolved(message)
    now = encode(kept)
    if kept.mqmd != message.mqmd:
        # The characters of the first header are in the CCSID that the descriptor now names.
        with suppress(DecodeError):
            kept = decode(now, kept.mqmd)
    return (body if now == body else now), kept


def natural_queue(message: CapturedMessage) -> str:
    """The queue that a message of a capture without queue names must have been put to, by the command in it."""
    try:
        command: Command = parse(message.decode())
    except QPubSubError:
        return DEFAULT_STREAM
    return CONTROL_QUEUE if command.on_control_queue else DEFAULT_STREAM


@dataclass(frozen=True, slots=True)
class Reach:
    """What a message can find and change.

    names: of subscriptions. queue: the subscriber queue, empty where the command names none; correl_id: the other half
    of the identity. mixes: whether a subscription of these names may keep a half of its own identity.
    """

    names: tuple[str, ...] = ()
    queue: str = ""
    correl_id: bytes = MQCI_NONE
    mixes: bool = False


NOTHING = Reach()
"""That of a message that neither finds nor makes a subscription."""


def reach_of(md: bytes | None, body: bytes) -> Reach:
    """The reach of a message on the control queue; NOTHING where the broker would refuse to read it."""
    try:
        message = decoded(md, body)
        if not is_resolved(message):
            _, message = as_kept(body, message)
        return _reach_of_command(parse(message), message.mqmd)
    except QPubSubError:
        return NOTHING


def reach_of_subscription(subscription: Subscription) -> Reach:
    """The reach of a subscription that exists: whatever shares something with it may find it."""
    names = () if subscription.name is None else (subscription.name,)
    return Reach(names, subscription.dest_queue, subscription.correl_id)


def _reach_of_command(command: QueuedCommand, mqmd: Mqmd) -> Reach:
    if not isinstance(command, RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        return NOTHING
    queue = name_of(command.q_name or "") or name_of(mqmd.reply_to_q)
    correl_id = mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE
    name, stream = command.sub_name, command.stream_name
    if name is None:
        return Reach((), queue, correl_id)
    # A name that migration has changed is found by either one (guide 7.6.1).
    names = (name,) if stream is None else (name, name_in_stream(name, stream))
    moves = isinstance(command, RegisterSubscriber) and not command.has(RegOpt.NO_ALTER)
    return Reach(names, queue, correl_id, moves and (not queue or command.options is None))
