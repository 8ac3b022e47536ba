"""The port: administration of one queue manager. DISPLAY gives typed rows; everything else is a statement of MQSC.

Adapters: an embedded queue manager (below), the REST interface of IBM MQ 9 (``rest``), PCF (``pcf``). They
give the same rows: keywords as DISPLAY prints them, in capitals; text, whole numbers, and tuples of text.

"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from commands.broker.attribute_kinds import Shown
from commands.mqsc.answers import Answer
from commands.mqsc.script import Command, Keyword, Statement, Value, parse
from commands.terminal.counted import counted
from rfh2.errors import MigrationError

Row = Mapping[str, Shown]

_THERE: Final = frozenset({"AMQ8150", "4001", "3311"})
_NOT_FOUND: Final = frozenset({"AMQ8147", "AMQ8420", "2085", "2428", "3308", "3200"})
_AMQ: Final = re.compile(r"AMQ\d{4}")


class AdministrationError(MigrationError):
    """The queue manager cannot be administered: it is not reached, refuses the user, or answers what nobody expects."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one statement. code: AMQ message or reason code of a refusal. text: the answer, for a person."""

    ok: bool
    code: str = ""
    text: str = ""

    @property
    def is_there(self) -> bool:
        """Whether it was refused because the object exists."""
        return not self.ok and self.code in _THERE

    @property
    def is_missing(self) -> bool:
        """Whether it was refused because the object does not exist."""
        return not self.ok and self.code in _NOT_FOUND


def whole(rows: list[Row], failures: Sequence[Outcome], asked: str) -> list[Row]:
    """The rows of one answer to DISPLAY; nothing where nothing was found. asked: queue manager and command, to say it.

    Half an answer is no answer: what a queue manager does not show for want of authority, or because an object is
    damaged, would be taken for missing. Raises AdministrationError where something failed, even beside rows.
    """
    if not failures:
        return rows
    if not rows and all(each.is_missing for each in failures):
        return []
    text = "; ".join(dict.fromkeys(each.text for each in failures))
    if rows:
        shown = counted(len(rows), "object")
        text = f"{text.rstrip('.')}. Beside this error the answer has {shown}: it is incomplete, and is not used"
    raise AdministrationError(f"{asked}: {text}")


def judged(failures: Sequence[Outcome], said: str = "") -> Outcome:
    """What became of one statement whose answer has these failures; a code, where all have the same.

    said: the text of the answer, for one that was carried out.
    """
    if not failures:
        return Outcome(True, message_number(said), said)
    codes = {each.code for each in failures}
    return Outcome(False, codes.pop() if len(codes) == 1 else "", " ".join(each.text for each in failures))


class Administrator(Protocol):
    """Administers one queue manager. where: how it is reached, for messages; never with a password."""

    @property
    def qmgr(self) -> str: ...

    @property
    def where(self) -> str: ...

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        """What ``DISPLAY target(name) scope ALL`` shows, all of it; nothing where nothing is found (``whole``).

        Raises AdministrationError.
        """
        ...

    def run(self, statement: Statement) -> Outcome:
        """Carry out a statement that changes something. Raises AdministrationError if its result is not known."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def message_number(text: str) -> str:
    """The AMQ number that *text* begins with or holds; "" for none. The severity behind it is left out."""
    found = _AMQ.search(text)
    return found[0] if found else ""


def display_command(target: str, name: str | None, scope: Mapping[str, str]) -> Command:
    """``DISPLAY target(name) scope ALL`` as a parsed command."""
    keywords = [Keyword(word, (Value(text, quoted=True),)) for word, text in scope.items()]
    named = None if name is None else Value(name, quoted=True)
    return Command("DISPLAY", target, named, (*keywords, Keyword("ALL", None)))


def statement_of(text: str) -> Statement:
    """The one statement that *text* is. Raises AdministrationError for text that is none."""
    found = parse(text)
    if len(found) != 1:
        raise AdministrationError(f"one MQSC command was expected: {text}")
    return found[0]


def outcome_of(answer: Answer) -> Outcome:
    """What became of a statement that an embedded queue manager has answered."""
    return Outcome(answer.ok, answer.amq or "", " ".join(answer.lines))


def rows_of(answer: Answer, asked: str) -> list[Row]:
    """The rows of such an answer, as ``whole`` gives them."""
    return whole(list(answer.objects), [] if answer.ok else [outcome_of(answer)], asked)
