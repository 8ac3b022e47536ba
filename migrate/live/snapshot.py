"""What a live queue manager has, as far as a migration is concerned: read once, object by object, through the port.

Whether a value that is wanted is the one that a queue manager shows, whatever its way of showing it.

The objects of a live queue manager as an MQSC script: what ``--existing`` of strmqbrk and migmbbrk takes.

It has what a plan depends on: attributes of the queue manager, queues, topic objects, namelists, authority records, and
subscriptions with names. Objects that every queue manager has are altered, others are defined with REPLACE.

The port: administration of one queue manager. DISPLAY gives typed rows; everything else is a statement of MQSC.

Adapters: an embedded queue manager (below), the REST interface of IBM MQ 9 (``rest``), PCF (``pcf``). They
give the same rows: keywords as DISPLAY prints them, in capitals; text, whole numbers, and tuples of text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from commands.broker.attribute_kinds import Choice, Number, Shown
from commands.broker.objects import TEMPORARY
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.answers import Answer
from commands.mqsc.attributes import QALIAS, QMGR, SUB, TOPIC, ObjectKind
from commands.mqsc.export import in_script
from commands.mqsc.script import (
    Attribute,
    Command,
    Keyword,
    NoMqscFormError,
    Statement,
    Value,
    Word,
    comment,
    keyword,
    parse,
    statement,
)
from commands.terminal.counted import counted
from migrate.planned_state import Kind, PlannedObject
from migrate.target import Target
from rfh2.errors import MigrationError

Row = Mapping[str, Shown]

_THERE: Final = frozenset({"AMQ8150", "4001", "3311"})
_NOT_FOUND: Final = frozenset({"AMQ8147", "AMQ8420", "2085", "2428", "3308", "3200"})
_AMQ: Final = re.compile(r"AMQ\d{4}")


class AdministrationError(MigrationError):
    """The queue manager cannot be administered: it is not reached, refuses the user, or answers what nobody expects."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one statement. code: AMQ message or reason code of a refusal. text: the answer, for a person."""

    ok: bool
    code: str = ""
    text: str = ""

    @property
    def is_there(self) -> bool:
        """Whether it was refused because the object exists."""
        return not self.ok and self.code in _THERE

    @property
    def is_missing(self) -> bool:
        """Whether it was refused because the object does not exist."""
        return not self.ok and self.code in _NOT_FOUND


def whole(rows: list[Row], failures: Sequence[Outcome], asked: str) -> list[Row]:
    """The rows of one answer to DISPLAY; nothing where nothing was found. asked: queue manager and command, to say it.

    Half an answer is no answer: what a queue manager does not show for want of authority, or because an object is
    damaged, would be taken for missing. Raises AdministrationError where something failed, even beside rows.
    """
    if not failures:
        return rows
    if not rows and all(each.is_missing for each in failures):
        return []
    text = "; ".join(dict.fromkeys(each.text for each in failures))
    if rows:
        shown = counted(len(rows), "object")
        text = f"{text.rstrip('.')}. Beside this error the answer has {shown}: it is incomplete, and is not used"
    raise AdministrationError(f"{asked}: {text}")


def judged(failures: Sequence[Outcome], said: str = "") -> Outcome:
    """What became of one statement whose answer has these failures; a code, where all have the same.

    said: the text of the answer, for one that was carried out.
    """
    if not failures:
        return Outcome(True, message_number(said), said)
    codes = {each.code for each in failures}
    return Outcome(False, codes.pop() if len(codes) == 1 else "", " ".join(each.text for each in failures))


class Administrator(Protocol):
    """Administers one queue manager. where: how it is reached, for messages; never with a password."""

    @property
    def qmgr(self) -> str: ...

    @property
    def where(self) -> str: ...

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        """What ``DISPLAY target(name) scope ALL`` shows, all of it; nothing where nothing is found (``whole``).

        Raises AdministrationError.
        """

    def run(self, statement: Statement) -> Outcome:
        """Carry out a statement that changes something. Raises AdministrationError if its result is not known."""

    def close(self) -> None:
        """End the connection."""


