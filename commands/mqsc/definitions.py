"""DEFINE, ALTER, DELETE and DISPLAY of topics, queues, namelists, channels and the queue manager.

DEFINE begins with the defaults, or with the object that LIKE names; DEFINE REPLACE of something that is there gives
every attribute anew, but messages on a queue stay, and a topic keeps its TOPICSTR: another one is refused (guide 2.5.4,
note to figure 7). ALTER changes what it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from commands.broker.attribute_kinds import Choice, Shown, shown
from commands.broker.channel_objects import AuthenticationInfo, ServerChannel, TcpListener
from commands.broker.objects import (
    CONTROL_QUEUE,
    AliasQueue,
    AuthorityRecord,
    ClusterChannel,
    LocalQueue,
    ModelQueue,
    Objects,
)
from commands.mqsc import answers, attributes, channel_records, clusters
from commands.mqsc.administration import Administration
from commands.mqsc.answers import (
    Answer,
    Change,
    DefinitionDeleted,
    DefinitionStored,
    displayed,
    done,
    matches_name,
    select,
)
from commands.mqsc.attributes import Settings, read_settings
from commands.mqsc.authority_records import notes_after_deletion
from commands.mqsc.families import (
    AUTHINFO,
    LISTENER,
    NAMELIST,
    QALIAS,
    QLOCAL,
    QUEUES,
    SERVER_CHANNEL,
    TOPIC,
    ObjectFamily,
)
from commands.mqsc.script import Command, MqscError, syntax_error
from commands.mqsc.values import object_name, read, single
from rfh2.errors import CommandError
from rfh2.pcf_admin_names import MQRCCF_ATTR_VALUE_ERROR, MQRCCF_ATTR_VALUE_FIXED
from streams.mapping import (
    PrefixFinding,
    check_stream_addition,
    check_stream_deletion,
    check_sub_point_addition,
    collisions,
)
from streams.subscriptions import Subscription
from streams.topic_objects import (
    DEFAULT_STREAM,
    DEFAULT_SUB_POINT,
    QUEUE_NAMELIST,
    SUB_POINT_NAMELIST,
    Namelist,
    TopicObject,
)

_DEFINE_WORDS: Final = frozenset({"REPLACE", "NOREPLACE", "LIKE", "TYPE", "CMDSCOPE", "QSGDISP"})
_ALTER_WORDS: Final = frozenset({"TYPE", "CMDSCOPE", "QSGDISP"})
_DELETE_WORDS: Final = {
    "QLOCAL": frozenset({"PURGE", "NOPURGE", "AUTHREC", "CMDSCOPE", "QSGDISP"}),
    "CHANNEL": frozenset({"CHLTABLE", "CHLTYPE", "IGNSTATE", "CMDSCOPE", "QSGDISP"}),
}
CLIENT_FAMILIES: Final = (SERVER_CHANNEL, AUTHINFO, LISTENER)
_YES_NO: Final = Choice({"YES": True, "NO": False})


def define(command: Command, administration: Administration, family: ObjectFamily) -> Answer:
    """DEFINE: a new object, or with REPLACE a new definition of an existing one."""
    name = _name(command, family)
    existing = _existing(administration.objects, family, name)
    if existing is not None and command.keyword("REPLACE") is None:
        raise answers.already_exists(name)
    checked = channel_records.check(command, family)
    settings = _settings(command, family, _DEFINE_WORDS)
    keyword, field = family.required
    if keyword and field not in settings.fields:
        raise answers.missing_keyword(keyword)
    made = replace(_pattern(command, administration, family, name), **settings.fields)
    if family is LISTENER and existing is not None:
        made = replace(made, is_started=existing.is_started)
    notes = _store(administration, existing, made)
    if isinstance(made, TopicObject) and not made.topic_string:
        notes = (*notes, f"{name} has no TOPICSTR: its topics are at the root. IBM MQ refuses an empty TOPICSTR")
    return done(family.created, DefinitionStored(made), notes=(*notes, *checked, *_ignored(settings)))


def alter(command: Command, administration: Administration, family: ObjectFamily) -> Answer:
    """ALTER: the attributes that the command names."""
    name = _name(command, family)
    existing = _required(administration, family, name)
    checked = channel_records.check(command, family)
    settings = _settings(command, family, _ALTER_WORDS)
    made = replace(existing, **settings.fields)
    notes = _store(administration, existing, made)
    return done(family.changed, DefinitionStored(made), notes=(*notes, *checked, *_ignored(settings)))


def delete(command: Command, administration: Administration, family: ObjectFamily) -> Answer:
    """DELETE. A queue with messages needs PURGE; an object that queued publish/subscribe uses is refused."""
    name = _name(command, family)
    objects = administration.objects
    existing = _required(administration, family, name)
    _only(command, _DELETE_WORDS.get(family.kind.word, {"AUTHREC"}))
    if name not in family.of(objects) or (family in CLIENT_FAMILIES and name not in objects.of_kind(family.stored_as)):
        raise answers.failed(f"{name} is a default object that was not altered: it is always there.")
    if family is AUTHINFO and name == objects.qmgr.connauth:
        raise answers.in_use(name)
    records = _records_of(name, family, objects) if _takes_authority(command) else []
    cleared = None
    if used_by_broker(name, family.stored_as, objects):
        raise answers.in_use(name)
    if family is QLOCAL:
        depth = administration.queues.depth(name)
        if depth and command.keyword("PURGE") is None:
            raise MqscError("AMQ8143", f"{answers.PRODUCT} queue not empty.")
        # A queue of depth 0 may still hold messages that have expired.
        administration.queues.clear(name)
        cleared = depth or None
    changes: list[Change] = [DefinitionDeleted(family.stored_as, name)]
    objects.delete(family.stored_as, name)
    _renew_copies(administration, existing)
    for record in records:
        objects.delete("authrec", record.name)
        changes.append(DefinitionDeleted("authrec", record.name))
    notes = deletion_notes(name, family.stored_as, objects) + (notes_after_deletion(objects) if records else ())
    if family is NAMELIST:
        notes += clusters.namelist_deleted_notes(name, objects)
    return done(family.deleted, *changes, cleared=cleared, notes=notes)


def display(command: Command, administration: Administration, families: Iterable[ObjectFamily]) -> Answer:
    """DISPLAY of one object or, by a generic name, of many; of several families for DISPLAY QUEUE."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    chosen = tuple(families)
    first = chosen[0].kind
    typed = [each for each in map(command.keyword, _type_words(chosen)) if each is not None and each.values is not None]
    wanted = single(typed[0]).text.upper() if typed else "ALL"
    rows = rows_of(administration, chosen, command.name.text.rstrip(" "), wanted)
    known = frozenset(a.keyword for family in chosen for a in family.kind.attributes) | {first.names, "TYPE"}
    known |= {"CURDEPTH", "DEFTYPE"} if QLOCAL in chosen else set()
    without_effect = frozenset(word for family in chosen for word in family.kind.without_effect)
    known |= {"NAMCOUNT"} if NAMELIST in chosen else set()
    identity = (first.names, *(_TYPED.get(first.word, ())), *(("TYPE",) if first.type_word else ()))
    passed_over = frozenset({"TYPE", *(each.name for each in typed)})
    selected = select(command, rows, identity, known=known, without_effect=without_effect, passed_over=passed_over)
    return displayed(chosen[0].display, selected)


