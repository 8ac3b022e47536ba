"""Carries out one statement on an Administration: the table of verbs and objects.

Everything happens in memory. A command that fails has changed nothing; of one that succeeds the answer lists what has
changed, for the edge to keep. (Only the messages of CLEAR and of DELETE with PURGE are gone when the answer comes: the
queue port takes them off in the caller's unit of work.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from commands.mqsc import (
    answers,
    authority_records,
    cluster_members,
    definitions,
    network_commands,
    queue_status,
    status,
    subscription_display,
    subscriptions,
    topic_display,
)
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, done, refusal
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.model import Command, MqscError, Statement
from commands.mqsc.parser import syntax_error

Handler = Callable[[Command, Administration], Answer]

# Objects of IBM MQ that the bridge does not have: a command on them is correct, and is not carried out.
_OTHER_OBJECTS: Final = frozenset(
    {"AUTHINFO", "BUFFPOOL", "CFSTRUCT", "CHLAUTH", "CHSTATUS", "COMMINFO", "CONN"}
    | {
        "LISTENER",
        "LOG",
        "LSSTATUS",
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
    answer = carry_out(statement.command, administration)
    return replace(answer, objects=tuple(answer.found), found=()) if answer.found else answer


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
    return done(answers.SECURITY_REFRESHED, notes=("nothing is cached here: authority records count at once",))


def _of_families(act: Callable[[Command, Administration, definitions.ObjectFamily], Answer]) -> dict[str, Handler]:
    def bound(family: definitions.ObjectFamily) -> Handler:
        return lambda command, administration: act(command, administration, family)

    return {word: bound(family) for word, family in definitions.FAMILIES.items()}


def _display(*families: definitions.ObjectFamily) -> Handler:
    return partial(definitions.display, families=families)


_HANDLERS: Final[Mapping[str, Mapping[str, Handler]]] = {
    "DEFINE": _of_families(definitions.define) | {"SUB": subscriptions.define},
    "ALTER": _of_families(definitions.alter) | {"SUB": subscriptions.alter, "QMGR": definitions.alter_qmgr},
    "DELETE": _of_families(definitions.delete)
    | {"SUB": subscriptions.delete, "AUTHREC": authority_records.delete_record},
    "DISPLAY": {word: _display(family) for word, family in definitions.FAMILIES.items()}
    | {
        "TOPIC": topic_display.display,
        "TCLUSTER": topic_display.display_cluster_topics,
        "CLUSQMGR": cluster_members.display,
        "QUEUE": _display(*definitions.QUEUES),
        "QMGR": definitions.display_qmgr,
        "SUB": subscription_display.display,
        "QSTATUS": queue_status.display,
        "SBSTATUS": subscription_display.display_status,
        "TPSTATUS": status.display_topic_status,
        "PUBSUB": status.display_pubsub,
        "AUTHREC": authority_records.display_records,
    },
    "CLEAR": {"QLOCAL": definitions.clear_queue, "TOPICSTR": status.clear_topic_string},
    "SET": {"AUTHREC": authority_records.set_record},
    "PING": {"QMGR": _ping},
    "REFRESH": {
        "SECURITY": _refresh_security,
        "QMGR": network_commands.refresh_qmgr,
        "CLUSTER": network_commands.refresh_cluster,
    },
    "SUSPEND": {"QMGR": network_commands.suspend_or_resume},
    "RESUME": {"QMGR": network_commands.suspend_or_resume},
}


def objects_by_verb() -> dict[str, tuple[str, ...]]:
    """Which objects each verb takes, for the reference of docs/reference/mqsc.md."""
    return {verb: tuple(targets) for verb, targets in _HANDLERS.items()}
