"""Takes back what was applied: the deeds of the journal, the last one first, each by the MQSC that was noted with it.

It takes back whole objects and values, also where somebody has changed them since: ``others`` names that.

What loads have made is found by comparing: subscriptions of the plan that were not there before the load are deleted,
and retained publications of the plan that were not there before are cleared. What cannot be taken back is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from commands.mqsc.script import NoMqscFormError, quoted
from migrate.live.administrator import Administrator
from migrate.live.changed_since import Touched, others_additions, others_changes
from migrate.live.checkpoints import checkpoints
from migrate.live.decisions import taken_out
from migrate.live.differences import compare
from migrate.live.embedded import statement_of
from migrate.live.journal import Entry, Journal
from migrate.live.loading import DELETE_PROGRESS
from migrate.live.snapshot import at_places, read_live, text
from migrate.planned_state import PlannedHeading, PlannedObject, by_kind

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