def rows_of(
    administration: Administration, families: Iterable[ObjectFamily], pattern: str, wanted: str = "ALL"
) -> Iterator[dict[str, Shown]]:
    """What DISPLAY shows of the objects that are defined here, by name. wanted: of this type alone."""
    objects = administration.objects
    definitions = [
        (name, family, definition)
        for family in families
        for name, definition in _shown(family, objects, pattern)
        if matches_name(pattern, name) and wanted in ("ALL", _type_of(family, definition))
    ]
    return (
        _row(administration, family, definition) for _, family, definition in sorted(definitions, key=itemgetter(0))
    )


def _shown(family: ObjectFamily, objects: Objects, pattern: str) -> Iterable[tuple[str, Any]]:
    """The objects of a family; a template that nobody has altered only by its full name."""
    found = family.of(objects)
    if pattern == family.template and pattern not in found and family is not TOPIC:
        return ((pattern, family.make(pattern)),)
    return found.items()


# By which keywords DISPLAY shows objects of one type, beside TYPE; it shows them first.
_TYPED: Final = {"CHANNEL": ("CHLTYPE",), "AUTHINFO": ("AUTHTYPE",), "LISTENER": ()}


def _type_words(families: tuple[ObjectFamily, ...]) -> tuple[str, ...]:
    return ("TYPE", *_TYPED.get(families[0].kind.word, ()))


