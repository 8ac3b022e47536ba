"""Probes what IBM does not document: how a queue manager joins the name of a subscription and that of its stream.

Guide 7.6.1 says that the stream's name is appended, and not what stands between the two. A plan has to choose. The
probe asks the queue manager itself, on a stream, with names and topics that nobody else has:

    1  RegSub with a name as an old program gives it; DISPLAY SUB shows what the queue manager makes of it
    2  RegSub with another name as the plan gives it, NAME SEPARATOR STREAM
    3  RegSub with that name as an old program gives it, for the same topic and queue: it finds the subscription of 2;
       or it is refused, or makes another one. Then the old program would have an error, or everything twice

The subscriptions and the queue are removed. The commands, and with them the subscriptions, expire: a probe that is
killed leaves nothing but an empty queue.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE
from migrate.extract import request
from migrate.live.administrator import AdministrationError, Administrator, statement_of
from migrate.live.loading import Messages, answers_until_response
from migrate.live.snapshot import names, text
from migrate.planned_state import PlannedObject
from rfh2.constants import MQRCCF_NOT_AUTHORIZED, reason_name
from rfh2.errors import MigrationError, QPubSubError
from streams.topic_objects import DEFAULT_STREAM, QUEUE_NAMELIST

# The subscriptions of a probe that is killed expire soon after it.
_LEFT_TENTHS: Final = 600


@dataclass(frozen=True, slots=True)
class NameProbe:
    """What the probe found. planned: the separator of the plan. is_found: an old program finds the planned name.

    shown: the name that DISPLAY SUB shows for one that an old program registers, with NAME for its own part. live: the
    separator in it; None if the two are joined in another way, or not at all. reason: why the old program is refused.
    """

    stream: str
    planned: str
    is_found: bool
    live: str | None
    shown: str
    reason: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """For a person: what was found, and what to do."""
        planned = f"NAME{self.planned}{self.stream}"
        who = f"names on streams: a program that registers NAME on stream {self.stream}"
        if self.is_found:
            return (f"{who} finds the subscription {planned}: the plan is right",)
        would = (
            f"is refused with reason {self.reason}" if self.reason else "makes a second one and gets everything twice"
        )
        found = f"{who} does not find the subscription {planned}: it {would}. DISPLAY SUB shows its own as {self.shown}"
        if self.live is not None and self.live != self.planned:
            return found, f"make the plan again with --name-separator '{self.live}'"
        return (
            found,
            "let the programs register the named subscriptions of streams: take their messages out of "
            "6-registrations.qload",
        )


def planned_separator(planned: list[PlannedObject]) -> str:
    """The separator in the names of the plan; the default one if it has no name on a stream."""
    for each in planned:
        if each.kind == "SUB" and each.stream and each.name:
            return each.name.removeprefix(each.own_name).removesuffix(each.stream)
    return NAME_SEPARATOR


def streams_of(administrator: Administrator) -> tuple[str, ...]:
    """The streams of a queue manager besides those that every one has. Raises AdministrationError."""
    rows = administrator.display("NAMELIST", QUEUE_NAMELIST)
    listed = names(rows[0], "NAMES") if rows else ()
    return tuple(name for name in listed if name not in (DEFAULT_STREAM, ADMIN_STREAM))


def probe_names(
    administrator: Administrator, messages: Messages, stream: str | None, separator: str, wait_s: float
) -> NameProbe:
    """Probe on *stream*, the first one there is if it is None. Raises MigrationError if there is no answer."""
    if stream is None:
        found = streams_of(administrator)
        if not found:
            raise MigrationError(f"the probe of names needs a stream: {QUEUE_NAMELIST} has only the default ones")
        stream = found[0]
    own = queue = f"QPUBSUB.PROBE.{os.urandom(6).hex().upper()}"
    made = administrator.run(statement_of(f"DEFINE QLOCAL('{queue}') DESCR('qpubsub verify: probe of names')"))
    if not made.ok:
        raise AdministrationError(f"{administrator.where}: the probe's queue could not be made: {made.text}")
    try:
        probe = _Probe(administrator, messages, stream, queue, wait_s)
        first, second = f"{own}.1", f"{own}.2"
        probe.must_register(first, 1)
        probe.must_register(f"{second}{separator}{stream}", 2)
        reason = probe.register(second, 2)
        (shown, *_), others = probe.names(1), probe.names(2)
    finally:
        _clean_up(administrator, queue)
    joined = shown.startswith(first) and shown.endswith(stream) and shown != first
    live = shown[len(first) : -len(stream)] if joined else None
    is_found = not reason and len(others) == 1
    return NameProbe(stream, separator, is_found, live, shown.replace(first, "NAME"), reason)


@dataclass(frozen=True, slots=True)
class _Probe:
    """The commands of one probe, and what they have made."""

    administrator: Administrator
    messages: Messages
    stream: str
    queue: str
    wait_s: float

    def names(self, number: int) -> list[str]:
        """The names of the subscriptions to topic *number*. Raises MigrationError if there is none."""
        rows = self.administrator.display("SUB", "*")
        topic = f"/{self._topic(number)}"
        found = [text(row, "SUB") for row in rows if f"/{text(row, 'TOPICSTR')}".endswith(topic)]
        if not found:
            raise MigrationError("the probe of names: DISPLAY SUB does not show what was registered")
        return found

    def must_register(self, name: str, number: int) -> None:
        """RegSub that has to succeed. Raises MigrationError."""
        reason = self.register(name, number)
        if reason:
            why = f"RegSub of {name} on stream {self.stream} ended with reason {reason} {reason_name(reason) or ''}"
            if reason == MQRCCF_NOT_AUTHORIZED:
                why += f". The user needs SUB on topic object {self.stream}, and PUT on queues QPUBSUB.PROBE.**"
            raise MigrationError(f"the probe of names: {why}")

    def register(self, name: str, number: int) -> int:
        """Put RegSub and wait for its answer; the reason. Raises MigrationError if there is none."""
        qmgr, queue = self.administrator.qmgr, self.queue
        pairs = [("MQPSCommand", "RegSub"), ("MQPSStreamName", self.stream), ("MQPSTopic", self._topic(number))]
        pairs += [("MQPSQMgrName", qmgr), ("MQPSQName", queue), ("MQPSSubName", name)]
        mqmd, body = request(pairs, qmgr, queue, int(10 * self.wait_s) + _LEFT_TENTHS)
        with self.messages.unit_of_work() as unit:
            unit.put(CONTROL_QUEUE, mqmd.encode(), body, application="qpubsub verify")
        try:
            return answers_until_response(self.messages, queue, self.wait_s, lambda _answer: None)
        except MigrationError as error:
            raise MigrationError(f"the probe of names: {error}") from error

    def _topic(self, number: int) -> str:
        return f"qpubsub/probe/{self.queue}/{number}"


def _clean_up(administrator: Administrator, queue: str) -> None:
    with suppress(QPubSubError):
        for row in administrator.display("SUB", "*"):
            if text(row, "DEST") == queue:
                administrator.run(statement_of(f"DELETE SUB SUBID({text(row, 'SUBID')})"))
        administrator.run(statement_of(f"DELETE QLOCAL('{queue}') PURGE"))
