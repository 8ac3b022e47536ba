"""From a PCF command to the commands of MQSC that say the same.

What is wrong with the message itself is found here, with the reason that IBM documents; what is wrong with what it says
is found by whoever carries it out. Attributes of IBM MQ that the bridge does not keep are taken and passed over, as
MQSC's are; MQSC says so, and PCF cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from commands.broker.objects import Objects
from commands.mqsc.pcf import attributes as a
from commands.mqsc.pcf.commands import COMMANDS, PcfCommand, about_command
from commands.mqsc.pcf.forms import filter_text, integer_of, names_of, parameter_error, text_of, texts_of
from commands.mqsc.script import Command, Condition, Keyword, Statement, Value, parse, syntax_error
from rfh2 import pcf_admin_names as c, pcf_names
from rfh2.errors import CommandError, DecodeError
from rfh2.pcf import Cfbf, Cfbs, Cfif, Cfil, Cfin, Cfsf, Cfsl, Cfst, Parameter, Pcf

# (parameter that cannot stand here, parameter that is given twice), by structure.
_REASONS: Final = {
    Cfin: (pcf_names.MQRCCF_CFIN_PARM_ID_ERROR, pcf_names.MQRCCF_CFIN_DUPLICATE_PARM),
    Cfst: (pcf_names.MQRCCF_CFST_PARM_ID_ERROR, pcf_names.MQRCCF_CFST_DUPLICATE_PARM),
    Cfsl: (3033, 3066),
    Cfil: (c.MQRCCF_CFIL_PARM_ID_ERROR, 3026),
    Cfbs: (3256, 3254),
}
_FILTER_REASONS: Final = {Cfif: (3243, 3242), Cfsf: (3247, 3246), Cfbf: (3265, 3266)}
_OPERATORS: Final = {
    c.MQCFOP_LESS: "LT",
    c.MQCFOP_EQUAL: "EQ",
    c.MQCFOP_NOT_GREATER: "LE",
    c.MQCFOP_GREATER: "GT",
    c.MQCFOP_NOT_EQUAL: "NE",
    c.MQCFOP_NOT_LESS: "GE",
    c.MQCFOP_CONTAINS: "CT",
    c.MQCFOP_EXCLUDES: "EX",
    c.MQCFOP_LIKE: "LK",
    c.MQCFOP_NOT_LIKE: "NL",
    c.MQCFOP_CONTAINS_GEN: "CTG",
    c.MQCFOP_EXCLUDES_GEN: "EXG",
}
# Parameters that choose a scope; here there is only one.
_WITHOUT_EFFECT: Final = frozenset(
    {
        c.MQCACF_COMMAND_SCOPE,
        c.MQCACF_SERVICE_COMPONENT,
        c.MQIA_QSG_DISP,
        c.MQIACF_CLUSTER_INFO,
        c.MQIACH_CHANNEL_TABLE,
        c.MQIACF_FORCE,
        c.MQIACF_REMOVE_AUTHREC,
        c.MQIACF_AUTH_OPTIONS,
        c.MQIACF_SELECTOR_TYPE,
        c.MQIACF_COMMAND_INFO,
    }
)
_FLAGS: Final = {c.MQIACF_REPLACE: ("DEFINE", "REPLACE"), c.MQIACF_PURGE: ("DELETE", "PURGE")}


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a PCF command.

    commands: of MQSC, to be carried out in turn. about: what is known of the PCF command. passed_over: the numbers of
    attributes of IBM MQ that have no effect here. escaped: of Escape, the statement that it holds.
    """

    commands: tuple[Command, ...]
    about: PcfCommand
    passed_over: tuple[int, ...] = ()
    escaped: Statement | None = None


def read(pcf: Pcf, objects: Objects) -> Request:
    """The request in *pcf*. Raises CommandError, the parameter in error among its tags."""
    if pcf.type not in (pcf_names.MQCFT_COMMAND, pcf_names.MQCFT_COMMAND_XR):
        raise CommandError(pcf_names.MQRCCF_CFH_TYPE_ERROR, why=f"Type is {pcf.type}, not MQCFT_COMMAND")
    if pcf.msg_seq_number != 1:
        raise CommandError(c.MQRCCF_CFH_MSG_SEQ_NUMBER_ERR, why=f"MsgSeqNumber is {pcf.msg_seq_number}, not 1")
    if pcf.control != pcf_names.MQCFC_LAST:
        raise CommandError(c.MQRCCF_CFH_CONTROL_ERROR, why=f"Control is {pcf.control}, not MQCFC_LAST")
    if pcf.command == c.MQCMD_ESCAPE:
        return _escaped(pcf.parameters)
    about = COMMANDS.get(pcf.command)
    if pcf.command == c.MQCMD_RESET_Q_STATS:
        why = "performance events are not enabled (PERFMEV); qpubsub status and metrics count puts and gets"
        raise CommandError(c.MQRCCF_EVENTS_DISABLED, why=why)
    if about is None:
        named = f"{pcf.command} {c.COMMANDS.get(pcf.command, '')}".rstrip()
        raise CommandError(pcf_names.MQRCCF_CFH_COMMAND_ERROR, why=f"command {named} is not known here")
    return _Reader(about).read(pcf.parameters, objects)