def _type_of(family: ObjectFamily, definition: Any) -> str:
    if family.kind.word not in _TYPED:
        return family.kind.type_word
    kind: str = getattr(definition, family.required[1])
    return kind


def alter_qmgr(command: Command, administration: Administration) -> Answer:
    """ALTER QMGR (guide 6.5.1 to 6.5.3, 6.5.7, 6.5.8)."""
    if command.name is not None:
        raise _no_name_here(command)
    settings = read_settings(command, attributes.QMGR, frozenset())
    made = replace(administration.objects.qmgr, **settings.fields)
    if made.connauth and made.connauth not in administration.objects.authentication:
        raise answers.not_found(made.connauth, "CONNAUTH names an AUTHINFO object that is defined.")
    administration.objects.put(made)
    notes = (_CERTIFICATE_NOTE,) if {"key_repository", "certificate_label"} & settings.fields.keys() else ()
    return done(answers.QMGR_CHANGED, DefinitionStored(made), notes=(*notes, *_ignored(settings)))


_CERTIFICATE_NOTE: Final = (
    "SSLKEYR and CERTLABL are kept without effect: [listener.tls] of --config has the certificate that clients see"
)


def display_qmgr(command: Command, administration: Administration) -> Answer:
    """DISPLAY QMGR: all attributes, or those named."""
    if command.name is not None:
        raise _no_name_here(command)
    kind, qmgr = attributes.QMGR, administration.objects.qmgr
    row: dict[str, Shown] = {kind.names: qmgr.name} | {a.keyword: shown(qmgr, a) for a in kind.attributes}
    selected = select(
        command, [row], (kind.names,), known=frozenset(row), without_effect=kind.without_effect, brief=False
    )
    return displayed(answers.QMGR_DISPLAY, selected)


def clear_queue(command: Command, administration: Administration) -> Answer:
    """CLEAR QLOCAL: the queue keeps its definition and loses its messages."""
    name = _name(command, QLOCAL)
    if _existing(administration.objects, QLOCAL, name) is None:
        raise answers.not_found(name)
    _only(command, {"CMDSCOPE", "QSGDISP"})
    return done(answers.QUEUE_CLEARED, cleared=administration.queues.clear(name))


def _name(command: Command, family: ObjectFamily) -> str:
    if command.name is None:
        raise answers.missing_keyword(family.kind.word)
    return object_name(command.name.text, topic=family is TOPIC, longest=family.longest_name)


def _existing(objects: Objects, family: ObjectFamily, name: str) -> Any:
    """The object of this name and kind. Raises AMQ8151 where the name is a queue of another kind."""
    found = family.existing(objects, name) if family is not TOPIC else family.of(objects).get(name)
    if found is None and family in QUEUES and any(name in other.of(objects) for other in QUEUES):
        raise answers.other_type(name)
    return found


def _required(administration: Administration, family: ObjectFamily, name: str) -> Any:
    """The same. Raises AMQ8147 where there is none, with the hosts of a cluster topic of this name."""
    found = _existing(administration.objects, family, name)
    if found is not None:
        return found
    hosts = administration.repository().hosts_of(name) if family is TOPIC else ()
    if not hosts:
        raise answers.not_found(name)
    raise answers.not_found(name, f"It is a cluster topic, which is defined at {', '.join(hosts)}.")


def _settings(command: Command, family: ObjectFamily, words: frozenset[str]) -> Settings:
    if command.keyword("REPLACE") and command.keyword("NOREPLACE"):
        raise MqscError("AMQ8411", "Duplicate Keyword Error.")
    kind = command.keyword("TYPE")
    if kind is not None and family.kind.type_word != single(kind).text:
        raise attributes.unknown_keyword(command, kind, family.kind)
    return read_settings(command, family.kind, words)


def _pattern(command: Command, administration: Administration, family: ObjectFamily, name: str) -> Any:
    """The source of attributes that DEFINE does not give. A topic string never comes from LIKE."""
    like = command.keyword("LIKE")
    source = family.template if like is None else object_name(single(like).text, topic=family is TOPIC)
    if like is None and source not in family.of(administration.objects):
        return family.make(name)
    existing = _required(administration, family, source)
    if family is LISTENER:
        return replace(existing, name=name, is_started=None)
    return replace(existing, name=name, topic_string="") if family is TOPIC else replace(existing, name=name)


