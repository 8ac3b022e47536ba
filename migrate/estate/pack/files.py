"""The files of a pack: written beside their places, row by row, and moved there when all are complete.

pack.html                   for the board: applications, losses first, brokers, collisions, runbook
runbook.md                  what is run in which order, rollback criteria, sign-off
applications/NAME.md        one page for the owner of an application
applications/NAME.csv       every item of it
SHA256SUMS                  for ``sha256sum -c``: what is signed is what was written
"""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import Final

from commands.config.home import Home
from commands.disk.files import make_directory, private
from commands.network.estate_file import Estate
from commands.pages import Cell, Column, ColumnKind, Figure, Section, Series, Severity, document, listing
from migrate.contents import SUMS, disk
from migrate.estate.overview import EstateOverview
from migrate.estate.pack.collecting import Applications, Impact, collect, ranked_over_all, runbook, summary
from migrate.estate.records import BrokerFiles, ItemRow, Record
from migrate.ledger import Result
from migrate.report.html import section
from migrate.report.outputs import harmless
from rfh2.terminal_escape import printable

PAGE: Final = "pack.html"
RUNBOOK: Final = "runbook.md"
APPLICATIONS: Final = "applications"
COLUMNS: Final = (
    "queue_manager",
    "wave",
    "kind",
    "number",
    "item",
    "source",
    "queue",
    "user",
    "program",
    "result",
    "becomes",
    "severity",
    "reasons",
    "ids",
)
_BUFFERED_ROWS: Final = 5_000


def write_pack(
    out: Path,
    found: EstateOverview,
    estate: Estate,
    home: Home,
    applications: Applications,
    now: datetime,
    advance: Callable[[int], None],
) -> Impact:
    """Write the pack to directory *out*. home: of the queue managers. advance: called with how many items were read.

    Raises MigrationError; an earlier pack is then as it was.
    """
    with disk(out, "; the pack was not written"):
        make_directory(out)
        staged = Path(tempfile.mkdtemp(prefix=".writing-", dir=out))
        try:
            tables = _Tables(staged, found)

            def sink(application: str, record: Record, row: ItemRow) -> None:
                tables.add(application, record, row)
                advance(1)

            impact = collect(found, lambda qmgr: BrokerFiles(estate.directory, qmgr), applications, sink)
            tables.flush()
            for application in impact.applications:
                name = tables.names[application.name]
                _write(staged / f"{name}.md", summary(application, impact, f"{Path(name).name}.csv"))
            book = runbook(impact, estate, home)
            _write(staged / RUNBOOK, book)
            _write(staged / PAGE, pack_page(impact, f"{now:%Y-%m-%d %H:%M:%S} UTC", tables.names, book))
            _write(staged / SUMS, "".join(_sums(staged)))
            _publish(staged, out)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return impact


