"""Answers: message numbers, texts and the two columns of DISPLAY, as administrators know them from runmqsc.

The texts are those that guide 6.5 prints. A refusal whose number in IBM MQ is not known for certain is AMQ8404 with the
reason in words; nothing is given a number that it may not have.

DISPLAY's selection: generic names, WHERE, and which attributes are shown. Without attributes, one object by its full
name shows all of them, a generic name only what each object is called; WHERE adds its own keyword. Comparisons are of
numbers where both sides are numbers, else of text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.broker.objects import Definition
from commands.mqsc.script import Command, Condition, Keyword, MqscError, syntax_error
from rfh2.errors import CommandError
from streams.operations import Effect

PRODUCT: Final = "WebSphere MQ"

QMGR_CHANGED: Final = ("AMQ8005", f"{PRODUCT} queue manager changed.")
QUEUE_CREATED: Final = ("AMQ8006", f"{PRODUCT} queue created.")
QUEUE_DELETED: Final = ("AMQ8007", f"{PRODUCT} queue deleted.")
QUEUE_CHANGED: Final = ("AMQ8008", f"{PRODUCT} queue changed.")
QUEUE_CLEARED: Final = ("AMQ8022", f"{PRODUCT} queue cleared.")
SUB_CREATED: Final = ("AMQ8094", f"{PRODUCT} subscription created.")
SUB_CHANGED: Final = ("AMQ8095", f"{PRODUCT} subscription changed.")
SUB_DISPLAY: Final = ("AMQ8096", f"{PRODUCT} subscription inquired.")
SUB_DELETED: Final = ("AMQ8097", f"{PRODUCT} subscription deleted.")
SBSTATUS_DISPLAY: Final = ("AMQ8099", f"{PRODUCT} subscription status inquired.")
QMGR_DISPLAY: Final = ("AMQ8408", "Display Queue Manager details.")
QUEUE_DISPLAY: Final = ("AMQ8409", "Display Queue details.")
PING_COMPLETE: Final = ("AMQ8415", f"Ping {PRODUCT} Queue Manager command complete.")
CHANNEL_CREATED: Final = ("AMQ8014", f"{PRODUCT} channel created.")
CHANNEL_DELETED: Final = ("AMQ8015", f"{PRODUCT} channel deleted.")
CHANNEL_CHANGED: Final = ("AMQ8016", f"{PRODUCT} channel changed.")
CHANNEL_DISPLAY: Final = ("AMQ8414", "Display Channel details.")
LISTENER_STARTED: Final = ("AMQ8021", f"Request to start {PRODUCT} listener accepted.")
LISTENER_STOPPED: Final = ("AMQ8706", f"Request to stop {PRODUCT} listener accepted.")
LISTENER_CHANGED: Final = ("AMQ8623", f"{PRODUCT} listener changed.")
LISTENER_CREATED: Final = ("AMQ8626", f"{PRODUCT} listener created.")
LISTENER_DELETED: Final = ("AMQ8628", f"{PRODUCT} listener object deleted.")
LISTENER_DISPLAY: Final = ("AMQ8630", "Display listener information details.")
CHANNEL_STARTED: Final = ("AMQ8018", f"Start {PRODUCT} channel accepted.")
AUTHINFO_CREATED: Final = ("AMQ8563", f"{PRODUCT} authentication information object created.")
AUTHINFO_DELETED: Final = ("AMQ8564", f"{PRODUCT} authentication information object deleted.")
AUTHINFO_DISPLAY: Final = ("AMQ8566", "Display authentication information details.")
AUTHINFO_CHANGED: Final = ("AMQ8567", f"{PRODUCT} authentication information changed.")
CHLAUTH_SET: Final = ("AMQ8877", f"{PRODUCT} channel authentication record set.")
CHLAUTH_DISPLAY: Final = ("AMQ8878", "Display channel authentication record details.")
CHANNEL_STOPPED: Final = ("AMQ8019", f"Stop {PRODUCT} channel accepted.")
CHSTATUS_DISPLAY: Final = ("AMQ8417", "Display Channel Status details.")
CONN_DISPLAY: Final = ("AMQ8276", "Display Connection details.")
CONN_STOPPED: Final = ("AMQ8457", f"{PRODUCT} connection stopped.")
LSSTATUS_DISPLAY: Final = ("AMQ8631", "Display listener status details.")
QMSTATUS_DISPLAY: Final = ("AMQ8705", "Display Queue Manager Status Details.")
CLUSQMGR_DISPLAY: Final = ("AMQ8441", "Display Cluster Queue Manager details.")
RESUMED: Final = ("AMQ8556", "RESUME QMGR accepted.")
SUSPENDED: Final = ("AMQ8557", "SUSPEND QMGR accepted.")
CLUSTER_REFRESHED: Final = ("AMQ8558", "REFRESH CLUSTER accepted.")
NAMELIST_DISPLAY: Final = ("AMQ8550", "Display namelist details.")
NAMELIST_CHANGED: Final = ("AMQ8551", f"{PRODUCT} namelist changed.")
NAMELIST_CREATED: Final = ("AMQ8552", f"{PRODUCT} namelist created.")
NAMELIST_DELETED: Final = ("AMQ8553", f"{PRODUCT} namelist deleted.")
SECURITY_REFRESHED: Final = ("AMQ8560", f"{PRODUCT} security cache refreshed.")
TOPIC_DISPLAY: Final = ("AMQ8633", "Display topic details.")
TOPIC_CREATED: Final = ("AMQ8690", f"{PRODUCT} topic created.")
TOPIC_CHANGED: Final = ("AMQ8691", f"{PRODUCT} topic changed.")
TOPIC_DELETED: Final = ("AMQ8692", f"{PRODUCT} topic deleted.")
PUBSUB_DISPLAY: Final = ("AMQ8723", "Display pub/sub status details.")
QSTATUS_DISPLAY: Final = ("AMQ8450", "Display queue status details.")
TPSTATUS_DISPLAY: Final = ("AMQ8754", "Display topic status details.")
AUTHREC_SET: Final = ("AMQ8862", f"{PRODUCT} authority record set.")
AUTHREC_DELETED: Final = ("AMQ8863", f"{PRODUCT} authority record deleted.")
AUTHREC_DISPLAY: Final = ("AMQ8864", "Display authority record details.")

# Errors that runmqsc finds before it calls the queue manager.
SYNTAX_ERRORS: Final = frozenset(
    {"AMQ8405", "AMQ8406", "AMQ8411", "AMQ8412", "AMQ8413", "AMQ8421", "AMQ8424", "AMQ8425", "AMQ8554", "AMQ8569"}
)

_COLUMN: Final = 40
_INDENT: Final = "   "


@dataclass(frozen=True, slots=True)
class DefinitionStored:
    """A definition was made or replaced."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class DefinitionDeleted:
    """A definition was deleted; kind and name are those of ``commands.broker.objects``."""

    kind: str
    name: str


