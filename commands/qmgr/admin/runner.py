"""Runs MQSC statements on an embedded queue manager: each change is in its database when the answer is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from commands.broker.authority import GroupsOf
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, failed, refusal
from commands.mqsc.execute import execute
from commands.mqsc.model import Statement
from commands.qmgr.admin.keeping import Keeper, UnitQueues
from commands.qmgr.admin.neighbours import neighbours_of
from commands.qmgr.backlog import Backlog
from commands.qmgr.processor import LONGEST_PAUSE_S
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2.errors import StoreError
from streams.topic_space import TopicSpace


class StatementRunner:
    """Carries statements out on *store*; it loads the queue manager again when another program has changed it.

    user: the administrator. groups_of: the groups of a user. clock: UTC.
    """

    def __init__(self, store: QueueManagerStore, user: str, groups_of: GroupsOf, clock: Callable[[], datetime]) -> None:
        self._store, self._user, self._groups_of, self._clock = store, user, groups_of, clock
        self._known: tuple[int, Administration] | None = None
        self._backlog = Backlog(clock, LONGEST_PAUSE_S)
        self._keeper = Keeper(self._backlog)

    def run(self, some: Sequence[Statement]) -> list[tuple[Statement, Answer]]:
        """Some statements in one unit of work; their answers are true once this returns."""
        try:
            self._backlog.doubt()
            with self._store.unit_of_work() as unit:
                answers = [(statement, self._one(unit, statement)) for statement in some]
                version = unit.state_version
        except BaseException:
            self._known = None
            raise
        if self._known is not None:
            self._known = (version, self._known[1])
        return answers

    def _one(self, unit: UnitOfWork, statement: Statement) -> Answer:
        administration = self._administration(unit)
        try:
            with unit.savepoint():
                answer = execute(statement, administration)
                self._keeper.keep(answer, administration.objects, unit, administration.now)
        except StoreError as error:
            # Memory knows of what was backed out.
            self._known = None
            return refusal(failed(f"{error}."))
        self._known = (unit.state_version, administration)
        return answer

    def _administration(self, unit: UnitOfWork) -> Administration:
        now = self._clock()
        if self._known is None or self._known[0] != unit.state_version:
            objects, subscriptions, retained = unit.load_state()
            space = TopicSpace(objects.topics, Selection())
            space.restore(subscriptions, retained)
            administration = Administration.of(objects, space, now, UnitQueues(unit), self._user, self._groups_of)
        else:
            administration = self._known[1]
            administration.now, administration.queues = now, UnitQueues(unit)
        administration.neighbours = neighbours_of(unit)
        return administration
