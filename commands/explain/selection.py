"""Which messages of a capture a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from commands.explain.command_text import TagAndText, command_text, is_response
from commands.explain.problems import command_of
from commands.explain.sentence import response_reasons
from rfh2.captured import HIGHEST_SEQ, CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.captures.record import put_time
from rfh2.constants import reason_number
from rfh2.dlh import Dlh
from rfh2.errors import QPubSubError
from rfh2.explain.reading import PartialMessage, read_message
from rfh2.mqmd import Mqmd, name_of
from streams.selectors import Lookup, Value, message_properties
from streams.selectors.compile import Test, compile_condition
from streams.selectors.expressions import Literal, Refusal, ValueKind
from streams.selectors.properties import Language, canonical_name, kind_of_name

# ``--where``: a selection string over the messages of a capture.
#
# The language is that of selection strings (``streams.selectors``), with other names: those of ``NAMES``. A name
# with a period, or that begins with ``JMS`` or ``MQ``, is a property of the message, as in a Filter. Two kinds of
# values have literals of their own: a time is written as ISO 8601 in quotes, and a reason code can be written as IBM's
# name.


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


_PROPERTIES: Final = ("JMS", "MQ")


def _canonical(text: str, at: int) -> str:
    if text in NAMES:
        return text
    if "." in text or text.startswith(_PROPERTIES):
        return canonical_name(text, at)
    near = get_close_matches(text.lower(), NAMES, 1, 0.6)
    meant = f" (perhaps {near[0]})" if near else ""
    raise Refusal(
        at,
        f"{text} is not a name{meant}. Names are {', '.join(NAMES)}; write usr.{text} for a property of messages",
    )


def _kind(name: str) -> ValueKind | None:
    return NAMES[name].kind if name in NAMES else kind_of_name(name)


def _beside(literal: Literal, name: str) -> Literal:
    value = literal.value
    if not isinstance(value, str):
        return literal
    if name == "time":
        try:
            return replace(literal, value=moment(value).timestamp())
        except (ValueError, OverflowError) as error:
            why = f"'{value}' is not a time: write '2009-01-28' or '2009-01-28T11:43:54', in UTC"
            raise Refusal(literal.at, why) from error
    if name == "reason":
        number = reason_number(value)
        if number is None:
            raise Refusal(literal.at, f"'{value}' is not the name of a reason code")
        return replace(literal, value=number)
    return literal


# Other names than those of a Filter, and two more kinds of literals; a list may hold numbers, such as reason codes.
_LANGUAGE: Final = Language(_canonical, _kind, _beside, frozenset(ValueKind))


class SelectionError(QPubSubError):
    """A ``--where`` that cannot be used. at: the character to blame, from 1."""

    def __init__(self, text: str, at: int, why: str) -> None:
        super().__init__(text, at, why)
        self.text, self.at, self.why = text, at, why

    def __str__(self) -> str:
        return f"at character {self.at}: {self.why}"

    @property
    def pointed(self) -> str:
        """The sentence, and below it the part of the text with a mark under the character."""
        begin = max(0, self.at - 1 - _AROUND)
        shown = "".join(c if c.isprintable() else " " for c in self.text[begin : begin + 2 * _AROUND])
        return f"{self}\n  {shown}\n  {' ' * (self.at - 1 - begin)}^"


_AROUND: Final = 40


@dataclass(frozen=True, slots=True)
class Where:
    """A compiled ``--where``. Two are equal where their texts are; unpickling compiles the text again.

    names: what it can ask for, by canonical name. test: says it of one topic of a message.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    test: Test = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_where, (self.text,)

    def selects(self, message: CapturedMessage) -> bool:
        """Whether the condition is TRUE of *message*; of one with several topics, with at least one of them."""
        values = MessageValues(message)
        if self.test(values):
            return True
        if "topic" in self.names:
            for number in range(1, len(values.topics)):
                values.at_topic(number)
                if self.test(values):
                    return True
        return False