Change = DefinitionStored | DefinitionDeleted | Effect


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one command.

    amq: the message number, None where no message has one. text: the message. objects: what DISPLAY shows, one mapping
    an object, keyword to value; found: the same where it is worked out as it is gone through, once. changes: what has
    changed in memory and is to be kept, in order. notes: what a person should know besides, a sentence each. detail:
    further lines of a refusal. cleared: messages taken off a queue. reason: MQRC_* or MQRCCF_* of a refusal, where one
    is known.
    """

    ok: bool
    amq: str | None
    text: str
    objects: tuple[Mapping[str, Shown], ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    detail: tuple[str, ...] = field(default=())
    cleared: int | None = None
    found: Iterable[Mapping[str, Shown]] = ()
    reason: int | None = None

    @property
    def is_syntax_error(self) -> bool:
        """Whether the statement was not an MQSC command; False for a command that failed."""
        return not self.ok and self.amq in SYNTAX_ERRORS

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer as runmqsc prints it."""
        return tuple(self.printed())

    def printed(self) -> Iterator[str]:
        """Its lines, one by one; notes are the bridge's own and stand after it, in parentheses."""
        headline = f"{self.amq}: {self.text}" if self.amq else self.text
        for shown in self.objects:
            yield headline
            yield from columns(shown)
        if not self.objects:
            yield headline
            yield from self.detail
        for note in self.notes:
            yield f"({note})"

    def as_json(self) -> dict[str, Any]:
        """The answer for a program: the values of ``objects`` are text, numbers and lists of text."""
        return {
            "ok": self.ok,
            "amq": self.amq,
            "text": " ".join((self.text, *self.detail)),
            "objects": [
                {key: list(value) if isinstance(value, tuple) else value for key, value in shown.items()}
                for shown in self.objects
            ],
            "cleared": self.cleared,
            "notes": list(self.notes),
        }


