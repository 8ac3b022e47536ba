"""The questions to a link's tree that a command needs before it is processed, and their answers.

The processor processes commands inside a unit of work, and does not wait for the tree there
(``commands.qmgr.link_port``). So it notes a question that has no answer yet, and asks it after the unit of work. The
answer is for the next unit of work, which processes the command. Unused answers are kept while the next questions are
asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from commands.qmgr.link_port import TreeNotAskedError

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

# After this time other publications may have replaced those in the answer: if the next unit of work has failed for so
# long, ask the tree again.
_STALE_S: Final = 30.0


class Questions(Generic[Q, A]):
    """Questions and answers; used by the processor's thread alone.

    ask: asks the tree all of these, returns what it answered to each, and raises nothing. unused: called with each
    question whose answer no command used.
    """

    def __init__(
        self, ask: Callable[[Sequence[Q]], dict[Q, A]], unused: Callable[[Q], None] = lambda _question: None
    ) -> None:
        self._ask, self._unused = ask, unused
        self._pending: dict[Q, None] = {}
        self._answers: dict[Q, tuple[float, A]] = {}
        self._used: set[Q] = set()

    def has(self, question: Q) -> bool:
        """Whether there is an answer to it."""
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
        """A unit of work is over: drop its answers, except those that a command may still wait for."""
        if not self._pending:
            self.forget()
        for question in self._used:
            self._answers.pop(question, None)
        self._used.clear()

    def forget(self) -> None:
        """The answers may be out of date."""
        for question in self._answers.keys() - self._used:
            self._unused(question)
        self._answers.clear()
        self._used.clear()