def _store(administration: Administration, existing: Any, made: Any) -> tuple[str, ...]:
    """Keep a definition in memory; returns notes for the administrator."""
    objects = administration.objects
    if isinstance(made, TopicObject):
        if existing is not None and existing.topic_string != made.topic_string:
            raise _cannot_change(TOPIC, made.name)
        before = collisions_of(objects)
        try:
            objects.put(made)
        except CommandError as error:
            raise answers.failed_with(error) from error
        return topic_notes(before, objects)
    if isinstance(made, AliasQueue) and not made.target and made.name != QALIAS.template:
        raise answers.missing_keyword("TARGET")
    if isinstance(made, LocalQueue | ModelQueue) and made.triggered and not made.transmission:
        why = f"TRIGGER: no trigger messages are made here. Give {made.name} NOTRIGGER, and start its program yourself."
        raise answers.failed(why, MQRCCF_ATTR_VALUE_ERROR)
    notes: tuple[str, ...] = ()
    if isinstance(made, Namelist) and made.name in (QUEUE_NAMELIST, SUB_POINT_NAMELIST):
        notes = namelist_notes(existing, made, administration)
    if isinstance(made, ClusterChannel):
        notes = clusters.channel_notes(made, objects)
    if isinstance(made, ServerChannel | AuthenticationInfo | TcpListener):
        notes = channel_records.notes(made)
    objects.put(made)
    _renew_copies(administration, made)
    return notes


def _renew_copies(administration: Administration, changed: Any) -> None:
    """After *changed* was stored or deleted, where that can bring copies of cluster topics or take them away.

    A topic object that was deleted does so if another queue manager defines one like it. There may be many of them, so
    the copies are not made again for others.
    """
    if not isinstance(changed, TopicObject | ClusterChannel | Namelist):
        return
    topics = [topic for entry in administration.neighbours.repository() for topic in entry.topics]
    if isinstance(changed, TopicObject):
        strings = {changed.topic_string} - {""}
        topics = [topic for topic in topics if topic.name == changed.name or topic.topic_string in strings]
    if topics:
        administration.renew_copies()


def _cannot_change(family: ObjectFamily, name: str) -> MqscError:
    keyword, _ = family.required
    why = f"{keyword} of {name} cannot be changed; delete the {family.kind.word.lower()} first."
    return answers.failed(why, MQRCCF_ATTR_VALUE_FIXED)


def _ignored(settings: Settings) -> tuple[str, ...]:
    return (f"without effect here: {' '.join(settings.ignored)}",) if settings.ignored else ()


def _row(administration: Administration, family: ObjectFamily, definition: Any) -> dict[str, Shown]:
    row: dict[str, Shown] = {family.kind.names: definition.name}
    if family.kind.type_word:
        row["TYPE"] = family.kind.type_word
    row |= {attribute.keyword: shown(definition, attribute) for attribute in family.kind.attributes}
    if family is NAMELIST:
        row["NAMCOUNT"] = len(definition.names)
    if family is QLOCAL:
        row["DEFTYPE"] = definition.definition_type
        row["CURDEPTH"] = administration.queues.depth(definition.name)
    return row


def _only(command: Command, allowed: Iterable[str]) -> None:
    for keyword in command.keywords:
        if keyword.name not in allowed:
            raise attributes.unexpected_keyword(command, keyword)


def _no_name_here(command: Command) -> MqscError:
    name = command.name.text if command.name else ""
    return syntax_error(f"{command.verb} {command.target}({name}")


def _takes_authority(command: Command) -> bool:
    """Whether the authority records of what is deleted go with it, as they do unless AUTHREC(NO) is given."""
    keyword = command.keyword("AUTHREC")
    return keyword is None or bool(read(_YES_NO, keyword))


def _records_of(name: str, family: ObjectFamily, objects: Objects) -> list[AuthorityRecord]:
    object_type = "QUEUE" if family in QUEUES else family.kind.word
    return [r for r in objects.authorities.values() if (r.object_type, r.profile) == (object_type, name)]


# Checks the effect of a change on streams and subscription points, as guide 6.5.4 to 6.5.6 require.
#
# They never stop a command, because a queue manager would not; their results are the notes below its answer.

# Collisions that the checks of one stream or point do not see.
_BETWEEN: Final = frozenset({"same-place", "nested-place"})