def _escaped(parameters: Sequence[Parameter]) -> Request:
    """The request of Escape: one command of MQSC as text, as ``runmqsc -c`` sends it."""
    given = {parameter.parameter: parameter for parameter in parameters}
    for number in (c.MQIACF_ESCAPE_TYPE, c.MQCACF_ESCAPE_TEXT):
        if number not in given:
            raise parameter_error(pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL, number, f"parameter {number} is required")
    kind = integer_of(given[c.MQIACF_ESCAPE_TYPE])
    if kind != c.MQET_MQSC:
        raise CommandError(c.MQRCCF_ESCAPE_TYPE_ERROR, why=f"EscapeType is {kind}, not MQET_MQSC")
    text = text_of(given[c.MQCACF_ESCAPE_TEXT])
    found = parse(text)
    if len(found) != 1:
        found = [Statement(1, 1, (text,), text, None, syntax_error(text, "EscapeText takes one command."))]
    (statement,) = found
    if statement.command is None:
        return Request((), PcfCommand("", ""), escaped=statement)
    return Request((statement.command,), about_command(statement.command), escaped=statement)


class _Reader:
    """Reads the parameters of one command."""

    def __init__(self, about: PcfCommand) -> None:
        self._about = about
        self._taken = {attribute.number: attribute for attribute in about.taken}
        self._name: str | None = None
        self._keywords: dict[str, Keyword] = {}
        self._entities: list[tuple[str, str]] = []
        self._where: Condition | None = None
        self._passed_over: list[int] = []

    def read(self, parameters: Sequence[Parameter], objects: Objects) -> Request:
        about = self._about
        seen: set[int] = set()
        for parameter in parameters:
            if isinstance(parameter, Cfif | Cfsf | Cfbf):
                self._filter(parameter)
                continue
            if parameter.parameter in seen:
                _, twice = _REASONS.get(type(parameter), _REASONS[Cfin])
                raise parameter_error(twice, parameter.parameter, f"parameter {parameter.parameter} is given twice")
            seen.add(parameter.parameter)
            self._parameter(parameter)
        required = about.copy.target if about.copy is not None else about.name
        if required and self._name is None and (not about.instead or about.instead not in seen):
            raise parameter_error(pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL, required, f"parameter {required} is required")
        if about.copy is not None and about.copy.source not in seen:
            source = about.copy.source
            raise parameter_error(pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL, source, f"parameter {source} is required")
        for keyword, word in about.defaults.items():
            self._keywords.setdefault(keyword, _keyword(keyword, word))
        if about.target == "CONN" and "CONNID" not in self._keywords:
            number = a.CONNECTION_ID.number
            raise parameter_error(pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL, number, f"parameter {number} is required")
        if about.verb == "DISPLAY" and (about.names or not (about.selectors in seen and self._selected)):
            self._keywords.setdefault("ALL", Keyword("ALL", None))
        return self._request(objects)

    @property
    def _selected(self) -> bool:
        return any(keyword.values is None for keyword in self._keywords.values())

    def _parameter(self, parameter: Parameter) -> None:
        about, number = self._about, parameter.parameter
        if number == (about.copy.target if about.copy is not None else about.name):
            self._name = text_of(parameter)
        elif about.copy is not None and number == about.copy.source:
            self._keywords["LIKE"] = _keyword("LIKE", text_of(parameter))
        elif number == about.selectors:
            self._select(parameter)
        elif number in (c.MQCACF_PRINCIPAL_ENTITY_NAMES, c.MQCACF_GROUP_ENTITY_NAMES) and about.target == "AUTHREC":
            word = "GROUP" if number == c.MQCACF_GROUP_ENTITY_NAMES else "PRINCIPAL"
            self._entities += [(word, name) for name in names_of(parameter)]
        elif number in _FLAGS and _FLAGS[number][0] == about.verb:
            word = _FLAGS[number][1]
            if integer_of(parameter):
                self._keywords[word] = Keyword(word, None)
        elif number == c.MQIACF_CLUSTER_INFO and about.verb == "DISPLAY":
            integer_of(parameter)  # whatever it is, the answer is the same
            self._keywords["CLUSINFO"] = Keyword("CLUSINFO", None)
        elif (attribute := self._taken.get(number)) is not None:
            values = tuple(Value(text, quoted=True) for text in texts_of(attribute.kind, parameter))
            self._keywords[attribute.keyword] = Keyword(attribute.keyword, values)
        elif _is_attribute(number, about.target) and about.verb in ("DEFINE", "ALTER"):
            self._passed_over.append(number)
        elif number not in _WITHOUT_EFFECT:
            reason, _ = _REASONS.get(type(parameter), _REASONS[Cfin])
            raise parameter_error(reason, number, f"parameter {number} cannot stand here")

    def _select(self, parameter: Parameter) -> None:
        """The attributes that an Inquire command asks for, without those that the bridge does not keep."""
        if not isinstance(parameter, Cfil):
            raise parameter_error(c.MQRCCF_CFIL_PARM_ID_ERROR, parameter.parameter, "it is not an MQCFIL")
        known = {attribute.number: attribute.keyword for attribute in self._about.shown}
        for number in parameter.values:
            if number == c.MQIACF_ALL:
                self._keywords["ALL"] = Keyword("ALL", None)
            elif number == c.MQIACF_SUB_SUMMARY:
                self._keywords |= {word: Keyword(word, None) for word in a.SUB_SUMMARY}
            elif number in known:
                # A keyword with a value, which chooses what is shown, is shown anyway.
                self._keywords.setdefault(known[number], Keyword(known[number], None))
            elif not 0 < number < _BEYOND_SELECTORS:
                tags = (("Selector", str(number)),)
                raise CommandError(c.MQRCCF_CFIL_PARM_ID_ERROR, why=f"{number} is not a selector", tags=tags)
            else:
                self._passed_over.append(number)

    def _filter(self, parameter: Cfif | Cfsf | Cfbf) -> None:
        number = parameter.parameter
        no_parameter, no_operator = _FILTER_REASONS[type(parameter)]
        attribute = next((each for each in self._about.shown if each.number == number), None)
        if attribute is None:
            raise parameter_error(no_parameter, number, f"parameter {number} cannot be filtered on")
        if self._where is not None:
            raise parameter_error(c.MQRCCF_TOO_MANY_FILTERS, number, "a command has one filter")
        operator = _OPERATORS.get(parameter.operator)
        if operator is None:
            raise parameter_error(no_operator, number, f"operator {parameter.operator} is not known")
        try:
            value: int | str | bytes = (
                parameter.value
                if isinstance(parameter, Cfif)
                else parameter.text
                if isinstance(parameter, Cfsf)
                else parameter.data
            )
        except DecodeError as error:
            raise parameter_error(error.reason, number, error.why) from error
        text = filter_text(attribute.kind, value)
        self._where = Condition(attribute.keyword, operator, (Value(text, quoted=True),))

    def _request(self, objects: Objects) -> Request:
        about = self._about
        self._keywords.pop("SCOPE", None)  # this queue manager is all that there is
        if about.target == "QUEUE":
            about = replace(about, target=self._queue_target(objects))
        if about.target == "AUTHREC":
            self._record_scope()
        name = None if self._name is None else Value(self._name, quoted=True)
        command = Command(about.verb, about.target, name, tuple(self._keywords.values()), self._where)
        commands: tuple[Command, ...] = (command,)
        if about.target == "AUTHREC" and about.verb != "DISPLAY":
            if not self._entities:
                raise CommandError(c.MQRCCF_ENTITY_NAME_MISSING, why="neither PrincipalNames nor GroupNames is given")
            commands = tuple(
                replace(command, keywords=(*command.keywords, _keyword(word, name))) for word, name in self._entities
            )
        return Request(commands, self._about, tuple(self._passed_over))

    def _queue_target(self, objects: Objects) -> str:
        """QLOCAL, QALIAS ...: as QType says, or as the queue is; DISPLAY looks at all and is told QType."""
        given = self._keywords.get("TYPE")
        if self._about.verb == "DISPLAY":
            return "QUEUE"
        self._keywords.pop("TYPE", None)
        if given is not None and given.values:
            return given.values[0].text
        if self._about.verb == "DEFINE":
            number = a.QUEUE_TYPE.number
            raise parameter_error(pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL, number, f"parameter {number} is required")
        return "QALIAS" if self._name in objects.aliases else "QLOCAL"

    def _record_scope(self) -> None:
        """DISPLAY AUTHREC has PRINCIPAL(x) for an entity's name and type; blanks and ALL choose nothing."""
        profile = self._keywords.get("PROFILE")
        if profile is not None and profile.values and not profile.values[0].text:
            del self._keywords["PROFILE"]
        kind = self._keywords.get("OBJTYPE")
        if kind is not None and kind.values and kind.values[0].text == "ALL":
            del self._keywords["OBJTYPE"]
        entity, of_type = self._keywords.get("ENTITY"), self._keywords.get("ENTTYPE")
        if entity is not None and entity.values:
            word = of_type.values[0].text if of_type is not None and of_type.values else "PRINCIPAL"
            del self._keywords["ENTITY"]
            self._keywords.pop("ENTTYPE", None)
            self._keywords[word] = Keyword(word, entity.values)


_BEYOND_SELECTORS: Final = 10_000


def _is_attribute(number: int, target: str) -> bool:
    """Whether the number is that of an attribute of an object: MQIA_* up to 1000, MQCA_* from 2001 to 3000.

    Of a channel also MQIACH_* from 1501 to 2000, and MQCACH_* from 3501 to 4000.
    """
    of_channel = target == "CHANNEL" and (1500 < number <= 2000 or 3500 < number <= 4000)
    return 0 < number <= 1000 or 2000 < number <= 3000 or of_channel


def _keyword(word: str, text: str) -> Keyword:
    return Keyword(word, (Value(text, quoted=True),))
