"""The language of ``--where`` for the parser of selection strings (``streams.selectors``)."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from commands.explain.selection.values import NAMES, moment
from rfh2.constants import reason_number
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