def message_number(text: str) -> str:
    """The AMQ number that *text* begins with or holds; "" for none. The severity behind it is left out."""
    found = _AMQ.search(text)
    return found[0] if found else ""


def display_command(target: str, name: str | None, scope: Mapping[str, str]) -> Command:
    """``DISPLAY target(name) scope ALL`` as a parsed command."""
    keywords = [Keyword(word, (Value(text, quoted=True),)) for word, text in scope.items()]
    named = None if name is None else Value(name, quoted=True)
    return Command("DISPLAY", target, named, (*keywords, Keyword("ALL", None)))


def statement_of(text: str) -> Statement:
    """The one statement that *text* is. Raises AdministrationError for text that is none."""
    found = parse(text)
    if len(found) != 1:
        raise AdministrationError(f"one MQSC command was expected: {text}")
    return found[0]


def outcome_of(answer: Answer) -> Outcome:
    """What became of a statement that an embedded queue manager has answered."""
    return Outcome(answer.ok, answer.amq or "", " ".join(answer.lines))


def rows_of(answer: Answer, asked: str) -> list[Row]:
    """The rows of such an answer, as ``whole`` gives them."""
    return whole(list(answer.objects), [] if answer.ok else [outcome_of(answer)], asked)


EVERYTHING: tuple[Kind, ...] = ("QMGR", "QUEUE", "TOPIC", "NAMELIST", "AUTHREC", "SUB", "RETAINED")


@dataclass(slots=True)
class LiveState:
    """Objects by name, authority records by object type, profile, entity type and entity. qmgr: its attributes.

    subscriptions: however they were made, without proxies. retained: topic strings that have something retained.
    """

    qmgr: Row = field(default_factory=dict)
    queues: dict[str, Row] = field(default_factory=dict)
    topics: dict[str, Row] = field(default_factory=dict)
    namelists: dict[str, Row] = field(default_factory=dict)
    records: dict[str, frozenset[str]] = field(default_factory=dict)
    subscriptions: list[Row] = field(default_factory=list)
    retained: frozenset[str] = frozenset()
    _by_name: dict[str, Row] | None = field(default=None, compare=False, repr=False)

    def subscription(self, name: str) -> Row | None:
        """The subscription of that name."""
        if self._by_name is None:
            self._by_name = {text(row, "SUB"): row for row in self.subscriptions}
        return self._by_name.get(name)

    def add_subscription(self, row: Row) -> None:
        """One that was made since."""
        self.subscriptions.append(row)
        if self._by_name is not None:
            self._by_name[text(row, "SUB")] = row


def read_live(
    administrator: Administrator, kinds: Iterable[Kind] = EVERYTHING, progress: Callable[[str], None] | None = None
) -> LiveState:
    """The objects of *kinds*. progress: called with what is read next. Raises AdministrationError."""
    live = LiveState()
    for kind in dict.fromkeys(kinds):
        if progress is not None:
            progress(kind)
        match kind:
            case "QMGR":
                live.qmgr = qmgr_row(administrator)
            case "QUEUE":
                live.queues = _named(administrator.display("QUEUE", "*"), "QUEUE")
            case "TOPIC":
                live.topics = _named(administrator.display("TOPIC", "*"), "TOPIC")
            case "NAMELIST":
                live.namelists = _named(administrator.display("NAMELIST", "*"), "NAMELIST")
            case "AUTHREC":
                live.records = {record_key(row): authorities(row) for row in administrator.display("AUTHREC")}
            case "SUB":
                live.subscriptions = administrator.display("SUB", "*")
            case "RETAINED":
                rows = administrator.display("TPSTATUS", "#")
                live.retained = frozenset(text(row, "TOPICSTR") for row in rows if word(row, "RETAINED") == "YES")
    return live


