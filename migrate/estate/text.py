"""The estate for a terminal: a line for each broker, the sums, and what collides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from commands.network.estate_file import EstateQueueManager
from migrate.estate.jobs import BrokerResult
from migrate.estate.overview import EstateOverview
from migrate.estate.records import PLANS, WORK, Record
from migrate.estate.totals import Sums
from migrate.log import one_line, printable
from migrate.outcome import Outcome

_SHOWN_FINDINGS: Final = 40
_SHOWN_LINES: Final = 10
_SHOWN_NAMES: Final = 5
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


def of_reports(records: Iterable[Record]) -> Iterator[str]:
    """Where a person reads what is lost or otherwise than before; nothing if there is no such thing."""
    looked_at = [record for record in records if record.plan and record.outcome is not Outcome.DONE]
    if looked_at:
        first = looked_at[0]
        yield (
            f"{some([record.qmgr for record in looked_at])}: read "
            f"{WORK}/{first.qmgr}/{PLANS}/{first.plan:04}/report.html "
            "and those of the others; estate pack has the losses of all by application"
        )


def of_checkpoints(records: Iterable[Record], names: set[str]) -> Iterator[str]:
    """Which checkpoint follows on which live queue managers; *names*: those that were chosen."""
    following: dict[str, list[str]] = {}
    for record in records:
        if record.checkpoint and record.qmgr in names:
            following.setdefault(record.checkpoint, []).append(record.qmgr)
    yield from (f"next: checkpoint {checkpoint} of {some(qmgrs)}" for checkpoint, qmgrs in following.items())


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _of_overview(found: EstateOverview, names: set[str], with_collisions: bool) -> Iterator[str]:
    width = max(13, *(len(record.qmgr) for record in found.records))
    numbers = "".join(f"{word:>10}" for word in _COLUMNS)
    yield f"{'wave':>4}  {'queue manager':{width}}  {'state':10}{numbers}  to look at"
    for record in found.records:
        if record.qmgr in names:
            place = f"{found.waves[record.qmgr]:>4}  {record.qmgr:{width}}  {record.state:10}"
            yield f"{place}{_numbers(record.sums)}{_outcome(record)}"
    yield f"{'':>4}  {f'all {len(found.records)}':{width}}  {'':10}{_numbers(found.sums)}"
    yield ""
    for state, (brokers, sums) in found.by_state().items():
        if brokers:
            yield f"{'':>4}  {brokers:>{width}}  {state:10}{_numbers(sums)}"
    if with_collisions:
        yield from _collisions(found)


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
