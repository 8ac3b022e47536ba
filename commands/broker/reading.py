"""Reading a message: what it is and which command is in it, whoever processes it and when."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.headers.registry import parse
from commands.model import Command
from rfh2.captured import CapturedMessage
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.inherited_ccsids import is_resolved, kept_descriptor, resolved
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd


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