def qmgr_row(administrator: Administrator) -> Row:
    """The attributes of the queue manager. Raises AdministrationError, also where it shows none: each one has them."""
    rows = administrator.display("QMGR")
    if not rows or not rows[0]:
        raise AdministrationError(f"{administrator.where}: DISPLAY QMGR shows nothing")
    return rows[0]


def at_places(planned: Iterable[PlannedObject], live: LiveState) -> list[str]:
    """The SUBIDs of the live subscriptions whose topic string and queue are those of a planned one, in order."""
    places = {(s.attributes.get("TOPICSTR"), s.attributes.get("DEST")) for s in planned if s.kind == "SUB"}
    rows = live.subscriptions
    return sorted(text(row, "SUBID") for row in rows if (text(row, "TOPICSTR"), text(row, "DEST")) in places)


def text(row: Row, keyword: str) -> str:
    """The value as text, without blanks at its end; "" where there is none."""
    value = row.get(keyword, "")
    return ",".join(value) if isinstance(value, tuple) else str(value).rstrip(" ")


def word(row: Row, keyword: str) -> str:
    """A value that is a word of MQSC, in capitals."""
    return text(row, keyword).upper()


def names(row: Row, keyword: str) -> tuple[str, ...]:
    """A value that lists names; blank ones are none."""
    value = row.get(keyword, ())
    listed = value if isinstance(value, tuple) else str(value).split(",")
    return tuple(name for each in listed if (name := each.strip(" ")))


def record_key(row: Row) -> str:
    """The key of an authority record; the queue manager is named by its object type alone."""
    kind = word(row, "OBJTYPE")
    profile = "" if kind == "QMGR" else text(row, "PROFILE")
    return f"{kind} {profile} {word(row, 'ENTTYPE')} {text(row, 'ENTITY')}"


def authorities(row: Row) -> frozenset[str]:
    """The authorities of a record, in capitals; none where it has none."""
    return frozenset(name.upper() for name in names(row, "AUTHLIST")) - {"NONE"}


def _named(rows: Iterable[Row], keyword: str) -> dict[str, Row]:
    return {text(row, keyword): row for row in rows}


_HEXADECIMAL: Final = frozenset({"DESTCORL", "PUBACCT"})
_LISTS: Final = frozenset({"NAMES", "AUTHLIST"})
_UNLIMITED: Final = "UNLIMITED"
# Their values are words of MQSC, which a queue manager may print in small letters.
_WORDS: Final = frozenset(
    attribute.keyword
    for kind in (SUB, TOPIC, QALIAS, QMGR)
    for attribute in kind.attributes
    if isinstance(attribute.kind, Choice | Number) and attribute.kind.meanings
)


def is_alike(keyword: str, wanted: Shown, row: Row) -> bool:
    """Whether *row* shows *wanted* for *keyword*. EXPIRY counts down: it is compared as limited or unlimited."""
    if keyword in _LISTS:
        listed = wanted if isinstance(wanted, tuple) else (str(wanted),)
        return {name.rstrip(" ") for name in listed if name.strip(" ")} == set(names(row, keyword))
    if keyword in _HEXADECIMAL:
        # Bytes that are not given are zeros.
        return str(wanted).upper().rstrip("0") == text(row, keyword).upper().rstrip("0")
    if keyword == "EXPIRY":
        return (str(wanted).upper() == _UNLIMITED) == (word(row, keyword) == _UNLIMITED)
    one, other = str(wanted).rstrip(" "), text(row, keyword)
    return one == other or (keyword in _WORDS and one.upper() == other.upper())


KINDS: Final[tuple[Kind, ...]] = ("QMGR", "QUEUE", "TOPIC", "NAMELIST", "AUTHREC", "SUB")
"""What has to be read for the script."""

