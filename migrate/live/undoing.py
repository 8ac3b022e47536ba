"""Takes back what was applied to a live queue manager: object by object, the last one first (``migrate.inverse``).

    before   from the MQSC that the journal noted when the statement was sent
    left     the statement that was sent
    now      what DISPLAY shows

A statement whose answer never came is looked at in the same way: it was carried out, or there is nothing to take back.

What loads have made is found by comparing with the plan: subscriptions and retained publications that were not there
before the load. One that differs from the plan is somebody's by now, and is kept, as is a retained publication with
other data. Where the data cannot be read, it is kept too: no DISPLAY shows whether it is the one that was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from commands.broker.objects import LocalQueue
from commands.mqsc.attributes import QLOCAL
from commands.mqsc.authority_records import spelled_out
from commands.mqsc.script import Command, NoMqscFormError, quoted
from migrate.inverse import Inverse, Row as Attributes, inverse
from migrate.live import snapshot
from migrate.live.decisions import QUEUES, altered, defined, row_of, texts_of as values_of
from migrate.live.differences import Difference, How, compare_subscriptions
from migrate.live.journal import Entry, Journal, checkpoints
from migrate.live.loading import DELETE_PROGRESS
from migrate.plan import PREFIX as MARKER
from migrate.planned_state import Kind, PlannedHeading, PlannedObject, defaults_of
from rfh2.errors import MigrationError

_ALTERED: Final = "ALTDATE"
# What a definition does not name is as in this queue.
_MODEL: Final = "SYSTEM.DEFAULT.LOCAL.QUEUE"
_BORN: Final[snapshot.Row] = {
    each.keyword: each.kind.show(getattr(LocalQueue(""), each.field)) for each in QLOCAL.attributes
}
# The user as which a queue manager runs has a record for every object.
_OWNERS: Final = frozenset({"mqm"})
_UNSEEN: Final = (
    "whether it is still the one that was loaded cannot be seen without a connection for messages (--queues)"
)

Retained = Callable[[], Mapping[str, str] | None]
"""A digest of the data of each retained publication, by topic string; None where they cannot be read."""


@dataclass(slots=True)
class _Object:
    """One object that statements were sent for, as in ``inverse``. delete: the command that deletes it.

    about: of an authority record, the keywords that name it. entries: of the journal.
    """

    kind: Kind
    target: str
    name: str
    before: dict[str, Any] | None
    left: dict[str, Any] | None = None
    delete: str = ""
    about: str = ""
    entries: list[Entry] = field(default_factory=list)

    @property
    def what(self) -> str:
        """What a person calls it."""
        if self.kind in ("SUB", "QMGR"):
            return f"subscription {self.name}" if self.kind == "SUB" else "the queue manager"
        return PlannedObject(kind=self.kind, name=self.name).label

    def follow(self, command: Command, undo: Command | None, entry: Entry) -> None:
        """Another statement: *command* was sent, and *undo* is what was noted as taking it back."""
        self.entries.append(entry)
        given = {each.name: _value(each.name, values_of(each)) for each in command.keywords if each.values is not None}
        taken = {} if undo is None else {k.name: _value(k.name, values_of(k)) for k in undo.keywords}
        if self.kind == "AUTHREC":
            added = spelled_out(given.get("AUTHADD", ()), snapshot.text(given, "OBJTYPE"))
            self.left = {"AUTHLIST": (*(self.left or {}).get("AUTHLIST", ()), *added)}
            self.delete = self.delete or (entry.undo if undo is not None and undo.verb == "DELETE" else "")
            self.about = entry.undo.split(" ", 2)[2].partition(" AUTHRMV(")[0]
            return
        if undo is not None and undo.verb == "DELETE":
            self.delete = entry.undo
        elif self.before is not None:
            self.before = {**taken, **self.before}
        if command.verb == "DELETE":
            self.left = None
        elif command.verb == "DEFINE":
            self.left = {**_defaults(self.kind), **given}
        else:
            self.left = {**(self.left or {}), **given}


@dataclass(slots=True)
class Undoing:
    """One run. retained: what is retained now. force: take back also what others have changed.

    done: the commands that were carried out. left: what could not be taken back, with the reason. others: what others
    have changed since; it is kept, unless the undo is forced.
    """

    administrator: snapshot.Administrator
    heading: PlannedHeading
    planned: list[PlannedObject]
    retained: Retained = lambda: None
    force: bool = False
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def carry_out(self, journal: Journal) -> None:
        """Take everything back. Raises AdministrationError, MigrationError; the next run goes on."""
        for commands, entries in self._steps(list(journal.live())):
            for command in commands:
                self._run(command)
            for entry in entries:
                undone = {"statement": entry.statement, "digest": entry.digest, "of": entry.did}
                journal.note(Entry(checkpoint=entry.checkpoint, did="undone", **undone))
        self.administrator.run(snapshot.statement_of(DELETE_PROGRESS))
        journal.sync()

    def rehearsal(self, journal: Journal) -> Iterator[str]:
        """The commands that ``carry_out`` would run."""
        for commands, _ in self._steps(list(journal.live())):
            yield from commands

    def _steps(self, entries: list[Entry]) -> Iterator[tuple[list[str], list[Entry]]]:
        """Commands, and the deeds that they take back."""
        objects = self._objects(entries)
        live = snapshot.read_live(self.administrator, snapshot.EVERYTHING) if entries else snapshot.LiveState()
        for number, entry in reversed([*enumerate(entries)]):
            if entry.left:
                self.left.append(entry.left)
            if (found := objects.get(number)) is not None:
                if found.entries[-1] is entry:
                    yield self._taken_back(found, objects.values(), live), found.entries
            elif entry.did == "began" and entry.checkpoint.startswith("retained"):
                yield self._cleared(entry, live), [entry]
            elif entry.did == "began" and entry.checkpoint == "registrations":
                yield self._deleted(entry, live), [entry]
            else:
                yield [], [entry]

    def _objects(self, entries: list[Entry]) -> dict[int, _Object]:
        """By the numbers of their entries."""
        by_key: dict[tuple[str, str], _Object] = {}
        found: dict[int, _Object] = {}
        for number, entry in enumerate(entries):
            if not entry.undo or entry.did not in ("made", "changed", "sending"):
                continue
            undo = snapshot.statement_of(entry.undo).command
            command = snapshot.statement_of(entry.sent).command if entry.sent else self._unknown(undo)
            assert command is not None
            assert undo is not None
            kind = _kind_of(command)
            name = _record(command) if kind == "AUTHREC" else "" if command.name is None else command.name.text
            if (each := by_key.get((kind, name))) is None:
                before: dict[str, Any] | None = None if undo.verb == "DELETE" else {}
                if kind == "AUTHREC" and before is not None:
                    before = {"AUTHLIST": ()}
                by_key[kind, name] = each = _Object(kind, command.target, name, before)
            each.follow(command, undo, entry)
            found[number] = each
        return found

    def _unknown(self, undo: Command | None) -> Command | None:
        """What was sent, where an earlier release did not note it: nothing that can be compared."""
        if not self.force:
            raise MigrationError(
                "an earlier release applied the plan, and its journal does not say what it sent: what others have "
                "changed since is not known. See --undo --force --rehearse; --undo --force takes whole objects back"
            )
        return undo

    def _taken_back(self, each: _Object, ours: Iterable[_Object], live: snapshot.LiveState) -> list[str]:
        now = _now(each, live)
        left = each.left
        if each.target == "QLOCAL" and left is not None and now is not None:
            born = live.queues.get(_MODEL) or _BORN
            left = {k.keyword: born[k.keyword] for k in QLOCAL.attributes if k.keyword in born} | left
            made, altered_at = (
                f"{snapshot.text(now, f'{at}DATE')} {snapshot.text(now, f'{at}TIME')}".strip() for at in ("CR", "ALT")
            )
            if made and altered_at:
                left, now = {**left, _ALTERED: made}, {**now, _ALTERED: altered_at}
        used_by = _user_of(each.name, ours, live) if each.kind == "QUEUE" else ""
        is_marker = each.name.startswith(MARKER)
        found = inverse(each.before, left, now, same=self._is_same, force=self.force, used_by=used_by, whole=is_marker)
        self._say(each.what, found.changed)
        if found.deletes and each.kind == "AUTHREC":
            live.records.pop(each.name, None)
        if found.deletes and each.kind == "SUB":
            live.subscriptions[:] = [row for row in live.subscriptions if snapshot.text(row, "SUB") != each.name]
        try:
            return list(self._commands(each, found, now or {}, live))
        except NoMqscFormError as error:
            self.left.append(f"{each.what}: {error}")
            return []

    def _commands(self, each: _Object, found: Inverse, now: snapshot.Row, live: snapshot.LiveState) -> Iterator[str]:
        if each.kind == "AUTHREC" and found.does:
            gone = sorted({*snapshot.names(now, "AUTHLIST")} - {*snapshot.names(found.alters, "AUTHLIST")})
            yield each.delete if found.deletes else f"SET AUTHREC {each.about} AUTHRMV({','.join(gone)})"
        elif found.deletes:
            yield each.delete + self._without_records(each, live)
        elif found.makes is not None:
            yield defined(each.target, each.name, found.makes)
        elif "TOPICSTR" in found.alters:
            yield f"DELETE TOPIC({quoted(each.name)}) AUTHREC(NO)"
            yield defined(each.target, each.name, {**now, **found.alters})
        elif found.alters:
            yield altered(each.target, each.name, found.alters)

    def _without_records(self, each: _Object, live: snapshot.LiveState) -> str:
        """AUTHREC(NO), where others have records that would go with the object."""
        if each.kind not in ("QUEUE", "TOPIC", "NAMELIST") or self.force:
            return ""
        records = [key for key in live.records if key.startswith(f"{each.kind} {each.name} ")]
        if theirs := [key for key in records if key.rpartition(" ")[2] not in _OWNERS]:
            self._say(each.what, [f"authority record {key} was made" for key in theirs])
        return " AUTHREC(NO)" if theirs else ""

    def _is_same(self, word: str, value: Any, row: Attributes) -> bool:
        if word == "DESTQMGR":
            mine, there = ((snapshot.text(each, word) or self.heading.qmgr) for each in ({word: value}, row))
            return mine == there
        # A release that does not know a keyword does not show it.
        return word not in row or snapshot.is_alike(word, value, row)

    def _say(self, what: str, changed: Iterable[str]) -> None:
        if said := "; ".join(changed):
            self.others.append(f"{what}: {said}")

    def _cleared(self, entry: Entry, live: snapshot.LiveState) -> list[str]:
        queues = {each.name: each.queue for each in checkpoints(self.heading)}
        mine = [
            each
            for each in self.planned
            if each.kind == "RETAINED" and each.name in live.retained and queues.get(entry.checkpoint) == each.stream
        ]
        data = self.retained() if mine else None
        commands = []
        for each in mine:
            assert each.name is not None
            digest = each.attributes.get("DATA")
            if each.name in entry.before:
                self.left.append(f"{each.label}: {_LEFT_BY_HAND}")
                continue
            if data is None or digest is None or data.get(each.name) != digest:
                self._say(each.label, [_UNSEEN if data is None or digest is None else "it is a newer one"])
                if not self.force:
                    continue
            try:
                commands.append(f"CLEAR TOPICSTR({quoted(each.name)}) CLRTYPE(RETAINED)")
            except NoMqscFormError as error:
                self.left.append(f"{each.label}: {error}")
        return commands

    def _deleted(self, entry: Entry, live: snapshot.LiveState) -> list[str]:
        """DELETE of the plan's subscriptions that are new since the load began."""
        new = [row for row in live.subscriptions if snapshot.text(row, "SUBID") not in entry.before]
        differing: dict[str, list[Difference]] = {}
        for each in compare_subscriptions(self.heading, self.planned, new):
            if each.sub_id:
                differing.setdefault(each.sub_id, []).append(each)
        going = []
        for sub_id in dict.fromkeys((*snapshot.at_places(self.planned, replace(live, subscriptions=new)), *differing)):
            for each in differing.get(sub_id, ()):
                is_twin = each.how is How.EXTRA
                said = "it was made since, where a planned one is" if is_twin else _changed(each)
                self._say(each.what, [said])
            if self.force or sub_id not in differing:
                going.append(sub_id)
        live.subscriptions[:] = [row for row in live.subscriptions if snapshot.text(row, "SUBID") not in going]
        return [f"DELETE SUB SUBID({sub_id})" for sub_id in going]

    def _run(self, command: str) -> None:
        outcome = self.administrator.run(snapshot.statement_of(command))
        if outcome.ok:
            self.done.append(command)
        elif not outcome.is_missing:
            self.left.append(f"{command}: {outcome.text}")


