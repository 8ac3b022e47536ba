"""Takes back what was applied: the deeds of the journal, the last one first, each by the MQSC that was noted with it.

It takes back whole objects and values, also where somebody has changed them since: ``others`` names that.

What loads have made is found by comparing: subscriptions of the plan that were not there before the load are deleted,
and retained publications of the plan that were not there before are cleared. What cannot be taken back is named.

What others have changed since on what an undo is going to take back, so that it can be named.

changes      an attribute has another value than the migration left: undo gives the one before, or deletes the object
additions    a queue was altered, names or authorities were added: they go with the object or the record
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Self

from commands.mqsc import parse
from commands.mqsc.script import NoMqscFormError, quoted
from migrate.live.administrator import Administrator, statement_of
from migrate.live.checkpoints import checkpoints
from migrate.live.decisions import taken_out
from migrate.live.differences import Difference, How, compare
from migrate.live.journal import Entry, Journal
from migrate.live.loading import DELETE_PROGRESS
from migrate.live.snapshot import LiveState, at_places, authorities, names, read_live, record_key, text
from migrate.marker import PREFIX as MARKER
from migrate.planned_state import PlannedHeading, PlannedObject, by_kind

_QUEUES: Final = frozenset({"QLOCAL", "QALIAS", "QMODEL"})
_GROUPS: Final = frozenset({"ALL", "ALLMQI", "ALLADM"})


@dataclass(frozen=True, slots=True)
class Touched:
    """What commands of an undo change. objects: by kind and name, the attributes; None for one that is deleted.

    names: of a namelist that is altered, the names that it will have. records: the keys of those that are deleted.
    """

    objects: dict[tuple[str, str], frozenset[str] | None] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.objects or self.records)

    @classmethod
    def by(cls, commands: Iterable[str]) -> Self:
        """What *commands* change, which are MQSC."""
        made = cls()
        for statement in (each for command in commands for each in parse(command)):
            command = statement.command
            if command is None:
                continue
            kind = "QUEUE" if command.target in _QUEUES else command.target
            key = kind, "" if command.name is None else command.name.text
            given = {k.name: tuple(value.text for value in k.values or ()) for k in command.keywords}
            if (command.verb, kind) == ("DELETE", "AUTHREC"):
                entity = "PRINCIPAL" if "PRINCIPAL" in given else "GROUP"
                shown = {word: ",".join(values) for word, values in given.items()}
                made.records.add(record_key({**shown, "ENTTYPE": entity, "ENTITY": shown.get(entity, "")}))
            elif command.verb == "DELETE":
                made.objects[key] = None
            elif command.verb == "ALTER":
                before = made.objects.get(key, frozenset())
                made.objects[key] = before if before is None else before | given.keys()
                if kind == "NAMELIST" and "NAMES" in given:
                    made.names[key[1]] = given["NAMES"]
        return made

    def has(self, kind: str, name: str, attribute: str) -> bool:
        """Whether the attribute is changed, or its object deleted."""
        if (kind, name) not in self.objects:
            return False
        changed = self.objects[kind, name]
        return changed is None or attribute in changed


def others_changes(found: Iterable[Difference], touched: Touched, loaded: bool, enabled: bool) -> Iterator[str]:
    """Those of *found*, between the plan and what is live, that the undo takes back.

    loaded: whether it deletes what a load registered. enabled: whether PSMODE is as planned at the end.
    """
    for each in found:
        if each.how is How.EXTRA and loaded:
            yield f"{each.what} was made since, where a planned one is: it is deleted"
        if each.how is not How.CHANGED or (each.attribute == "PSMODE" and not enabled):
            continue
        is_of_load = loaded and each.kind == "SUB" and ("SUB", each.name) not in touched.objects
        if is_of_load or touched.has(each.kind, each.name, each.attribute):
            yield f"{each.what}: {each.attribute} is ({each.live}), the migration left ({each.planned})"


def others_additions(planned: Iterable[PlannedObject], touched: Touched, live: LiveState) -> Iterator[str]:
    """What is there besides what is planned, and goes with the objects and records that are taken back."""
    for each in planned:
        name = each.name or ""
        if each.kind == "QUEUE" and touched.has("QUEUE", name, ""):
            row = live.queues.get(name, {})
            made, altered = (f"{text(row, f'{at}DATE')} {text(row, f'{at}TIME')}".strip() for at in ("CR", "ALT"))
            if made and altered and made != altered:
                yield f"{each.label} was altered at {altered}: it is deleted"
        elif each.kind == "NAMELIST" and touched.has("NAMELIST", name, "NAMES") and not name.startswith(MARKER):
            there = names(live.namelists.get(name, {}), "NAMES")
            kept = (*names(each.attributes, "NAMES"), *touched.names.get(name, ()))
            if more := [one for one in there if one not in kept]:
                yield f"{each.label}: {', '.join(more)} was added since, and is taken out"
        elif each.kind == "AUTHREC" and (key := record_key(each.attributes)) in touched.records:
            wanted = authorities(each.attributes)
            more = sorted(live.records.get(key, frozenset()) - wanted)
            if more and not wanted & _GROUPS:
                yield f"{each.label}: {','.join(more)} was granted since; the record is deleted"


_LEFT_BY_HAND = "retained publications that were there before were replaced: publish them again"


@dataclass(slots=True)
class Undoing:
    """One run. done: what was taken back. left: what was not, with the reason.

    others: what others have changed since, and goes with it.
    """

    administrator: Administrator
    heading: PlannedHeading
    planned: list[PlannedObject]
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def _queues(self) -> dict[str, str]:
        """The queue of each load."""
        return {each.name: each.queue for each in checkpoints(self.heading)}

    def carry_out(self, journal: Journal) -> None:
        """Take everything back. Raises AdministrationError, MigrationError; the next run goes on."""
        self.others += self._changed_since(journal)
        for entry in reversed(list(journal.live())):
            for command in self._commands(entry):
                self._run(command)
            journal.note(
                Entry(
                    checkpoint=entry.checkpoint,
                    did="undone",
                    statement=entry.statement,
                    digest=entry.digest,
                    of=entry.did,
                )
            )
        self.administrator.run(statement_of(DELETE_PROGRESS))
        journal.sync()

    def rehearsal(self, journal: Journal) -> Iterator[str]:
        """The commands that ``carry_out`` would run."""
        self.others += self._changed_since(journal)
        for entry in reversed(list(journal.live())):
            yield from self._commands(entry)

    def _commands(self, entry: Entry) -> list[str]:
        if entry.did == "sending":
            return []
        if entry.left:
            self.left.append(entry.left)
        if entry.added:
            return self._taken_out(entry)
        if entry.undo:
            return [entry.undo]
        if entry.did == "began" and entry.checkpoint.startswith("retained"):
            return self._cleared(entry)
        if entry.did == "began" and entry.checkpoint == "registrations":
            return self._deleted(entry)
        return []

    def _changed_since(self, journal: Journal) -> Iterator[str]:
        """What others have changed on what is going to be taken back, a line each.

        That a retained publication is a newer one, no DISPLAY shows; it is cleared by its topic.
        """
        entries = [entry for entry in journal.live() if entry.did != "sending"]
        # Names are taken out of a list one by one: those of others stay.
        touched = Touched.by(each.undo for each in entries if not each.added)
        loaded = next((e for e in entries if e.did == "began" and e.checkpoint == "registrations"), None)
        if not touched and loaded is None:
            return
        kinds = (kind for kind in by_kind(self.planned) if kind != "RETAINED")
        live = read_live(self.administrator, ("QMGR", *kinds))
        if loaded is not None:
            live = replace(live, subscriptions=[s for s in live.subscriptions if text(s, "SUBID") not in loaded.before])
        is_enabled = any(journal.is_done(name) for name in ("enabled", "record"))
        heading = self.heading.model_copy(update={"is_complete": self.heading.is_complete and is_enabled})
        found = compare(heading, self.planned, live, heading.made).differences
        yield from others_changes(found, touched, loaded is not None, is_enabled)
        yield from others_additions(self.planned, touched, live)

    def _taken_out(self, entry: Entry) -> list[str]:
        """Others may have added names since: the list is read again."""
        command = statement_of(entry.undo).command
        name = "" if command is None or command.name is None else command.name.text
        rows = self.administrator.display("NAMELIST", name)
        return [undo for row in rows if (undo := taken_out(entry.undo, entry.added, row))]

    def _cleared(self, entry: Entry) -> list[str]:
        live = read_live(self.administrator, ("RETAINED",)).retained
        commands = []
        for each in self.planned:
            if each.kind != "RETAINED" or each.name not in live or self._queues.get(entry.checkpoint) != each.stream:
                continue
            assert each.name is not None
            if each.name in entry.before:
                self.left.append(f"{each.label}: {_LEFT_BY_HAND}")
                continue
            try:
                commands.append(f"CLEAR TOPICSTR({quoted(each.name)}) CLRTYPE(RETAINED)")
            except NoMqscFormError as error:
                self.left.append(f"{each.label}: {error}")
        return commands

    def _deleted(self, entry: Entry) -> list[str]:
        """DELETE of the subscriptions at the plan's places that are new since the load began."""
        before = set(entry.before)
        now = at_places(self.planned, read_live(self.administrator, ("SUB",)))
        return [f"DELETE SUB SUBID({sub_id})" for sub_id in now if sub_id not in before]

    def _run(self, command: str) -> None:
        outcome = self.administrator.run(statement_of(command))
        if outcome.ok:
            self.done.append(command)
        elif not outcome.is_missing:
            self.left.append(f"{command}: {outcome.text}")
