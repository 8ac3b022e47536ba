"""The items of all brokers by application, with identical reasons folded; the rows go to files as they are read.

Memory grows with the number of applications and of different reasons, not with the number of items.

Which application an item belongs to: by its queue, its user or its program, as a file says, or as they are found.

    [[application]]
    name = "Trading desk"
    queues = ["DESK.", "QUOTES.IN"]
    users = ["desk*"]
    programs = ["quotefeed"]

A queue belongs to the application with the longest prefix of its name. What the file does not know is grouped by what
it says itself: by the first part of the queue's name, up to a period; else by the application that all other items of
the same user belong to; else by the program or the user. The rest are items of the queue managers themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from commands.network.estate_file import Table, TableFileError, TomlLines, hint, made, parsed, read_text
from migrate.estate.overview import EstateOverview
from migrate.estate.records import FATES, BrokerFiles, ItemRow, Owner, Record, unpacked
from migrate.ledger import Result, Severity, Sums
from migrate.report.facts import folded, sentence
from rfh2.errors import MigrationError

THE_REST: Final = "queue managers themselves"
_TABLE: Final = "application"


class Application(Table):
    """One ``[[application]]``. queues: beginnings of names. users, programs: names, or beginnings with ``*`` behind."""

    name: str
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(slots=True)
class Applications:
    """The applications of a file, and those that were found. mapped: of the file."""

    mapped: tuple[Application, ...] = ()
    _users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn(self, owners: Iterable[Owner], streams: Collection[str]) -> None:
        """Look at items before their applications are asked for: which users have queues of which application."""
        for owner in owners:
            if owner.user and (name := self._by_queue(owner.queue, streams)):
                self._users[owner.user].add(name)

    def name_of(self, owner: Owner, streams: Collection[str]) -> str:
        """The application of an item. streams: of its broker, whose queues belong to no application."""
        found = self._by_queue(owner.queue, streams) or self._mapped("users", owner.user)
        if found:
            return found
        named = self._users.get(owner.user, set())
        if owner.user and len(named) == 1:
            return next(iter(named))
        found = self._mapped("programs", owner.program)
        if found:
            return found
        if owner.program:
            return f"program {owner.program}"
        return f"user {owner.user}" if owner.user else THE_REST

    def _by_queue(self, queue: str, streams: Collection[str]) -> str:
        if not queue or queue in streams or queue.startswith("SYSTEM."):
            return ""
        longest, found = 0, ""
        for application in self.mapped:
            for prefix in application.queues:
                if queue.startswith(prefix) and len(prefix) > longest:
                    longest, found = len(prefix), application.name
        return found or queue.split(".", 1)[0]

    def _mapped(self, word: str, value: str) -> str:
        if not value:
            return ""
        for application in self.mapped:
            for given in getattr(application, word):
                if value == given or (given.endswith("*") and value.startswith(given[:-1])):
                    return application.name
        return ""


def read_applications(path: Path) -> Applications:
    """The applications of the file at *path*. Raises TableFileError."""
    text = read_text(path, "docs/estate.md shows one")
    return Applications(parse_applications(parsed(text, str(path)), TomlLines(text, str(path)), str(path)))


def parse_applications(values: Mapping[str, object], lines: TomlLines, file: str) -> tuple[Application, ...]:
    """The applications that *values* describe. Raises TableFileError with the line."""
    for key in values:
        if key != _TABLE:
            raise TableFileError(lines.of_key(key), f"there is no key {key}{hint(key, (_TABLE,))}")
    tables = values.get(_TABLE)
    if not isinstance(tables, list) or not tables:
        raise TableFileError(file, "it has no [[application]]: one for each application, with its name")
    found = [
        made(Application, table, partial(lines.of_key, table=_TABLE, number=number))
        for number, table in enumerate(tables)
    ]
    names = [application.name for application in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise TableFileError(lines.of_key("name", _TABLE, number), f"another application has the name {name}")
    return tuple(found)


_RESULTS: Final = tuple(Result)
_SEVERITIES: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)

Sink = Callable[[str, Record, ItemRow], None]
"""Takes the application, the broker and the item."""


@dataclass(frozen=True, slots=True)
class ReasonKey:
    """Items that are alike: the same result for the same reason, names apart."""

    result: Result
    severity: Severity
    kind: str
    why: str

    @property
    def rank(self) -> tuple[int, int]:
        """Losses first, errors first."""
        return _RESULTS.index(self.result), _SEVERITIES.index(self.severity)


@dataclass(slots=True)
class ReasonCount:
    """How many items are alike. first: the label of one. qmgrs: on how many items of each queue manager."""

    first: str
    count: int = 0
    qmgrs: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class ApplicationImpact:
    """What the migration means for one application. items: its items by result; qmgrs: by queue manager."""

    name: str
    results: Counter[Result] = field(default_factory=Counter)
    qmgrs: Counter[str] = field(default_factory=Counter)
    reasons: dict[ReasonKey, ReasonCount] = field(default_factory=dict)

    def add(self, qmgr: str, row: ItemRow) -> None:
        """Count one item."""
        self.results[row.result] += 1
        self.qmgrs[qmgr] += 1
        key = ReasonKey(row.result, row.severity, row.kind, _why(row))
        counted = self.reasons.get(key)
        if counted is None:
            counted = self.reasons[key] = ReasonCount(row.label)
        counted.count += 1
        counted.qmgrs[qmgr] += 1

    @property
    def sums(self) -> Sums:
        """Its items by what becomes of them."""
        return Sums(items=self.results.total(), **{str(result): number for result, number in self.results.items()})

    @property
    def ranked(self) -> list[tuple[ReasonKey, ReasonCount]]:
        """Its reasons: losses first, then errors, then the most frequent."""
        return sorted(self.reasons.items(), key=lambda each: (*each[0].rank, -each[1].count, each[0].why))

    @property
    def losses(self) -> list[tuple[ReasonKey, ReasonCount]]:
        """The reasons that a person must accept: items that are not there, and warnings and errors of others."""
        return [
            (key, counted)
            for key, counted in self.ranked
            if key.result is Result.REFUSED or (key.result is not Result.LEFT and key.severity is not Severity.INFO)
        ]


@dataclass(frozen=True, slots=True)
class Impact:
    """The whole estate. applications: worst first. without_plan: queue managers that are not in it."""

    overview: EstateOverview
    applications: tuple[ApplicationImpact, ...]
    without_plan: tuple[str, ...]

    @property
    def sums(self) -> Sums:
        """Of all applications: those of the estate."""
        return self.overview.sums


def collect(
    found: EstateOverview, files: Callable[[str], BrokerFiles], applications: Applications, sink: Sink
) -> Impact:
    """Read the items of all planned brokers, give each to *sink* with its application, and count.

    Raises MigrationError if a plan's items cannot be read, or if the sums do not agree.
    """
    planned = [record for record in found.records if record.plan]
    for record in planned:
        applications.learn((row.owner for row in _rows(files, record)), record.survey.streams)
    impacts: dict[str, ApplicationImpact] = {}
    for record in planned:
        counted: Counter[Result] = Counter()
        for row in _rows(files, record):
            name = applications.name_of(row.owner, record.survey.streams)
            impacts.setdefault(name, ApplicationImpact(name)).add(record.qmgr, row)
            counted[row.result] += 1
            sink(name, record, row)
        _check(record.qmgr, counted, record.sums)
    total: Counter[Result] = Counter()
    for impact in impacts.values():
        total += impact.results
    _check("the estate", total, found.sums)
    without = tuple(record.qmgr for record in found.records if not record.plan)
    return Impact(found, tuple(sorted(impacts.values(), key=_worst_first)), without)


def _rows(files: Callable[[str], BrokerFiles], record: Record) -> Iterator[ItemRow]:
    return unpacked(files(record.qmgr).plan(record.plan) / FATES)


def _check(whose: str, counted: Counter[Result], sums: Sums) -> None:
    if any(counted[result] != number for result, number in sums.each()):
        raise MigrationError(f"{whose}: the items of the plan are not those of its sums; plan the broker again")


def _worst_first(impact: ApplicationImpact) -> tuple[object, ...]:
    return *(-impact.results[result] for result in (Result.REFUSED, Result.CHANGED)), impact.name


def _why(row: ItemRow) -> str:
    own = f"{row.label} {row.becomes} {row.owner.queue} {row.owner.user}"
    return " ".join(sentence(f"{reason.severity}: {folded(reason.text, reason.ids, own)}") for reason in row.reasons)


def ranked_over_all(impacts: Iterable[ApplicationImpact]) -> Sequence[tuple[str, ReasonKey, ReasonCount]]:
    """The reasons of all applications in one order: losses first."""
    every = [(impact.name, key, counted) for impact in impacts for key, counted in impact.ranked]
    return sorted(every, key=lambda each: (*each[1].rank, -each[2].count, each[0], each[1].why))