_LEFT_BY_HAND: Final = "retained publications that were there before were replaced: publish them again"


def _changed(each: Difference) -> str:
    return f"{each.attribute} is ({each.live}), the migration left ({each.planned})"


def _kind_of(command: Command) -> Kind:
    kind: Any = "QUEUE" if command.target in QUEUES else command.target
    return kind  # type: ignore[no-any-return]


def _record(command: Command) -> str:
    """The key of the authority record that the command is about."""
    given = {each.name: ",".join(values_of(each)) for each in command.keywords}
    kind = "PRINCIPAL" if "PRINCIPAL" in given else "GROUP"
    return snapshot.record_key({**given, "ENTTYPE": kind, "ENTITY": given.get(kind, "")})


def _value(word: str, values: tuple[str, ...]) -> Any:
    if word in ("NAMES", "AUTHADD", "AUTHRMV"):
        return tuple(each for each in values if each.strip(" "))
    return ",".join(values)


def _defaults(kind: Kind) -> dict[str, Any]:
    return {"DESCR": ""} if kind == "NAMELIST" else dict(defaults_of(kind))


def _now(each: _Object, live: snapshot.LiveState) -> dict[str, Any] | None:
    if each.kind == "AUTHREC":
        granted = live.records.get(each.name)
        return None if granted is None else {"AUTHLIST": tuple(sorted(granted))}
    row = row_of(each.target, each.name, live)
    if row is None:
        return None
    return {**row, "NAMES": snapshot.names(row, "NAMES")} if each.kind == "NAMELIST" else dict(row)


def _user_of(queue: str, ours: Iterable[_Object], live: snapshot.LiveState) -> str:
    """What others have made that needs the queue."""
    for row in live.subscriptions:
        if snapshot.text(row, "DEST") == queue:
            return f"subscription {snapshot.text(row, 'SUB') or snapshot.text(row, 'SUBID')}"
    mine = {each.name for each in ours if each.kind == "QUEUE"}
    aliases = (name for name, row in live.queues.items() if name not in mine and _target(row) == queue)
    return next((f"alias queue {name}" for name in aliases), "")


def _target(row: snapshot.Row) -> str:
    return snapshot.text(row, "TARGET") or snapshot.text(row, "TARGQ")
