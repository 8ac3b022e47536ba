"""Administration of an embedded queue manager, or of one that is only in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from commands.mqsc import Administration, Answer, execute, parse
from commands.mqsc.model import Command, Keyword, Statement, Value
from commands.qmgr.admin.runner import StatementRunner
from commands.qmgr.store import QueueManagerStore
from commands.terminal.users import current_user, groups_of
from migrate.live.administrator import AdministrationError, Outcome, Row, whole


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


class EmbeddedAdministrator:
    """Runs MQSC on the database of an embedded queue manager; a running processor goes on beside it."""

    def __init__(self, store: QueueManagerStore) -> None:
        self._store = store
        self._runner = StatementRunner(store, current_user(), groups_of, lambda: datetime.now(UTC))

    @property
    def qmgr(self) -> str:
        return self._store.name

    @property
    def where(self) -> str:
        return f"the embedded queue manager {self.qmgr}"

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        statement = Statement(1, 1, (), f"DISPLAY {target}", display_command(target, name, scope))
        return _rows(self._answer(statement), self.where)

    def run(self, statement: Statement) -> Outcome:
        return _outcome(self._answer(statement))

    def close(self) -> None:
        self._store.close()

    def _answer(self, statement: Statement) -> Answer:
        ((_, answer),) = self._runner.run([statement])
        return answer


class MemoryAdministrator:
    """Runs MQSC in memory: what is planned is looked at as what is live."""

    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    @property
    def qmgr(self) -> str:
        return self._administration.objects.qmgr.name

    @property
    def where(self) -> str:
        return f"queue manager {self.qmgr} in memory"

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        statement = Statement(1, 1, (), f"DISPLAY {target}", display_command(target, name, scope))
        return _rows(execute(statement, self._administration), self.where)

    def run(self, statement: Statement) -> Outcome:
        return _outcome(execute(statement, self._administration))

    def close(self) -> None:
        return


def _outcome(answer: Answer) -> Outcome:
    return Outcome(answer.ok, answer.amq or "", " ".join(answer.lines))


def _rows(answer: Answer, asked: str) -> list[Row]:
    return whole(list(answer.objects), [] if answer.ok else [_outcome(answer)], asked)
