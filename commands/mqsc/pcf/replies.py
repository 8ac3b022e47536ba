"""From the PCF responses of a queue manager to rows as DISPLAY shows them: the inverse of ``writing``.

A parameter that the bridge has no keyword for is passed over. A number that stands for no known word stays a number, as
text in a list: a queue manager of a later release knows more words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from commands.broker.attribute_kinds import Choice, Kind, Number, Shown, WordList
from commands.mqsc.pcf.commands import COMMANDS
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.pcf import Pcf
from rfh2.pcf_names import MQIACF_PARAMETER_ID
from rfh2.pcf_parameters import Cfbs, Cfil, Cfin, Cfsl, Cfst, Parameter


@dataclass(frozen=True, slots=True)
class Replies:
    """The result of one PCF command. reason: MQRC_NONE, or why it failed. parameter: the one in error, 0 for none.

    reasons: those of all responses that say that something failed; rows may have come beside them.
    """

    rows: tuple[dict[str, Shown], ...] = ()
    reason: int = 0
    parameter: int = 0
    reasons: tuple[int, ...] = ()


def replies(responses: Iterable[Pcf]) -> Replies:
    """What *responses*, all those to one command, say. Raises DecodeError."""
    rows: list[dict[str, Shown]] = []
    reasons: list[int] = []
    reason = parameter = 0
    for response in responses:
        if response.comp_code:
            reasons.append(response.reason or MQRCCF_COMMAND_FAILED)
            if not reason or reason == MQRCCF_COMMAND_FAILED:
                reason = reasons[-1]
                about = response.first(MQIACF_PARAMETER_ID)
                parameter = about.value if isinstance(about, Cfin) else 0
        elif response.parameters:
            rows.append(_row(response))
    return Replies(tuple(rows), reason, parameter, tuple(reasons))


def _row(response: Pcf) -> dict[str, Shown]:
    about = COMMANDS.get(response.command)
    attributes = {} if about is None else {attribute.number: attribute for attribute in about.shown}
    row: dict[str, Shown] = {}
    for parameter in response.parameters:
        attribute = attributes.get(parameter.parameter)
        if attribute is None:
            continue
        value = _value(parameter, attribute.kind)
        if value is not None:
            row[attribute.keyword] = value
    return row


def _value(parameter: Parameter, kind: Kind) -> Shown | None:
    words = {}
    if isinstance(kind, Choice | Number | WordList):
        words = {number: word for word, number in kind.numbers.items()}
    match parameter:
        case Cfin(value=number):
            return words.get(number, number)
        case Cfil(values=numbers):
            return tuple(words.get(number, str(number)) for number in numbers)
        case Cfst():
            return parameter.text.rstrip(" \0")
        case Cfsl():
            return parameter.texts
        case Cfbs(data=data):
            return data.hex().upper()
        case _:
            return None
