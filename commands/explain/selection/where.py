"""``--where``: a selection string over the messages of a capture.

The language is that of selection strings (``streams.selectors``), with other names: those of ``values.NAMES``. A name
with a period, or that begins with ``JMS`` or ``MQ``, is a property of the message, as in a Filter. Two kinds of values
have literals of their own: a time is written as ISO 8601 in quotes, and a reason code can be written as IBM's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from commands.explain.selection.values import MessageValues
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from streams.selectors.expressions import Refusal

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
    from commands.explain.selection.where_language import WhereLanguage  # noqa: PLC0415
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
