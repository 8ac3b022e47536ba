"""The bridge on a stage: what each commit and each answer of the tree leaves is seen, and after any of them it ends.

What is seen are the values of the variables of a model of this folder (docs/model.md). A life of the bridge is killed
after one of these steps, or held up there until another one has taken over. ``behaviours`` has TLC say which of the
traces are behaviours of the model.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from commands.qmgr.store.sqlite_database import SqliteDatabase
from tests.reliability.model import Configuration, check, literal

Seen = Mapping[str, Any]
PATIENCE_S = 60


class KilledError(BaseException):
    """The life is over: nothing of it handles this."""


class Stage:
    """look: the values of the model's variables, but for faults. trace: those that were seen, one after the other."""

    def __init__(self, look: Callable[[], Seen]) -> None:
        self._look, self.faults, self._looking = look, 0, False
        self._ends_at: int | None = None
        self._held: tuple[threading.Thread, threading.Event, threading.Event] | None = None
        self.trace = [self._now()]

    def _now(self) -> Seen:
        return {**self._look(), "faults": self.faults}

    def kill_after(self, steps: int) -> None:
        """Raise KilledError when so many more steps are seen."""
        self._ends_at = len(self.trace) + steps

    def see(self) -> None:
        """Look. Raises KilledError where the life that does this step is to end."""
        if self._looking:
            return
        self._looking = True
        try:
            now = self._now()
        finally:
            self._looking = False
        if now == self.trace[-1]:
            return
        self.trace.append(now)
        if len(self.trace) != self._ends_at:
            return
        self._ends_at = None
        if self._held is not None and threading.current_thread() is self._held[0]:
            self._held[1].set()
            self._held[2].wait(PATIENCE_S)
            return
        raise KilledError

    def fault(self) -> None:
        """What happened to the life is a fault of the model's."""
        self.faults += 1
        self.see()

    @contextmanager
    def held_up(self, life: Callable[[], object], steps: int) -> Iterator[bool]:
        """Hold *life* up after so many steps, as long as one is inside, and let it go on; whether it came so far."""
        reached, goes_on = threading.Event(), threading.Event()

        def run() -> None:
            try:
                life()
            finally:
                reached.set()

        thread = threading.Thread(target=run)
        self._held, self._ends_at = (thread, reached, goes_on), len(self.trace) + steps
        thread.start()
        assert reached.wait(PATIENCE_S)
        is_held, self._ends_at = self._ends_at is None, None
        try:
            yield is_held
        finally:
            goes_on.set()
            thread.join()
            self._held = None


@contextmanager
def commits_seen(stage: Stage) -> Iterator[None]:
    """Have *stage* look after each commit of a database."""
    commit = SqliteDatabase.commit

    def seen(database: SqliteDatabase) -> None:
        commit(database)
        stage.see()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteDatabase, "commit", seen)
        yield


_MODULE = """---- MODULE Trace ----
EXTENDS {model}, TLC
VARIABLES trace, at
Traces == {traces}
Seen == {seen}
TraceStart == Init /\\ trace \\in DOMAIN Traces /\\ at = 1 /\\ Seen = Traces[trace][1]
TraceStep ==
    /\\ at < Len(Traces[trace]) /\\ trace' = trace /\\ Next
    /\\ \\/ Seen' = Seen /\\ at' = at
       \\/ Seen' # Seen /\\ Seen' = Traces[trace][at + 1] /\\ at' = at + 1
Behaviour == TraceStart /\\ [][TraceStep]_<<vars, trace, at>>
Behaves == at = Len(Traces[trace]) => PrintT(<<"behaviour", trace>>)
====
"""


def behaviours(model: Configuration, seen: Mapping[str, str], traces: Sequence[Sequence[Seen]]) -> set[int]:
    """Which of *traces*, by index, are behaviours of *model*. seen: for each value, what it is in the model."""
    written = "[" + ", ".join(f"{name} |-> {value}" for name, value in seen.items()) + "]"
    module = _MODULE.format(model=model.module, seen=written, traces=literal([list(each) for each in traces]))
    asked = Configuration("Trace", model.constants, quick=True, spec="Behaviour")
    checked = check(asked, asked.text(("Behaves",)), {"Trace": module})
    return {int(number) - 1 for number in re.findall(r'<<"behaviour", (\d+)>>', checked.said)}
