"""PCF as a client of a queue manager: MQSC commands as PCF commands, and its responses as the rows that DISPLAY shows.

These are the inverses of ``reading`` and ``writing``. A command is made of what the bridge knows of MQSC and PCF. A
keyword without a parameter in these tables raises CommandError: nothing is left out in silence. In responses, a
parameter that the bridge has no keyword for is passed over. A number that stands for no known word stays a number, as
text in a list: a queue manager of a later release knows more words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from commands.broker.attribute_kinds import Attribute, Bits, Choice, Kind, Names, Number, Shown, WordList
from commands.mqsc.pcf import attributes as a
from commands.mqsc.pcf.commands import COMMANDS, QUEUE_KINDS, PcfCommand, command_number
from commands.mqsc.pcf.forms import NAME_LENGTH, names_parameter, parameter_of
from commands.mqsc.script import Command, Keyword
from rfh2 import pcf_admin_names as c
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import CommandError
from rfh2.pcf import Cfbs, Cfil, Cfin, Cfsl, Cfst, Parameter, Pcf
from rfh2.pcf_names import MQIACF_PARAMETER_ID, MQRCCF_CFIN_PARM_ID_ERROR

_FLAGS: Final = {"REPLACE": c.MQIACF_REPLACE, "PURGE": c.MQIACF_PURGE}
# They choose nothing where there is only one; IBM MQ's defaults are these.
_PASSED_OVER: Final = frozenset({"ALL", "NOREPLACE"})


def request(command: Command) -> Pcf:
    """The PCF command. Raises CommandError for an object, a keyword or a value without a parameter."""
    number = command_number(command)
    return Pcf(number, tuple(_parameters(command, COMMANDS[number])))


def _parameters(command: Command, about: PcfCommand) -> Iterator[Parameter]:
    """IBM MQ wants the required ones first: the name, then the type of a queue."""
    if command.where is not None:
        raise CommandError(MQRCCF_CFIN_PARM_ID_ERROR, why="WHERE has no parameter here")
    if command.name is not None and about.name:
        yield Cfst.of(about.name, command.name.text, UTF8_CCSID)
    elif command.name is not None:
        raise CommandError(MQRCCF_CFIN_PARM_ID_ERROR, why=f"{command.verb} {command.target} takes no name")
    if command.target in QUEUE_KINDS and command.target != "QUEUE" and about.target == "QUEUE":
        yield Cfin(a.QUEUE_TYPE.number, a.QUEUE_KIND.numbers[command.target])
    if command.target == "AUTHREC":
        yield from _record(command, about)
        return
    selected: list[int] = []
    taken = {attribute.keyword: attribute for attribute in about.taken}
    shown = {attribute.keyword: attribute for attribute in about.shown}
    for keyword in command.keywords:
        if keyword.name in _FLAGS:
            yield Cfin(_FLAGS[keyword.name], 1)
        elif keyword.name in _PASSED_OVER:
            continue
        elif keyword.values is None and keyword.name in shown:
            selected.append(shown[keyword.name].number)
        else:
            yield _value(taken.get(keyword.name), keyword)
    if selected:
        yield Cfil(about.selectors, tuple(selected))


def _record(command: Command, about: PcfCommand) -> Iterator[Parameter]:
    """The parameters of authority records, whose user or group is a list in Set and Delete, and a name in Inquire."""
    taken = {attribute.keyword: attribute for attribute in about.taken}
    given = {keyword.name: keyword for keyword in command.keywords if keyword.name not in _PASSED_OVER}
    if command.verb == "DISPLAY":
        yield Cfin(c.MQIACF_AUTH_OPTIONS, c.MQAUTHOPT_NAME_ALL_MATCHING + _ENTITY_EXPLICIT)
    profile, kind = given.pop("PROFILE", None), given.pop("OBJTYPE", None)
    name = "" if profile is None or not profile.values else profile.values[0].text
    yield Cfst.of(a.PROFILE.number, name.ljust(NAME_LENGTH), UTF8_CCSID)
    if kind is not None:
        yield _value(a.OBJECT_TYPE, kind)
    elif command.verb == "DISPLAY":
        yield Cfin(a.OBJECT_TYPE.number, c.MQOT_ALL)
    for word, number, entity_type in _ENTITIES:
        keyword = given.pop(word, None)
        if keyword is None or not keyword.values:
            continue
        who = keyword.values[0].text
        if command.verb == "DISPLAY":
            yield Cfst.of(c.MQCACF_ENTITY_NAME, who, UTF8_CCSID)
            yield Cfin(c.MQIACF_ENTITY_TYPE, entity_type)
        else:
            yield Cfsl.of(number, (who,), UTF8_CCSID)
    for keyword in given.values():
        yield _value(taken.get(keyword.name), keyword)


_ENTITY_EXPLICIT: Final = 1
_ENTITIES: Final = (
    ("PRINCIPAL", c.MQCACF_PRINCIPAL_ENTITY_NAMES, c.MQZAET_PRINCIPAL),
    ("GROUP", c.MQCACF_GROUP_ENTITY_NAMES, c.MQZAET_GROUP),
)


def _value(attribute: Attribute | None, keyword: Keyword) -> Parameter:
    if attribute is None or keyword.values is None:
        raise CommandError(MQRCCF_CFIN_PARM_ID_ERROR, why=f"{keyword.name} has no parameter in PCF that is known here")
    texts = tuple(value.text for value in keyword.values)
    if isinstance(attribute.kind, Names):
        return names_parameter(attribute.number, tuple(text for text in texts if text.strip()))
    try:
        made = parameter_of(attribute, _typed(texts, attribute))
    except (KeyError, ValueError):
        made = None
    if made is None:
        raise CommandError(MQRCCF_CFIN_PARM_ID_ERROR, why=f"{keyword.name}({', '.join(texts)}) has no value in PCF")
    return made


def _typed(texts: tuple[str, ...], attribute: Attribute) -> str | int | tuple[str, ...]:
    """The values as DISPLAY would show them, which the forms write."""
    if isinstance(attribute.kind, WordList):
        return tuple(text.upper() for text in texts)
    (text,) = texts
    if isinstance(attribute.kind, Choice | Number):
        word = text.strip().upper()
        return word if word in attribute.kind.numbers else int(word)
    return text


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
        value = _shown_value(parameter, attribute.kind)
        if value is not None:
            row[attribute.keyword] = value
    return row


def _shown_value(parameter: Parameter, kind: Kind) -> Shown | None:
    words = {}
    if isinstance(kind, Choice | Number | WordList):
        words = {number: word for word, number in kind.numbers.items()}
    match parameter:
        case Cfin(value=number) if isinstance(kind, Bits):
            return kind.show(number)
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