_QUEUES: Final = {"QLOCAL": mqsc_kinds.QLOCAL, "QALIAS": mqsc_kinds.QALIAS, "QMODEL": mqsc_kinds.QMODEL}
_OBJECT_TYPES: Final = ("QUEUE", "TOPIC", "NAMELIST", "QMGR")
# SUBID and CorrelId of a subscription are its own; a topic object is within TOPICSTR already.
_NOT_OF_A_SUB: Final = frozenset({"DESTCORL", "TOPICOBJ", "DESTCLAS", "GROUPSUB"})


def script_of(live: LiveState, qmgr: str) -> Iterator[str]:
    """The lines. What MQSC has no form for is a comment."""
    fresh = Target.fresh(qmgr).objects
    yield comment(f"objects of queue manager {qmgr}, as DISPLAY showed them")
    yield from _written("ALTER QMGR", _given(mqsc_kinds.QMGR, live.qmgr))
    for name, row in live.queues.items():
        kind = _QUEUES.get(word(row, "TYPE"))
        if word(row, "TYPE") == "QREMOTE":
            yield from _defined("QREMOTE", name, [])
        elif kind is mqsc_kinds.QMODEL or (kind is not None and word(row, "DEFTYPE") != TEMPORARY):
            yield from _defined(kind.word, name, _given(kind, row))
    for name, row in live.topics.items():
        if fresh.topics.get(name) is not None:
            yield from _altered("TOPIC", name, _given(mqsc_kinds.TOPIC, row, without={"TOPICSTR"}))
        else:
            yield from _defined("TOPIC", name, _given(mqsc_kinds.TOPIC, row))
    for name, row in live.namelists.items():
        write = _altered if name in fresh.namelists else _defined
        yield from write("NAMELIST", name, _given(mqsc_kinds.NAMELIST, row))
    yield from _subscriptions(live.subscriptions)
    yield from _records(live)


def _subscriptions(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if text(row, "SUB") and word(row, "DESTCLAS") != "MANAGED":
            yield from _defined("SUB", text(row, "SUB"), _given(mqsc_kinds.SUB, row, without=_NOT_OF_A_SUB))


def _records(live: LiveState) -> Iterator[str]:
    for key, granted in sorted(live.records.items()):
        kind, rest = key.split(" ", 1)
        for entity_type in ("PRINCIPAL", "GROUP"):
            profile, found, entity = rest.partition(f" {entity_type} ")
            if not found or kind not in _OBJECT_TYPES or not granted:
                continue
            given: list[Attribute] = [] if kind == "QMGR" else [("PROFILE", profile)]
            given += [("OBJTYPE", Word(kind)), (entity_type, entity), ("AUTHADD", Word(",".join(sorted(granted))))]
            yield from _written("SET AUTHREC", given)


def _given(kind: ObjectKind, row: Row, without: Collection[str] = ()) -> Iterator[Attribute]:
    """The attributes that a plan knows, as *row* shows them."""
    for each in kind.attributes:
        if each.keyword in row and each.keyword not in without:
            is_list = each.keyword == "NAMES"
            yield each.keyword, in_script(each, names(row, "NAMES") if is_list else text(row, each.keyword))


def _defined(word_: str, name: str, given: Iterable[Attribute]) -> Iterator[str]:
    lines = list(_written("DEFINE", given, word_, name))
    if lines and not lines[-1].startswith("*"):
        lines[-1] += " +"
        lines.append("  REPLACE")
    yield from lines


def _altered(word_: str, name: str, given: Iterable[Attribute]) -> Iterator[str]:
    yield from _written("ALTER", given, word_, name)


def _written(head: str, given: Iterable[Attribute], word_: str = "", name: str = "") -> Iterator[str]:
    try:
        yield from statement(f"{head} {keyword(word_, name)}" if word_ else head, given)
    except NoMqscFormError as error:
        yield comment(f"{head} {word_} {name}: {error}")
