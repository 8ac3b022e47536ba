"""The runbook of an estate's migration: what is run in which order, when it is taken back, and who signs.

A step is one line that begins with its command: tests execute the steps. The waves, brokers and numbers are those of
the plans. A live queue manager is done by its checkpoints; an embedded one for which files for IBM MQ were written, by
the checklist beside them.

One page of Markdown for the owner of one application: numbers, what is lost and why, where, how it is taken back.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from commands.config.home import Home
from commands.network.estate_file import Estate
from commands.terminal.counted import counted
from migrate.checklist import document, in_code, plain
from migrate.estate.overview import some
from migrate.estate.pack.collecting import THE_REST, ApplicationImpact, Impact
from migrate.estate.records import DONE, SCRIPTS, BrokerFiles, Record
from migrate.ledger import Result, Severity
from migrate.plan import Outcome, Tool

CHECKLIST: Final = "checklist.md"
_SHOWN: Final = 12
_SIGNED_BY: Final = ("Application owner", "Administrator of the queue managers", "Change board")


def runbook(impact: Impact, estate: Estate, home: Home) -> str:
    """Markdown for the whole estate. home: of the queue managers."""
    return document(_lines(impact, estate, f"{shlex.quote(str(estate.directory))} --home {shlex.quote(str(home))}"))


def rollback_criteria(impact: Impact) -> list[str]:
    """When a wave is taken back, each in one sentence."""
    lost = sum(record.outcome is Outcome.LOST for record in impact.overview.records)
    return [
        "`qpubsub estate verify` names a difference that no one can explain.",
        "A publication for an application of the wave is on the dead-letter queue.",
        "An application of the wave does not receive what its owner expects, in the test that its owner has named.",
        "A loss appears that is not in this pack"
        + (f"; the pack has losses on {counted(lost, 'broker')}, which were accepted." if lost else "."),
        "The time of the change ends before `qpubsub estate verify` has ended with exit code 0.",
    ]


def sign_off(sums_of: str) -> Iterator[str]:
    """The lines to sign. sums_of: what is accepted."""
    yield f"Accepted: {sums_of}"
    yield ""
    yield "| who | name | date | signature |"
    yield "|---|---|---|---|"
    yield from (f"| {who} | | | |" for who in _SIGNED_BY)


def accepted(impact: ApplicationImpact | Impact) -> str:
    """What a signature accepts, in numbers."""
    sums = impact.sums
    return f"of {sums.items:,} items, {sums.refused:,} are refused and {sums.changed:,} are changed, as listed."


def _lines(impact: Impact, estate: Estate, place: str) -> Iterator[str]:
    """place: the words of a command that say where the estate and its queue managers are."""
    found = impact.overview
    planned = [record for record in found.records if record.plan]
    yield "# Runbook of the migration"
    yield ""
    yield (
        f"{counted(len(planned), 'broker')} in {len({found.waves[record.qmgr] for record in planned})} waves. Each "
        "broker on an embedded queue manager is migrated as a whole or not at all, each on a live one checkpoint by "
        "checkpoint. The plans are those listed at the end; `estate apply` refuses any other."
    )
    if impact.without_plan:
        yield f"Without a plan, and not part of this: {plain(some(impact.without_plan, _SHOWN))}."
    errors = [finding for finding in found.findings if finding.severity is Severity.ERROR]
    if errors:
        yield ""
        yield "**Before anything else:**"
        yield ""
        yield from (f"- {plain(finding.text)}. {plain(finding.advice)}." for finding in errors)
    yield ""
    yield "## In this order"
    yield ""
    yield f"The last record in the sources of these plans: {_ages(planned)}. What registered or was published later is"
    yield "in no plan until the sources are taken again, which each wave does when its applications have stopped."
    yield ""
    yield from (f"{number}. {step}" for number, step in enumerate(_steps(impact, estate, place), 1))
    yield ""
    yield "## When a wave is taken back"
    yield ""
    yield from (f"- {each}" for each in rollback_criteria(impact))
    yield ""
    yield "To take a wave back, the last one first:"
    yield ""
    for number, step in enumerate(_rollback(impact, place), 1):
        yield f"{number}. {step}"
    yield ""
    yield "## Sign-off"
    yield ""
    yield from sign_off(accepted(impact))
    yield ""
    yield "## The plans"
    yield ""
    yield "| wave | queue manager | plan | made | fingerprint of the state | decisions |"
    yield "|---|---|---|---|---|---|"
    for record in planned:
        yield (
            f"| {found.waves[record.qmgr]} | {plain(record.qmgr)} | {record.plan} | {record.planned_at} "
            f"| {record.fingerprint} | {record.decided} |"
        )


def _steps(impact: Impact, estate: Estate, place: str) -> Iterator[str]:
    found = impact.overview
    left = [record for record in found.records if record.plan and record.state not in DONE]
    yield "`sha256sum -c SHA256SUMS` in the directory of this pack: each file is as it was made."
    yield f"`qpubsub estate rehearse {place}`. Every broker has to be rehearsed, and no difference named."
    for wave, records in _by_wave(impact, left):
        live = [record for record in records if estate.named(record.qmgr).is_live]
        here = [record for record in records if record not in live and not _has_scripts(estate.directory, record)]
        elsewhere = [record for record in records if record not in live and record not in here]
        create = " --create" * any(record.state not in DONE for record in here)
        if any(record.tool is Tool.MIGMBBRK for record in here):
            yield (
                f"`qpubsub estate apply {place} --wave {wave} --initial{create}`, while the brokers run. It makes "
                "topic objects for access control."
            )
            yield "While the brokers run: review the security commands of each report, and run those that are right."
        if any(record.tool is Tool.MIGMBBRK for record in live):
            yield "While the brokers run: review `amqmigrateacl.txt` of each plan."
        yield (
            f"Stop the publish/subscribe applications of wave {wave}: {plain(_applications(impact, records))}. The "
            f"outage begins.{_foretold(records)}"
        )
        yield (
            f"Wait until {CONTROL_QUEUE} and the stream queues of the brokers of wave {wave} are empty: `DISPLAY "
            "QLOCAL(...) CURDEPTH` shows 0."
        )
        only = " ".join(f"--only {shlex.quote(record.qmgr)}" for record in records)
        yield (
            f"Take the sources of wave {wave} again: `qpubsub estate extract {place} {only} --again` where estate.toml "
            "has `extract`, else the same files from the same place."
        )
        yield f"`qpubsub estate plan {place} {only}`. A broker whose sources are as before keeps its plan."
        yield f"See that `qpubsub estate diff {place} {only}` shows nothing new for a broker with another plan."
        yield f"Stop the brokers of wave {wave}: {plain(some([record.qmgr for record in records], _SHOWN))}."
        confirmed = ["stopped"] if live else []
        if any(record.tool is Tool.MIGMBBRK for record in live):
            yield (
                f"`qpubsub estate apply {place} --wave {wave} --through authorities --confirm stopped`. It makes topic "
                "objects for access control."
            )
            yield "Run those commands of `amqmigrateacl.txt` that were found right."
            yield "Upgrade each Message Broker that goes on with its message flows to version 7, and leave it stopped."
            confirmed += ["security", "upgraded"]
        if live:
            words = " ".join(f"--confirm {name}" for name in confirmed)
            yield (
                f"`qpubsub estate apply {place} --wave {wave} --all {words}`. Where it names a file that must be "
                "loaded by hand, load the file, and run this again with the `--confirm` that it names."
            )
        elif here:
            yield f"`qpubsub estate apply {place} --wave {wave}{create}`"
        if live or here:
            yield f"`qpubsub estate verify {place} --wave {wave}`. No difference may be named."
        for record in elsewhere:
            path = BrokerFiles(estate.directory, record.qmgr).plan(record.plan) / SCRIPTS / CHECKLIST
            yield f"Follow `{in_code(str(path))}` for queue manager {plain(record.qmgr)}."
        yield f"Start the applications of wave {wave}, and make the tests that their owners have named."
    yield f"`qpubsub estate status {place}`. Every broker has to be verified."


def _rollback(impact: Impact, place: str) -> Iterator[str]:
    planned = [record for record in impact.overview.records if record.plan]
    for wave, records in reversed(list(_by_wave(impact, planned))):
        yield f"Stop the publish/subscribe applications of wave {wave}: {plain(_applications(impact, records))}."
        yield f"`qpubsub estate undo {place} --wave {wave}`"
        yield (
            f"Start the brokers of wave {wave} again, and the applications. What was published since the cutover is "
            "not carried back: messages on subscriber queues stay, what is retained is what the old broker had."
        )


def _ages(records: Sequence[Record]) -> str:
    until = sorted(record.until for record in records if record.until)
    return "not known" if not until else f"{until[0]} (the oldest), {until[-1]} (the newest)"


def _foretold(records: Sequence[Record]) -> str:
    """How long the rehearsal took: it carries a plan out, compares, and takes it back, so the migration takes less."""
    seconds = sum(record.rehearsed_seconds for record in records)
    if not seconds:
        return " How long the wave takes is known when it has been rehearsed."
    return f" The rehearsal of the wave took {seconds:,.0f} s, broker after broker; the migration takes less."


def _by_wave(impact: Impact, records: Sequence[Record]) -> Iterator[tuple[int, list[Record]]]:
    waves = impact.overview.waves
    for wave in sorted({waves[record.qmgr] for record in records}):
        yield wave, [record for record in records if waves[record.qmgr] == wave]


def _has_scripts(estate: Path, record: Record) -> bool:
    return (BrokerFiles(estate, record.qmgr).plan(record.plan) / SCRIPTS / CHECKLIST).is_file()


def _applications(impact: Impact, records: Sequence[Record]) -> str:
    names = {record.qmgr for record in records}
    there = [each.name for each in impact.applications if names & each.qmgrs.keys() and each.name != THE_REST]
    return some(there, _SHOWN) or "none"


_REASONS: Final = 15
_QMGRS: Final = 20
_CHARACTERS: Final = 240


def summary(application: ApplicationImpact, impact: Impact, csv_name: str) -> str:
    """The page. csv_name: of the file with every item."""
    return document(_summary_lines(application, impact, csv_name))


def _summary_lines(application: ApplicationImpact, impact: Impact, csv_name: str) -> Iterator[str]:
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
    for key, found in losses[:_REASONS]:
        yield f"- {found.count:,} {plain(key.kind)}, {key.result}: {plain(_short(key.why))}"
    if len(losses) > _REASONS:
        rest = sum(found.count for _, found in losses[_REASONS:])
        yield f"- {rest:,} items for {len(losses) - _REASONS} more reasons: see {plain(csv_name)}"
    others = [each for each in application.ranked if each[0].result is Result.CHANGED and each not in losses]
    if others:
        yield ""
        yield "## What has another name or place, with no effect on programs"
        yield ""
        for key, found in others[:_REASONS]:
            yield f"- {found.count:,} {plain(key.kind)}: {plain(_short(key.why))}"
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
