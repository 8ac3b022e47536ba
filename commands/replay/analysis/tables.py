"""The tables of an analysis, declared once: this process and Spark count by the same declaration.

A row has a key, sums, its lowest ``seq``, its first and last time, and texts of the message with that ``seq``: an
example, or the attributes of a subscription. Rows can be combined from parts in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

Value = str | int | datetime | None
Row = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Table:
    """One table. keys: names and types, ``str``, ``int`` or ``datetime``. firsts: the words, all of them ``str``.

    order: the sums by which rows are sorted, the greatest first.
    """

    name: str
    keys: Mapping[str, type]
    sums: tuple[str, ...]
    order: tuple[str, ...]
    firsts: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, type]:
        """Every column with its type."""
        return {
            **self.keys,
            **dict.fromkeys(self.sums, int),
            "first_seq": int,
            "first_time": datetime,
            "last_time": datetime,
            **dict.fromkeys(self.firsts, str),
        }


QMGRS: Final = Table(
    "qmgrs",
    {"qmgr": str},
    ("messages", "bytes", "publications", "deliveries", "responses", "dead_letters", "errors", "passed_over"),
    ("messages",),
)
"""The messages that each queue manager received."""

STREAMS: Final = Table(
    "streams",
    {"qmgr": str, "queue": str},
    ("messages", "bytes", "publications", "deliveries", "errors", "passed_over"),
    ("messages",),
)
"""The messages on each queue: the control queue, stream queues, and queues that no broker reads."""

TOPICS: Final = Table(
    "topics",
    {"qmgr": str, "topic": str},
    ("publications", "bytes", "deliveries", "retained", "read"),
    ("publications", "read"),
    ("queue",),
)
"""The publications on each topic, prefix included. read: how often a retained publication was sent to a subscriber."""

APPLICATIONS: Final = Table(
    "applications",
    {"qmgr": str, "application": str, "user": str},
    (
        "messages",
        "bytes",
        "publications",
        "registrations",
        "deregistrations",
        "requests",
        "deletions",
        "others",
        "deliveries",
        "errors",
    ),
    ("messages",),
)
"""The messages of each program, by PutApplName of the descriptor, and user. others: other messages."""

SUBSCRIPTIONS: Final = Table(
    "subscriptions",
    {"qmgr": str, "sub_id": str},
    ("deliveries", "read"),
    ("deliveries", "read"),
    (
        "user",
        "subscriber",
        "topic",
        "sub_name",
        "stream",
        "sub_point",
        "filter",
        "topic_string",
        "wildcards",
        "options",
    ),
)
"""Every subscription; first_seq is -1 if the setup defined it.

topic: as the subscriber wrote it. topic_string: resolved. wildcards: the scheme. options: those that keep publications
back, as the words of RegOpt.
"""

DUPLICATES: Final = Table(
    "duplicates",
    {"qmgr": str, "subscriber": str, "subscriptions": str},
    ("publications", "extra", "bytes"),
    ("extra",),
    ("topic",),
)
"""Publications of which one subscriber was put several messages, because several of its subscriptions match a topic.

