"""The queue manager behind the pages, read on threads: one for what is quick, one for what may take seconds.

A store is for one thread: each thread opens its own, and opens it again after a failure. Nothing that a page reads
holds up the processor.

What a browser asks of a page, read with limits; and what a page says that does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from commands.broker.authority import GroupsOf
from commands.config.home import Home
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listing import Listing, TopicLevels, Wanted
from commands.replay.step.timeline import Timeline
from commands.running.journal import where_it_works
from rfh2.errors import QPubSubError

_log: Final = logging.getLogger("qpubsub.console")

# What a queue manager did since the console was opened: increments of its totals, in periods of several lengths.

LENGTHS_S: Final = (5, 60, 900)
"""Lengths of the periods, in seconds."""

MOST_PERIODS: Final = 240
"""Periods that are kept of each length: 20 minutes, 4 hours, 2.5 days."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What one processor counted since it was started. since: when that was; another one counts from 0 again."""

    since: str | None
    counts: Mapping[str, int]


_NO_TALLY: Final = Tally(None, {})
_NONE: Final[Mapping[str, int]] = {}


class History:
    """The periods, of all lengths at once. Totals grow; what makes one smaller is not shown."""

    def __init__(self) -> None:
        self._before: dict[str, int] | None = None
        self._tally: Tally | None = None
        self._periods: dict[int, OrderedDict[datetime, dict[str, int]]] = {each: OrderedDict() for each in LENGTHS_S}

    def add(
        self, now: datetime, totals: Mapping[str, int], levels: Mapping[str, int] = _NONE, tally: Tally = _NO_TALLY
    ) -> None:
        """Take the totals at a moment. levels: values that are no totals; of each period the greatest is kept."""
        before, self._before = self._before, dict(totals)
        before = dict(totals) if before is None else before
        # A smaller total: what it belonged to was deleted. That is nobody's message.
        more = {name: max(total - before.get(name, total), 0) for name, total in totals.items()}
        last, self._tally = self._tally, tally
        if last is not None:
            begun = last.counts if last.since == tally.since else {}
            more |= {name: max(count - begun.get(name, 0), 0) for name, count in tally.counts.items()}
        for length_s, periods in self._periods.items():
            at = datetime.fromtimestamp(now.timestamp() // length_s * length_s, UTC)
            period = periods.setdefault(at, {})
            for name, increment in more.items():
                period[name] = period.get(name, 0) + increment
            for name, level in levels.items():
                period[name] = max(period.get(name, 0), level)
            # By time, and not by their number: a machine that slept leaves a gap.
            while next(iter(periods)) <= at - timedelta(seconds=length_s * MOST_PERIODS):
                periods.popitem(last=False)

    def periods(self, length_s: int, names: tuple[str, ...]) -> dict[datetime, tuple[int, ...]]:
        """By the start of each period, the increments of *names*. Raises KeyError for a length not in LENGTHS_S."""
        return {at: tuple(period.get(name, 0) for name in names) for at, period in self._periods[length_s].items()}


T = TypeVar("T")

SAMPLE_S: Final = 5.0
# Whoever puts a dead letter again waits for a button.
_PATIENCE_S: Final = 5.0
_OF_THE_PROCESSOR: Final = ("commands", "errors", "responses", "dead_letters")


def store_of_pages(home: Home, qmgr: str) -> QueueManagerStore:
    """The store of *qmgr*, for a thread that makes pages. Raises StoreError."""
    return QueueManagerStore.open(home, qmgr, patience_s=_PATIENCE_S)


@dataclass(frozen=True, slots=True)
class State:
    """What a page is made of. now: UTC. timeline: of the capture for time travel; None for none."""

    store: QueueManagerStore
    listing: Listing
    levels: TopicLevels
    history: History
    now: datetime
    groups_of: GroupsOf
    timeline: Timeline | None = None


class Source:
    """One queue manager. open_store: opens it anew. open_timeline: of a capture; None for none. Close it at the end."""

    def __init__(
        self,
        open_store: Callable[[], QueueManagerStore],
        groups_of: GroupsOf,
        open_timeline: Callable[[], AbstractContextManager[Timeline]] | None = None,
    ) -> None:
        self._open, self._groups_of, self._open_timeline = open_store, groups_of, open_timeline
        self._capture = ExitStack()
        self._timeline: Timeline | None = None
        self._threads = {slow: ThreadPoolExecutor(1, "console") for slow in (False, True)}
        self._here = threading.local()
        self.history = History()

    @property
    def has_timeline(self) -> bool:
        """Whether there is a capture for time travel."""
        return self._open_timeline is not None

    def prepare(self) -> None:
        """Open the capture, on the thread that will read it. Raises what that raises."""
        if self._open_timeline is not None:
            opened = self._threads[True].submit(self._capture.enter_context, self._open_timeline())
            self._timeline = opened.result()

    async def ask(self, question: Callable[[State], T], *, slow: bool = False) -> T:
        """The answer to *question*, on one of the threads. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads[slow], self._answer, question)

    async def sample(self) -> None:
        """Keep the history, until it is cancelled."""
        while True:
            try:
                await self.ask(sampled)
            except QPubSubError:
                pass  # whoever looks at a page is told
            except Exception as error:  # it goes on: a history that stands still looks like a queue manager that does
                _log.error("the history: %r", error, exc_info=error)
            await asyncio.sleep(SAMPLE_S)

    def close(self) -> None:
        """Give back the stores and end the threads."""
        self._threads[True].submit(self._capture.close).result()
        for threads in self._threads.values():
            threads.submit(self._forget).result()
            threads.shutdown()

    def _answer(self, question: Callable[[State], T]) -> T:
        listing: Listing | None = getattr(self._here, "listing", None)
        store: QueueManagerStore | None = getattr(self._here, "store", None)
        if store is None or listing is None:
            store = self._here.store = self._open()
            listing = self._here.listing = Listing(store)
        state = State(
            store, listing, TopicLevels(listing), self.history, datetime.now(UTC), self._groups_of, self._timeline
        )
        try:
            return question(state)
        except QPubSubError:
            self._forget()
            raise

    def _forget(self) -> None:
        store: QueueManagerStore | None = getattr(self._here, "store", None)
        self._here.store = self._here.listing = None
        if store is not None:
            store.close()


def sampled(state: State) -> None:
    """Add the present totals to the history."""
    seen = state.store.overview()
    status = where_it_works(state.store.database)["status"]
    done = status.get("done") or {}
    delivered = seen.totals.delivered
    totals = {
        "published": seen.totals.published.publications,
        "delivered": delivered.delivered,
        "filtered": delivered.filtered,
        "puts": sum(queue.counts.puts for queue in seen.queues),
        "gets": sum(queue.counts.gets for queue in seen.queues),
    }
    tally = Tally(status.get("started"), {name: done.get(name, 0) for name in _OF_THE_PROCESSOR})
    state.history.add(state.now, totals, {"depth": sum(queue.depth for queue in seen.queues)}, tally)


ROWS: Final = 100
"""Rows of one page of a list."""

# A topic string may have so many characters (guide: 10,240).
_LONGEST: Final = 10_240
_MOST_ROWS: Final = 10_000_000


class NotThereError(QPubSubError):
    """What a page is about does not exist. what: a sentence."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Query:
    """The values of an address or a form. Each is text; where one is no number or is too long, its default is taken."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = values or {}

    def has(self, name: str) -> bool:
        """Whether it is given, empty or not."""
        return name in self._values

    def text(self, name: str, most: int = _LONGEST) -> str:
        """The text, "" where it is not given, at most *most* characters."""
        return self._values.get(name, "")[:most]

    def optional(self, name: str) -> str | None:
        """The text; None where it is not given or empty."""
        return self.text(name) or None

    def number(self, name: str, default: int = 0, most: int = _MOST_ROWS) -> int:
        """A number from 0 to *most*."""
        text = self._values.get(name, "")
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) < 20 else default

    def wanted(self, sorts: tuple[str, ...], default: str) -> Wanted:
        """The page of a list. sorts: the columns that it can be sorted by; "-" before one is descending."""
        asked = self.text("sort") or default
        column = asked.removeprefix("-")
        sort = asked if column in sorts else default
        return Wanted(
            self.text("q"), sort.removeprefix("-"), sort.startswith("-"), self.number("first") // ROWS * ROWS, ROWS
        )


def pager(wanted: Wanted, count: int, shown: int) -> dict[str, int | str | None]:
    """What the template of a list needs to lead to the other pages."""
    return {
        "first": wanted.first,
        "last": wanted.first + shown,
        "count": count,
        "before": wanted.first - ROWS if wanted.first else None,
        "behind": wanted.first + ROWS if wanted.first + shown < count else None,
        "sort": f"-{wanted.sort}" if wanted.descending else wanted.sort,
        "q": wanted.search,
    }
