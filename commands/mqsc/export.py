"""A queue manager's definitions as a script of MQSC, as dmpmqcfg writes it: what differs from a new queue manager.

Run on a new queue manager of that name, the script makes the same definitions and subscriptions. Each object has the
attributes that differ from those of its ``SYSTEM.DEFAULT`` object. What MQSC cannot say of a subscription is a comment.
Not in it: messages, retained publications, dynamic queues, expired subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from commands.broker.attribute_kinds import Attribute, Choice, Number, Shown, shown
from commands.broker.objects import PREDEFINED, AuthorityRecord, LocalQueue, Objects, QueueManager
from commands.mqsc.attributes import QMGR
from commands.mqsc.channel_attributes import CHLAUTH
from commands.mqsc.channel_records import row_of
from commands.mqsc.equivalents import OperationContext, to_mqsc
from commands.mqsc.families import (
    AUTHINFO,
    CHANNEL,
    LISTENER,
    NAMELIST,
    QALIAS,
    QLOCAL,
    QMODEL,
    SERVER_CHANNEL,
    TOPIC,
    ObjectFamily,
)
from commands.mqsc.script import NoMqscFormError, Word, comment, quoted, statement
from streams.operations import Subscribe
from streams.subscriptions import Subscription

# What another object names comes before that.
_BEFORE_QMGR: Final = (AUTHINFO,)
_BEHIND_IT: Final = (NAMELIST, QLOCAL, QMODEL, QALIAS, TOPIC, CHANNEL, SERVER_CHANNEL, LISTENER)


def exported(objects: Objects, subscriptions: Iterable[Subscription], now: datetime) -> Iterator[str]:
    """The lines of the script. now: UTC, for what is left of the lifetime of subscriptions."""
    new = Objects(QueueManager(objects.qmgr.name))
    yield comment(f"Definitions of queue manager {objects.qmgr.name}, {now:%Y-%m-%d %H:%M:%S} UTC")
    for family in _BEFORE_QMGR:
        yield from _family(family, objects, new)
    settings = list(_changed(QMGR.attributes, objects.qmgr, new.qmgr))
    if settings:
        yield from _safely("QMGR", "ALTER QMGR", settings)
    for family in _BEHIND_IT:
        yield from _family(family, objects, new)
    there = {record.name: record for record in new.channel_records}
    for record in sorted(objects.channel_records, key=lambda each: each.name):
        if there.get(record.name) != record:
            row = row_of(record)
            rule = [
                (each.keyword, _written(each, row[each.keyword]))
                for each in CHLAUTH.attributes
                if row.get(each.keyword)
            ]
            head = f"SET CHLAUTH({quoted(record.profile)})"
            yield from _safely(f"CHLAUTH({record.profile})", head, [*rule, ("ACTION", Word("REPLACE"))])
    for _, authority in sorted(objects.authorities.items()):
        yield from _authority(authority)
    context = OperationContext(objects.qmgr.name, now)
    for subscription in sorted(subscriptions, key=lambda each: (each.created, each.sub_id)):
        if subscription.temporary or (subscription.expires_at is not None and subscription.expires_at <= now):
            continue
        yield from to_mqsc(Subscribe(subscription, send_retained=False), context)


def _family(family: ObjectFamily, objects: Objects, new: Objects) -> Iterator[str]:
    born_with = family.of(new)
    found = family.of(objects)
    # Templates first: what DEFINE leaves out is taken from them.
    for name in sorted(found, key=lambda each: (not each.startswith("SYSTEM."), each)):
        definition = found[name]
        if definition == born_with.get(name):
            continue
        if isinstance(definition, LocalQueue) and definition.definition_type != PREDEFINED:
            continue
        by_default = family.make(name) if name == family.template else family.existing(objects, family.template)
        by_default = family.make(name) if by_default is None else by_default
        settings = list(_changed(family.kind.attributes, definition, by_default, family.required[0]))
        head = f"DEFINE {family.kind.word}({quoted(name)})"
        yield from _safely(f"{family.kind.word}({name})", head, [*settings, ("REPLACE", None)])


def _changed(
    attributes: Iterable[Attribute], definition: Any, by_default: Any, required: str = ""
) -> Iterator[tuple[str, str | int]]:
    for each in attributes:
        if each.keyword == required or getattr(definition, each.field) != getattr(by_default, each.field):
            yield each.keyword, _written(each, shown(definition, each))


def _written(attribute: Attribute, value: Shown) -> str | int:
    """The value as a script has it."""
    if isinstance(value, tuple):
        return Word(",".join(quoted(each) for each in value) or "' '")
    if isinstance(attribute.kind, Choice | Number):
        return Word(str(value))
    return value


def _safely(name: str, head: str, settings: Iterable[tuple[str, str | int | None]]) -> Iterator[str]:
    """One command; a comment where MQSC cannot say it."""
    given = list(settings)
    words = [word for word, value in given if value is None]
    valued = [(word, value) for word, value in given if value is not None]
    try:
        lines = statement(" ".join((head, *words)), valued)
    except NoMqscFormError as error:
        lines = [comment(f"{name}: {error}")]
    yield from lines


def _authority(record: AuthorityRecord) -> Iterator[str]:
    granted = Word(",".join(record.authorities) or "NONE")
    profile = [] if record.object_type == "QMGR" else [("PROFILE", record.profile)]
    given = [*profile, ("OBJTYPE", Word(record.object_type)), (record.entity_type, record.entity), ("AUTHADD", granted)]
    yield from _safely(f"AUTHREC({record.name})", "SET AUTHREC", given)
