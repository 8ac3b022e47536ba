"""What is planned against what is live: every difference has a name, both values and what to do about it.

A subscription with a name is found by it. One without a name is found by its topic string, destination, CorrelId,
selector and user, because a queue manager may show a name that it made up. A named subscription on a stream that is
live under another name, made of the same two parts, is one difference: the separator (guide 7.6.1).

Some attributes are compared only if the plan fixes them: the user, where a source said it; DESTCORL, where a program
gave a CorrelId; PUBACCT, where a source said it, because queue managers give one of their own; WSCHEMA, where the
schemes read the topic string differently. EXPIRY counts down; therefore it is
compared only as limited or unlimited.

Probes what IBM does not document: how a queue manager joins the name of a subscription and that of its stream.

Guide 7.6.1 says that the stream's name is appended, and not what stands between the two. A plan has to choose. The
probe asks the queue manager itself, on a stream, with names and topics that nobody else has:

    1  RegSub with a name as an old program gives it; DISPLAY SUB shows what the queue manager makes of it
    2  RegSub with another name as the plan gives it, NAME SEPARATOR STREAM
    3  RegSub with that name as an old program gives it, for the same topic and queue: it finds the subscription of 2;
       or it is refused, or makes another one. Then the old program would have an error, or everything twice

The subscriptions and the queue are removed. The commands, and with them the subscriptions, expire: a probe that is
killed leaves nothing but an empty queue.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE
from migrate.extract import request
from migrate.live import snapshot
from migrate.live.loading import Messages, answers_until_response
from migrate.plan import PREFIX as MARKER
from migrate.planned_state import Kind, PlannedHeading, PlannedObject, by_kind, defaults_of
from rfh2.constants import MQRCCF_NOT_AUTHORIZED, reason_name
from rfh2.errors import MigrationError, QPubSubError
from streams.patterns import is_read_alike
from streams.topic_objects import DEFAULT_STREAM, QUEUE_NAMELIST

_PARTS: Final = {"ALLMQI": "MQI", "ALLADM": "ADM", "ALL": "ALL"}


class How(StrEnum):
    """MISSING: it is not there. CHANGED: an attribute is another one. NAMED: it is there under another name. EXTRA: it
    is there besides what was planned, and has an effect on what was planned."""

    MISSING = "missing"
    CHANGED = "changed"
    NAMED = "named"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. what: the object. attribute: the keyword, "" for the whole object. planned, live: the values.

    name: of an object that has changed, its own; "" for the queue manager and for what has none. sub_id: SUBID of a
    live subscription.
    """

    how: How
    kind: str
    what: str
    attribute: str = ""
    planned: str = ""
    live: str = ""
    todo: str = ""
    name: str = ""
    sub_id: str = ""

    def __str__(self) -> str:
        if self.attribute:
            said = f"{self.attribute} is ({self.live}), planned ({self.planned})"
        elif self.how is How.MISSING:
            said = "is not there"
        elif self.how is How.NAMED:
            said = f"is live as {self.live}, planned as {self.planned}"
        else:
            said = "is there besides what was planned"
        return f"{self.what}: {said}" + (f". {self.todo}" if self.todo else "")


@dataclass(slots=True)
class Comparison:
    """All differences. compared: how many objects of each kind. others: live subscriptions that no plan is about.

    expired: planned subscriptions whose expiry has passed.
    """

    differences: list[Difference] = field(default_factory=list)
    compared: dict[Kind, int] = field(default_factory=dict)
    others: int = 0
    expired: int = 0


def compare(
    heading: PlannedHeading, planned: Iterable[PlannedObject], live: snapshot.LiveState, now: datetime
) -> Comparison:
    """Every difference between *planned* and *live*. now: UTC."""
    kinds = by_kind(planned)
    found = Comparison(compared={kind: len(each) for kind, each in kinds.items()})
    add = found.differences.extend
    add(_qmgr(heading, kinds.get("QMGR", []), live.qmgr))
    add(_missing(kinds.get("QUEUE", []), live.queues, "Run 1-queues.mqsc again."))
    add(_topics(kinds.get("TOPIC", []), live.topics))
    add(_namelists(kinds.get("NAMELIST", []), live.namelists))
    add(_records(kinds.get("AUTHREC", []), live.records))
    add(_Subscriptions(heading, kinds.get("SUB", []), live.subscriptions, now, found).differences())
    add(_retained(kinds.get("RETAINED", []), live.retained))
    return found