def done(message: tuple[str, str], *changes: Change, notes: Sequence[str] = (), cleared: int | None = None) -> Answer:
    """The command was carried out."""
    return Answer(True, *message, changes=changes, notes=tuple(notes), cleared=cleared)


def displayed(message: tuple[str, str], found: Iterable[Mapping[str, Shown]], notes: Sequence[str] = ()) -> Answer:
    """What DISPLAY found."""
    return Answer(True, *message, found=found, notes=tuple(notes))


def refusal(error: MqscError) -> Answer:
    """The command failed, and nothing has changed."""
    return Answer(False, error.amq, error.text, detail=error.detail, reason=error.reason)


def not_found(name: str = "", *detail: str) -> MqscError:
    """AMQ8147, with the name that was looked for."""
    return MqscError(
        "AMQ8147", f"{PRODUCT} object {name} not found." if name else f"{PRODUCT} object not found.", detail
    )


def already_exists(name: str) -> MqscError:
    """AMQ8150: DEFINE without REPLACE of something that is there."""
    return MqscError("AMQ8150", f"{PRODUCT} object {name} already exists.")


def other_type(name: str) -> MqscError:
    """AMQ8151: the name belongs to an object of another kind."""
    return MqscError("AMQ8151", f"{PRODUCT} object {name} has a different type.")


def in_use(name: str) -> MqscError:
    """AMQ8148: the queued publish/subscribe interface is using the object."""
    return MqscError("AMQ8148", f"{PRODUCT} object {name} in use.")


def not_authorized(why: str) -> MqscError:
    """AMQ8135, with who may not do what."""
    return MqscError("AMQ8135", "Not authorized.", (f"{why[:1].upper()}{why[1:]}",))


def missing_keyword(keyword: str) -> MqscError:
    """AMQ8421: the command needs *keyword*."""
    return MqscError("AMQ8421", "A required keyword was not specified.", (f"{keyword} is required.",))


def failed(why: str, reason: int | None = None) -> MqscError:
    """AMQ8404: a correct command that cannot be carried out; *why* in words, *reason* if one is known."""
    return MqscError("AMQ8404", "Command failed.", (why,), reason)


def failed_with(error: CommandError) -> MqscError:
    """AMQ8404 for a reason code that the topic space gives."""
    why = error.why or str(error)
    return failed(f"{why[:1].upper()}{why[1:]} (reason {error.reason}).", error.reason)


def columns(shown: Mapping[str, Shown]) -> Iterator[str]:
    """KEYWORD(value), two to a line where both are short; a list of names and whatever is long has its own line."""
    waiting = ""
    for keyword, value in shown.items():
        entry = str(value) if keyword in SWITCHES else f"{keyword}({_printed(keyword, value)})"
        if waiting and len(entry) <= _COLUMN:
            yield f"{_INDENT}{waiting:<{_COLUMN}}{entry}"
            waiting = ""
            continue
        if waiting:
            yield _INDENT + waiting
            waiting = ""
        if len(entry) < _COLUMN:
            waiting = entry
        else:
            yield _INDENT + entry
    if waiting:
        yield _INDENT + waiting


def _printed(keyword: str, value: Shown) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    text = str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "." for c in text)
    # runmqsc shows an empty value as one blank, but the topic string of the root as nothing at all.
    return text or ("" if keyword == "TOPICSTR" else " ")


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "LT": lt,
    "GT": gt,
    "EQ": eq,
    "NE": ne,
    "LE": le,
    "GE": ge,
}
# ALL asks for everything; the others choose a command's scope where there is only one, and change nothing here.
PASSED_OVER: Final = frozenset({"ALL", "CMDSCOPE", "QSGDISP", "CLUSINFO"})

