"""Which rule a command falls under that the versions answer otherwise, or that leaves them with other subscriptions."""

from __future__ import annotations

from typing import Final

from commands.model import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RegisterSubscriber,
    RequestUpdate,
)
from commands.objects import DEFAULT_STREAM
from commands.registration import is_metatopic
from commands.replay.differences.observe import Step
from rfh2.constants import (
    MQRC_SELECTOR_NOT_ALTERABLE,
    MQRC_TOPIC_NOT_ALTERABLE,
    MQRCCF_DUPLICATE_IDENTITY,
    MQRCCF_DUPLICATE_SUBSCRIPTION,
    MQRCCF_TOPIC_ERROR,
    MQRCCF_WRONG_USER,
)
from streams.operations import Effect, SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import PublicationFormat, Subscription

_NOT_ALTERABLE: Final = (MQRC_TOPIC_NOT_ALTERABLE, MQRC_SELECTOR_NOT_ALTERABLE)
_EVENTS: Final = "$SYS/"

Explained = tuple[str, str] | None
"""A rule, and what it is about here, in words."""


def rule_of(step: Step) -> Explained:
    """The rule, or None where none is known."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None:
        return None
    old, new = step.old.outcome.reason, step.new.outcome.reason
    metatopics = [topic for topic in command.topics if is_metatopic(topic)]
    if metatopics and not isinstance(command, Publish | DeletePublication):
        return ("D24" if metatopics[0].startswith(_EVENTS) else "D04"), f"{metatopics[0]} is a metatopic"
    if new in _NOT_ALTERABLE and old not in _NOT_ALTERABLE:
        if any(isinstance(effect, SubscriptionAdded) for effect in step.old.outcome.effects):
            return "D15", f"the name {_name(command)} is in use on another stream"
        return "D10", f"subscription {_name(command)} is registered again with another topic or filter"
    if isinstance(command, Publish | RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        point = command.sub_point
        if point and new == MQRCCF_TOPIC_ERROR and old != new:
            return "D21", f"subscription point {point} is not defined"
    if MQRCCF_DUPLICATE_IDENTITY in (old, new) and old != new:
        return "D13", "the identity belongs to another user"
    if new == MQRCCF_WRONG_USER and old != new:
        return "D13", "the identity belongs to another user"
    if new == MQRCCF_DUPLICATE_SUBSCRIPTION and old != new:
        return "D15", f"the name {_name(command)} is in use, on whatever stream"
    return _of_identity(command, step)


def _of_identity(command: Command, step: Step) -> Explained:
    """Commands without SubName: in version 6 they mean named subscriptions too."""
    if not isinstance(command, RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        if isinstance(command, Publish) and _on_stream_by_mqrfh2(command, step):
            return "D23", f"an MQRFH2 publisher put to {step.arrival.queue}"
        return None
    if command.sub_name is None:
        named = next((s for s in _touched(step.old.outcome.effects) if s.name is not None), None)
        if named is not None:
            return "D20", f"by its identity the command means subscription {named.name}, too"
        if step.old.copies and any(copy[0].subscription.name for copy in step.old.copies):
            return "D20", "by its identity the command means a named subscription, too"
    return None


def _on_stream_by_mqrfh2(command: Publish, step: Step) -> bool:
    return command.header is PublicationFormat.RFH2 and step.arrival.queue != DEFAULT_STREAM


def _touched(effects: tuple[Effect, ...]) -> list[Subscription]:
    found = []
    for effect in effects:
        if isinstance(effect, SubscriptionRemoved):
            found.append(effect.subscription)
        elif isinstance(effect, SubscriptionAltered):
            found.append(effect.before)
    return found


def _name(command: Command) -> str:
    return getattr(command, "sub_name", None) or "of that identity"
