"""Captured commands, run on a queue manager in memory, with the operations that they lead to.

The state grows along a capture: a RegSub that finds its subscription alters it, and a DeregSub removes what an earlier
RegSub made. The operations are recorded where the topic space carries them out, so they are those of the processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.times import EPOCH
from commands.explain.problems import command_of
from commands.model import Command, RegisterSubscriber, RegOpt
from commands.mqsc.broker import Broker
from commands.mqsc.equivalents import OperationContext, OperationInContext
from rfh2.captured import CapturedMessage, iso
from rfh2.explain.reading import read_message
from rfh2.message import Message, encode
from streams.operations import Operation


@dataclass(frozen=True, slots=True)
class TracedMessage:
    """One captured message and its result at queue manager *qmgr*.

    command: None where the message has no command that can be parsed.
    """

    captured: CapturedMessage
    message: Message
    command: Command | None
    operations: tuple[OperationInContext, ...]
    outcome: Outcome
    qmgr: str


def in_context(trace: Trace, command: Command | None, qmgr: str, now: datetime) -> Iterator[OperationInContext]:
    """The operations of a trace with what dialects need to know beside each. command: the one that they are of."""
    no_alter = isinstance(command, RegisterSubscriber) and command.has(RegOpt.NO_ALTER)
    for traced in trace.operations:
        yield OperationInContext(traced.operation, OperationContext(qmgr, now, traced.before, traced.cleared, no_alter))


class TraceBroker:
    """A queue manager in memory for captures; its state is what the messages so far have made of it.

    setup: MQSC text, run first. semantics: ``v7`` or ``v6``. Raises QPubSubError where *setup* fails.
    """

    def __init__(self, qmgr: str = "QM1", setup: str = "", semantics: str = "v7") -> None:
        self.broker = Broker.of_capture(qmgr, setup, semantics)
        self._now = EPOCH
        self._arrivals = 0

    def trace(self, captured: CapturedMessage) -> TracedMessage:
        """Process one message.

        One without a time comes when the last one came; one without a queue is put where its command belongs.
        """
        self._now = captured.time if captured.time is not None else self._now
        partial = read_message(captured)
        found = command_of(partial)
        queue = captured.queue or (CONTROL_QUEUE if found is None or found.on_control_queue else DEFAULT_STREAM)
        # Counted here: messages of several captures may have the same seq, and identifiers are made of it.
        self._arrivals += 1
        outcome = self.broker.trace(
            Arrival(self._arrivals, self._now, queue, captured.md, captured.body, captured.user)
        )
        assert outcome.trace is not None
        command = outcome.command if outcome.command is not None else found
        operations = tuple(in_context(outcome.trace, command, self.broker.qmgr, self._now))
        return TracedMessage(captured, partial.message, command, operations, outcome, self.broker.qmgr)


def to_json(operation: Operation) -> dict[str, Any]:
    """The JSON form of *operation*: its name, and its fields under their own names."""
    return {"operation": type(operation).__name__, **_fields(operation)}


def as_json(value: Any) -> Any:
    """Any part of an operation: bytes as hex, moments in ISO 8601, a message as the hex of its MQMD and its body."""
    if isinstance(value, Message):
        return {"md_hex": value.mqmd.encode().hex(), "body_hex": encode(value).hex()}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
