"""An analysis summed up for people: the sections that are asked for, each with its first rows.

It has the likeliest reason why a subscription never got anything, by the tables alone. They do not say when each
publication was made, so this is a guess that needs no second replay; ``qpubsub why`` knows. Both engines have the same
tables, and so the same guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel

from commands.broker.times import EPOCH
from commands.explain.why import Reason
from commands.explain.why.near import first_near_misses
from commands.model import RegOpt
from commands.replay.analysis import tables
from commands.replay.periods import PeriodCounts
from rfh2.constants import REASON_NAMES
from streams.index import SubscriptionIndex
from streams.patterns import add_pattern_prefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR

LIKELY_REASON: Final = "likely_reason"
LIKELY_DETAIL: Final = "likely_detail"
MOST_TOPICS: Final = 100_000
"""So many topics, those with most publications, are compared with the subscriptions."""

_Guess = tuple[str, str]


def with_likely_reasons(subscriptions: Sequence[tables.Row], topics: Sequence[tables.Row]) -> list[tables.Row]:
    """The rows of ``never_matched``, each with a reason of ``qpubsub why`` and its sentence."""
    guesses: dict[str, dict[str, _Guess]] = {}
    topics_of = _by_qmgr(topics)
    for qmgr, ours in _by_qmgr(subscriptions).items():
        guesses[qmgr] = dict(_guesses(ours, topics_of.get(qmgr, ())))
    found = []
    for row in subscriptions:
        reason, detail = guesses[str(row["qmgr"])][str(row["sub_id"])]
        found.append({**row, LIKELY_REASON: reason, LIKELY_DETAIL: detail})
    return found


def _by_qmgr(rows: Sequence[tables.Row]) -> dict[str, list[tables.Row]]:
    found: dict[str, list[tables.Row]] = {}
    for row in rows:
        found.setdefault(str(row["qmgr"]), []).append(row)
    return found


def _guesses(rows: Sequence[tables.Row], topics: Sequence[tables.Row]) -> Iterator[tuple[str, _Guess]]:
    """Of one queue manager: sub_id, and the guess."""
    subscriptions = {str(row["sub_id"]): _subscription(row) for row in rows}
    selected = _selected(subscriptions.values(), topics)
    published = [str(topic["topic"]) for topic in topics if topic["publications"]]
    near = first_near_misses(list(subscriptions.values()), published, elsewhere=True)
    for row in rows:
        sub_id = str(row["sub_id"])
        topic = selected.get(sub_id)
        if RegOpt.PUB_ON_REQ_ONLY.value in str(row["options"]).split():
            yield sub_id, (Reason.REQUEST_ONLY.value, "it is registered with PubOnReqOnly")
        elif topic is not None:
            yield sub_id, _kept_back(row, topic)
        elif (miss := near.get(bytes.fromhex(sub_id))) is not None:
            yield sub_id, (miss.reason.value, miss.why)
        else:
            yield sub_id, (Reason.NO_MATCH.value, "nothing was published on a topic that it selects")


def _kept_back(row: tables.Row, topic: tables.Row) -> _Guess:
    """Why a topic that the subscription selects did not reach it."""
    published, registered = topic["last_time"], row["first_time"]
    if isinstance(published, datetime) and isinstance(registered, datetime) and published < registered:
        return Reason.NO_MATCH.value, f"{topic['topic']!r} was published on only before the subscription was registered"
    if row["filter"]:
        return Reason.FILTER.value, f"the filter {row['filter']} excluded what was published on {topic['topic']!r}"
    return "", f"what was published on {topic['topic']!r} was kept back: qpubsub why says by which rule"


def _subscription(row: tables.Row) -> Subscription:
    topic_string, written = str(row["topic_string"]), str(row["topic"])
    # The prefix of a stream or a subscription point has no character that an escape would change, or nearly never.
    prefix = topic_string.removesuffix(f"{SEPARATOR}{written}") if topic_string != written else ""
    scheme = WildcardScheme(str(row["wildcards"]))
    if add_pattern_prefix(prefix, written, scheme) != topic_string:
        prefix = ""
    return Subscription(
        bytes.fromhex(str(row["sub_id"])),
        topic_string,
        str(row["subscriber"]),
        "",
        EPOCH,
        wildcard=scheme,
        prefix=prefix,
        stream=str(row["stream"]) or None,
        sub_point=str(row["sub_point"]) or None,
    )


def _selected(subscriptions: Iterable[Subscription], topics: Iterable[tables.Row]) -> dict[str, tables.Row]:
    """By sub_id the topic, of those that a subscription selects, on which something was published last."""
    index = SubscriptionIndex(1)
    for subscription in subscriptions:
        index.add(subscription)
    found: dict[str, tables.Row] = {}
    for topic in topics:
        if not topic["publications"]:
            continue
        for subscription in index.match_uncached(str(topic["topic"])):
            sub_id = subscription.sub_id.hex()
            if sub_id not in found or _time(found[sub_id]) < _time(topic):
                found[sub_id] = topic
    return found


def _time(topic: tables.Row) -> datetime:
    time = topic["last_time"]
    return time if isinstance(time, datetime) else EPOCH


@dataclass(frozen=True, slots=True)
class Asked:
    """A section that a report has.

    shown: the columns that a person sees, in order. bar: the one to draw; empty for none. label: the columns that say
    what a bar is for, beside the queue manager. nothing: what to say of no rows.
    """

    title: str
    of: tables.Table | tables.TableView
    shown: tuple[str, ...]
    bar: str
    label: tuple[str, ...]
    nothing: str

    @property
    def table(self) -> tables.Table:
        """The table that its rows are from."""
        return self.of.table if isinstance(self.of, tables.TableView) else self.of


SECTIONS: Final = (
    Asked(
        "Queue managers",
        tables.QMGRS,
        ("qmgr", "messages", "publications", "deliveries", "errors"),
        "messages",
        (),
        "none",
    ),
    Asked(
        "Traffic by stream",
        tables.STREAMS,
        ("qmgr", "queue", "messages", "bytes", "publications", "deliveries", "errors"),
        "messages",
        ("queue",),
        "none",
    ),
    Asked(
        "Traffic by topic",
        tables.TOPICS,
        ("qmgr", "topic", "publications", "bytes", "deliveries", "retained", "read"),
        "publications",
        ("topic",),
        "nothing was published",
    ),
    Asked(
        "Traffic by application",
        tables.APPLICATIONS,
        ("qmgr", "application", "user", "messages", "publications", "registrations", "requests", "errors"),
        "messages",
        ("application", "user"),
        "none",
    ),
    Asked(
        "Subscriptions never matched",
        tables.NEVER_MATCHED,
        ("qmgr", "subscriber", "topic", "sub_name", "user", LIKELY_REASON, "first_seq"),
        "",
        (),
        "every subscription got a publication",
    ),
    Asked(
        "Topics never subscribed",
        tables.NEVER_SUBSCRIBED,
        ("qmgr", "topic", "publications", "bytes", "queue"),
        "publications",
        ("topic",),
        "every topic with publications has a subscriber that got them",
    ),
    Asked(
        "Duplicate deliveries from overlapping subscriptions",
        tables.DUPLICATES,
        ("qmgr", "subscriber", "subscriptions", "publications", "extra", "topic"),
        "extra",
        ("subscriber",),
        "no subscriber got a publication twice",
    ),
    Asked(
        "Retained publications that no program reads",
        tables.UNREAD,
        ("qmgr", "topic", "retained", "bytes", "deliveries", "last_time"),
        "retained",
        ("topic",),
        "every retained publication was read",
    ),
    Asked(
        "Errors and warnings by reason",
        tables.REASONS,
        ("completion", "reason", "command", "count", "answered", "dead_letters", "first_seq"),
        "count",
        ("reason", "command"),
        "none",
    ),
    Asked(
        "Errors and warnings by program",
        tables.ERRORS,
        (
            "qmgr",
            "reason",
            "application",
            "user",
            "command",
            "count",
            "answered",
            "dead_letters",
            "first_seq",
        ),
        "count",
        ("reason", "application", "user"),
        "none",
    ),
)
"""The sections of a report, in order."""


def columns_of(asked: Asked) -> tuple[str, ...]:
    """All columns of the rows of a section."""
    return (*asked.table.columns, *((LIKELY_REASON, LIKELY_DETAIL) if asked.of is tables.NEVER_MATCHED else ()))


class Section(BaseModel, frozen=True):
    """One section: the first rows, and how many there are. name: of its table, or of its view."""

    name: str
    title: str
    count: int
    rows: tuple[tables.Row, ...]


class AnalysisPeriod(BaseModel, frozen=True):
    """Traffic of a stretch of captured time that begins at *start*."""

    start: datetime
    messages: int
    publications: int
    deliveries: int
    errors: int


class AnalysisReport(BaseModel, frozen=True):
    """What is in a capture. semantics: under which it was replayed.

    timeline: periods of *period_s* seconds (``commands.replay.periods``); those without a message are left out.
    """

    semantics: str
    messages: int
    first_time: datetime | None
    last_time: datetime | None
    sections: tuple[Section, ...]
    timeline: tuple[AnalysisPeriod, ...]
    period_s: int

    def section(self, name: str) -> Section:
        """The section of that name. Raises KeyError."""
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)


Look = Callable[[tables.Table | tables.TableView, int | None], tuple[int, Sequence[tables.Row]]]
"""How many rows a table or a view has, and the first so many of them (None: all), sorted."""


def report_of(look: Look, semantics: str, most: int) -> AnalysisReport:
    """The report, with *most* rows in each section at most."""
    sections = []
    for asked in SECTIONS:
        count, rows = look(asked.of, most)
        if asked.of is tables.NEVER_MATCHED and rows:
            rows = with_likely_reasons(rows, look(tables.TOPICS, MOST_TOPICS)[1])
        sections.append(Section(name=asked.of.name, title=asked.title, count=count, rows=tuple(rows)))
    qmgrs = look(tables.QMGRS, None)[1]
    times = [row[name] for row in qmgrs for name in ("first_time", "last_time")]
    known = [time for time in times if isinstance(time, datetime)]
    length, timeline = _timeline(look)
    return AnalysisReport(
        semantics=semantics,
        messages=sum(_number(row, "messages") for row in qmgrs),
        first_time=min(known, default=None),
        last_time=max(known, default=None),
        sections=tuple(sections),
        timeline=timeline,
        period_s=length,
    )


def _timeline(look: Look) -> tuple[int, tuple[AnalysisPeriod, ...]]:
    rows = look(tables.MINUTES, None)[1]
    moments = [moment for row in rows if isinstance(moment := row["minute"], datetime)]
    if moments and tables.seconds_are_kept(min(moments), max(moments)):
        rows = look(tables.SECONDS, None)[1]
        moments = [moment for row in rows if isinstance(moment := row["second"], datetime)]
    counts = PeriodCounts(len(tables.MINUTES.sums))
    for moment, row in zip(moments, rows, strict=True):
        counts.add(moment, [_number(row, name) for name in tables.MINUTES.sums])
    return counts.length_s, tuple(
        AnalysisPeriod(start=start, **dict(zip(tables.MINUTES.sums, sums, strict=True)))
        for start, sums in counts.periods().items()
    )


def _number(row: tables.Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


# The report for a terminal.

_MOST_LINES: Final = 10
_COLUMNS: Final = 100
_LEAST_COLUMNS: Final = 60
_GAP: Final = 2

HEADS: Final = {
    "qmgr": "qmgr",
    "sub_name": "name",
    "sub_point": "sub. point",
    LIKELY_REASON: "likely",
    LIKELY_DETAIL: "why",
    "first_seq": "first",
    "last_time": "last",
    "registrations": "RegSub",
    "deregistrations": "DeregSub",
    "requests": "ReqUpdate",
    "deletions": "DeletePub",
    "dead_letters": "dead",
}
"""Heads of columns, if the name of the column is too short or too long."""


def lines_of(report: AnalysisReport, columns: int | None = None) -> Iterator[str]:
    """The report, line by line. columns: of the window; tables use all of them, and 100 where there is no window."""
    when = (
        f", {cell_text(report.first_time)} to {cell_text(report.last_time)} UTC"
        if report.first_time is not None
        else ""
    )
    yield f"{report.messages:,} messages{when}, under version {report.semantics.removeprefix('v')}"
    several = len(report.section("qmgrs").rows) > 1
    for asked in SECTIONS:
        section = report.section(asked.of.name)
        yield ""
        yield f"{asked.title}: {f'{section.count:,}' if section.count else asked.nothing}"
        yield from _table(asked, section, several, max(columns or _COLUMNS, _LEAST_COLUMNS))


def shown_columns(asked: Asked, several: bool) -> tuple[str, ...]:
    """The columns of a section that are shown: the queue manager only where there are several."""
    return tuple(name for name in asked.shown if several or name != "qmgr" or asked.of.name == "qmgrs")


def _table(asked: Asked, section: Section, several: bool, columns_there: int) -> Iterator[str]:
    if not section.rows:
        return
    names = shown_columns(asked, several)
    rows = section.rows[:_MOST_LINES]
    columns = [[HEADS.get(name, name), *(cell_text(row[name], name) for row in rows)] for name in names]
    numeric = [asked.table.columns.get(name) is int and name != "reason" for name in names]
    widths = _fitting([max(map(len, column)) for column in columns], numeric, columns_there)
    for line in zip(*columns, strict=True):
        yield " " * _GAP + _line(line, widths, numeric)
    if section.count > len(rows):
        yield f"  and {section.count - len(rows):,} more"


def _fitting(widths: list[int], numeric: Sequence[bool], columns: int) -> list[int]:
    """*widths*, with the widest columns of words made narrower until a line has room."""
    words = [at for at, number in enumerate(numeric) if not number]
    too_much = sum(widths) + _GAP * len(widths) - columns
    for _ in range(too_much if words else 0):
        widths[max(words, key=lambda at: widths[at])] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = (
        f"{cell:>{width}}" if number else f"{cut(cell, width):<{width}}"
        for cell, width, number in zip(cells, widths, numeric, strict=True)
    )
    return (" " * _GAP).join(aligned).rstrip()


# Values of a report as text.


def cell_text(value: str | int | datetime | None, name: str = "") -> str:
    """A value for people. name: of its column; a reason code is followed by its name."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, str):
        return value
    if name == "reason":
        return f"{value} {REASON_NAMES.get(value, '')}".rstrip()
    if name == "first_seq":
        return "setup" if value < 0 else str(value)
    return f"{value:,}"


def cut(text: str, width: int) -> str:
    """*text*; if it is wider, its middle is cut, because the end of a topic matters as much as its beginning."""
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[-end:]}"