def compare_subscriptions(
    heading: PlannedHeading, planned: Iterable[PlannedObject], rows: Iterable[snapshot.Row]
) -> Iterator[Difference]:
    """The differences of subscriptions alone. rows: those that are live."""
    of_plan = by_kind(planned).get("SUB", [])
    return _Subscriptions(heading, of_plan, list(rows), heading.made, Comparison()).differences()


def _qmgr(heading: PlannedHeading, planned: list[PlannedObject], live: snapshot.Row) -> Iterator[Difference]:
    wanted: dict[str, Shown] = {}
    for each in planned:
        wanted |= each.attributes
    if heading.is_complete:
        # migmbbrk leaves PSMODE to a person: it is ENABLED when everything is there (guide 8.2, step 9).
        wanted["PSMODE"] = "ENABLED"
    for keyword, value in wanted.items():
        if snapshot.word(live, keyword) != str(value).upper():
            todo = f"ALTER QMGR {keyword}({value})" if value != "" else f"ALTER QMGR {keyword}(' ')"
            what = f"queue manager {heading.qmgr}"
            yield Difference(How.CHANGED, "QMGR", what, keyword, str(value), snapshot.text(live, keyword), todo)


def _missing(planned: list[PlannedObject], live: Mapping[str, object], todo: str) -> Iterator[Difference]:
    for each in planned:
        if each.name not in live:
            yield Difference(How.MISSING, each.kind, each.label, todo=todo)


def _topics(planned: list[PlannedObject], live: Mapping[str, snapshot.Row]) -> Iterator[Difference]:
    yield from _missing(planned, live, "Run 2-objects.mqsc again.")
    for each in planned:
        row = live.get(each.name or "")
        if row is None:
            continue
        for keyword, default in defaults_of("TOPIC").items():
            value = each.attributes.get(keyword, default)
            # A release that does not know a keyword does not show it.
            if keyword in row and not snapshot.is_alike(keyword, value, row):
                todo = f"ALTER TOPIC('{each.name}') {keyword}({value})" if keyword != "TOPICSTR" else ""
                values = str(value), snapshot.text(row, keyword)
                yield Difference(How.CHANGED, "TOPIC", each.label, keyword, *values, todo, each.name or "")


def _namelists(planned: list[PlannedObject], live: Mapping[str, snapshot.Row]) -> Iterator[Difference]:
    markers = [each for each in planned if (each.name or "").startswith(MARKER)]
    yield from _missing(markers, live, "Run 7-enable.mqsc, which records the migration.")
    yield from _missing([each for each in planned if each not in markers], live, "Run 2-objects.mqsc again.")
    for each in planned:
        row = live.get(each.name or "")
        if row is None:
            continue
        wanted, there = snapshot.names(each.attributes, "NAMES"), snapshot.names(row, "NAMES")
        lacks = [name for name in wanted if name not in there]
        todo = f"It lacks {', '.join(lacks)}."
        if each in markers:
            # A migration of the same state, done at another time, is the same.
            wanted, there = (found[:1] + found[2:] for found in (wanted, there))
            lacks, todo = [*({*wanted} ^ {*there})], "It records another migration."
        elif gone := [name for name in lacks if name in each.before]:
            todo += f" Somebody has taken {', '.join(gone)} out since the plan was made."
        if lacks:
            # Names that others have added are theirs.
            values = ", ".join(wanted), ", ".join(there)
            yield Difference(How.CHANGED, "NAMELIST", each.label, "NAMES", *values, todo, each.name or "")


