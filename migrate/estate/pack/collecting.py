"""The items of all brokers by application, with identical reasons folded; the rows go to files as they are read.

Memory grows with the number of applications and of different reasons, not with the number of items.

Which application an item belongs to: by its queue, its user or its program, as a file says, or as they are found.

    [[application]]
    name = "Trading desk"
    queues = ["DESK.", "QUOTES.IN"]
    users = ["desk*"]
    programs = ["quotefeed"]

A queue belongs to the application with the longest prefix of its name. What the file does not know is grouped by what
it says itself: by the first part of the queue's name, up to a period; else by the application that all other items of
the same user belong to; else by the program or the user. The rest are items of the queue managers themselves.

The runbook of an estate's migration: what is run in which order, when it is taken back, and who signs.

A step is one line that begins with its command: tests execute the steps. The waves, brokers and numbers are those of
the plans. A live queue manager is done by its checkpoints; an embedded one for which files for IBM MQ were written, by
the checklist beside them.

One page of Markdown for the owner of one application: numbers, what is lost and why, where, how it is taken back.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from commands.config.home import Home
from commands.network.estate_file import Estate, Table, TableFileError, TomlLines, hint, made, parsed, read_text
from commands.terminal.counted import counted
from migrate.checklist import document, in_code, plain
from migrate.estate.overview import EstateOverview, some
from migrate.estate.records import DONE, FATES, SCRIPTS, BrokerFiles, ItemRow, Owner, Record, unpacked
from migrate.ledger import Result, Severity, Sums
from migrate.plan import Outcome, Tool
from migrate.report.facts import folded, sentence
from rfh2.errors import MigrationError

THE_REST: Final = "queue managers themselves"
_TABLE: Final = "application"


class Application(Table):
    """One ``[[application]]``. queues: beginnings of names. users, programs: names, or beginnings with ``*`` behind."""

    name: str
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(slots=True)
class Applications:
    """The applications of a file, and those that were found. mapped: of the file."""

    mapped: tuple[Application, ...] = ()
    _users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn(self, owners: Iterable[Owner], streams: Collection[str]) -> None:
        """Look at items before their applications are asked for: which users have queues of which application."""
        for owner in owners:
            if owner.user and (name := self._by_queue(owner.queue, streams)):
                self._users[owner.user].add(name)

    def name_of(self, owner: Owner, streams: Collection[str]) -> str:
        """The application of an item. streams: of its broker, whose queues belong to no application."""
        found = self._by_queue(owner.queue, streams) or self._mapped("users", owner.user)
        if found:
            return found
        named = self._users.get(owner.user, set())
        if owner.user and len(named) == 1:
            return next(iter(named))
        found = self._mapped("programs", owner.program)
        if found:
            return found
        if owner.program:
            return f"program {owner.program}"
        return f"user {owner.user}" if owner.user else THE_REST

    def _by_queue(self, queue: str, streams: Collection[str]) -> str:
        if not queue or queue in streams or queue.startswith("SYSTEM."):
            return ""
        longest, found = 0, ""
        for application in self.mapped:
            for prefix in application.queues:
                if queue.startswith(prefix) and len(prefix) > longest:
                    longest, found = len(prefix), application.name
        return found or queue.split(".", 1)[0]

    def _mapped(self, word: str, value: str) -> str:
        if not value:
            return ""
        for application in self.mapped:
            for given in getattr(application, word):
                if value == given or (given.endswith("*") and value.startswith(given[:-1])):
                    return application.name
        return ""


def read_applications(path: Path) -> Applications:
    """The applications of the file at *path*. Raises TableFileError."""
    text = read_text(path, "docs/estate.md shows one")
    return Applications(parse_applications(parsed(text, str(path)), TomlLines(text, str(path)), str(path)))


def parse_applications(values: Mapping[str, object], lines: TomlLines, file: str) -> tuple[Application, ...]:
    """The applications that *values* describe. Raises TableFileError with the line."""
    for key in values:
        if key != _TABLE:
            raise TableFileError(lines.of_key(key), f"there is no key {key}{hint(key, (_TABLE,))}")
    tables = values.get(_TABLE)
    if not isinstance(tables, list) or not tables:
        raise TableFileError(file, "it has no [[application]]: one for each application, with its name")
    found = [
        made(Application, table, partial(lines.of_key, table=_TABLE, number=number))
        for number, table in enumerate(tables)
    ]
    names = [application.name for application in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise TableFileError(lines.of_key("name", _TABLE, number), f"another application has the name {name}")
    return tuple(found)


_RESULTS: Final = tuple(Result)
_SEVERITIES: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)

Sink = Callable[[str, Record, ItemRow], None]
"""Takes the application, the broker and the item."""


@dataclass(frozen=True, slots=True)
class ReasonKey:
    """Items that are alike: the same result for the same reason, names apart."""

    result: Result
    severity: Severity
    kind: str
    why: str

    @property
    def rank(self) -> tuple[int, int]:
        """Losses first, errors first."""
        return _RESULTS.index(self.result), _SEVERITIES.index(self.severity)


@dataclass(slots=True)
class ReasonCount:
    """How many items are alike. first: the label of one. qmgrs: on how many items of each queue manager."""

    first: str
    count: int = 0
    qmgrs: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class ApplicationImpact:
    """What the migration means for one application. items: its items by result; qmgrs: by queue manager."""

    name: str
    results: Counter[Result] = field(default_factory=Counter)
    qmgrs: Counter[str] = field(default_factory=Counter)
    reasons: dict[ReasonKey, ReasonCount] = field(default_factory=dict)

    def add(self, qmgr: str, row: ItemRow) -> None:
        """Count one item."""
        self.results[row.result] += 1
        self.qmgrs[qmgr] += 1
        key = ReasonKey(row.result, row.severity, row.kind, _why(row))
        counted = self.reasons.get(key)
        if counted is None:
            counted = self.reasons[key] = ReasonCount(row.label)
        counted.count += 1
        counted.qmgrs[qmgr] += 1

    @property
    def sums(self) -> Sums:
        """Its items by what becomes of them."""
        return Sums(items=self.results.total(), **{str(result): number for result, number in self.results.items()})

    @property
    def ranked(self) -> list[tuple[ReasonKey, ReasonCount]]:
        """Its reasons: losses first, then errors, then the most frequent."""
        return sorted(self.reasons.items(), key=lambda each: (*each[0].rank, -each[1].count, each[0].why))

    @property
    def losses(self) -> list[tuple[ReasonKey, ReasonCount]]:
        """The reasons that a person must accept: items that are not there, and warnings and errors of others."""
        return [
            (key, counted)
            for key, counted in self.ranked
            if key.result is Result.REFUSED or (key.result is not Result.LEFT and key.severity is not Severity.INFO)
        ]


@dataclass(frozen=True, slots=True)
class Impact:
    """The whole estate. applications: worst first. without_plan: queue managers that are not in it."""

    overview: EstateOverview
    applications: tuple[ApplicationImpact, ...]
    without_plan: tuple[str, ...]

    @property
    def sums(self) -> Sums:
        """Of all applications: those of the estate."""
        return self.overview.sums


def collect(
    found: EstateOverview, files: Callable[[str], BrokerFiles], applications: Applications, sink: Sink
) -> Impact:
    """Read the items of all planned brokers, give each to *sink* with its application, and count.

    Raises MigrationError if a plan's items cannot be read, or if the sums do not agree.
    """
    planned = [record for record in found.records if record.plan]
    for record in planned:
        applications.learn((row.owner for row in _rows(files, record)), record.survey.streams)
    impacts: dict[str, ApplicationImpact] = {}
    for record in planned:
        counted: Counter[Result] = Counter()
        for row in _rows(files, record):
            name = applications.name_of(row.owner, record.survey.streams)
            impacts.setdefault(name, ApplicationImpact(name)).add(record.qmgr, row)
            counted[row.result] += 1
            sink(name, record, row)
        _check(record.qmgr, counted, record.sums)
    total: Counter[Result] = Counter()
    for impact in impacts.values():
        total += impact.results
    _check("the estate", total, found.sums)
    without = tuple(record.qmgr for record in found.records if not record.plan)
    return Impact(found, tuple(sorted(impacts.values(), key=_worst_first)), without)


def _rows(files: Callable[[str], BrokerFiles], record: Record) -> Iterator[ItemRow]:
    return unpacked(files(record.qmgr).plan(record.plan) / FATES)


def _check(whose: str, counted: Counter[Result], sums: Sums) -> None:
    if any(counted[result] != number for result, number in sums.each()):
        raise MigrationError(f"{whose}: the items of the plan are not those of its sums; plan the broker again")


def _worst_first(impact: ApplicationImpact) -> tuple[object, ...]:
    return *(-impact.results[result] for result in (Result.REFUSED, Result.CHANGED)), impact.name


def _why(row: ItemRow) -> str:
    own = f"{row.label} {row.becomes} {row.owner.queue} {row.owner.user}"
    return " ".join(sentence(f"{reason.severity}: {folded(reason.text, reason.ids, own)}") for reason in row.reasons)


def ranked_over_all(impacts: Iterable[ApplicationImpact]) -> Sequence[tuple[str, ReasonKey, ReasonCount]]:
    """The reasons of all applications in one order: losses first."""
    every = [(impact.name, key, counted) for impact in impacts for key, counted in impact.ranked]
    return sorted(every, key=lambda each: (*each[1].rank, -each[2].count, each[0], each[1].why))


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