Row = Mapping[str, Shown]


def is_generic(name: str) -> bool:
    """Whether a name stands for all that begin like it: it ends in ``*``."""
    return name.endswith("*")


def matches_name(pattern: str, name: str) -> bool:
    """Whether *name* is what a full or generic name means."""
    return name.startswith(pattern[:-1]) if is_generic(pattern) else name == pattern


def select(
    command: Command,
    rows: Iterable[Row],
    identity: Sequence[str],
    *,
    known: frozenset[str],
    without_effect: frozenset[str] = frozenset(),
    passed_over: frozenset[str] = frozenset(),
    brief: bool | None = None,
    missing: Callable[[str], MqscError] = not_found,
) -> Iterator[dict[str, Shown]]:
    """The rows that DISPLAY shows, each with the attributes that it shows; one at least.

    rows: all attributes of each candidate, in order of showing; the name has been looked at. identity: keywords shown
    first and always. known: every keyword that a row may have; without_effect: those of MQ that are shown blank.
    passed_over: keywords that the caller has dealt with. brief: whether no attributes means the identity alone; None
    decides by the name. missing: makes the error for the name where nothing is left. Raises MqscError: that one (by
    default AMQ8147); AMQ8405 for an attribute that there is not.
    """
    wanted = list(_wanted(command, known, without_effect, passed_over))
    named = command.name.text if command.name else ""
    everything = command.keyword("ALL") is not None
    if not wanted and not everything:
        everything = not (is_generic(named) if brief is None else brief)
    if command.where is not None:
        _check_condition(command, command.where, known | without_effect)
        wanted.append(command.where.keyword)
    where = command.where

    def found() -> Iterator[dict[str, Shown]]:
        for row in rows:
            if where is not None and not _holds(where, row.get(where.keyword, "")):
                continue
            keys = dict.fromkeys((*identity, *(row if everything else ()), *wanted))
            yield {key: row.get(key, "") for key in keys if key in row or key in without_effect}

    shown = found()
    first = next(shown, None)
    if first is None:
        raise missing(named)
    return chain([first], shown)


def _wanted(
    command: Command, known: frozenset[str], without_effect: frozenset[str], passed_over: frozenset[str]
) -> Iterator[str]:
    for keyword in command.keywords:
        if keyword.name in passed_over or keyword.name in PASSED_OVER:
            continue
        if keyword.values is not None or keyword.name not in known | without_effect:
            raise _no_such_attribute(command, keyword, known)
        yield keyword.name


def _no_such_attribute(command: Command, keyword: Keyword, known: frozenset[str]) -> MqscError:
    name = f"({command.name.text})" if command.name else ""
    segment = f"{command.verb} {command.target}{name} {keyword.name}"
    return syntax_error(segment, f"DISPLAY {command.target} shows: {' '.join(sorted(known))}")


def _check_condition(command: Command, condition: Condition, known: frozenset[str]) -> None:
    if condition.keyword not in known:
        raise _no_such_attribute(command, Keyword(condition.keyword, None), known)
    if len(condition.values) != 1:
        why = f"WHERE({condition.keyword} {condition.operator} ...) takes one value."
        raise MqscError("AMQ8569", "Error in filter specification.", (why,))


def _holds(condition: Condition, value: Shown) -> bool:
    wanted = condition.values[0].text
    operator = condition.operator
    if operator in ("CT", "EX", "CTG", "EXG"):
        items = value if isinstance(value, tuple) else str(value).split(",")
        contained = any(matches_name(wanted, item) if operator.endswith("G") else item == wanted for item in items)
        return contained == operator.startswith("CT")
    if operator in ("LK", "NL"):
        return matches_name(wanted, _text(value)) == (operator == "LK")
    compare = _COMPARISONS[operator]
    if isinstance(value, int):
        # A number is never less or greater than a word such as ASPARENT.
        return compare(value, int(wanted)) if _is_number(wanted) else operator == "NE"
    if _is_number(wanted) and operator not in ("EQ", "NE") and value in ("", "ASPARENT", "UNLIMITED"):
        return False
    return compare(_text(value), wanted.rstrip(" "))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None


def _text(value: Shown) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