def _records(planned: list[PlannedObject], live: Mapping[str, frozenset[str]]) -> Iterator[Difference]:
    for each in planned:
        row: snapshot.Row = each.attributes
        wanted, there = snapshot.authorities(row), live.get(snapshot.record_key(row))
        if there is None and wanted:
            yield Difference(How.MISSING, "AUTHREC", each.label, todo="Run 3-authorities.mqsc again.")
        elif there is not None and not _is_granted(wanted, there):
            planned_words, live_words = (",".join(sorted(words)) for words in (wanted, there))
            yield Difference(How.CHANGED, "AUTHREC", each.label, "AUTHLIST", planned_words, live_words)


def _is_granted(wanted: frozenset[str], there: frozenset[str]) -> bool:
    """Whether both grant the same. A queue manager shows ALLMQI and the like as the authorities that they stand for."""
    if wanted & _PARTS.keys():
        return there >= wanted - _PARTS.keys() and bool(there)
    return wanted == there


def _retained(planned: list[PlannedObject], live: frozenset[str]) -> Iterator[Difference]:
    for each in planned:
        if each.name not in live:
            todo = "If it was not persistent, a restart of the queue manager has discarded it; else publish it again."
            yield Difference(How.MISSING, "RETAINED", each.label, todo=todo)


class _Subscriptions:
    """Finds the live subscription of each planned one."""

    def __init__(
        self,
        heading: PlannedHeading,
        planned: list[PlannedObject],
        live: list[snapshot.Row],
        now: datetime,
        comparison: Comparison,
    ) -> None:
        self._heading, self._planned, self._now, self._comparison = heading, planned, now, comparison
        self._left: dict[int, snapshot.Row] = dict(enumerate(live))
        self._by_name: dict[str, int] = {}
        self._by_place: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, row in enumerate(live):
            self._by_name.setdefault(snapshot.text(row, "SUB"), number)
            self._by_place[self._place(row)].append(number)

    def differences(self) -> Iterator[Difference]:
        pairs: list[tuple[PlannedObject, snapshot.Row]] = []
        waiting: list[PlannedObject] = []
        for each in self._planned:
            number = self._by_name.get(each.name) if each.name else None
            if number is None:
                waiting.append(each)
            else:
                pairs.append((each, self._left.pop(number)))
        for each in waiting:
            row = self._at_its_place(each)
            if row is not None:
                pairs.append((each, row))
                if each.name:
                    yield self._named(each, row)
            elif self._has_expired(each):
                self._comparison.expired += 1
            else:
                todo = (
                    "Nothing is delivered for it. Its program can register it again; otherwise run "
                    "5-subscriptions.mqsc, or load its message of 6-registrations.qload."
                )
                yield Difference(How.MISSING, "SUB", each.label, todo=todo)
        for each, row in pairs:
            yield from self._attributes(each, row)
        yield from self._extra()

    def _place(self, row: snapshot.Row) -> tuple[str, str, str]:
        return (
            snapshot.text(row, "TOPICSTR"),
            snapshot.text(row, "DEST"),
            snapshot.text(row, "DESTQMGR") or self._heading.qmgr,
        )

    def _at_its_place(self, each: PlannedObject) -> snapshot.Row | None:
        """The live subscription that *each* is, under another name or none."""
        candidates = [n for n in self._by_place.get(self._place(each.attributes), ()) if n in self._left]
        fitting = [n for n in candidates if self._is_same(each, self._left[n])]
        return self._left.pop(fitting[0]) if fitting else None

    def _is_same(self, each: PlannedObject, row: snapshot.Row) -> bool:
        if each.name:
            # On a stream the same two parts with something else between them; else a name is a name.
            name = snapshot.text(row, "SUB")
            return (
                bool(each.stream)
                and name.startswith(each.own_name)
                and (name == each.own_name or name.endswith(each.stream))
            )
        return all(
            snapshot.is_alike(keyword, each.attributes[keyword], row)
            for keyword in ("DESTCORL", "SUBUSER", "SELECTOR")
            if keyword in each.attributes
        )

    def _named(self, each: PlannedObject, row: snapshot.Row) -> Difference:
        live = snapshot.text(row, "SUB")
        todo = (
            "The queue manager joins names and streams otherwise than the plan: see qpubsub verify --probe-names, and "
            "migrate with --name-separator"
        )
        return Difference(How.NAMED, "SUB", each.label, "", each.name or "", live, todo)

    def _attributes(self, each: PlannedObject, row: snapshot.Row) -> Iterator[Difference]:
        planned: dict[str, Shown] = {**defaults_of("SUB"), **each.attributes}
        planned["DESTQMGR"] = planned["DESTQMGR"] or self._heading.qmgr
        row = {**row, "DESTQMGR": snapshot.text(row, "DESTQMGR") or self._heading.qmgr}
        for keyword, value in planned.items():
            if keyword == "WSCHEMA" and is_read_alike(str(planned["TOPICSTR"])):
                continue
            if keyword in row and not snapshot.is_alike(keyword, value, row):
                values = str(value), snapshot.text(row, keyword)
                sub_id = snapshot.text(row, "SUBID")
                yield Difference(How.CHANGED, "SUB", each.label, keyword, *values, name=each.name or "", sub_id=sub_id)

    def _has_expired(self, each: PlannedObject) -> bool:
        left = each.attributes.get("EXPIRY")
        return isinstance(left, int) and self._heading.made + timedelta(milliseconds=100 * left) <= self._now

    def _extra(self) -> Iterator[Difference]:
        """A subscription on the topic and queue of a planned one delivers everything a second time."""
        planned = {self._place(each.attributes): each for each in self._planned}
        for row in self._left.values():
            twin = planned.get(self._place(row))
            if twin is None:
                self._comparison.others += 1
                continue
            name = snapshot.text(row, "SUB") or f"SUBID {snapshot.text(row, 'SUBID')}"
            todo = f"It delivers a second copy beside {twin.label}. Find the program that made it, then delete one."
            what = f"subscription {name} to {snapshot.text(row, 'TOPICSTR')}"
            yield Difference(How.EXTRA, "SUB", what, todo=todo, sub_id=snapshot.text(row, "SUBID"))


