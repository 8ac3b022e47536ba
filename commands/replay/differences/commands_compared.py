"""Which rule explains a command that gets different answers, or after which the versions have different subscriptions.

``of_command`` uses only the command itself. ``of_answers`` uses the answers and actions of the versions; call it only
if both had the same subscriptions before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.register import is_metatopic
from commands.model import Command, DeletePublication, Publish
from commands.replay.differences.observe import ComparedMessage
from commands.replay.differences.subscribers import ForSubscriber
from rfh2.constants import (
    MQRC_SELECTOR_NOT_ALTERABLE,
    MQRC_TOPIC_NOT_ALTERABLE,
    MQRCCF_DUPLICATE_IDENTITY,
    MQRCCF_TOPIC_ERROR,
    MQRCCF_UNKNOWN_STREAM,
    MQRCCF_WRONG_USER,
)
from streams.namelists import QUEUE_NAMELIST
from streams.subscriptions import PublicationFormat, Subscription

_NOT_ALTERABLE: Final = (MQRC_TOPIC_NOT_ALTERABLE, MQRC_SELECTOR_NOT_ALTERABLE)
_EVENTS: Final = "$SYS/"

Explained = tuple[str, str] | None
"""A rule, and its subject in this command, in words."""


def of_command(step: ComparedMessage) -> Explained:
    """The rule that applies to the command by the names in it; None if none of these applies."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None or isinstance(command, DeletePublication):
        return None
    if (unlisted := of_unlisted_stream(step)) is not None:
        return unlisted
    found = _of_sub_point(command, step)
    if isinstance(command, Publish):
        return found or of_publisher(step)
    # If there are several topics, a topic that is none of these may be the reason.
    metatopics = of_metatopics(command.topics) if all(map(is_metatopic, command.topics)) else None
    return metatopics or found or _of_name(command, step)


def of_metatopics(topics: Iterable[str]) -> Explained:
    """The rule of the first metatopic among *topics*."""
    for topic in filter(is_metatopic, topics):
        return ("D24" if topic.startswith(_EVENTS) else "D04"), f"{topic} is a metatopic"
    return None


def of_answers(step: ComparedMessage) -> Explained:
    """The rule by what the versions answered; None where none is known."""
    command = step.new.outcome.command or step.old.outcome.command
    if not isinstance(command, ForSubscriber):
        return None
    old, new = step.old.outcome.reason, step.new.outcome.reason
    meant = step.old.named if command.sub_name is None else None
    if meant is not None and meant in (*step.old.touched, *_delivered_to(step)):
        return _by_identity(meant)
    if new in _NOT_ALTERABLE and old not in _NOT_ALTERABLE:
        return "D10", f"subscription {command.sub_name} is registered again with another topic or filter"
    if old == MQRCCF_DUPLICATE_IDENTITY != new:
        return "D13", "the identity belongs to another user"
    if new == MQRCCF_WRONG_USER != old:
        return "D13", "what fits belongs to another user"
    return of_metatopics(command.topics) if meant is None else _by_identity(meant)


def of_unlisted_stream(step: ComparedMessage) -> Explained:
    """Whether version 7 does not know the stream, which is in no namelist: of a queue, or of a subscriber's command."""
    old, new = step.old.outcome, step.new.outcome
    if old.completion is not None and new.completion is None:
        return "D34", f"{step.arrival.queue} is not in {QUEUE_NAMELIST}"
    if new.reason == MQRCCF_UNKNOWN_STREAM != old.reason:
        stream = None if new.command is None else new.command.stream_name
        return "D34", f"stream {stream} is not in {QUEUE_NAMELIST}"
    return None


def of_publisher(step: ComparedMessage) -> Explained:
    """Whether the publisher speaks MQRFH2 on a stream queue."""
    command = step.new.outcome.command or step.old.outcome.command
    by_mqrfh2 = isinstance(command, Publish) and command.header is PublicationFormat.RFH2
    if not by_mqrfh2 or step.arrival.queue == DEFAULT_STREAM:
        return None
    return "D23", f"an MQRFH2 publisher put to {step.arrival.queue}"


def _of_sub_point(command: Command, step: ComparedMessage) -> Explained:
    """Whether version 7 refuses the command's subscription point."""
    point = getattr(command, "sub_point", None)
    if point and step.new.outcome.reason == MQRCCF_TOPIC_ERROR != step.old.outcome.reason:
        return "D21", f"subscription point {point} is not defined"
    return None


def _of_name(command: Command, step: ComparedMessage) -> Explained:
    """Whether version 7 finds the command's name on another stream than the command means."""
    stream = None if command.stream_name == DEFAULT_STREAM else command.stream_name
    named = step.new.named
    if named is None or named.stream == stream or getattr(command, "sub_name", None) is None:
        return None
    return "D15", f"the name {named.name} is that of a subscription on {named.stream or 'the default stream'}"


def _by_identity(named: Subscription) -> Explained:
    return "D20", f"by its identity the command means subscription {named.name}, too"


def _delivered_to(step: ComparedMessage) -> Iterator[Subscription]:
    return (delivery.subscription for copy in step.old.copies for delivery in copy)
