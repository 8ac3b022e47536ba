"""Carries out one statement on an Administration: the table of verbs and objects.

Everything happens in memory. A command that fails has changed nothing; of one that succeeds the answer lists what has
changed, for the edge to keep. (Only the messages of CLEAR and of DELETE with PURGE are gone when the answer comes: the
queue port takes them off in the caller's unit of work.)

A whole script is echoed, carried out and answered command by command, and at the end says how many failed:

    1 : define qlocal('Sport')
    AMQ8006: WebSphere MQ queue created.
    ...
    3 MQSC commands read.
    No commands have a syntax error.
    All valid MQSC commands were processed.

After a failure the script goes on. Only the setup of a queue manager (``run_setup``) stops: its script must be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from commands.broker.connections import NotAnsweredError
from commands.broker.objects import Objects
from commands.mqsc import (
    answers,
    authority_records,
    channel_records,
    clusters,
    connections,
    definitions,
    families,
    status,
    subscriptions,
)
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, done, refusal
from commands.mqsc.attributes import NAMELIST, QMGR, TOPIC, unexpected_keyword
from commands.mqsc.channel_attributes import CHANNEL
from commands.mqsc.script import Command, Keyword, MqscError, Statement, Value, parse, shortened, syntax_error
from rfh2.errors import QPubSubError
from streams.topic_space import TopicSpace

Handler = Callable[[Command, Administration], Answer]
_QMGR_NAME: Final = "+QMNAME+"

# Objects of IBM MQ that the bridge does not have: a command on them is correct, and is not carried out.
_OTHER_OBJECTS: Final = frozenset(
    {"BUFFPOOL", "CFSTRUCT", "COMMINFO"}
    | {
        "LOG",
        "POLICY",
        "PROCESS",
        "PSID",
        "QREMOTE",
        "QR",
        "SERVICE",
    }
    | {"STGCLASS", "SVSTATUS", "TRACE"}
)


def execute(statement: Statement, administration: Administration) -> Answer:
    """Carry one statement out. Never raises for what the statement says: the answer says so instead."""
    if statement.command is None:
        return refusal(statement.error or syntax_error(statement.text))
    answer = carry_out(_with_inserts(statement.command, administration.objects.qmgr.name), administration)
    return replace(answer, objects=tuple(answer.found), found=()) if answer.found else answer


def _with_inserts(command: Command, qmgr: str) -> Command:
    """*command* with the name of the queue manager where its values have ``+QMNAME+``."""

    def filled(value: Value) -> Value:
        return replace(value, text=value.text.replace(_QMGR_NAME, qmgr)) if _QMGR_NAME in value.text else value

    def given(keyword: Keyword) -> Keyword:
        return keyword if keyword.values is None else replace(keyword, values=tuple(map(filled, keyword.values)))

    name = None if command.name is None else filled(command.name)
    return replace(command, name=name, keywords=tuple(map(given, command.keywords)))


def carry_out(command: Command, administration: Administration) -> Answer:
    """The same for a command that was read; what DISPLAY shows is ``found``, and worked out as it is gone through.

    Go through it once, before anything is changed.
    """
    # Names of expired subscriptions are free again, so the caller must save that these subscriptions are gone.
    expired = tuple(administration.topic_space.expire(administration.now))
    try:
        answer = _handler(command)(command, administration)
    except MqscError as error:
        answer = refusal(error)
    except NotAnsweredError as error:
        answer = refusal(answers.failed(f"{error}."))
    return replace(answer, changes=(*expired, *answer.changes)) if expired else answer


def _handler(command: Command) -> Handler:
    """What carries the command out. Raises MqscError AMQ8405 where verb and object do not go together."""
    targets = _HANDLERS.get(command.verb)
    if targets is None:
        raise answers.failed(f"The bridge has nothing to {command.verb}: this command was not done.")
    handler = targets.get(command.target)
    if handler is not None:
        return handler
    if command.target in _OTHER_OBJECTS:
        raise answers.failed(f"The bridge has no {command.target} objects: this command was not done.")
    known = " ".join(sorted(targets))
    raise syntax_error(f"{command.verb} {command.target}", f"{command.verb} takes: {known}")


def _ping(command: Command, _administration: Administration) -> Answer:
    for keyword in command.keywords:
        raise unexpected_keyword(command, keyword)
    return done(answers.PING_COMPLETE)


def _refresh_security(command: Command, _administration: Administration) -> Answer:
    for keyword in command.keywords:
        if keyword.name not in {"TYPE", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    return done(answers.SECURITY_REFRESHED, notes=("nothing is cached here: definitions have an effect at once",))


def _of_families(act: Callable[[Command, Administration, families.ObjectFamily], Answer]) -> dict[str, Handler]:
    def bound(family: families.ObjectFamily) -> Handler:
        return lambda command, administration: act(command, administration, family)

    def channel(command: Command, administration: Administration) -> Answer:
        return act(command, administration, channel_records.channel_family(command, administration.objects))

    return {word: bound(family) for word, family in families.FAMILIES.items()} | {"CHANNEL": channel}


def _display(*shown: families.ObjectFamily) -> Handler:
    return partial(definitions.display, families=shown)


_HANDLERS: Final[Mapping[str, Mapping[str, Handler]]] = {
    "DEFINE": _of_families(definitions.define) | {"SUB": subscriptions.define},
    "ALTER": _of_families(definitions.alter) | {"SUB": subscriptions.alter, "QMGR": definitions.alter_qmgr},
    "DELETE": _of_families(definitions.delete)
    | {"SUB": subscriptions.delete, "AUTHREC": authority_records.delete_record},
    "DISPLAY": {word: _display(family) for word, family in families.FAMILIES.items()}
    | {
        "CHANNEL": _display(*families.CHANNELS),
        "CHLAUTH": channel_records.display_records,
        "TOPIC": status.display_topic,
        "TCLUSTER": status.display_cluster_topics,
        "CLUSQMGR": clusters.display_members,
        "QUEUE": _display(*families.QUEUES),
        "QMGR": definitions.display_qmgr,
        "SUB": subscriptions.display,
        "QSTATUS": status.display_queue_status,
        "SBSTATUS": subscriptions.display_status,
        "TPSTATUS": status.display_topic_status,
        "PUBSUB": status.display_pubsub,
        "CONN": connections.display_connections,
        "CHSTATUS": connections.display_channel_status,
        "LSSTATUS": connections.display_listener_status,
        "QMSTATUS": connections.display_queue_manager_status,
        "AUTHREC": authority_records.display_records,
    },
    "CLEAR": {"QLOCAL": definitions.clear_queue, "TOPICSTR": status.clear_topic_string},
    "SET": {"AUTHREC": authority_records.set_record, "CHLAUTH": channel_records.set_record},
    "START": {"LISTENER": channel_records.control_listener, "CHANNEL": connections.start_channel},
    "STOP": {
        "LISTENER": channel_records.control_listener,
        "CHANNEL": connections.stop_channel,
        "CONN": connections.stop_connection,
    },
    "PING": {"QMGR": _ping},
    "REFRESH": {
        "SECURITY": _refresh_security,
        "QMGR": clusters.refresh_qmgr,
        "CLUSTER": clusters.refresh_cluster,
    },
    "SUSPEND": {"QMGR": clusters.suspend_or_resume},
    "RESUME": {"QMGR": clusters.suspend_or_resume},
}


def objects_by_verb() -> dict[str, tuple[str, ...]]:
    """Which objects each verb takes, for the reference of docs/reference/mqsc.md."""
    return {verb: tuple(targets) for verb, targets in _HANDLERS.items()}


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
            raise QPubSubError(f"line {statement.line}: {shortened(statement.text)}: {' '.join(answer.lines)}")
