"""The report as one page: what was not migrated and why first, then the trees and the commands.

Equal fates are one row. The page stays small whatever is migrated: each table ends at a number of characters, and says
which file beside the page has every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from markupsafe import Markup

from commands.pages import Cell, Column, ColumnKind, Figure, Section, Series, Severity, document, listing, table
from migrate.report.facts import folded, sentence
from rfh2.terminal_escape import printable

_MOST_CHARACTERS: Final = 90_000
"""Of one table, or of one listing: with ten of them the page is below 1 MB."""

_VERDICTS: Final = {"reported": Severity.BAD, "changed": Severity.WARNING, "migrated": Severity.GOOD}
_PHASES: Final = {
    "rehearse": "Rehearsal: nothing was changed.",
    "initial": "Initial phase: topic objects only. The results are those of the completion phase.",
    "complete": "Done.",
}
_COUNTED: Final = Series("items", "blue")
_REASONS: Final = "Results by reason"
_PROBLEMS: Final = "Known problems and differences"
_VISIBILITY: Final = "Subscriptions that receive other topics than before"
_COLLISIONS: Final = "Topics that were separate and are now one"
_ITEMS_FILE: Final = "items.csv has all of them."
_JSON_FILE: Final = "report.json has all of them."


def page(facts: dict[str, Any]) -> str:
    """The whole page. facts: of ``migrate.report.facts``."""
    lead = [
        f"{_PHASES[facts['phase']]} {facts['at']}, fingerprint {facts['fingerprint']}",
        f"Last record in the sources: {facts['sources_until'] or 'not known, they have no times'}",
        *(f"Options: {' '.join(facts['options'])}" for _ in range(bool(facts["options"]))),
    ]
    sections = [
        _warnings(facts),
        _reasons(facts),
        _problems(facts),
        _visibility(facts),
        _collisions(facts),
        *(_items(facts, verdict) for verdict in ("reported", "changed")),
        _kinds(facts),
        _trees(facts),
        _security(facts),
        _items(facts, "migrated"),
    ]
    heading = f"{facts['tool']}: {facts['broker']} to {facts['qmgr']}"
    return document(heading, lead, list(_figures(facts)), [each for each in sections if each.content])


def _figures(facts: dict[str, Any]) -> Iterator[Figure]:
    for verdict, severity in _VERDICTS.items():
        count = facts["counts"][verdict]
        left = facts["left_by_choice"]
        label = f"reported, {left:,} of them left by choice" if verdict == "reported" else verdict
        shown = severity if count else Severity.GOOD
        yield Figure(f"{count:,}", label, shown, _title(verdict))
    for label, found, section in (
        ("known problems", [each for each in facts["problems"] if not each["cared_for"]], _PROBLEMS),
        ("subscriptions receive other topics", facts["visibility"], _VISIBILITY),
        ("topics are now one", facts["collisions"], _COLLISIONS),
    ):
        yield Figure(f"{len(found):,}", label, Severity.WARNING if found else Severity.GOOD, section)
    yield Figure(f"{facts['items']:,}", "items", section="Items by kind")


def _title(verdict: str) -> str:
    return f"Items {verdict}"


def _warnings(facts: dict[str, Any]) -> Section:
    rows: list[list[Cell]] = [
        [reason["severity"], folded(reason["text"], reason["ids"])] for reason in facts["warnings"]
    ]
    columns = [Column("severity", ColumnKind.SEVERITY), Column("what")]
    return section("The migration as a whole", columns, rows, _JSON_FILE)


def _reasons(facts: dict[str, Any]) -> Section:
    """One row for all items with the same result, for the same reasons but for names."""
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], str] = {}
    for fate in facts["fates"]:
        key = (fate["verdict"], fate["kind"], _why(fate))
        counts[key] += 1
        first.setdefault(key, fate["label"])
    order = list(_VERDICTS)
    ranked = sorted(counts.items(), key=lambda item: (order.index(item[0][0]), -item[1]))
    rows: list[list[Cell]] = [
        [key[0], key[1], (count,), key[2] or "no remark", printable(first[key])] for key, count in ranked
    ]
    columns = [
        Column("result", ColumnKind.SEVERITY),
        Column("kind"),
        Column("items", ColumnKind.BARS, (_COUNTED,)),
        Column("why"),
        Column("first item", ColumnKind.CODE),
    ]
    return section(_REASONS, columns, rows, _JSON_FILE)


def _items(facts: dict[str, Any], verdict: str) -> Section:
    rows: Iterator[list[Cell]] = (
        [printable(fate["label"]), fate["source"], printable(fate["becomes"]), _why(fate)]
        for fate in facts["fates"]
        if fate["verdict"] == verdict
    )
    columns = [
        Column("item", ColumnKind.CODE),
        Column("source", ColumnKind.CODE),
        Column("becomes", ColumnKind.CODE),
        Column("why"),
    ]
    severity = Severity.NEUTRAL if verdict == "migrated" else _VERDICTS[verdict]
    varies = ("item", "source", "becomes")
    return section(_title(verdict), columns, rows, _ITEMS_FILE, severity, varies, facts["counts"][verdict])


def _problems(facts: dict[str, Any]) -> Section:
    columns = [Column("id"), Column("what"), Column("what to do"), Column("items")]
    rows: list[list[Cell]] = [
        [p["id"], p["title"], p["advice"], "avoided by the order of the steps" if p["cared_for"] else f"{p['count']:,}"]
        for p in facts["problems"]
    ]
    return section(_PROBLEMS, columns, rows, _JSON_FILE)


def _visibility(facts: dict[str, Any]) -> Section:
    columns = [
        Column("subscription", ColumnKind.NUMBER),
        Column("pattern", ColumnKind.CODE),
        Column("more", ColumnKind.CODE),
        Column("less", ColumnKind.CODE),
    ]
    rows: list[list[Cell]] = [
        [
            view["subscription"],
            printable(view["pattern"]),
            _some(view["gained"], view["gained_count"]),
            _some(view["lost"], view["lost_count"]),
        ]
        for view in facts["visibility"]
    ]
    varies = ("subscription", "pattern")
    return section(_VISIBILITY, columns, rows, _JSON_FILE, Severity.WARNING, varies)


def _collisions(facts: dict[str, Any]) -> Section:
    columns = [Column("topic string", ColumnKind.CODE), Column("from", ColumnKind.CODE)]
    rows: list[list[Cell]] = [
        [
            printable(each["topic_string"]),
            printable("; ".join(f"{stream}: {topic}" for stream, _, topic in each["topics"])),
        ]
        for each in facts["collisions"]
    ]
    return section(_COLLISIONS, columns, rows, _JSON_FILE, Severity.WARNING)


def _kinds(facts: dict[str, Any]) -> Section:
    columns = [Column("kind"), *(Column(verdict, ColumnKind.NUMBER) for verdict in _VERDICTS)]
    rows: list[list[Cell]] = [
        [kind, *(verdicts[verdict] for verdict in _VERDICTS)] for kind, verdicts in facts["by_kind"].items()
    ]
    return section("Items by kind", columns, rows, _JSON_FILE)


def _trees(facts: dict[str, Any]) -> Section:
    tree = Markup("<div><h3>{}</h3>{}</div>")
    trees = (tree.format(word.capitalize(), _listing(facts["tree"][word])) for word in ("before", "after"))
    return Section("Topic tree", Markup('<div class="columns">{}</div>').format(Markup().join(trees)))


def _security(facts: dict[str, Any]) -> Section:
    lines = facts["security"]
    return Section("Security commands", _listing(lines) if lines else Markup(), f"{len(lines):,}")


def _listing(lines: Sequence[str]) -> Markup:
    shown = [str(line) for (line,) in Budget().rows([line] for line in lines)]
    more = f"The first {len(shown):,} of {len(lines):,} lines. report.json has all of them."
    return listing(shown, more if len(shown) < len(lines) else "")


def section(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    rest: str,
    severity: Severity = Severity.NEUTRAL,
    varies: Sequence[str] = (),
    count: int | None = None,
) -> Section:
    """A section with a table of the first of *rows*, as many as fit. rest: where the others are.

    count: how many *rows* there are, where they are made one by one.
    """
    if count is None:
        rows = list(rows)
        count = len(rows)
    if not count:
        return Section(title, Markup())
    shown = list(Budget().rows(rows))
    return Section(title, table(columns, shown, varies=varies, count=count, rest=rest), f"{count:,}", severity)


class Budget:
    """Lets rows through until they have _MOST_CHARACTERS; a text that the table has already is free."""

    def __init__(self) -> None:
        self._known: set[Cell] = set()
        self._left = _MOST_CHARACTERS

    def rows(self, rows: Iterable[Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
        """The first of *rows*."""
        for row in rows:
            for cell in row:
                # The place of the text in the page's data takes room too.
                self._left -= 6
                if isinstance(cell, str) and cell not in self._known:
                    self._known.add(cell)
                    self._left -= len(cell)
            if self._left < 0:
                return
            yield row


def _why(fate: dict[str, Any]) -> str:
    """The reasons in sentences, without the item's own names, so that equal reasons are equal."""
    own = f"{fate['label']} {fate['becomes']}"
    return " ".join(
        sentence(f"{each['severity']}: {folded(each['text'], each['ids'], own)}") for each in fate["reasons"]
    )


def _some(topics: list[str], count: int) -> str:
    more = f", ... ({count:,})" if count > len(topics) else ""
    return ", ".join(map(printable, topics)) + more