# The subscriptions of a probe that is killed expire soon after it.
_LEFT_TENTHS: Final = 600


@dataclass(frozen=True, slots=True)
class NameProbe:
    """What the probe found. planned: the separator of the plan. is_found: an old program finds the planned name.

    shown: the name that DISPLAY SUB shows for one that an old program registers, with NAME for its own part. live: the
    separator in it; None if the two are joined in another way, or not at all. reason: why the old program is refused.
    """

    stream: str
    planned: str
    is_found: bool
    live: str | None
    shown: str
    reason: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """For a person: what was found, and what to do."""
        planned = f"NAME{self.planned}{self.stream}"
        who = f"names on streams: a program that registers NAME on stream {self.stream}"
        if self.is_found:
            return (f"{who} finds the subscription {planned}: the plan is right",)
        would = (
            f"is refused with reason {self.reason}" if self.reason else "makes a second one and gets everything twice"
        )
        found = f"{who} does not find the subscription {planned}: it {would}. DISPLAY SUB shows its own as {self.shown}"
        if self.live is not None and self.live != self.planned:
            return found, f"make the plan again with --name-separator '{self.live}'"
        return (
            found,
            "let the programs register the named subscriptions of streams: take their messages out of "
            "6-registrations.qload",
        )


def planned_separator(planned: list[PlannedObject]) -> str:
    """The separator in the names of the plan; the default one if it has no name on a stream."""
    for each in planned:
        if each.kind == "SUB" and each.stream and each.name:
            return each.name.removeprefix(each.own_name).removesuffix(each.stream)
    return NAME_SEPARATOR


def streams_of(administrator: snapshot.Administrator) -> tuple[str, ...]:
    """The streams of a queue manager besides those that every one has. Raises AdministrationError."""
    rows = administrator.display("NAMELIST", QUEUE_NAMELIST)
    listed = snapshot.names(rows[0], "NAMES") if rows else ()
    return tuple(name for name in listed if name not in (DEFAULT_STREAM, ADMIN_STREAM))