def compile_where(text: str) -> Where:
    """Compile a ``--where``. Raises SelectionError.

    >>> from rfh2.captured import CapturedMessage
    >>> long = compile_where("queue = 'SPORT' and size > 1000")
    >>> long.selects(CapturedMessage(seq=1, queue="SPORT", body_hex="00" * 1001))
    True
    """
    # Slow to import, and few calls of a verb have a condition.
    from streams.selectors.parse import parse  # noqa: PLC0415

    try:
        condition, names = parse(text, _LANGUAGE)
        test = compile_condition(condition)
        if not names and not test(lambda name: None):  # it is a constant
            raise Refusal(1, "no message can meet this condition")
    except Refusal as refusal:
        raise SelectionError(text, refusal.at, refusal.why) from refusal
    return Where(text, names, test)


# A selection of captured messages: all conditions have to be true of a message.


@dataclass(frozen=True, slots=True)
class SeqRanges:
    """Numbers of messages. ranges: first and last of each range, both included.

    >>> 12 in SeqRanges.parse("3,10-20,500-"), 21 in SeqRanges.parse("3,10-20,500-")
    (True, False)
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> SeqRanges:
        """Numbers and ranges with commas between them; a range can lack its first or its last. Raises ValueError."""
        return cls(tuple(_range(part.strip()) for part in text.split(",")))

    def __contains__(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self.ranges)

    @property
    def only(self) -> int | None:
        """The number, where it is just one."""
        first, last = self.ranges[0]
        return first if len(self.ranges) == 1 and first == last else None


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first or last) or not all(part.isascii() and part.isdecimal() for part in (first, last) if part):
        raise ValueError(f"{text!r} is not a number or a range such as 10-20")
    low = int(first) if first else 0
    high = low if not dash else int(last) if last else HIGHEST_SEQ
    if high < low:
        raise ValueError(f"{text!r}: the range ends before it begins")
    return low, high


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The messages that a verb reads or shows.

    where: a condition. since: not earlier. until: earlier than this. seqs: of these numbers. limit: the first so many
    of those that the others select. A message without a time is in no span of time.
    """

    where: Where | None = None
    since: datetime | None = None
    until: datetime | None = None
    seqs: SeqRanges | None = None
    limit: int | None = None

    @property
    def has_conditions(self) -> bool:
        """Whether something is asked of each message."""
        return not (self.where is None and self.since is None and self.until is None and self.seqs is None)

    @property
    def is_all(self) -> bool:
        """Whether every message is selected."""
        return self.limit is None and not self.has_conditions

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The conditions and the limit as texts; equal for selections that are equal, on every machine."""
        where = None if self.where is None else self.where.text
        times = (None if at is None else at.isoformat() for at in (self.since, self.until))
        return where, *times, *(None if each is None else repr(each) for each in (self.seqs, self.limit))

    def selects(self, message: CapturedMessage) -> bool:
        """Whether all conditions are true of *message*. The limit is not among them."""
        if self.seqs is not None and message.seq not in self.seqs:
            return False
        if self.since is not None or self.until is not None:
            time = message.time or MessageValues(message).time
            if time is None:
                return False
            if (self.since is not None and time < self.since) or (self.until is not None and time >= self.until):
                return False
        return self.where is None or self.where.selects(message)

    def of_records(self, records: Iterable[CaptureRecord]) -> Iterator[CaptureRecord]:
        """The records whose messages are selected, in order, up to the limit.

        Records that cannot be read are passed on, and do not count: the caller reports them, or shows them.
        """
        left = self.limit
        has_conditions = self.has_conditions
        for record in records:
            message = record.message
            if message is None:
                yield record
            elif not has_conditions or self.selects(message):
                yield record
                if left is not None:
                    left -= 1
                    if not left:
                        return


class Choosing:
    """For a verb that needs every message, and shows those that are selected."""

    def __init__(self, selection: MessageSelection) -> None:
        self._selection = selection
        self._left = selection.limit

    @property
    def is_over(self) -> bool:
        """Whether no further message will be chosen, because there were as many as the limit allows."""
        return self._left == 0

    def chooses(self, message: CapturedMessage) -> bool:
        """Whether this message, the next one of the capture, is one of them."""
        if self._left == 0 or not (self._selection.is_all or self._selection.selects(message)):
            return False
        if self._left is not None:
            self._left -= 1
        return True


EVERYTHING: Final = MessageSelection()
