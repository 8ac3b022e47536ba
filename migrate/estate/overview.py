"""The whole estate at one moment: each broker with its state, the sums, what collides, the topic strings in use.

The estate for a terminal: a line for each broker, the sums, and what collides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from commands.network.estate_file import Estate, EstateQueueManager
from migrate.contents import unpacked
from migrate.estate.collisions import (
    Crossing,
    EstateFinding,
    estate_findings,
    prefixes_in_use,
    proposed_prefixes,
    some,
)
from migrate.estate.jobs import BrokerResult
from migrate.estate.records import PLANS, TOPICS, WORK, BrokerFiles, BrokerState, Record
from migrate.ledger import Severity, Sums, total
from migrate.plan import Outcome
from rfh2.terminal_escape import one_line, printable

_OF_CONCERN = frozenset({Outcome.LOST, Outcome.CHANGED, Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class EstateOverview:
    """records: in the order of waves. waves: of each queue manager. findings: collisions, errors first.

    prefixes: of each stream, one or several topic strings. proposed: for streams that collide.
    """

    records: tuple[Record, ...]
    waves: Mapping[str, int]
    findings: tuple[EstateFinding, ...]
    prefixes: Mapping[str, tuple[str, ...]]
    proposed: Mapping[str, str]

    @property
    def sums(self) -> Sums:
        """Of all brokers that were planned."""
        return total(record.sums for record in self.records)

    def by_state(self) -> dict[BrokerState, tuple[int, Sums]]:
        """For each state how many brokers have it, and their items; together these are all brokers and all items."""
        found = {}
        for state in BrokerState:
            there = [record.sums for record in self.records if record.state is state]
            found[state] = (len(there), total(there))
        return found

    @property
    def needs_a_person(self) -> bool:
        """Whether something is lost, changed in meaning, refused or collides."""
        return any(finding.severity is not Severity.INFO for finding in self.findings) or any(
            record.plan and (record.outcome in _OF_CONCERN or record.said) for record in self.records
        )


def overview(estate: Estate, records: Iterable[Record]) -> EstateOverview:
    """The overview of brokers with these records."""
    known = {record.qmgr: record for record in records}
    waves = {each.name: each.wave for each in estate.queue_managers}
    ordered = sorted(known.values(), key=lambda record: waves[record.qmgr])

    @lru_cache(maxsize=4)
    def topics(qmgr: str) -> tuple[str, ...]:
        return tuple(unpacked(BrokerFiles(estate.directory, qmgr).plan(known[qmgr].plan) / TOPICS))

    crossing = Crossing(
        {record.qmgr: record.survey for record in ordered if record.plan},
        estate.networks(),
        {each.name: each.parent for each in estate.queue_managers},
        estate.migration.prefixes,
        topics,
    )
    is_planned_whole = all(record.plan for record in ordered)
    findings = [
        each for each in estate_findings(crossing) if is_planned_whole or not each.text.startswith("[migration]")
    ]
    return EstateOverview(
        tuple(ordered),
        waves,
        tuple(findings),
        prefixes_in_use(crossing),
        proposed_prefixes(crossing, findings),
    )


def as_json(found: EstateOverview) -> dict[str, Any]:
    """Everything as JSON values."""
    return {
        "queue_managers": [
            record.model_dump(mode="json", exclude={"survey"}) | {"wave": found.waves[record.qmgr]}
            for record in found.records
        ],
        "states": {
            str(state): {"brokers": brokers, **sums.model_dump()} for state, (brokers, sums) in found.by_state().items()
        },
        "sums": found.sums.model_dump(),
        "findings": [finding_json(finding) for finding in found.findings],
        "prefixes": {stream: list(each) for stream, each in found.prefixes.items()},
        "proposed_prefixes": dict(found.proposed),
    }


def finding_json(finding: EstateFinding) -> dict[str, Any]:
    """A collision as JSON values."""
    return {
        "kind": finding.kind,
        "severity": str(finding.severity),
        "text": finding.text,
        "advice": finding.advice,
        "queue_managers": list(finding.qmgrs),
        "stream": finding.stream or None,
    }


_SHOWN_FINDINGS: Final = 40
_SHOWN_LINES: Final = 10
_MANY: Final = 40
_COLUMNS: Final = ("items", "migrated", "changed", "refused", "left")
_TO_LOOK_AT: Final = {
    Outcome.REFUSED: "refused",
    Outcome.LOST: "losses",
    Outcome.CHANGED: "other meanings",
    Outcome.WARNED: "warnings",
    Outcome.DONE: "nothing",
}


def of_overview(found: EstateOverview, chosen: Iterable[EstateQueueManager], with_collisions: bool) -> Iterator[str]:
    """The lines of *found*. chosen: the brokers that have a line; the sums are those of all."""
    return map(one_line, _of_overview(found, {each.name for each in chosen}, with_collisions))


def of_result(result: BrokerResult) -> Iterator[str]:
    """What a person must read of one broker's result."""
    if result.refused:
        yield f"{result.qmgr}: {printable(result.refused)}"
    for line in result.said[:_SHOWN_LINES]:
        yield f"{result.qmgr}: {printable(line)}"
    if len(result.said) > _SHOWN_LINES:
        yield f"{result.qmgr}: and {len(result.said) - _SHOWN_LINES} more; estate status --json has them all"


