"""``--where``: a selection string over the messages of a capture.

The language is that of selection strings (``streams.selectors``), with other names: those of ``values.NAMES``. A name
with a period, or that begins with ``JMS`` or ``MQ``, is a property of the message, as in a Filter. Two kinds of values
have literals of their own: a time is written as ISO 8601 in quotes, and a reason code can be written as IBM's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from commands.explain.selection.values import NAMES, MessageValues
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.explain.reasons import reason_number
from streams.selectors.build import Builder
from streams.selectors.compile import Test, compile_condition
from streams.selectors.errors import Refusal
from streams.selectors.evaluate import truth
from streams.selectors.expressions import Literal
from streams.selectors.names import canonical_name, kind_of_name
from streams.selectors.parse import parse
from streams.selectors.values import ValueKind

_PROPERTIES: Final = ("JMS", "MQ")


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
    try:
        condition, names = parse(text, _WhereLanguage)
        if not names and truth(condition, lambda name: None) is not True:
            raise Refusal(1, "no message can meet this condition")
    except Refusal as refusal:
        raise SelectionError(text, refusal.at, refusal.why) from refusal
    return Where(text, names, compile_condition(condition))


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC. Raises ValueError.

    >>> moment("2009-01-28 11:43")
    datetime.datetime(2009, 1, 28, 11, 43, tzinfo=datetime.timezone.utc)
    """
    found = datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


class _WhereLanguage(Builder):
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
