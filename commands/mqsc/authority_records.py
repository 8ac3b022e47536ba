"""SET, DISPLAY and DELETE AUTHREC: what users and groups may do with topics and queues (guide 5).

The records are kept with the other definitions; deciding by them is ``commands.broker.authority``'s. As in IBM MQ
nothing can be denied: AUTHRMV takes away what was added to the same record and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.authority import is_generic_profile, parse_profile
from commands.broker.objects import AuthorityRecord, Objects
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored, displayed, done, matches_name, select
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.script import Command, Keyword, MqscError
from commands.mqsc.values import folded_user_notes, object_name, single, value_error, word_of

_ADMINISTRATION: Final = ("CHG", "CLR", "CRT", "DLT", "DSP")
_MQI: Final = {
    "TOPIC": ("PUB", "RESUME", "SUB"),
    "QUEUE": ("BROWSE", "GET", "INQ", "PASSALL", "PASSID", "PUT", "SET", "SETALL", "SETID"),
    "NAMELIST": ("INQ",),
    "QMGR": ("ALTUSR", "CONNECT", "INQ", "SET", "SETALL", "SETID", "SYSTEM"),
}
_ADMIN: Final = {
    "TOPIC": (*_ADMINISTRATION, "CTRL"),
    "QUEUE": _ADMINISTRATION,
    "NAMELIST": ("CHG", "CRT", "DLT", "DSP"),
    "QMGR": ("CHG", "CRT", "DLT", "DSP"),
}
_GROUPS: Final = ("ALLMQI", "ALLADM", "ALL", "NONE")
_ORDER: Final = ("PROFILE", "ENTITY", "ENTTYPE", "OBJTYPE", "AUTHLIST")
_OBJECT_TYPES: Final = tuple(_MQI)
_CHECKED_FROM_NOW_ON: Final = (
    "authority is checked from now on: of publish/subscribe and PCF commands, and of what programs that connect open. "
    "The verbs of qpubsub are not checked: they need access to the files of the queue manager"
)


def set_record(command: Command, administration: Administration) -> Answer:
    """SET AUTHREC: add authorities to a record, or take them away; the record is made where there is none."""
    objects = administration.objects
    record = _record(command, objects)
    allowed = {"PROFILE", "OBJTYPE", "PRINCIPAL", "GROUP", "AUTHADD", "AUTHRMV", "SERVCOMP"}
    for keyword in command.keywords:
        if keyword.name not in allowed:
            raise unexpected_keyword(command, keyword)
    if command.keyword("AUTHADD") is None and command.keyword("AUTHRMV") is None:
        raise answers.missing_keyword("AUTHADD or AUTHRMV")
    added, removed = (_authorities(command, word, record.object_type) for word in ("AUTHADD", "AUTHRMV"))
    # AUTHRMV(ALL) with AUTHADD sets what there is.
    if _named(command, "AUTHADD") & _named(command, "AUTHRMV"):
        raise MqscError("AMQ8425", "Attribute value error.", ("AUTHADD and AUTHRMV have values in common.",))
    before = objects.authorities.get(record.name, record)
    made = replace(before, authorities=tuple(sorted(set(before.authorities) - removed | added)))
    first = not objects.authorities
    objects.put(made)
    notes = (_CHECKED_FROM_NOW_ON,) if first else ()
    folded = (note for word in ("PRINCIPAL", "GROUP") for note in folded_user_notes(command.keyword(word)))
    return done(answers.AUTHREC_SET, DefinitionStored(made), notes=(*notes, *folded))


def delete_record(command: Command, administration: Administration) -> Answer:
    """DELETE AUTHREC: the record of one user or group."""
    objects = administration.objects
    record = _record(command, objects, existing=True)
    if record.name not in objects.authorities:
        raise answers.not_found(record.profile)
    objects.delete("authrec", record.name)
    return done(answers.AUTHREC_DELETED, DefinitionDeleted("authrec", record.name), notes=notes_after_deletion(objects))


def notes_after_deletion(objects: Objects) -> tuple[str, ...]:
    """The note after a record was deleted: without any record, nothing is checked."""
    return () if objects.authorities else ("that was the last authority record: authority is no longer checked",)


def display_records(command: Command, administration: Administration) -> Answer:
    """DISPLAY AUTHREC: all records, or those of a profile, an object type, a principal or a group."""
    rows = [_row(record) for _, record in sorted(administration.objects.authorities.items())]
    for word in ("PROFILE", "OBJTYPE"):
        keyword = command.keyword(word)
        if keyword is not None and keyword.values is not None:
            wanted = single(keyword).text
            rows = [row for row in rows if matches_name(wanted, str(row[word]))]
    for word in ("PRINCIPAL", "GROUP"):
        keyword = command.keyword(word)
        if keyword is not None:
            wanted = single(keyword).text
            rows = [row for row in rows if row["ENTTYPE"] == word and matches_name(wanted, str(row["ENTITY"]))]
    passed = frozenset({"PRINCIPAL", "GROUP", "MATCH", "SERVCOMP"})
    passed |= {k.name for k in command.keywords if k.values is not None and k.name in ("PROFILE", "OBJTYPE")}
    found = select(command, rows, _ORDER, known=frozenset(_ORDER), passed_over=passed, brief=False)
    return displayed(answers.AUTHREC_DISPLAY, found)


def _row(record: AuthorityRecord) -> dict[str, Shown]:
    return {
        "PROFILE": record.profile,
        "ENTITY": record.entity,
        "ENTTYPE": record.entity_type,
        "OBJTYPE": record.object_type,
        "AUTHLIST": record.authorities or ("NONE",),
    }


def _record(command: Command, objects: Objects, existing: bool = False) -> AuthorityRecord:
    """The record that the command means, without authorities. Raises MqscError where it cannot be."""
    kind = command.keyword("OBJTYPE")
    if kind is None:
        raise answers.missing_keyword("OBJTYPE")
    object_type: str = word_of(kind, *_OBJECT_TYPES)
    profile = command.keyword("PROFILE")
    if profile is None and object_type != "QMGR":
        raise answers.missing_keyword("PROFILE")
    name = objects.qmgr.name if profile is None else single(profile).text.rstrip(" ")
    principal, group = command.keyword("PRINCIPAL"), command.keyword("GROUP")
    entity = principal or group
    if entity is None or (principal is not None and group is not None):
        raise answers.missing_keyword("Either PRINCIPAL or GROUP")
    who = single(entity).text.strip(" ")
    if not who:
        raise value_error(entity, "the name of a user or a group")
    if not existing:
        _check_profile(object_type, name, profile, objects)
    return AuthorityRecord(object_type, name, entity.name, who)


def _check_profile(object_type: str, name: str, profile: Keyword | None, objects: Objects) -> None:
    """A full name must be the name of an object. A queue may be made later, unless the queue manager is strict."""
    if profile is not None and parse_profile(name) is None:
        raise value_error(profile, "** stands once, as a whole qualifier: '**', 'A.**', '**.A', 'A.**.B'")
    if is_generic_profile(name):
        return
    name = object_name(name, topic=object_type == "TOPIC")
    there = {
        "TOPIC": name in objects.topics,
        "QUEUE": name in objects.queues or name in objects.aliases or not objects.qmgr.strict,
        "NAMELIST": name in objects.namelists,
        "QMGR": name == objects.qmgr.name,
    }
    if not there[object_type]:
        raise answers.not_found(name)


def _named(command: Command, word: str) -> set[str]:
    keyword = command.keyword(word)
    return set() if keyword is None else {value.text.upper() for value in keyword.values or ()}


def _authorities(command: Command, word: str, object_type: str) -> set[str]:
    """The authorities that AUTHADD or AUTHRMV lists; ALLMQI, ALLADM and ALL stand for those of the object type."""
    keyword = command.keyword(word)
    found: set[str] = set()
    for value in () if keyword is None else keyword.values or ():
        text = value.text.upper()
        known = {*_MQI[object_type], *_ADMIN[object_type], *_GROUPS}
        if text not in known:
            assert keyword is not None
            raise value_error(keyword, f"of {', '.join(sorted(known))}")
        found |= spelled_out((text,), object_type)
    return found


def spelled_out(words: Iterable[str], object_type: str) -> frozenset[str]:
    """The authorities that *words* stand for: ALLMQI, ALLADM and ALL for those of the object type, NONE for none."""
    mqi, admin = _MQI.get(object_type, ()), _ADMIN.get(object_type, ())
    groups = {"ALLMQI": mqi, "ALLADM": admin, "ALL": (*mqi, *admin), "NONE": ()}
    return frozenset(each for word in words for each in groups.get(word.upper(), (word.upper(),)))
