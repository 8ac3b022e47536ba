"""What is planned against what is live: every difference has a name, both values and what to do about it.

A subscription with a name is found by it. One without a name is found by its topic string, destination, CorrelId,
selector and user, because a queue manager may show a name that it made up. A named subscription on a stream that is
live under another name, made of the same two parts, is one difference: the separator (guide 7.6.1).

Some attributes are compared only if the plan fixes them: the user, where a source said it; DESTCORL, where a program
gave a CorrelId; PUBACCT, where a source said it, because queue managers give one of their own; WSCHEMA, where the
schemes read the topic string differently. EXPIRY counts down; therefore it is
compared only as limited or unlimited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from commands.broker.attribute_kinds import Shown
from migrate.live.administrator import Row
from migrate.live.snapshot import LiveState, authorities, is_alike, names, record_key, text, word
from migrate.plan import PREFIX as MARKER
from migrate.planned_state import Kind, PlannedHeading, PlannedObject, by_kind, defaults_of
from streams.patterns import is_read_alike

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


def compare(heading: PlannedHeading, planned: Iterable[PlannedObject], live: LiveState, now: datetime) -> Comparison:
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
    heading: PlannedHeading, planned: Iterable[PlannedObject], rows: Iterable[Row]
) -> Iterator[Difference]:
    """The differences of subscriptions alone. rows: those that are live."""
    of_plan = by_kind(planned).get("SUB", [])
    return _Subscriptions(heading, of_plan, list(rows), heading.made, Comparison()).differences()


def _qmgr(heading: PlannedHeading, planned: list[PlannedObject], live: Row) -> Iterator[Difference]:
    wanted: dict[str, Shown] = {}
    for each in planned:
        wanted |= each.attributes
    if heading.is_complete:
        # migmbbrk leaves PSMODE to a person: it is ENABLED when everything is there (guide 8.2, step 9).
        wanted["PSMODE"] = "ENABLED"
    for keyword, value in wanted.items():
        if word(live, keyword) != str(value).upper():
            todo = f"ALTER QMGR {keyword}({value})" if value != "" else f"ALTER QMGR {keyword}(' ')"
            what = f"queue manager {heading.qmgr}"
            yield Difference(How.CHANGED, "QMGR", what, keyword, str(value), text(live, keyword), todo)


def _missing(planned: list[PlannedObject], live: Mapping[str, object], todo: str) -> Iterator[Difference]:
    for each in planned:
        if each.name not in live:
            yield Difference(How.MISSING, each.kind, each.label, todo=todo)


def _topics(planned: list[PlannedObject], live: Mapping[str, Row]) -> Iterator[Difference]:
    yield from _missing(planned, live, "Run 2-objects.mqsc again.")
    for each in planned:
        row = live.get(each.name or "")
        if row is None:
            continue
        for keyword, default in defaults_of("TOPIC").items():
            value = each.attributes.get(keyword, default)
            # A release that does not know a keyword does not show it.
            if keyword in row and not is_alike(keyword, value, row):
                todo = f"ALTER TOPIC('{each.name}') {keyword}({value})" if keyword != "TOPICSTR" else ""
                values = str(value), text(row, keyword)
                yield Difference(How.CHANGED, "TOPIC", each.label, keyword, *values, todo, each.name or "")


def _namelists(planned: list[PlannedObject], live: Mapping[str, Row]) -> Iterator[Difference]:
    markers = [each for each in planned if (each.name or "").startswith(MARKER)]
    yield from _missing(markers, live, "Run 7-enable.mqsc, which records the migration.")
    yield from _missing([each for each in planned if each not in markers], live, "Run 2-objects.mqsc again.")
    for each in planned:
        row = live.get(each.name or "")
        if row is None:
            continue
        wanted, there = names(each.attributes, "NAMES"), names(row, "NAMES")
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
        row: Row = each.attributes
        wanted, there = authorities(row), live.get(record_key(row))
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
        live: list[Row],
        now: datetime,
        comparison: Comparison,
    ) -> None:
        self._heading, self._planned, self._now, self._comparison = heading, planned, now, comparison
        self._left: dict[int, Row] = dict(enumerate(live))
        self._by_name: dict[str, int] = {}
        self._by_place: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, row in enumerate(live):
            self._by_name.setdefault(text(row, "SUB"), number)
            self._by_place[self._place(row)].append(number)

    def differences(self) -> Iterator[Difference]:
        pairs: list[tuple[PlannedObject, Row]] = []
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

    def _place(self, row: Row) -> tuple[str, str, str]:
        return text(row, "TOPICSTR"), text(row, "DEST"), text(row, "DESTQMGR") or self._heading.qmgr

    def _at_its_place(self, each: PlannedObject) -> Row | None:
        """The live subscription that *each* is, under another name or none."""
        candidates = [n for n in self._by_place.get(self._place(each.attributes), ()) if n in self._left]
        fitting = [n for n in candidates if self._is_same(each, self._left[n])]
        return self._left.pop(fitting[0]) if fitting else None

    def _is_same(self, each: PlannedObject, row: Row) -> bool:
        if each.name:
            # On a stream the same two parts with something else between them; else a name is a name.
            name = text(row, "SUB")
            return (
                bool(each.stream)
                and name.startswith(each.own_name)
                and (name == each.own_name or name.endswith(each.stream))
            )
        return all(
            is_alike(keyword, each.attributes[keyword], row)
            for keyword in ("DESTCORL", "SUBUSER", "SELECTOR")
            if keyword in each.attributes
        )

    def _named(self, each: PlannedObject, row: Row) -> Difference:
        live = text(row, "SUB")
        todo = (
            "The queue manager joins names and streams otherwise than the plan: see qpubsub verify --probe-names, and "
            "migrate with --name-separator"
        )
        return Difference(How.NAMED, "SUB", each.label, "", each.name or "", live, todo)

    def _attributes(self, each: PlannedObject, row: Row) -> Iterator[Difference]:
        planned: dict[str, Shown] = {**defaults_of("SUB"), **each.attributes}
        planned["DESTQMGR"] = planned["DESTQMGR"] or self._heading.qmgr
        row = {**row, "DESTQMGR": text(row, "DESTQMGR") or self._heading.qmgr}
        for keyword, value in planned.items():
            if keyword == "WSCHEMA" and is_read_alike(str(planned["TOPICSTR"])):
                continue
            if keyword in row and not is_alike(keyword, value, row):
                values = str(value), text(row, keyword)
                sub_id = text(row, "SUBID")
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
            name = text(row, "SUB") or f"SUBID {text(row, 'SUBID')}"
            todo = f"It delivers a second copy beside {twin.label}. Find the program that made it, then delete one."
            what = f"subscription {name} to {text(row, 'TOPICSTR')}"
            yield Difference(How.EXTRA, "SUB", what, todo=todo, sub_id=text(row, "SUBID"))