extra: messages beyond the first; bytes: of those. topic: an example.
"""

REASONS: Final = Table(
    "reasons",
    {"completion": str, "reason": int, "command": str},
    ("count", "answered", "dead_letters"),
    ("count",),
    ("why",),
)
"""Commands with errors or warnings. command: empty if it could not be read. why: an example, in words."""

ERRORS: Final = Table(
    "errors",
    {"qmgr": str, "completion": str, "reason": int, "application": str, "user": str, "command": str},
    ("count", "answered", "dead_letters"),
    ("count",),
    ("why",),
)
"""The same by reason and program."""

MINUTES: Final = Table(
    "minutes",
    {"minute": datetime},
    ("messages", "publications", "deliveries", "errors"),
    (),
)
"""Traffic by the minute; without messages that have no time, nor one before them."""

SECONDS: Final = Table("seconds", {"second": datetime}, MINUTES.sums, ())
"""The same by the second, for captures so short that ``seconds_are_kept``."""

_MOST_SECONDS: Final = timedelta(minutes=90)

TABLES: Final = (QMGRS, STREAMS, TOPICS, APPLICATIONS, SUBSCRIPTIONS, DUPLICATES, REASONS, ERRORS, MINUTES)
"""The tables of an analysis."""

COUNTED: Final = (*TABLES, SECONDS)
"""The tables that are counted while messages are read."""


def seconds_are_kept(first: datetime, last: datetime) -> bool:
    """Whether messages from *first* to *last* are counted by the second. A longer capture is counted by the minute."""
    return last - first < _MOST_SECONDS


@dataclass(frozen=True, slots=True)
class TableView:
    """The rows of a table in which some sums are zero, and others not; order: as of a table."""

    name: str
    table: Table
    order: tuple[str, ...]
    zero: tuple[str, ...]
    positive: tuple[str, ...] = ()

    def has(self, row: Row) -> bool:
        """Whether *row* is one of them."""
        return not any(row[name] for name in self.zero) and all(row[name] for name in self.positive)


NEVER_MATCHED: Final = TableView("never_matched", SUBSCRIPTIONS, (), ("deliveries", "read"))
"""Subscriptions without a delivery."""

NEVER_SUBSCRIBED: Final = TableView(
    "never_subscribed", TOPICS, ("publications",), ("deliveries", "read"), ("publications",)
)
"""Topics with publications that no subscriber got."""

UNREAD: Final = TableView("unread_retained", TOPICS, ("retained", "publications"), ("read",), ("retained",))
"""Topics whose retained publications were never sent to a new subscriber or for a ReqUpdate."""

VIEWS: Final = (NEVER_MATCHED, NEVER_SUBSCRIBED, UNREAD)


class Fact(NamedTuple):
    """One fact to count. at: its time; None if the time does not matter. Each word is a string, empty for none."""

    table: str
    key: tuple[Value, ...]
    sums: tuple[int, ...]
    seq: int
    at: datetime | None
    firsts: tuple[str, ...] = ()


class _Counted:
    """A row while it is counted."""

    __slots__ = ("first", "first_time", "last_time", "sums")

    def __init__(self, fact: Fact) -> None:
        self.sums = list(fact.sums)
        self.first = (fact.seq, fact.firsts)
        self.first_time = self.last_time = fact.at

    def add(self, fact: Fact) -> None:
        for at, value in enumerate(fact.sums):
            self.sums[at] += value
        self.first = min(self.first, (fact.seq, fact.firsts))
        if fact.at is not None:
            self.first_time = fact.at if self.first_time is None else min(self.first_time, fact.at)
            self.last_time = fact.at if self.last_time is None else max(self.last_time, fact.at)


class TableCounts:
    """Facts, put together by table and key."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[tuple[Value, ...], _Counted]] = {table.name: {} for table in COUNTED}
        self._first: datetime | None = None
        self._last: datetime | None = None
        self.size = 0
        """How many rows there are."""

    def add(self, facts: Iterable[Fact]) -> None:
        """Count *facts*."""
        for fact in facts:
            if fact.table == SECONDS.name and not self._keeps_seconds(fact.at):
                continue
            rows = self._tables[fact.table]
            counted = rows.get(fact.key)
            if counted is None:
                rows[fact.key] = _Counted(fact)
                self.size += 1
            else:
                counted.add(fact)

    def _keeps_seconds(self, at: datetime | None) -> bool:
        """Whether seconds are still kept with a message at *at*. They are dropped once the capture is too long."""
        if at is None:
            return False
        self._first = at if self._first is None else min(self._first, at)
        self._last = at if self._last is None else max(self._last, at)
        if seconds_are_kept(self._first, self._last):
            return True
        self.size -= len(self._tables[SECONDS.name])
        self._tables[SECONDS.name] = {}
        return False

    def values(self, table: Table) -> Iterator[tuple[Value, ...]]:
        """The rows of *table* as tuples of its columns, in no order."""
        for key, row in self._tables[table.name].items():
            seq, firsts = row.first
            yield (*key, *row.sums, seq, row.first_time, row.last_time, *firsts)

    def rows(self, of: Table | TableView) -> list[Row]:
        """The rows of a table or a view, sorted: those with most first, then by key."""
        table = of.table if isinstance(of, TableView) else of
        found = (dict(zip(table.columns, values, strict=True)) for values in self.values(table))
        wanted = (row for row in found if of.has(row)) if isinstance(of, TableView) else found

        def place(row: Row) -> tuple[Any, ...]:
            return (*(-int(str(row[name])) for name in of.order), *(row[name] for name in table.keys))

        return sorted(wanted, key=place)
