"""What ``--where`` can ask of a captured message, by name; each value is worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from commands.explain.command_text import TagAndText, command_text, is_response
from commands.explain.reading import command_of
from commands.explain.sentence import response_reasons
from rfh2.captured import CapturedMessage
from rfh2.captures.record import put_time
from rfh2.dlh import Dlh
from rfh2.explain.reading import PartialMessage, read_message
from rfh2.mqmd import Mqmd, name_of
from streams.selectors import Lookup, Value, message_properties
from streams.selectors.expressions import ValueKind

# Points of time, as people write them.


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC. Raises ValueError.

    >>> moment("2009-01-28 11:43")
    datetime.datetime(2009, 1, 28, 11, 43, tzinfo=datetime.timezone.utc)
    """
    found = datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


_REPORT: Final = 4  # MQMT_REPORT


class SelectionName(NamedTuple):
    """A name of ``--where``. kind: of its value, which is NULL where a message has none. meaning: for people."""

    kind: ValueKind
    meaning: str


NAMES: Final[Mapping[str, SelectionName]] = MappingProxyType(
    {
        "command": SelectionName(
            ValueKind.STRING, "the command: `RegSub`, `DeregSub`, `Publish` ...; none of a response"
        ),
        "topic": SelectionName(ValueKind.STRING, "a topic of the command, as it was written"),
        "queue": SelectionName(ValueKind.STRING, "the queue on which the message was put"),
        "qmgr": SelectionName(ValueKind.STRING, "the queue manager on which it was put"),
        "user": SelectionName(ValueKind.STRING, "the user who put it: of the capture, else UserIdentifier of the MQMD"),
        "program": SelectionName(ValueKind.STRING, "the program that put it: PutApplName of the MQMD"),
        "reason": SelectionName(
            ValueKind.NUMBER,
            "the reason code in it: of a dead-letter header, of a response (the first), or Feedback of a report. A "
            "number, or IBM's name in quotes",
        ),
        "time": SelectionName(
            ValueKind.NUMBER,
            "when it was put, UTC: of the capture, else PutDate and PutTime of the MQMD. Compare it with "
            "`'2009-01-28T11:43'`; in arithmetic it is seconds",
        ),
        "size": SelectionName(ValueKind.NUMBER, "bytes of headers and data, without the MQMD"),
        "seq": SelectionName(ValueKind.NUMBER, "the number of the message in the capture"),
    }
)


class MessageValues:
    """The values of one message. It raises nothing: what cannot be read is NULL.

    A message can have several topics. ``topic`` is the one that ``at_topic`` chose, the first one until then.
    """

    def __init__(self, message: CapturedMessage) -> None:
        self.message = message
        self._topic = 0

    def __call__(self, name: str) -> Value | None:
        """The value of *name*: one of NAMES, or the canonical name of a message property."""
        found = _VALUES.get(name)
        return self._properties(name) if found is None else found(self)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics of the command, in order; those of one that a broker would refuse too."""
        command = command_of(self._partial)
        if command is not None:
            return command.topics
        return tuple(pair.text for pair in self._tags if pair.tag == "Topic")

    def at_topic(self, number: int) -> None:
        """From now on ``topic`` is this one of ``topics``, from 0."""
        self._topic = number

    @cached_property
    def _partial(self) -> PartialMessage:
        return read_message(self.message)

    @cached_property
    def _descriptor(self) -> Mqmd | None:
        """The descriptor alone, for what needs no more."""
        return self.message.descriptor()

    @cached_property
    def _tags(self) -> tuple[TagAndText, ...]:
        message = self._partial.message
        if is_response(message):
            return ()
        text = command_text(message)
        return () if text is None else tuple(text.pairs)

    @cached_property
    def _properties(self) -> Lookup:
        return message_properties(self._partial.message)

    @cached_property
    def command(self) -> str | None:
        """The command's word; the one that the message has where a broker would refuse it."""
        command = command_of(self._partial)
        if command is not None:
            return command.word
        return next((pair.text for pair in self._tags if pair.tag == "Command"), None)

    @property
    def topic(self) -> str | None:
        """The chosen topic."""
        return self.topics[self._topic] if self._topic < len(self.topics) else None

    @property
    def user(self) -> str | None:
        """Who put it."""
        if self.message.user is not None:
            return self.message.user
        return None if self._descriptor is None else name_of(self._descriptor.user_identifier) or None

    @property
    def program(self) -> str | None:
        """Which program put it."""
        return None if self._descriptor is None else name_of(self._descriptor.put_appl_name) or None

    @cached_property
    def reason(self) -> int | None:
        """The reason code that the message carries."""
        message = self._partial.message
        for header in message.headers:
            if isinstance(header, Dlh):
                return header.reason
        if reasons := response_reasons(message):
            return reasons[0]
        mqmd = self._partial.mqmd
        return mqmd.feedback if mqmd is not None and mqmd.msg_type == _REPORT else None

    @property
    def time(self) -> datetime | None:
        """When it was put."""
        if self.message.time is not None:
            return self.message.time
        return None if self.message.md is None else put_time(self.message.md)

    @property
    def seconds(self) -> float | None:
        """``time`` as seconds since 1970."""
        return None if self.time is None else self.time.timestamp()


_VALUES: Final[Mapping[str, Callable[[MessageValues], Value | None]]] = {
    "command": lambda values: values.command,
    "topic": lambda values: values.topic,
    "queue": lambda values: values.message.queue or None,
    "qmgr": lambda values: values.message.qmgr,
    "user": lambda values: values.user,
    "program": lambda values: values.program,
    "reason": lambda values: values.reason,
    "time": lambda values: values.seconds,
    "size": lambda values: len(values.message.body_hex) // 2,
    "seq": lambda values: values.message.seq,
}
