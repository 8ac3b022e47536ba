"""``--where``: a selection string over the messages of a capture.

The language is that of selection strings (``streams.selectors``), with other names: those of ``values.NAMES``. A name
with a period, or that begins with ``JMS`` or ``MQ``, is a property of the message, as in a Filter. Two kinds of values
have literals of their own: a time is written as ISO 8601 in quotes, and a reason code can be written as IBM's name.

The language of ``--where`` for the parser of selection strings (``streams.selectors``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from commands.explain.selection.values import NAMES, MessageValues, moment
from rfh2.captured import CapturedMessage
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
