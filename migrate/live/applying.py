"""Applies a plan to a live queue manager, one checkpoint at a time.

    decide      what the queue manager has already is left as it is; what is somebody else's and differs stops the run
    send        one statement, or one unit of work of messages
    journal     what the queue manager has confirmed, with what takes it back

A run that was killed is started again with the same command. A statement that was carried out without being noted is
found by DISPLAY; messages are counted in the unit of work that puts them. Nothing is done twice.

One run of ``apply``: which checkpoints it carries out, and where it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from commands.mqsc.script import Statement, parse
from commands.terminal.counted import counted
from migrate.live import snapshot
from migrate.live.decisions import Decision, altered_later, decide, follow, key_of, object_of
from migrate.live.journal import Action, Checkpoint, Did, Entry, Journal, checkpoints
from migrate.live.loading import DELETE_PROGRESS, PROGRESS_QUEUE, Messages, load, messages_in, progress_of
from migrate.planned_state import PlannedHeading, PlannedObject
from rfh2.captured import CapturedMessage
from rfh2.errors import MigrationError, QueueError, StoreError

_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_DEFINE_PROGRESS: Final = f"DEFINE QLOCAL('{PROGRESS_QUEUE}') DEFPSIST(YES) DESCR('qpubsub apply: how far it is')"

_Later = Mapping[tuple[str, str], Collection[str]]


class StoppedError(MigrationError):
    """A checkpoint is not complete. checkpoint: its name. why: what happened, and what to do."""

    def __init__(self, checkpoint: str, why: str) -> None:
        super().__init__(checkpoint, why)
        self.checkpoint, self.why = checkpoint, why

    def __str__(self) -> str:
        return f"checkpoint {self.checkpoint}: {self.why}"


class ConfirmationError(StoppedError):
    """A person has to do something, and to confirm it."""


@dataclass(slots=True)
class Applier:
    """One run. messages: None where only administration is possible. wait_s: how long to wait for an empty queue.

    confirmed: the checkpoints that a person confirms. progress: called with how many more statements or messages are
    done. sent: how many statements and messages this run has sent.
    """

    administrator: snapshot.Administrator
    messages: Messages | None
    directory: Path
    heading: PlannedHeading
    planned: list[PlannedObject]
    wait_s: float
    confirmed: frozenset[str] = frozenset()
    progress: Callable[[int], None] = lambda _more: None
    sent: int = field(default=0)

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All of the plan's."""
        return checkpoints(self.heading)

    def remaining(self, journal: Journal | None) -> list[Checkpoint]:
        """Those that are not complete, in order."""
        return [each for each in self.checkpoints if journal is None or not journal.is_done(each.name)]

    def carry_out(self, checkpoint: Checkpoint, journal: Journal) -> None:
        """Complete *checkpoint*. Raises StoppedError, AdministrationError, StoreError; then run it again."""
        if checkpoint.action is Action.PERSON:
            self._confirm(checkpoint)
        elif checkpoint.action is Action.LOAD:
            self._load(checkpoint, journal)
        else:
            self._run_script(checkpoint, journal)
            if checkpoint == self.checkpoints[-1]:
                self.administrator.run(snapshot.statement_of(DELETE_PROGRESS))
        journal.note(Entry(checkpoint=checkpoint.name, did="done"))
        journal.sync()

    def rehearsal(self, checkpoint: Checkpoint, journal: Journal | None) -> Iterator[tuple[str, bool]]:
        """What ``carry_out`` would do, a line each, and whether it would stop there. Nothing is changed.

        What an earlier checkpoint is going to make counts as missing.
        """
        if checkpoint.action is Action.PERSON:
            is_confirmed = checkpoint.name in self.confirmed
            yield f"a person confirms: {checkpoint.asks}", not is_confirmed
        elif checkpoint.action is Action.LOAD:
            count = len(self._messages(checkpoint))
            what = f"{counted(count, 'message')} of {checkpoint.file}"
            yield f"put {what} on {checkpoint.queue}, and wait until it is empty", False
            if self.messages is None:
                yield self._no_messages(checkpoint), True
        else:
            live = snapshot.read_live(self.administrator, checkpoint.kinds)
            done = set() if journal is None else journal.statements(checkpoint.name)
            statements = self._statements(checkpoint)
            later = altered_later(statements)
            for statement in statements:
                if _key(statement) in done:
                    continue
                decision = self._decide(statement, live, later)
                if decision.refused:
                    yield f"line {statement.line}: refused: {decision.refused}", True
                elif decision.send:
                    sent = _sent(statement, decision)
                    follow(sent, live)
                    yield f"line {statement.line}: send {' '.join(sent.text.split())}", False
                else:
                    yield f"line {statement.line}: {object_of(statement)}: as planned already", False

    # People

    def _confirm(self, checkpoint: Checkpoint) -> None:
        if checkpoint.name not in self.confirmed:
            why = f"{checkpoint.asks}. Then run the same command with --confirm {checkpoint.name}"
            raise ConfirmationError(checkpoint.name, why)
        if checkpoint.name == "stopped":
            depth = self._depth(CONTROL_QUEUE)
            if depth:
                why = f"{CONTROL_QUEUE} holds {counted(depth, 'command')} that the old broker has not processed"
                raise StoppedError(checkpoint.name, why)

    # Scripts

    def _statements(self, checkpoint: Checkpoint) -> list[Statement]:
        try:
            found = parse(checkpoint.text(self.directory))
        except (OSError, UnicodeDecodeError) as error:
            raise StoppedError(checkpoint.name, f"{self.directory / checkpoint.file}: {error}") from error
        for statement in found:
            if statement.command is None:
                why = f"{checkpoint.file}, line {statement.line}: {statement.text}: {statement.error}"
                raise StoppedError(checkpoint.name, f"{why}. Correct the script; nothing of it was sent")
        return found

    def _run_script(self, checkpoint: Checkpoint, journal: Journal) -> None:
        statements = self._statements(checkpoint)
        done = journal.statements(checkpoint.name)
        waiting = [each for each in statements if _key(each) not in done]
        if not waiting:
            return
        live = snapshot.read_live(self.administrator, checkpoint.kinds)
        in_doubt = journal.sending(checkpoint.name)
        later = altered_later(statements)
        for statement in waiting:
            self._refresh(statement, live)
            decision = self._decide(statement, live, later)
            if decision.refused:
                # An earlier statement of the script may have made the object.
                live = snapshot.read_live(self.administrator, checkpoint.kinds)
                decision = self._decide(statement, live, later)
            if decision.refused:
                raise self._refused(checkpoint, statement, decision.refused)
            if decision.send:
                self._note(checkpoint, statement, decision, journal, "sending")
                decision = self._send(checkpoint, statement, decision, later)
            elif (sent := in_doubt.get(_key(statement))) is not None:
                # An earlier run sent it and was killed before it could note the answer.
                decision = Decision(True, undo=sent.undo, left=sent.left, instead=sent.sent)
            self._note(checkpoint, statement, decision, journal)
            if decision.send:
                follow(_sent(statement, decision), live)
            self.progress(1)

    def _refresh(self, statement: Statement, live: snapshot.LiveState) -> None:
        """Read a namelist again before it is altered: a name that somebody adds meanwhile would be lost."""
        command = statement.command
        if command is not None and (command.verb, command.target) == ("ALTER", "NAMELIST") and command.name is not None:
            name = command.name.text
            live.namelists.pop(name, None)
            live.namelists.update((name, row) for row in self.administrator.display("NAMELIST", name))

    def _decide(self, statement: Statement, live: snapshot.LiveState, later: _Later) -> Decision:
        key = key_of(statement)
        if key is None:
            return decide(statement, live)
        known = next((each.before for each in self.planned if (each.kind, each.name) == key), ())
        return decide(statement, live, later.get(key, ()), known)

    def _send(self, checkpoint: Checkpoint, statement: Statement, decision: Decision, later: _Later) -> Decision:
        outcome = self.administrator.run(_sent(statement, decision))
        if outcome.ok:
            self.sent += 1
            return decision
        if outcome.is_there or outcome.is_missing:
            # Somebody was faster; or the object cannot be seen by those who may not display it.
            again = self._decide(statement, snapshot.read_live(self.administrator, checkpoint.kinds), later)
            if not again.send and not again.refused:
                return again
        raise self._refused(checkpoint, statement, outcome.text)

    def _note(
        self,
        checkpoint: Checkpoint,
        statement: Statement,
        decision: Decision,
        journal: Journal,
        did: Did | None = None,
    ) -> None:
        verb = "" if statement.command is None else statement.command.verb
        sent: Did = "made" if verb == "DEFINE" else "changed"
        journal.note(
            Entry(
                checkpoint=checkpoint.name,
                did=did or (sent if decision.send else "there"),
                statement=statement.number,
                digest=_key(statement)[1],
                sent=" ".join(_sent(statement, decision).text.split()) if decision.send else "",
                undo=decision.undo if decision.send else "",
                left=decision.left if decision.send else "",
            )
        )

    def _refused(self, checkpoint: Checkpoint, statement: Statement, why: str) -> StoppedError:
        where = f"{checkpoint.file}, line {statement.line}" if checkpoint.file else "its command"
        todo = "Correct the queue manager or the script, and run the same command again: it goes on with this statement"
        return StoppedError(checkpoint.name, f"{where}: {object_of(statement)}: {why}. {todo}")

    # Loads

    def _messages(self, checkpoint: Checkpoint) -> list[CapturedMessage]:
        try:
            return messages_in(self.directory / checkpoint.file)
        except (OSError, MigrationError) as error:
            raise StoppedError(checkpoint.name, f"{self.directory / checkpoint.file}: {error}") from error

    def _load(self, checkpoint: Checkpoint, journal: Journal) -> None:
        loaded = self._messages(checkpoint)
        began = journal.began(checkpoint.name)
        is_new = began is None
        if began is None:
            began = Entry(checkpoint=checkpoint.name, did="began", before=self._before(checkpoint), dead=self._dead())
            journal.note(began)
            journal.sync()
        if self.messages is not None:
            self._put(checkpoint, loaded, self.messages)
        elif is_new or checkpoint.name not in self.confirmed:
            # What was there before has been noted now: nobody can have loaded the file since.
            raise ConfirmationError(checkpoint.name, self._no_messages(checkpoint))
        self._wait(checkpoint)
        self._check_dead_letters(checkpoint, began)

    def _put(self, checkpoint: Checkpoint, loaded: list[CapturedMessage], messages: Messages) -> None:
        outcome = self.administrator.run(snapshot.statement_of(_DEFINE_PROGRESS))
        if not outcome.ok and not outcome.is_there:
            raise StoppedError(checkpoint.name, f"{PROGRESS_QUEUE} could not be made: {outcome.text}")
        try:
            self.sent += load(messages, self.heading, checkpoint.file, checkpoint.queue, loaded, self.progress)
        except QueueError as error:
            at = progress_of(messages, self.heading, checkpoint.file)
            why = f"message {at + 1} of {checkpoint.file} could not be put on {checkpoint.queue}: {error}"
            raise StoppedError(checkpoint.name, f"{why}. Run the same command again: it goes on with it") from error

    def _before(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """What the load may change and was there before it."""
        live = snapshot.read_live(self.administrator, checkpoint.kinds)
        if checkpoint.kinds == ("RETAINED",):
            mine = {each.name for each in self.planned if each.kind == "RETAINED" and each.stream == checkpoint.queue}
            return tuple(sorted(topic for topic in live.retained if topic in mine))
        return tuple(snapshot.at_places(self.planned, live))

    def _no_messages(self, checkpoint: Checkpoint) -> str:
        return (
            f"messages with their context are put through a connection, not by the REST interface: give --queues "
            f"ibmmq://..., or load {checkpoint.file} into {checkpoint.queue} by hand, wait until it is empty, and run "
            f"the same command with --confirm {checkpoint.name}"
        )

    def _wait(self, checkpoint: Checkpoint) -> None:
        end, pause_s = time.monotonic() + self.wait_s, _SHORTEST_PAUSE_S
        while depth := self._depth(checkpoint.queue):
            if time.monotonic() >= end:
                why = (
                    f"{checkpoint.queue} still holds {counted(depth, 'message')} after {self.wait_s:g} s: see that "
                    f"queued publish/subscribe runs (DISPLAY PUBSUB; qpubsub run for an embedded queue manager)"
                )
                raise StoppedError(checkpoint.name, f"{why}, and run the same command again")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _depth(self, queue: str) -> int:
        rows = self.administrator.display("QLOCAL", queue)
        depth = snapshot.text(rows[0], "CURDEPTH") if rows else "0"
        if not depth.isdecimal():
            where = self.administrator.where
            raise snapshot.AdministrationError(
                f"{where}: DISPLAY QLOCAL({queue}) shows no CURDEPTH: whether it is empty is not known"
            )
        return int(depth)

    def _dead(self) -> int:
        queue = snapshot.text(snapshot.qmgr_row(self.administrator), "DEADQ")
        return self._depth(queue) if queue else 0

    def _check_dead_letters(self, checkpoint: Checkpoint, began: Entry) -> None:
        more = self._dead() - began.dead
        if more > 0 and checkpoint.name not in self.confirmed:
            why = (
                f"the dead-letter queue has {counted(more, 'more message')}: commands that were not carried out. Look "
                f"at them (qpubsub browse, decode), do what is missing, and run the same command with --confirm "
                f"{checkpoint.name}"
            )
            raise StoppedError(checkpoint.name, why)


def _sent(statement: Statement, decision: Decision) -> Statement:
    """What is sent for *statement*."""
    return snapshot.statement_of(decision.instead) if decision.instead else statement


def _key(statement: Statement) -> tuple[int, str]:
    """Number and digest: what the journal calls the statement."""
    return statement.number, sha256(" ".join(statement.text.split()).encode()).hexdigest()[:12]


Shown = Callable[[Checkpoint], AbstractContextManager[Callable[[int], None]]]


@dataclass(slots=True)
class Advance:
    """What a run did. done: names of checkpoints. stopped: why it ended before the last wanted one. left: what remains.

    sent: how many statements and messages.
    """

    done: list[str] = field(default_factory=list)
    stopped: StoppedError | None = None
    left: list[Checkpoint] = field(default_factory=list)
    sent: int = 0

    @property
    def has_changed(self) -> bool:
        """Whether the queue manager or the journal has something that was not there before."""
        return bool(self.sent or self.done)


def wanted_checkpoints(remaining: Sequence[Checkpoint], *, every: bool, until: str | None) -> list[Checkpoint]:
    """The next one of *remaining*; all of them with *every*; those up to the one called *until*."""
    if until is not None:
        names = [each.name for each in remaining]
        return list(remaining[: names.index(until) + 1]) if until in names else []
    return list(remaining if every else remaining[:1])


def advance(applier: Applier, journal: Journal, wanted: Sequence[Checkpoint], shown: Shown | None = None) -> Advance:
    """Carry out *wanted*, one after the other. shown: gives the block in which one is carried out its progress."""
    found = Advance()
    for checkpoint in wanted:
        try:
            with nullcontext(_unseen) if shown is None else shown(checkpoint) as progress:
                applier.progress = progress
                applier.carry_out(checkpoint, journal)
        except StoppedError as error:
            found.stopped = error
            break
        except (MigrationError, StoreError) as error:
            # The connection broke, or the disk is full: what was confirmed is in the journal.
            why = f"{error}. Run the same command again: it goes on from here"
            found.stopped = StoppedError(checkpoint.name, why)
            break
        found.done.append(checkpoint.name)
    found.left, found.sent = applier.remaining(journal), applier.sent
    return found


def would_stop(applier: Applier, journal: Journal | None) -> Iterator[str]:
    """Each statement at which applying the rest would stop, with its checkpoint; nothing is changed.

    That a person has to confirm something, or to load a file by hand, is no such place.
    """
    for checkpoint in applier.remaining(journal):
        if checkpoint.is_script:
            for line, is_stop in applier.rehearsal(checkpoint, journal):
                if is_stop:
                    yield f"checkpoint {checkpoint.name}: {line}"


def _unseen(_more: int) -> None:
    return
