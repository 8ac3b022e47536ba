"""One page of Markdown for the owner of one application: numbers, what is lost and why, where, how it is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.estate.pack.collecting import ApplicationImpact, Impact
from migrate.estate.pack.runbook import accepted, rollback_criteria, sign_off
from migrate.estate.totals import Result
from migrate.runbooks.markdown import document, plain

_REASONS: Final = 15
_QMGRS: Final = 20
_CHARACTERS: Final = 240


def summary(application: ApplicationImpact, impact: Impact, csv_name: str) -> str:
    """The page. csv_name: of the file with every item."""
    return document(_lines(application, impact, csv_name))


def _lines(application: ApplicationImpact, impact: Impact, csv_name: str) -> Iterator[str]:
    sums, waves = application.sums, impact.overview.waves
    yield f"# {plain(application.name)}"
    yield ""
    yield "| items | refused | changed | left by choice | migrated |"
    yield "|---|---|---|---|---|"
    yield f"| {sums.items:,} | {sums.refused:,} | {sums.changed:,} | {sums.left:,} | {sums.migrated:,} |"
    yield ""
    yield "Refused items are not there afterwards. Changed items are there, and work otherwise or have another name."
    yield f"Every item is in {plain(csv_name)}."
    yield ""
    yield "## What is lost or needs a person"
    yield ""
    losses = application.losses
    if not losses:
        yield "Nothing."
    for key, counted in losses[:_REASONS]:
        yield f"- {counted.count:,} {plain(key.kind)}, {key.result}: {plain(_short(key.why))}"
    if len(losses) > _REASONS:
        rest = sum(counted.count for _, counted in losses[_REASONS:])
        yield f"- {rest:,} items for {len(losses) - _REASONS} more reasons: see {plain(csv_name)}"
    others = [each for each in application.ranked if each[0].result is Result.CHANGED and each not in losses]
    if others:
        yield ""
        yield "## What has another name or place, with no effect on programs"
        yield ""
        for key, counted in others[:_REASONS]:
            yield f"- {counted.count:,} {plain(key.kind)}: {plain(_short(key.why))}"
    yield ""
    yield "## Where and when"
    yield ""
    ordered = sorted(application.qmgrs.items(), key=lambda each: (waves[each[0]], each[0]))
    for qmgr, count in ordered[:_QMGRS]:
        yield f"- wave {waves[qmgr]}: {plain(qmgr)}, {count:,} items"
    if len(ordered) > _QMGRS:
        yield f"- and {len(ordered) - _QMGRS} more queue managers: see {plain(csv_name)}"
    yield ""
    yield "## When it is taken back"
    yield ""
    yield from (f"- {each}" for each in rollback_criteria(impact))
    yield ""
    yield "## Sign-off"
    yield ""
    yield from sign_off(accepted(application))


def _short(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"