def used_by_broker(name: str, kind: str, objects: Objects) -> bool:
    """Whether queued publish/subscribe has the object open: its control queue, its stream queues and its namelists."""
    if objects.qmgr.psmode != "ENABLED":
        return False
    if kind == "namelist":
        return name in (QUEUE_NAMELIST, SUB_POINT_NAMELIST)
    streams = objects.namelists.get(QUEUE_NAMELIST)
    return kind == "qlocal" and (name == CONTROL_QUEUE or (streams is not None and name in streams))


def deletion_notes(name: str, kind: str, objects: Objects) -> tuple[str, ...]:
    """The notes on deleting an object that is in one of the two namelists."""
    notes = []
    streams, sub_points = objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST)
    if kind == "topic" and streams is not None and name in streams and name != DEFAULT_STREAM:
        notes.append(f"{name} is still listed in {QUEUE_NAMELIST}: from now on its topics lie at the root")
    if kind == "topic" and sub_points is not None and name in sub_points and name != DEFAULT_SUB_POINT:
        notes.append(f"{name} is still listed in {SUB_POINT_NAMELIST}: its subscription point is gone")
    return tuple(notes)


def namelist_notes(before: Namelist | None, after: Namelist, administration: Administration) -> tuple[str, ...]:
    """The notes on a change of the list of streams or of subscription points to *after*."""
    old = before if before is not None else Namelist(after.name)
    to_check = _sub_points if after.name == SUB_POINT_NAMELIST else _streams
    found = [*to_check(old, after, administration)]
    known = collisions_of(administration.objects)
    found += _texts(f for f in collisions_of(administration.objects, after) if f not in known and f.code in _BETWEEN)
    return tuple(dict.fromkeys(found))


def collisions_of(objects: Objects, instead: Namelist | None = None) -> list[PrefixFinding]:
    """The collisions of streams and subscription points. instead: the new value of one of the two lists."""
    lists = {**objects.namelists, **({instead.name: instead} if instead is not None else {})}
    return collisions(lists.get(QUEUE_NAMELIST), lists.get(SUB_POINT_NAMELIST), objects.topics)


def topic_notes(before: list[PrefixFinding], objects: Objects) -> tuple[str, ...]:
    """The result of a change to topic objects. before: ``collisions_of`` before the change."""
    return tuple(_texts(finding for finding in collisions_of(objects) if finding not in before))


def _streams(old: Namelist, new: Namelist, administration: Administration) -> Iterator[str]:
    objects = administration.objects
    subscriptions, retained = _there_already(administration)
    for stream in new.names:
        if stream not in old:
            found = check_stream_addition(stream, objects.queues, old, objects.topics, subscriptions, retained)
            yield from _texts(found)
    for stream in old.names:
        if stream in new:
            continue
        if stream == DEFAULT_STREAM:
            yield f"{DEFAULT_STREAM} is no longer listed: ALTER replaces the whole list"
            continue
        depth = administration.queues.depth(stream) if stream in objects.queues else 0
        yield from _texts(check_stream_deletion(stream, subscriptions, depth, old, objects.topics))


def _sub_points(old: Namelist, new: Namelist, administration: Administration) -> Iterator[str]:
    topics = administration.objects.topics
    subscriptions, retained = _there_already(administration)
    for name in new.names:
        if name in old or name == DEFAULT_SUB_POINT:
            continue
        topic_object = topics.get(name)
        if topic_object is None:
            yield f"there is no topic object {name}: define the topics before the namelist is altered"
        elif not topic_object.topic_string:
            yield f"topic object {name} has no TOPICSTR, and no subscription point can be found by it"
        else:
            found = check_sub_point_addition(topic_object.topic_string, old, topics, subscriptions, retained)
            # That the string belongs to the object in the list is as it should be.
            yield from _texts([finding for finding in found if finding.code != "topic-string-in-use"])
    if DEFAULT_SUB_POINT in old and DEFAULT_SUB_POINT not in new:
        yield f"{DEFAULT_SUB_POINT} is no longer listed: ALTER replaces the whole list"


def _there_already(administration: Administration) -> tuple[tuple[Subscription, ...], list[str]]:
    """The subscriptions, and the topics with a retained publication."""
    space = administration.topic_space
    return space.subscriptions(), [kept.topic_string for kept in space.retained_publications()]


def _texts(findings: Iterable[PrefixFinding]) -> Iterator[str]:
    return (finding.text for finding in findings)