def probe_names(
    administrator: snapshot.Administrator, messages: Messages, stream: str | None, separator: str, wait_s: float
) -> NameProbe:
    """Probe on *stream*, the first one there is if it is None. Raises MigrationError if there is no answer."""
    if stream is None:
        found = streams_of(administrator)
        if not found:
            raise MigrationError(f"the probe of names needs a stream: {QUEUE_NAMELIST} has only the default ones")
        stream = found[0]
    own = queue = f"QPUBSUB.PROBE.{os.urandom(6).hex().upper()}"
    made = administrator.run(snapshot.statement_of(f"DEFINE QLOCAL('{queue}') DESCR('qpubsub verify: probe of names')"))
    if not made.ok:
        raise snapshot.AdministrationError(f"{administrator.where}: the probe's queue could not be made: {made.text}")
    try:
        probe = _Probe(administrator, messages, stream, queue, wait_s)
        first, second = f"{own}.1", f"{own}.2"
        probe.must_register(first, 1)
        probe.must_register(f"{second}{separator}{stream}", 2)
        reason = probe.register(second, 2)
        (shown, *_), others = probe.names(1), probe.names(2)
    finally:
        _clean_up(administrator, queue)
    joined = shown.startswith(first) and shown.endswith(stream) and shown != first
    live = shown[len(first) : -len(stream)] if joined else None
    is_found = not reason and len(others) == 1
    return NameProbe(stream, separator, is_found, live, shown.replace(first, "NAME"), reason)


@dataclass(frozen=True, slots=True)
class _Probe:
    """The commands of one probe, and what they have made."""

    administrator: snapshot.Administrator
    messages: Messages
    stream: str
    queue: str
    wait_s: float

    def names(self, number: int) -> list[str]:
        """The names of the subscriptions to topic *number*. Raises MigrationError if there is none."""
        rows = self.administrator.display("SUB", "*")
        topic = f"/{self._topic(number)}"
        found = [snapshot.text(row, "SUB") for row in rows if f"/{snapshot.text(row, 'TOPICSTR')}".endswith(topic)]
        if not found:
            raise MigrationError("the probe of names: DISPLAY SUB does not show what was registered")
        return found

    def must_register(self, name: str, number: int) -> None:
        """RegSub that has to succeed. Raises MigrationError."""
        reason = self.register(name, number)
        if reason:
            why = f"RegSub of {name} on stream {self.stream} ended with reason {reason} {reason_name(reason) or ''}"
            if reason == MQRCCF_NOT_AUTHORIZED:
                why += f". The user needs SUB on topic object {self.stream}, and PUT on queues QPUBSUB.PROBE.**"
            raise MigrationError(f"the probe of names: {why}")

    def register(self, name: str, number: int) -> int:
        """Put RegSub and wait for its answer; the reason. Raises MigrationError if there is none."""
        qmgr, queue = self.administrator.qmgr, self.queue
        pairs = [("MQPSCommand", "RegSub"), ("MQPSStreamName", self.stream), ("MQPSTopic", self._topic(number))]
        pairs += [("MQPSQMgrName", qmgr), ("MQPSQName", queue), ("MQPSSubName", name)]
        mqmd, body = request(pairs, qmgr, queue, int(10 * self.wait_s) + _LEFT_TENTHS)
        with self.messages.unit_of_work() as unit:
            unit.put(CONTROL_QUEUE, mqmd.encode(), body, application="qpubsub verify")
        try:
            return answers_until_response(self.messages, queue, self.wait_s, lambda _answer: None)
        except MigrationError as error:
            raise MigrationError(f"the probe of names: {error}") from error

    def _topic(self, number: int) -> str:
        return f"qpubsub/probe/{self.queue}/{number}"


def _clean_up(administrator: snapshot.Administrator, queue: str) -> None:
    with suppress(QPubSubError):
        for row in administrator.display("SUB", "*"):
            if snapshot.text(row, "DEST") == queue:
                administrator.run(snapshot.statement_of(f"DELETE SUB SUBID({snapshot.text(row, 'SUBID')})"))
        administrator.run(snapshot.statement_of(f"DELETE QLOCAL('{queue}') PURGE"))
