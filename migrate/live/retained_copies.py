"""Copies of what a queue manager of IBM MQ retains: a subscription to all topics asks for them (MQSUBRQ).

A copy has topic, data, persistence, expiry, user and properties; who published it first, and its identifiers, are those
of the copy. It becomes the command that publishes it again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from commands.links.engine.command_from_native import command_for, why_not_command
from commands.links.ibmmq.connection import Connection
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.publications import native_of
from commands.links.ibmmq.reasons import MqError
from rfh2.errors import DecodeError, MigrationError
from rfh2.mqi_constants import MQRC_NO_RETAINED_MSG
from rfh2.mqmd import Mqmd, name_of

Copies = dict[str, tuple[bytes, bytes]]
"""MQMD and body of the command that publishes it again, by topic string."""

_ANSWER_MS: Final = 30_000


def retained_copies(messages: MqMessages) -> Copies:
    """All that is retained. Raises MqError, and MigrationError where not all of it arrives."""
    connection = messages.connection
    if not connection.is_up:
        connection.connect()
    cmqc = connection.mq.CMQC
    options = cmqc.MQSO_CREATE | cmqc.MQSO_NON_DURABLE | cmqc.MQSO_MANAGED | cmqc.MQSO_PUBLICATIONS_ON_REQUEST
    asked = connection.subscribe("#", "", options | cmqc.MQSO_WILDCARD_TOPIC, None)
    found: Copies = {}
    try:
        queue = asked.subscription.get_sub_queue()
        for _ in range(_requested(connection, asked)):
            got = connection.get(queue, cmqc.MQGMO_NO_SYNCPOINT, wait_ms=_ANSWER_MS)
            if got is None:
                raise MigrationError("IBM MQ has not sent all that it retains; run the same command again")
            with suppress(DecodeError):
                topic, copy = _command(got.md, got.body)
                found[topic] = copy
    finally:
        with suppress(MqError):
            connection.close_subscription(asked, cmqc.MQCO_NONE, queue_too=True)
    return found


def _command(md: bytes, body: bytes) -> tuple[str, tuple[bytes, bytes]]:
    """Raises DecodeError for what is no publication, has no data, or is on a topic that no command can name."""
    native, _ = native_of(md, body)
    # A command without data would clear the topic.
    why = why_not_command(native.topic) or ("" if native.payload else "it has no data") or None
    if why is not None:
        raise DecodeError(0, "message", why, "no-command-header")
    user = name_of(Mqmd.decode(md).user_identifier)
    mqmd, command, _ = command_for(replace(native, retain=True), user)
    return native.topic, (mqmd.encode(), command)


def _requested(connection: Connection, asked: Any) -> int:
    try:
        return connection.request(asked)
    except MqError as error:
        if error.reason == MQRC_NO_RETAINED_MSG:
            return 0
        raise
