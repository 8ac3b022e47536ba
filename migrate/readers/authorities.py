"""Authorities: scripts of setmqaut and SET AUTHREC, and listings of dmpmqaut.

    setmqaut -m QM1 -t queue -n Sport -p fred +put +browse
    SET AUTHREC PROFILE('Sport') OBJTYPE(QUEUE) PRINCIPAL('fred') AUTHADD(PUT,BROWSE)

    profile:     Sport
    object type: queue
    entity:      fred
    type:        principal
    authority:   put browse

One file may hold all three. Nothing here decides what an authority becomes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final, Literal

from commands.mqsc import Command, parse
from migrate.legacy_state import Item, LegacyAuthority, Source
from migrate.readers.text import SourceLine, lines_of, unread

Entity = Literal["PRINCIPAL", "GROUP"]

_OBJECT_TYPES: Final = {
    "queue": "QUEUE",
    "q": "QUEUE",
    "topic": "TOPIC",
    "top": "TOPIC",
    "qmgr": "QMGR",
    "namelist": "NAMELIST",
    "nl": "NAMELIST",
}
_DUMPED = re.compile(r"(profile|object type|entity|type|authority)\s*:\s*(.*)", re.IGNORECASE)
_SET_AUTHREC = re.compile(r"\s*SET\s+AUTHREC\b", re.IGNORECASE)


def looks_like(text: str) -> bool:
    """Whether *text* sets or lists authorities."""
    return any(
        line.text.startswith("setmqaut ") or _SET_AUTHREC.match(line.text) or line.text.lower().startswith("profile:")
        for line in lines_of(text)
    )


def read(text: str, file: str) -> Iterator[Item]:
    """The authorities of *text*, in order."""
    dumped: dict[str, tuple[str, SourceLine]] = {}
    for line in lines_of(text):
        if _SET_AUTHREC.match(line.text) or line.text.startswith(("#", "*", "- -", "---")):
            continue
        found = _DUMPED.fullmatch(line.text)
        if found is not None:
            field = found[1].lower()
            if field in dumped:
                yield _record(dumped, file)
                dumped = {}
            dumped[field] = (found[2].strip(), line)
        elif line.text.startswith("setmqaut "):
            yield from _setmqaut(line, file)
        elif not _belongs_to_mqsc(line.text):
            yield unread(file, line.number, line.text, "it neither sets nor lists an authority")
    if dumped:
        yield _record(dumped, file)
    yield from _mqsc(text, file)


def _belongs_to_mqsc(text: str) -> bool:
    # A command may go on over several lines; those after the first are the parser's.
    return re.match(r"[A-Za-z]+\s*\(", text) is not None or text.upper() in ("END", "EXIT", "QUIT")


def _mqsc(text: str, file: str) -> Iterator[Item]:
    if not any(_SET_AUTHREC.match(line.text) for line in lines_of(text)):
        return
    for statement in parse(text):
        if not _SET_AUTHREC.match(statement.text):
            continue
        command, source = statement.command, Source(file=file, position=statement.line)
        found = None if command is None else _authrec(command, source)
        if found is None:
            yield unread(file, statement.line, statement.text, "this is no SET AUTHREC that can be carried out")
        else:
            yield found


def _authrec(command: Command, source: Source) -> LegacyAuthority | None:
    def values(word: str) -> tuple[str, ...]:
        keyword = command.keyword(word)
        return () if keyword is None else tuple(value.text for value in keyword.values or ())

    entity_type: Entity = "GROUP" if values("GROUP") else "PRINCIPAL"
    entities, object_type, profile = values(entity_type), values("OBJTYPE"), values("PROFILE")
    if len(entities) != 1 or len(object_type) != 1 or len(profile) > 1:
        return None
    return LegacyAuthority(
        source=source,
        object_type=object_type[0].upper(),
        profile=profile[0] if profile else "",
        entity_type=entity_type,
        entity=entities[0],
        authorities=tuple(word.upper() for word in values("AUTHADD")),
        removed=tuple(word.upper() for word in values("AUTHRMV")),
    )


def _setmqaut(line: SourceLine, file: str) -> Iterator[Item]:
    try:
        words = shlex.split(line.text)[1:]
    except ValueError as error:
        yield unread(file, line.number, line.text, f"its quotes do not match: {error}")
        return
    values: dict[str, str] = {}
    entities: list[tuple[Entity, str]] = []
    added: list[str] = []
    removed: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("-p", "-g"):
            entities.append(("PRINCIPAL" if word == "-p" else "GROUP", next(rest, "")))
        elif word in ("-m", "-n", "-t", "-s", "-u"):
            values[word] = next(rest, "")
        elif word[:1] in "+-" and len(word) > 1:
            (added if word[0] == "+" else removed).append(word[1:].upper())
        else:
            yield unread(file, line.number, line.text, f"{word!r} is no parameter of setmqaut")
            return
    object_type = _OBJECT_TYPES.get(values.get("-t", "").lower())
    if object_type is None or not entities or ("-n" not in values and object_type != "QMGR"):
        yield unread(file, line.number, line.text, "setmqaut needs -t, -n, and -p or -g")
        return
    for entity_type, entity in entities:
        yield LegacyAuthority(
            source=Source(file=file, position=line.number),
            object_type=object_type,
            profile=values.get("-n", ""),
            entity_type=entity_type,
            entity=entity,
            authorities=tuple(added),
            removed=tuple(removed),
        )


def _record(dumped: dict[str, tuple[str, SourceLine]], file: str) -> Item:
    def value(field: str) -> str:
        return dumped[field][0] if field in dumped else ""

    first = next(iter(dumped.values()))[1]
    object_type = _OBJECT_TYPES.get(value("object type").lower())
    entity_type: Entity = "GROUP" if value("type").lower() == "group" else "PRINCIPAL"
    if object_type is None or not value("profile") or not value("entity") or "authority" not in dumped:
        return unread(file, first.number, first.text, "a record of dmpmqaut that is not complete")
    return LegacyAuthority(
        source=Source(file=file, position=first.number),
        object_type=object_type,
        profile=value("profile"),
        entity_type=entity_type,
        entity=value("entity").partition("@")[0],
        authorities=tuple(word.upper() for word in value("authority").split() if word.lower() != "none"),
    )
