"""A whole script: each command echoed, carried out and answered, and at the end how many failed.

    1 : define qlocal('Sport')
    AMQ8006: WebSphere MQ queue created.
    ...
    3 MQSC commands read.
    No commands have a syntax error.
    All valid MQSC commands were processed.

After a failure the script goes on. Only the setup of a queue manager (``run_setup``) stops: its script must be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.objects import Objects
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer
from commands.mqsc.attributes import CHANNEL, NAMELIST, QMGR, TOPIC
from commands.mqsc.execute import execute
from commands.mqsc.model import Command, Statement
from commands.mqsc.parser import parse
from rfh2.errors import QPubSubError
from streams.topic_space import TopicSpace

_ABOUT_NETWORK: Final = frozenset(kind.word for kind in (CHANNEL, NAMELIST, QMGR, TOPIC))


@dataclass(slots=True)
class ScriptTally:
    """How a script went. syntax_errors: statements that are no command; failed: commands that could not be done."""

    read: int = 0
    syntax_errors: int = 0
    failed: int = 0

    def count(self, answer: Answer) -> None:
        """Count one answer."""
        self.read += 1
        if not answer.ok and answer.is_syntax_error:
            self.syntax_errors += 1
        elif not answer.ok:
            self.failed += 1

    @property
    def ok(self) -> bool:
        """Whether every command was carried out."""
        return not self.syntax_errors and not self.failed

    @property
    def lines(self) -> tuple[str, str, str]:
        """The three lines with which runmqsc ends."""
        read = "One MQSC command" if self.read == 1 else f"{self.read or 'No'} MQSC commands"
        wrong = "One command has" if self.syntax_errors == 1 else f"{self.syntax_errors or 'No'} commands have"
        if not self.failed:
            outcome = "All valid MQSC commands were processed."
        elif self.failed == 1:
            outcome = "One valid MQSC command could not be processed."
        else:
            outcome = f"{self.failed} valid MQSC commands could not be processed."
        return f"{read} read.", f"{wrong} a syntax error.", outcome


def echo(statement: Statement) -> tuple[str, ...]:
    """The command as runmqsc repeats it: numbered, its further lines below."""
    first, *others = statement.source
    return (f"{statement.number:>6} : {first}", *(f"{'':>6} : {line}" for line in others))


def run_setup(text: str, objects: Objects, topic_space: TopicSpace, now: datetime) -> None:
    """Run a script that is to make a queue manager what it must be, before its first message.

    now: UTC. Raises QPubSubError with the line, the command and the message of the first command that fails; what the
    commands before it did stays.
    """
    _run(parse(text), objects, topic_space, now)


def run_network_definitions(text: str, objects: Objects, now: datetime) -> None:
    """Run what a setup says about topic objects, channels, namelists and the queue manager, and nothing else.

    That is what a network has to know before the whole setup runs: PARENT, the clusters, and their topic objects.

    Raises what ``run_setup`` does.
    """
    wanted = (statement for statement in parse(text) if _is_about_network(statement))
    _run(wanted, objects, TopicSpace(objects.topics), now)


def _is_about_network(statement: Statement) -> bool:
    command = statement.command
    return isinstance(command, Command) and command.target in _ABOUT_NETWORK


def _run(statements: Iterable[Statement], objects: Objects, topic_space: TopicSpace, now: datetime) -> None:
    administration = Administration.of(objects, topic_space, now)
    for statement in statements:
        answer = execute(statement, administration)
        if not answer.ok:
            raise QPubSubError(f"line {statement.line}: {statement.text}: {' '.join(answer.lines)}")
