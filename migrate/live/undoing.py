"""Takes back what was applied: the deeds of the journal, the last one first, each by the MQSC that was noted with it.

What loads have made is found by comparing: subscriptions of the plan that were not there before the load are deleted,
and retained publications of the plan that were not there before are cleared. What cannot be taken back is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from commands.explain.equivalents.mqsc_text import NoMqscFormError, quoted
from migrate.live.administrator import Administrator
from migrate.live.checkpoints import checkpoints
from migrate.live.decisions import taken_out
from migrate.live.embedded import statement_of
from migrate.live.journal import Entry, Journal
from migrate.live.loading import DELETE_PROGRESS
from migrate.live.snapshot import at_places, read_live
from migrate.planned_state import PlannedHeading, PlannedObject

_LEFT_BY_HAND = "retained publications that were there before were replaced: publish them again"


@dataclass(slots=True)
class Undoing:
    """One run. done: what was taken back. left: what was not, with the reason."""

    administrator: Administrator
    heading: PlannedHeading
    planned: list[PlannedObject]
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def _queues(self) -> dict[str, str]:
        """The queue of each load."""
        return {each.name: each.queue for each in checkpoints(self.heading)}

    def carry_out(self, journal: Journal) -> None:
        """Take everything back. Raises AdministrationError, MigrationError; the next run goes on."""
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
