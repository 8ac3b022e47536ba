"""The files of a migration in one directory: the report in its three forms, the scripts, the runbook.

They are written whole, beside their places, before anything is changed, and moved to their places afterwards: a disk
that is full or read-only is found while there is nothing to lose. The last one to be moved is SHA256SUMS, which is the
first one to be removed when a later run replaces the files: where it is, the files are those of one run.

Every item of a migration with its fate, as CSV: one row each, for a spreadsheet or a script.

The report as JSON: one object, with each item on a line of its own, last.

The report for a terminal: totals, items that a person must handle, problems with what to do, the trees.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from commands.terminal.counted import counted
from migrate.contents import Content, encoded_lines
from migrate.plan_files import PlanFiles
from migrate.report.html import page
from rfh2.terminal_escape import one_line, printable

_SHOWN_ITEMS = 40
_SHOWN_LINES = 60
_PHASES = {
    "rehearse": "rehearsal, nothing was changed",
    "initial": "initial phase, topic objects only; the fates are those of the completion phase",
    "complete": "done",
}
_OUTCOMES = {
    "refused": "a run is refused; see the errors below",
    "lost": "something is not in the new state, or is lost unless a person acts; see the items below",
    "changed": "everything is there, and something has another meaning than before; see the items below",
    "warned": "everything is there and means the same; read the warnings",
    "done": "everything is there and means the same",
}


def outline(facts: dict[str, Any], as_json: bool) -> Iterator[str]:
    """The lines of the report; one line of JSON where that is asked for. facts: of ``migrate.report.facts``."""
    if as_json:
        yield json_object(facts)
        return
    yield from text(facts)


def text(facts: dict[str, Any], limit: int | None = _SHOWN_ITEMS) -> Iterator[str]:
    """*facts* for a person. limit: how many items are listed, None for all."""
    return map(one_line, _text(facts, limit))


def _text(facts: dict[str, Any], limit: int | None) -> Iterator[str]:
    yield f"{facts['tool']}: broker {facts['broker']} to queue manager {facts['qmgr']} ({_PHASES[facts['phase']]})"
    yield f"Last record in the sources: {facts['sources_until'] or 'not known, they have no times'}"
    counts = facts["counts"]
    yield (
        f"{counted(facts['items'], 'item')}: {counts['migrated']} migrated, {counts['changed']} changed, "
        f"{counts['reported']} reported"
    )
    if counts["reported"]:
        left = facts["left_by_choice"]
        yield f"Reported: {counts['reported'] - left} refused, each with its reason, {left} left by choice"
    yield f"Outcome: {_OUTCOMES[facts['outcome']]}"
    yield ""
    yield f"{'':16}{'migrated':>10}{'changed':>10}{'reported':>10}"
    for kind, verdicts in facts["by_kind"].items():
        yield f"{kind:16}{verdicts['migrated']:>10}{verdicts['changed']:>10}{verdicts['reported']:>10}"
    yield from _warnings(facts)
    yield from _items(facts, limit)
    yield from _problems(facts)
    yield from _views(facts)
    yield from _trees(facts)


def _warnings(facts: dict[str, Any]) -> Iterator[str]:
    if facts["warnings"]:
        yield ""
        yield "The migration as a whole:"
        for reason in facts["warnings"]:
            yield f"  {reason['severity']}: {reason['text']}{_ids(reason)}"


def _items(facts: dict[str, Any], limit: int | None) -> Iterator[str]:
    for verdict, heading in (("reported", "Reported, not migrated:"), ("changed", "Changed:")):
        count = facts["counts"][verdict]
        if not count:
            continue
        yield ""
        yield heading
        for fate in islice((each for each in facts["fates"] if each["verdict"] == verdict), limit):
            yield f"  {printable(fate['label'])}  ({fate['source']})"
            for reason in fate["reasons"]:
                yield f"    {reason['severity']}: {printable(reason['text'])}{_ids(reason)}"
        if limit is not None and count > limit:
            yield f"  ... and {count - limit} more: items.csv and report.json of the report have all of them"


def _problems(facts: dict[str, Any]) -> Iterator[str]:
    named = [problem for problem in facts["problems"] if not problem["cared_for"]]
    if named:
        yield ""
        yield "Known problems and differences:"
        for problem in named:
            yield f"  {problem['id']} {problem['title']} ({problem['count']})"
            yield f"      {problem['advice']}"
    cared = [problem["id"] for problem in facts["problems"] if problem["cared_for"]]
    if cared:
        yield f"  Avoided by the order of the steps: {', '.join(cared)}"


def _views(facts: dict[str, Any]) -> Iterator[str]:
    if facts["visibility"]:
        yield ""
        yield "Subscriptions that receive other topics than before:"
        for view in facts["visibility"][:_SHOWN_ITEMS]:
            yield f"  [{view['subscription']}] {printable(view['pattern'])}"
            if view["gained"]:
                yield f"      more ({view['gained_count']}): {', '.join(map(printable, view['gained']))}"
            if view["lost"]:
                yield f"      less ({view['lost_count']}): {', '.join(map(printable, view['lost']))}"
    if facts["collisions"]:
        yield ""
        yield "Topics that were separate and are now one:"
        for collision in facts["collisions"][:_SHOWN_ITEMS]:
            which = "; ".join(f"{stream}: {topic}" for stream, _, topic in collision["topics"])
            yield f"  {printable(collision['topic_string'])}  from {printable(which)}"


def _trees(facts: dict[str, Any]) -> Iterator[str]:
    for word in ("before", "after"):
        lines = facts["tree"][word]
        yield ""
        yield f"Topic tree {word}:"
        yield from (f"  {line}" for line in lines[:_SHOWN_LINES])
        if len(lines) > _SHOWN_LINES:
            yield f"  ... and {len(lines) - _SHOWN_LINES} more lines"


def _ids(reason: dict[str, Any]) -> str:
    return f" [{' '.join(reason['ids'])}]" if reason["ids"] else ""


_EMPTY: Final = "[]\n}"


def json_lines(facts: dict[str, Any]) -> Iterator[str]:
    """The lines with their ends. facts: of ``migrate.report.facts``."""
    rest = {name: value for name, value in facts.items() if name != "fates"}
    head = json.dumps(rest | {"fates": []}, ensure_ascii=False, indent=1)
    yield head.removesuffix(_EMPTY) + "["
    before = "\n  "
    for fate in facts["fates"]:
        yield before + json.dumps(fate, ensure_ascii=False)
        before = ",\n  "
    yield "\n ]\n}\n"


def json_object(facts: dict[str, Any]) -> str:
    """The same on one line."""
    rest = {name: value for name, value in facts.items() if name != "fates"}
    fates = ", ".join(json.dumps(fate, ensure_ascii=False) for fate in facts["fates"])
    return f'{json.dumps({"format": 1, **rest}, ensure_ascii=False).removesuffix("}")}, "fates": [{fates}]}}'


COLUMNS: Final = ("kind", "number", "item", "source", "result", "becomes", "severity", "reasons", "ids")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def items_csv(facts: dict[str, Any]) -> Iterator[str]:
    """The rows of *facts*, with a head. Text that a spreadsheet would take for a formula begins with an apostrophe."""
    row = csv.writer(_Echo()).writerow
    yield row(COLUMNS)
    for fate in facts["fates"]:
        reasons = fate["reasons"]
        severities = [reason["severity"] for reason in reasons]
        worst = next((word for word in ("error", "warning", "info") if word in severities), "")
        ids = sorted({known for reason in reasons for known in reason["ids"]})
        texts = "; ".join(reason["text"] for reason in reasons)
        cells = (fate["label"], fate["source"], fate["verdict"], fate["becomes"], worst, texts, " ".join(ids))
        yield row([fate["kind"], fate["number"], *map(harmless, cells)])


class _Echo:
    """A file for ``csv.writer``, whose writerow gives what write gives."""

    def write(self, text: str) -> str:
        return text


def harmless(text: str) -> str:
    """*text* that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


TEXT_ITEMS = 500
"""How many items of each result report.txt lists, so that it stays below 1 MB; items.csv has every item."""


def report_contents(facts: dict[str, Any]) -> dict[str, Content]:
    """The report in its three forms, and a table of all items, by file name."""
    return {
        "report.json": lambda: encoded_lines(json_lines(facts)),
        "report.txt": lambda: encoded_lines(f"{line}\n" for line in text(facts, TEXT_ITEMS)),
        "report.html": page(facts).encode(),
        "items.csv": lambda: encoded_lines(items_csv(facts), errors="backslashreplace"),
    }


def encoded(files: PlanFiles, runbooks: Mapping[str, str]) -> dict[str, Content]:
    """The contents of *files* and *runbooks*, by file name."""
    contents: dict[str, str | Content] = {**files.contents, **runbooks}
    return {name: each.encode() if isinstance(each, str) else each for name, each in contents.items()}
