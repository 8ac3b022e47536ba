"""Which messages of a capture a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``.

``--where``: a selection string over the messages of a capture.

The language is that of selection strings (``streams.selectors``), with other names: those of ``values.NAMES``. A name
with a period, or that begins with ``JMS`` or ``MQ``, is a property of the message, as in a Filter. Two kinds of values
have literals of their own: a time is written as ISO 8601 in quotes, and a reason code can be written as IBM's name.

The language of ``--where`` for the parser of selection strings (``streams.selectors``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from commands.explain.selection.values import NAMES, MessageValues, moment
from rfh2.captured import HIGHEST_SEQ, CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.constants import reason_number
from rfh2.errors import QPubSubError
from streams.selectors.expressions import Literal, Refusal, ValueKind
from streams.selectors.parse import Builder
from streams.selectors.properties import canonical_name, kind_of_name

_PROPERTIES: Final = ("JMS", "MQ")


class WhereLanguage(Builder):
    """The callbacks of the parser: other names than those of a Filter, and two more kinds of literals.

    A list may hold numbers, such as reason codes.
    """

    listed = frozenset(ValueKind)

    @staticmethod
    def canonical(text: str, at: int) -> str:
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

    @staticmethod
    def kind(name: str) -> ValueKind | None:
        return NAMES[name].kind if name in NAMES else kind_of_name(name)

    @staticmethod
    def beside(literal: Literal, name: str) -> Literal:
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


if TYPE_CHECKING:
    from streams.selectors.compile import Test


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
    from streams.selectors.compile import compile_condition  # noqa: PLC0415
    from streams.selectors.parse import parse  # noqa: PLC0415

    try:
        condition, names = parse(text, WhereLanguage)
        test = compile_condition(condition)
        if not names and not test(lambda name: None):  # it is a constant
            raise Refusal(1, "no message can meet this condition")
    except Refusal as refusal:
        raise SelectionError(text, refusal.at, refusal.why) from refusal
    return Where(text, names, test)


__all__ = [
    "EVERYTHING",
    "NAMES",
    "Choosing",
    "MessageSelection",
    "MessageValues",
    "SelectionError",
    "SeqRanges",
    "Where",
    "compile_where",
    "moment",
]


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