def of_reports(records: Iterable[Record], directory: Path) -> Iterator[str]:
    """Where a person reads what is lost or otherwise than before; nothing if there is no such thing.

    directory: the estate's.
    """
    looked_at = [record for record in records if record.plan and record.outcome is not Outcome.DONE]
    if looked_at:
        first = looked_at[0]
        yield (
            f"{some([record.qmgr for record in looked_at])}: read "
            f"{directory / WORK / first.qmgr / PLANS / f'{first.plan:04}'}/report.html"
            f"{' and those of the others' * (len(looked_at) > 1)}; estate pack has the losses of all by application"
        )


def of_checkpoints(records: Iterable[Record], names: set[str]) -> Iterator[str]:
    """Which checkpoint follows on which live queue managers; *names*: those that were chosen."""
    following: dict[str, list[str]] = {}
    for record in records:
        if record.checkpoint and record.qmgr in names:
            following.setdefault(record.checkpoint, []).append(record.qmgr)
    yield from (f"next: checkpoint {checkpoint} of {some(qmgrs)}" for checkpoint, qmgrs in following.items())


def _of_overview(found: EstateOverview, names: set[str], with_collisions: bool) -> Iterator[str]:
    width = max(13, *(len(record.qmgr) for record in found.records))
    numbers = "".join(f"{word:>10}" for word in _COLUMNS)
    yield f"{'wave':>4}  {'queue manager':{width}}  {'state':10}{numbers}  to look at"
    chosen = [record for record in found.records if record.qmgr in names]
    for _, group in groupby(chosen, partial(_alike, found, len(chosen) > _MANY)):
        first, *others = group
        who = f"{len(others) + 1} brokers" if others else first.qmgr
        place = f"{found.waves[first.qmgr]:>4}  {who:{width}}  {first.state:10}"
        yield f"{place}{_numbers(total(each.sums for each in (first, *others)))}{_outcome(first)}"
    yield f"{'':>4}  {f'all {len(found.records)}':{width}}  {'':10}{_numbers(found.sums)}"
    yield ""
    for state, (brokers, sums) in found.by_state().items():
        if brokers:
            yield f"{'':>4}  {brokers:>{width}}  {state:10}{_numbers(sums)}"
    if with_collisions:
        yield from _collisions(found)


def _alike(found: EstateOverview, is_folded: bool, record: Record) -> tuple[object, ...]:
    """What the brokers of one line have in common: of many, those without anything to look at share lines."""
    if is_folded and record.plan and record.outcome is Outcome.DONE and not record.checkpoint and not record.said:
        return found.waves[record.qmgr], record.state
    return (record.qmgr,)


def _collisions(found: EstateOverview) -> Iterator[str]:
    if found.prefixes:
        odd = {stream: each for stream, each in found.prefixes.items() if each != (stream,)}
        yield ""
        yield f"Topic strings of {len(found.prefixes)} streams: the stream's name" + (", but for:" if odd else "")
        yield from (f"  {stream}: {', '.join(each) or '(root)'}" for stream, each in odd.items())
    if not found.findings:
        return
    yield ""
    yield f"Collisions across brokers: {len(found.findings)}"
    for finding in found.findings[:_SHOWN_FINDINGS]:
        yield f"  {finding.severity}, {finding.kind}: {printable(finding.text)}"
        yield f"      {finding.advice}"
    if len(found.findings) > _SHOWN_FINDINGS:
        yield f"  ... and {len(found.findings) - _SHOWN_FINDINGS} more: --json has them all"
    if found.proposed:
        yield ""
        yield "Topic strings that are free on all brokers, for estate.toml:"
        yield ""
        yield "  [migration.prefixes]"
        yield from (f'  "{stream}" = "{prefix}"' for stream, prefix in found.proposed.items())


def _numbers(sums: Sums) -> str:
    return "".join(f"{getattr(sums, word):>10,}" for word in _COLUMNS)


def _outcome(record: Record) -> str:
    follows = f", next: {record.checkpoint}" if record.checkpoint else ""
    return f"  {_TO_LOOK_AT[record.outcome]}{follows}" if record.plan else ""