class _Tables:
    """The CSV files of all applications; rows are collected and appended, for there may be many files.

    names: of each application, the names of its files without an ending.
    """

    def __init__(self, directory: Path, found: EstateOverview) -> None:
        self.names: dict[str, str] = {}
        self._directory, self._waves = directory, found.waves
        self._buffered: dict[str, list[list[str | int]]] = defaultdict(list)
        self._count = 0
        make_directory(directory / APPLICATIONS)

    def add(self, application: str, record: Record, row: ItemRow) -> None:
        """One item."""
        if application not in self.names:
            self.names[application] = self._new_name(application)
            self._buffered[application].append(list(COLUMNS))
        texts = (
            row.label,
            row.source,
            row.owner.queue,
            row.owner.user,
            row.owner.program,
            str(row.result),
            row.becomes,
            str(row.severity),
            "; ".join(reason.text for reason in row.reasons),
            " ".join(sorted({known for reason in row.reasons for known in reason.ids})),
        )
        place: list[str | int] = [record.qmgr, self._waves[record.qmgr], row.kind, row.number]
        self._buffered[application].append([*place, *map(harmless, texts)])
        self._count += 1
        if self._count % _BUFFERED_ROWS == 0:
            self.flush()

    def flush(self) -> None:
        """Append what was collected to the files."""
        for application, rows in self._buffered.items():
            path = self._directory / f"{self.names[application]}.csv"
            with open(path, "a", encoding="utf-8", errors="backslashreplace", newline="", opener=private) as file:
                csv.writer(file).writerows(rows)
        self._buffered.clear()

    def _new_name(self, application: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", application).strip("-")[:60] or "application"
        taken = {name.casefold() for name in self.names.values()}
        name, number = f"{APPLICATIONS}/{stem}", 2
        while name.casefold() in taken:
            name, number = f"{APPLICATIONS}/{stem}-{number}", number + 1
        return name


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", opener=private) as file:
        file.write(text)


def _sums(directory: Path) -> Iterator[str]:
    """A line for each file, as ``sha256sum`` reads it."""
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        yield f"{digest}  {path.relative_to(directory).as_posix()}\n"


def _publish(staged: Path, out: Path) -> None:
    """Move the files to their places. Those of applications that are no longer there go."""
    (out / SUMS).unlink(missing_ok=True)
    old = out / f".{APPLICATIONS}.old"
    shutil.rmtree(old, ignore_errors=True)
    if (out / APPLICATIONS).is_dir():
        (out / APPLICATIONS).rename(old)
    (staged / APPLICATIONS).rename(out / APPLICATIONS)
    shutil.rmtree(old, ignore_errors=True)
    for name in (RUNBOOK, PAGE, SUMS):
        (staged / name).replace(out / name)


# The pack as one page: applications with their losses, identical reasons folded, brokers, collisions, the runbook.
#
# The page stays below 1 MB whatever is migrated: a table ends at a number of characters and names the file with the
# rest.

_APPLICATIONS: Final = "Applications"
_REASONS: Final = "Losses and changes by reason"
_COLLISIONS: Final = "Collisions across brokers"
_BROKERS: Final = "Queue managers"
_COLOURS: Final = {
    Result.REFUSED: Series("refused", "red"),
    Result.CHANGED: Series("changed", "amber"),
    Result.LEFT: Series("left by choice", "violet"),
    Result.MIGRATED: Series("migrated", "green"),
}
_SEVERITIES: Final = {Result.REFUSED: Severity.BAD, Result.CHANGED: Severity.WARNING}


def pack_page(impact: Impact, made: str, names: Mapping[str, str], runbook: str) -> str:
    """The page. made: when, for a person. names: of each application's files, without an ending. runbook: its text."""
    sections = [
        _applications(impact, names),
        _reasons(impact),
        _collisions(impact),
        _brokers(impact),
        Section("Runbook, rollback criteria, sign-off", listing(runbook.splitlines())),
    ]
    lead = [f"Made {made} from the plans of {sum(bool(r.plan) for r in impact.overview.records)} brokers."]
    if impact.without_plan:
        lead.append(f"{len(impact.without_plan)} queue managers have no plan and are not in it.")
    return document(
        "Migration of the estate: change board", lead, list(_figures(impact)), [s for s in sections if s.content]
    )


def _figures(impact: Impact) -> Iterator[Figure]:
    for result, number in impact.sums.each():
        severity = _SEVERITIES.get(result, Severity.NEUTRAL) if number else Severity.GOOD
        yield Figure(f"{number:,}", _COLOURS[result].name, severity, _REASONS)
    yield Figure(f"{impact.sums.items:,}", "items", section=_APPLICATIONS)
    yield Figure(f"{len(impact.applications):,}", "applications", section=_APPLICATIONS)
    found = impact.overview.findings
    yield Figure(f"{len(found):,}", "collisions", Severity.WARNING if found else Severity.GOOD, _COLLISIONS)
    yield Figure(f"{len(impact.overview.records):,}", "queue managers", section=_BROKERS)


def _applications(impact: Impact, names: Mapping[str, str]) -> Section:
    columns = [
        Column("application"),
        Column("items", ColumnKind.BARS, tuple(_COLOURS[result] for result in Result)),
        *(Column(_COLOURS[result].name, ColumnKind.NUMBER) for result in Result),
        Column("queue managers", ColumnKind.NUMBER),
        Column("waves"),
        Column("files", ColumnKind.CODE),
    ]
    rows: list[list[Cell]] = []
    for each in impact.applications:
        numbers = tuple(each.results[result] for result in Result)
        waves = sorted({impact.overview.waves[qmgr] for qmgr in each.qmgrs})
        where = ", ".join(map(str, waves))
        name = names[each.name]
        rows.append([printable(each.name), numbers, *numbers, len(each.qmgrs), where, f"{name}.md, {name}.csv"])
    return section(_APPLICATIONS, columns, rows, "The directory applications has a summary of each.")


def _reasons(impact: Impact) -> Section:
    columns = [
        Column("result", ColumnKind.SEVERITY),
        Column("application"),
        Column("kind"),
        Column("items", ColumnKind.NUMBER),
        Column("queue managers", ColumnKind.NUMBER),
        Column("why"),
        Column("first item", ColumnKind.CODE),
    ]
    rows: list[list[Cell]] = [
        [
            str(key.result),
            printable(name),
            key.kind,
            counted.count,
            len(counted.qmgrs),
            key.why or "no remark",
            printable(counted.first),
        ]
        for name, key, counted in ranked_over_all(impact.applications)
    ]
    return section(_REASONS, columns, rows, "The CSV files of the applications have every item with its reasons.")


def _collisions(impact: Impact) -> Section:
    columns = [Column("severity", ColumnKind.SEVERITY), Column("kind"), Column("what"), Column("what to do")]
    rows: list[list[Cell]] = [
        [str(each.severity), each.kind, printable(each.text), each.advice] for each in impact.overview.findings
    ]
    return section(_COLLISIONS, columns, rows, "qpubsub estate status --json has all of them.", Severity.WARNING)


def _brokers(impact: Impact) -> Section:
    columns = [
        Column("wave", ColumnKind.NUMBER),
        Column("queue manager", ColumnKind.CODE),
        Column("state"),
        Column("outcome"),
        *(Column(_COLOURS[result].name, ColumnKind.NUMBER) for result in Result),
        Column("plan", ColumnKind.NUMBER),
    ]
    rows: list[list[Cell]] = [
        [
            impact.overview.waves[record.qmgr],
            record.qmgr,
            str(record.state),
            str(record.outcome) if record.plan else "",
            *(number for _, number in record.sums.each()),
            record.plan,
        ]
        for record in impact.overview.records
    ]
    return section(_BROKERS, columns, rows, "qpubsub estate status --json has all of them.")
