"""The objects of a queue manager of IBM MQ, from the script of all its objects that dmpmqcfg or saveqmgr writes.

Queues, topics, namelists, subscriptions, authorities and the queue manager's attributes are read. Channels and all
other objects are skipped, with a note; the names of remote queues are kept, because no local queue can have them. If a
command about an object that is read fails, this is an error: the plan would depend on an object that does not exist.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

from commands.broker.objects import Objects, QueueManager
from commands.broker.selection import Selection
from commands.mqsc import Administration, execute, parse
from migrate.target import Target
from rfh2.errors import MigrationError
from streams.topic_space import TopicSpace

_TAKEN_OVER: Final = frozenset(
    {"QMGR", "QLOCAL", "QL", "QALIAS", "QA", "QMODEL", "QM", "TOPIC", "NAMELIST", "NL", "SUB"}
)
_DEFINING: Final = frozenset({"DEFINE", "ALTER"})
_REMOTE_QUEUE: Final = frozenset({"QREMOTE", "QR"})


def existing_target(qmgr: str, script: str, now: datetime) -> Target:
    """The queue manager that *script* defines. now: UTC.

    Raises MigrationError with the line, the command and IBM MQ's message where a command fails that should not.
    """
    objects = Objects(QueueManager(qmgr, psmode="COMPAT"))
    space = TopicSpace(objects.topics, Selection())
    administration = Administration.of(objects, space, now)
    passed_over: Counter[str] = Counter()
    remote_queues: set[str] = set()
    for statement in parse(script):
        answer = execute(statement, administration)
        command = statement.command
        if answer.ok:
            continue
        if command is None or (command.verb in _DEFINING and command.target in _TAKEN_OVER):
            said = " ".join(answer.lines)
            raise MigrationError(f"--existing, line {statement.line}: {statement.text}: {said}. Nothing was changed")
        if command.target in _REMOTE_QUEUE and command.verb in _DEFINING:
            remote_queues.add("" if command.name is None else command.name.text)
        passed_over[f"{command.verb} {command.target}"] += 1
    notes = tuple(
        f"--existing: {count} {what} passed over, which the migration does not depend on"
        for what, count in passed_over.items()
    )
    retained = {publication.topic_string: publication for publication in space.retained_publications()}
    return Target(objects, space.subscriptions(), retained, remote_queues=frozenset(remote_queues), passed_over=notes)
