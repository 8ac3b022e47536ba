"""The whole estate at one moment: each broker with its state, the sums, what collides, the topic strings in use."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from commands.network.estate_file import Estate
from migrate.estate.collisions import Crossing, EstateFinding, estate_findings, prefixes_in_use, proposed_prefixes
from migrate.estate.records import TOPICS, BrokerFiles, BrokerState, Record
from migrate.estate.totals import Sums, total
from migrate.ledger import Severity
from migrate.outcome import Outcome
from rfh2.errors import MigrationError

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
        return _default_topics(BrokerFiles(estate.directory, qmgr), known[qmgr])

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


def _default_topics(files: BrokerFiles, record: Record) -> tuple[str, ...]:
    path = files.plan(record.plan) / TOPICS
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return tuple(json.loads(line) for line in file)
    except (OSError, EOFError, ValueError) as error:
        raise MigrationError(f"{path}: cannot be read: {error}; plan the broker again") from error
