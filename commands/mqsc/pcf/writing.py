"""From an answer to PCF responses: one message an object, numbered, the last one marked.

A command that fails is answered with its reason and the parameter in error, where one is known, and then with
MQRCCF_COMMAND_FAILED alone, which is the last response of every command that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from commands.broker.attribute_kinds import Choice, Shown
from commands.mqsc.answers import Answer
from commands.mqsc.channel_attributes import CHANNEL_KIND
from commands.mqsc.pcf.attributes import QUEUE_KIND
from commands.mqsc.pcf.commands import PcfCommand, command_number
from commands.mqsc.pcf.forms import NAME_LENGTH, names_parameter, parameter_of
from commands.mqsc.pcf.reading import Request
from rfh2 import pcf_admin_names as c, pcf_names
from rfh2.ccsid import UTF8_CCSID, ByteOrder
from rfh2.constants import MQRC_NONE, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQCC_FAILED, MQCC_OK
from rfh2.pcf import Cfil, Cfin, Cfst, Parameter, Pcf

# The reason that IBM documents where MQSC has this message. AMQ8147 and AMQ8150 depend on the command.
_REASONS: Final = {
    "AMQ8135": MQRC_NOT_AUTHORIZED,
    "AMQ8143": 2055,  # MQRC_Q_NOT_EMPTY
    "AMQ8148": 3160,  # MQRCCF_OBJECT_IN_USE
    "AMQ8151": 4002,  # MQRCCF_OBJECT_WRONG_TYPE
    "AMQ8405": pcf_names.MQRCCF_CFIN_PARM_ID_ERROR,
    "AMQ8411": 3095,  # MQRCCF_CFST_CONFLICTING_PARM
    "AMQ8412": c.MQRCCF_ATTR_VALUE_ERROR,
    "AMQ8413": 3011,  # MQRCCF_CFST_STRING_LENGTH_ERR
    "AMQ8421": pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL,
    "AMQ8424": 4008,  # MQRCCF_OBJECT_NAME_ERROR
    "AMQ8425": c.MQRCCF_ATTR_VALUE_ERROR,
    "AMQ8554": 3068,  # MQRCCF_CFSL_COUNT_ERROR
    "AMQ8569": 3246,  # MQRCCF_CFSF_OPERATOR_ERROR
}


class _Kinds(NamedTuple):
    """The parameter that says of which kind each object is that another one names. length: of a name."""

    number: int
    keyword: str
    kind: Choice
    length: int


_KINDS: Final = {
    c.MQCACF_Q_NAMES: _Kinds(c.MQIACF_Q_TYPES, "TYPE", QUEUE_KIND, NAME_LENGTH),
    c.MQCACH_CHANNEL_NAMES: _Kinds(c.MQIACH_CHANNEL_TYPES, "CHLTYPE", CHANNEL_KIND, 20),
}
Row = Mapping[str, Shown]
_Says = tuple[int, tuple[Parameter, ...]]
"""The Reason and the parameters of one response."""

_ESCAPE_TYPE: Final = Cfin(c.MQIACF_ESCAPE_TYPE, c.MQET_MQSC)
_MOST_MADE: Final = 4096


def refused(answer: Answer, about: PcfCommand) -> CommandError:
    """The error that a refusal of MQSC is in PCF."""
    by_command = {"AMQ8147": about.not_found, "AMQ8150": about.exists}
    amq = answer.amq or ""
    reason = answer.reason or by_command.get(amq) or _REASONS.get(amq, MQRCCF_COMMAND_FAILED)
    return CommandError(reason, why=" ".join((answer.text, *answer.detail)))


def failure(command: int, error: CommandError, order: ByteOrder) -> Iterator[Pcf]:
    """The responses to a command that was not done."""
    told = dict(error.tags)
    parameters: tuple[Parameter, ...] = ()
    if "ParmId" in told:
        parameters = (Cfin(pcf_names.MQIACF_PARAMETER_ID, int(told["ParmId"])),)
    elif "Selector" in told:
        parameters = (Cfin(c.MQIACF_SELECTOR, int(told["Selector"])),)
    says: list[_Says] = [(MQRCCF_COMMAND_FAILED, ())]
    if error.reason != MQRCCF_COMMAND_FAILED or parameters:
        says.insert(0, (error.reason, parameters))
    return _responses(command, MQCC_FAILED, says, order)


def success(command: int, about: PcfCommand, rows: Iterable[Row], order: ByteOrder) -> Iterator[Pcf]:
    """The responses to a command that was done: one for each object that Inquire found, else one."""
    says: Iterable[_Says]
    if about.names:
        says = [(MQRC_NONE, _names(about, rows))]
    elif about.verb == "DISPLAY":
        write = _Writer(about)
        says = ((MQRC_NONE, write(row)) for row in rows)
    else:
        says = [(MQRC_NONE, ())]
    return _responses(command, MQCC_OK, says, order)


def escaped(request: Request, answer: Answer, order: ByteOrder) -> Iterator[Pcf]:
    """The responses to Escape: what runmqsc prints, one for each object that DISPLAY shows.

    Command is that of the PCF command which says the same, so that a program need not read the text.
    """
    number = c.MQCMD_ESCAPE
    for command in request.commands:
        with suppress(CommandError):
            number = command_number(command)
    texts = (replace(answer, objects=(row,)).lines for row in answer.objects) if answer.objects else [answer.lines]
    reason = MQRC_NONE if answer.ok else refused(answer, request.about).reason
    says = ((reason, (_ESCAPE_TYPE, Cfst.of(c.MQCACF_ESCAPE_TEXT, "\n".join(lines), UTF8_CCSID))) for lines in texts)
    return _responses(number, MQCC_OK if answer.ok else MQCC_FAILED, says, order)


class _Writer:
    """Writes what DISPLAY shows as parameters; those that many objects have alike are made once."""

    def __init__(self, about: PcfCommand) -> None:
        self._attributes = {attribute.keyword: attribute for attribute in about.shown}
        self._also = about.also
        self._made: dict[tuple[str, Shown], Parameter | None] = {}

    def __call__(self, row: Row) -> tuple[Parameter, ...]:
        if len(self._made) > _MOST_MADE:
            self._made.clear()
        made = self._made
        written: list[Parameter] = []
        for shown in row.items():
            parameter = made[shown] if shown in made else self._make(shown)
            if parameter is not None:
                written.append(parameter)
        return (*written, *self._also)

    def _make(self, shown: tuple[str, Shown]) -> Parameter | None:
        keyword, value = shown
        attribute = self._attributes.get(keyword)
        made = self._made[shown] = None if attribute is None else parameter_of(attribute, value)
        return made


def _names(about: PcfCommand, rows: Iterable[Row]) -> tuple[Parameter, ...]:
    kinds, length = _KINDS.get(about.names), NAME_LENGTH
    if kinds is not None:
        length = kinds.length
    listed = list(rows)
    names = names_parameter(about.names, tuple(str(row[about.shown[0].keyword]) for row in listed), length)
    if kinds is None:
        return (names,)
    return names, Cfil(kinds.number, tuple(kinds.kind.numbers[str(row[kinds.keyword])] for row in listed))


def _responses(command: int, comp_code: int, says: Iterable[_Says], order: ByteOrder) -> Iterator[Pcf]:
    """A response for each of *says*, with MsgSeqNumber and Control; each is made when it is asked for."""
    waiting: _Says | None = None
    count = 0

    def response(said: _Says, number: int, control: int) -> Pcf:
        reason, parameters = said
        return Pcf(
            command,
            parameters,
            type=pcf_names.MQCFT_RESPONSE,
            msg_seq_number=number,
            control=control,
            comp_code=comp_code,
            reason=reason,
            order=order,
        )

    for count, following in enumerate(says):
        if waiting is not None:
            yield response(waiting, count, pcf_names.MQCFC_NOT_LAST)
        waiting = following
    if waiting is not None:
        yield response(waiting, count + 1, pcf_names.MQCFC_LAST)
