"""What a link's tree has to be asked before a command can be processed, and what it answered.

Commands are processed inside a unit of work, and there nobody waits for the tree (``commands.qmgr.link_port``). So a
question that has no answer yet is noted, and asked when the unit of work is over; the answer is for the unit of work
that comes next, in which the command is processed that it was asked for. What nobody has used by then is kept while the
next questions are asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from commands.qmgr.link_port import TreeNotAskedError

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

# What the tree retained so long ago may have been replaced since: where the unit of work that was to come next has
# failed for so long, the tree is asked again.
_STALE_S: Final = 30.0


class Questions(Generic[Q, A]):
    """Questions and answers; used by the processor's thread alone.

    ask: asks the tree all of these, returns what it answered to each, and raises nothing. unused: called with each
    question the answer to which nobody wanted in the end.
    """

    def __init__(
        self, ask: Callable[[Sequence[Q]], dict[Q, A]], unused: Callable[[Q], None] = lambda _question: None
    ) -> None:
        self._ask, self._unused = ask, unused
        self._pending: dict[Q, None] = {}
        self._answers: dict[Q, tuple[float, A]] = {}
        self._used: set[Q] = set()

    def has(self, question: Q) -> bool:
        """Whether it is answered."""
        found = self._answers.get(question)
        return found is not None and time.monotonic() - found[0] < _STALE_S

    def answer(self, question: Q) -> A:
        """The answer. Raises TreeNotAskedError where there is none yet."""
        if not self.has(question):
            self.note(question)
            raise TreeNotAskedError(str(question))
        self._used.add(question)
        return self._answers[question][1]

    def note(self, question: Q) -> None:
        """Ask it too, the next time."""
        if not self.has(question):
            self._pending[question] = None

    def ask(self) -> bool:
        """Ask what is pending; whether anything was."""
        pending, self._pending = self._pending, {}
        if pending:
            at = time.monotonic()
            self._answers |= {question: (at, answer) for question, answer in self._ask(tuple(pending)).items()}
        return bool(pending)

    def committed(self) -> None:
        """A unit of work is over: the answers were for it alone, but for what a command may still wait for."""
        if not self._pending:
            self.forget()
        for question in self._used:
            self._answers.pop(question, None)
        self._used.clear()

    def forget(self) -> None:
        """What was answered may hold no longer."""
        for question in self._answers.keys() - self._used:
            self._unused(question)
        self._answers.clear()
        self._used.clear()
