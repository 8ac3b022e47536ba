"""A queue manager's definitions as a script of MQSC, as dmpmqcfg writes it: what differs from a new queue manager.

Run on a new queue manager of that name, the script makes the same definitions and subscriptions. Each object has the
attributes that differ from those of its ``SYSTEM.DEFAULT`` object. What MQSC cannot say of a subscription is a comment.
Not in it: messages, retained publications, dynamic queues, expired subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Final

from commands.broker.attribute_kinds import Attribute, Choice, Number, Shown, shown
from commands.broker.objects import PREDEFINED, AuthorityRecord, LocalQueue, Objects, QueueManager
from commands.mqsc import families
from commands.mqsc.attributes import QMGR
from commands.mqsc.channel_attributes import CHLAUTH
from commands.mqsc.channel_records import row_of
from commands.mqsc.equivalents import OperationContext, to_mqsc
from commands.mqsc.script import NoMqscFormError, Word, comment, quoted, statement
from streams.operations import Subscribe
from streams.subscriptions import Subscription

_BLANK: Final = "' '"
# What another object names comes before that.
_BEFORE_QMGR: Final = (families.AUTHINFO,)
_BEHIND_IT: Final = (
    families.NAMELIST,
    families.QLOCAL,
    families.QMODEL,
    families.QALIAS,
    families.TOPIC,
    families.CHANNEL,
    families.SERVER_CHANNEL,
    families.LISTENER,
)


def exported(objects: Objects, subscriptions: Iterable[Subscription], now: datetime) -> Iterator[str]:
    """The lines of the script. now: UTC, for what is left of the lifetime of subscriptions."""
    new = Objects(QueueManager(objects.qmgr.name))
    yield comment(f"Definitions of queue manager {objects.qmgr.name}, {now:%Y-%m-%d %H:%M:%S} UTC")
    for family in _BEFORE_QMGR:
        yield from _family(family, objects, new)
    settings = list(changed(QMGR.attributes, objects.qmgr, new.qmgr))
    if settings:
        yield from _safely("QMGR", partial(statement, "ALTER QMGR", settings))
    for family in _BEHIND_IT:
        yield from _family(family, objects, new)
    there = {record.name: record for record in new.channel_records}
    for record in sorted(objects.channel_records, key=lambda each: each.name):
        if there.get(record.name) != record:
            row = row_of(record)
            given = (
                (each.keyword, in_script(each, row[each.keyword]))
                for each in CHLAUTH.attributes
                if row.get(each.keyword)
            )
            rule = chain(given, [("ACTION", Word("REPLACE"))])
            head = f"SET CHLAUTH({quoted(record.profile)})"
            yield from _safely(f"CHLAUTH({record.profile})", partial(statement, head, rule))
    for _, authority in sorted(objects.authorities.items()):
        yield from _safely(f"AUTHREC({authority.name})", partial(authority_lines, authority))
    context = OperationContext(objects.qmgr.name, now)
    for subscription in sorted(subscriptions, key=lambda each: (each.created, each.sub_id)):
        if subscription.temporary or (subscription.expires_at is not None and subscription.expires_at <= now):
            continue
        yield from to_mqsc(Subscribe(subscription, send_retained=False), context)


def _family(family: families.ObjectFamily, objects: Objects, new: Objects) -> Iterator[str]:
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
        settings = changed(family.kind.attributes, definition, by_default, family.required[0])
        head = f"DEFINE {family.kind.word}({quoted(name)}) REPLACE"
        yield from _safely(f"{family.kind.word}({name})", partial(statement, head, settings))


def changed(
    attributes: Iterable[Attribute], definition: object, by_default: object, always: str = ""
) -> Iterator[tuple[str, str | int]]:
    """The attributes of *definition* that differ, and the one that is given *always*, as a script has them.

    Raises NoMqscFormError.
    """
    for each in attributes:
        if each.keyword == always or getattr(definition, each.field) != getattr(by_default, each.field):
            yield each.keyword, in_script(each, shown(definition, each))


def in_script(attribute: Attribute | None, value: Shown) -> str | int:
    """What DISPLAY shows of *attribute*, as a value of a command in a script. Raises NoMqscFormError."""
    if isinstance(value, tuple):
        return Word(", ".join(quoted(name) for name in value) or _BLANK)
    if isinstance(value, int):
        return value
    is_word = attribute is not None and isinstance(attribute.kind, Choice | Number)
    return Word(value) if is_word else value or Word(_BLANK)


def authority_lines(record: AuthorityRecord) -> list[str]:
    """SET AUTHREC that grants what *record* grants. Raises NoMqscFormError."""
    granted = Word(",".join(record.authorities) or "NONE")
    profile = [] if record.object_type == "QMGR" else [("PROFILE", record.profile)]
    given = [*profile, ("OBJTYPE", Word(record.object_type)), (record.entity_type, record.entity), ("AUTHADD", granted)]
    return statement("SET AUTHREC", given)


def _safely(name: str, made: Callable[[], list[str]]) -> list[str]:
    """The lines of a command; a comment where MQSC cannot say it."""
    try:
        return made()
    except NoMqscFormError as error:
        return [comment(f"{name}: {error}")]
