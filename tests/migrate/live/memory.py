"""A queue manager in memory, administered as a live one."""

from __future__ import annotations

from commands.broker.objects import Objects, QueueManager
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration
from commands.mqsc.execute import execute, run_setup
from commands.mqsc.script import Statement
from migrate.live.snapshot import Outcome, Row, display_command, outcome_of, rows_of
from streams.topic_space import TopicSpace
from tests.migrate.legacy_messages import NOW


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
        return rows_of(execute(statement, self._administration), self.where)

    def run(self, statement: Statement) -> Outcome:
        return outcome_of(execute(statement, self._administration))

    def close(self) -> None:
        return


def memory(script: str, psmode: str = "ENABLED") -> MemoryAdministrator:
    """A queue manager that *script* has set up."""
    objects = Objects(QueueManager("QM1", psmode=psmode))
    space = TopicSpace(objects.topics, Selection())
    run_setup(script, objects, space, NOW)
    return MemoryAdministrator(Administration.of(objects, space, NOW))
