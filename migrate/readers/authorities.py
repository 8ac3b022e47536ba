"""Authorities: scripts of setmqaut and SET AUTHREC, and listings of dmpmqaut and dspmqaut.

    /opt/mqm/bin/setmqaut -m QM1 -t queue -n Sport -p fred +put +browse
    SET AUTHREC PROFILE('Sport') OBJTYPE(QUEUE) PRINCIPAL('fred') AUTHADD(PUT,BROWSE)

    profile:     Sport
    object type: queue
    entity:      fred
    type:        principal
    authority:   put, browse
    - - - - - - - - - - - -
    profile:     Sport
    object type: queue
    entity:      readers
    entity type: group
    authority:   get browse

    $ dspmqaut -m QM1 -t queue -n Sport -p fred
    Entity fred has the following authorizations for object Sport:
        get
        browse

One file may hold all of them: setmqaut is what ``amqoamd -s`` and ``dmpmqaut -a`` print too, and SET AUTHREC stands
among DEFINE commands in a script of dmpmqcfg or saveqmgr. Authorities on objects that are no part of publish/subscribe,
such as channels, and commands about other objects are skipped, with a note for each kind. This module does not decide
what an authority becomes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final, Literal, cast

from commands.mqsc.script import Command, parse
from migrate.legacy_state import Item, LegacyAuthority, Source, Unread
from migrate.readers.text import SourceLine, lines_of, rows_of, unread

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
_OTHER_OBJECTS: Final = frozenset(
    {
        "process",
        "prcs",
        "authinfo",
        "channel",
        "chl",
        "clntconn",
        "clcn",
        "comminfo",
        "cinfo",
        "listener",
        "lstr",
        "rqmname",
        "rqmn",
        "remote queue manager",
        "service",
        "srvc",
    }
)
_DUMPED = re.compile(r"(profile|object type|entity type|entity|type|authority)\s*:\s*(.*)", re.IGNORECASE)
# Scripts of backups append what amqoamd prints to MQSC, as comments.
_COMMENTED: Final = re.compile(r"^\*+\s*(?=(\S*[/\\])?setmqaut\s)", re.IGNORECASE)
_COMMENT: Final = re.compile(r"[#*]|- -|---|@?rem\b|@echo\b", re.IGNORECASE)
_SETMQAUT = re.compile(r"(?:\S*[/\\])?setmqaut(?:\.exe)?\s", re.IGNORECASE)
_SET_AUTHREC = re.compile(r"\s*SET\s+AUTHREC\b", re.IGNORECASE)
_MQSC = re.compile(r"(DEFINE|DEF|ALTER|ALT|SET|DELETE|DISPLAY|DIS|REFRESH|START|STOP)\s+([A-Za-z]+)\b", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(DEFINE|DEF|ALTER|ALT)\s+(QMGR|(Q[A-Z]+|NAMELIST|TOPIC|CHANNEL|PROCESS|LISTENER)\s*\()", re.IGNORECASE
)
_CLASS: Final = "@class"
_AUTHORITY: Final = re.compile(r"[a-z]+")
_DSPMQAUT: Final = re.compile(r"(?:\S*[$#>]\s*)?(?:\S*[/\\])?dspmqaut(?:\.exe)?\s+(.*)", re.IGNORECASE)
_DISPLAYED: Final = re.compile(r"Entity \S+ has the following authorizations for object .*", re.IGNORECASE)
_ENTITY_TYPES: Final[dict[str, Entity]] = {"principal": "PRINCIPAL", "user": "PRINCIPAL", "group": "GROUP"}


def looks_like(text: str) -> bool:
    """Whether *text* sets or lists authorities."""
    return any(
        _SETMQAUT.match(line.text)
        or _COMMENTED.match(line.text)
        or _SET_AUTHREC.match(line.text)
        or _DEFINITION.match(line.text)
        or _DISPLAYED.match(line.text)
        or line.text.lower().startswith("profile:")
        for line in lines_of(text)
    )


def read(text: str, file: str) -> Iterator[Item]:
    """The authorities of *text*, in order."""
    passed_over = _PassedOver(file)
    mqsc, commands = _mqsc(text, file, passed_over)
    dumped: dict[str, tuple[str, SourceLine]] = {}
    asked: str | None = None
    displayed: list[SourceLine] = []
    for each in lines_of(text):
        line = each._replace(text=_COMMENTED.sub("", each.text))
        if displayed:
            if _AUTHORITY.fullmatch(line.text):
                displayed.append(line)
                continue
            yield from _of_dspmqaut(asked, displayed, file, passed_over)
            asked, displayed = None, []
        if (command := _DSPMQAUT.fullmatch(line.text)) is not None:
            asked = command[1]
            continue
        if _DISPLAYED.fullmatch(line.text):
            displayed = [line]
            continue
        if line.number in mqsc or _COMMENT.match(line.text):
            continue
        found = _DUMPED.fullmatch(line.text)
        if found is not None:
            field = "type" if found[1].lower() == "entity type" else found[1].lower()
            if field in dumped:
                yield from _record(dumped, file, passed_over)
                dumped = {}
            dumped[field] = (found[2].strip(), line)
        elif _SETMQAUT.match(line.text):
            yield from _setmqaut(line, file, passed_over)
        else:
            yield unread(file, line.number, line.text, "it neither sets nor lists an authority")
    if displayed:
        yield from _of_dspmqaut(asked, displayed, file, passed_over)
    if dumped:
        yield from _record(dumped, file, passed_over)
    yield from commands
    yield from passed_over.items()


class _PassedOver:
    """What is no authority of publish/subscribe, counted by kind: each kind is reported once, with its first line."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._kinds: dict[str, tuple[int, int]] = {}

    def add(self, kind: str, line: int) -> None:
        """One more of *kind*."""
        first, count = self._kinds.get(kind, (line, 0))
        self._kinds[kind] = (first, count + 1)

    def items(self) -> Iterator[Unread]:
        """An item for each kind."""
        for kind, (line, count) in self._kinds.items():
            source = Source(file=self._file, position=line)
            text = f"{count} {kind}" if count > 1 else kind
            yield Unread(
                source=source, text=text, why="it is not an authority that is migrated", count=count, is_state=False
            )


def _mqsc(text: str, file: str, passed_over: _PassedOver) -> tuple[set[int], list[Item]]:
    """The lines that MQSC commands stand on, and the authorities that they set."""
    lines: set[int] = set()
    items: list[Item] = []
    starts = [line.number for line in lines_of(text) if _MQSC.match(line.text)]
    if not starts:
        return lines, items
    # Other text around the commands, for example dumped records, is not MQSC.
    rows = rows_of(text)
    number = 0
    for start in starts:
        if start <= number:
            continue
        number = start
        while number < len(rows) and _goes_on(rows[number - 1]):
            number += 1
        lines.update(range(start, number + 1))
        piece = "\n".join(rows[start - 1 : number])
        found = _MQSC.match(piece.strip())
        assert found is not None
        if not _SET_AUTHREC.match(piece):
            passed_over.add(f"command {found[1].upper()} {found[2].upper()}", start)
            continue
        source = Source(file=file, position=start)
        for statement in parse(piece):
            if statement.command is None:
                items.append(unread(file, start, statement.text, "this is not a SET AUTHREC that can be carried out"))
            else:
                items += _authrec(statement.command, statement.text, source, passed_over)
    return lines, items


def _goes_on(row: str) -> bool:
    """Whether the command that *row* is of has another line: dmpmqcfg writes attributes as comments in between."""
    return row.startswith("*") or row.rstrip().endswith(("+", "-"))


def _authrec(command: Command, text: str, source: Source, passed_over: _PassedOver) -> Iterator[Item]:
    def values(word: str) -> tuple[str, ...]:
        keyword = command.keyword(word)
        return () if keyword is None else tuple(value.text for value in keyword.values or ())

    entity_type: Entity = "GROUP" if values("GROUP") else "PRINCIPAL"
    entities, object_type, profile = values(entity_type), values("OBJTYPE"), values("PROFILE")
    line = source.position or 1
    if len(object_type) == 1 and object_type[0].lower() in _OTHER_OBJECTS:
        passed_over.add(f"authority on {object_type[0].lower()}", line)
    elif profile[:1] == (_CLASS,):
        passed_over.add("authority to create objects (@class)", line)
    elif len(entities) != 1 or len(object_type) != 1 or len(profile) > 1:
        yield unread(source.file, line, text, "this is not a SET AUTHREC that can be carried out")
    else:
        yield LegacyAuthority(
            source=source,
            object_type=object_type[0].upper(),
            profile=profile[0] if profile else "",
            entity_type=entity_type,
            entity=entities[0],
            authorities=tuple(word.upper() for word in values("AUTHADD")),
            removed=tuple(word.upper() for word in values("AUTHRMV")),
        )


def _setmqaut(line: SourceLine, file: str, passed_over: _PassedOver) -> Iterator[Item]:
    try:
        # The command's own path may be one of Windows, whose \\ is no escape.
        words = shlex.split(line.text[cast(re.Match[str], _SETMQAUT.match(line.text)).end() :])
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
            yield unread(file, line.number, line.text, f"{word!r} is not a parameter of setmqaut")
            return
    word = values.get("-t", "").lower()
    if word in _OTHER_OBJECTS:
        passed_over.add(f"authority on {word}", line.number)
        return
    if values.get("-n") == _CLASS:
        passed_over.add("authority to create objects (@class)", line.number)
        return
    object_type = _OBJECT_TYPES.get(word)
    if word and object_type is None:
        yield unread(file, line.number, line.text, f"-t {word}: no type of object is called that")
        return
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
            # A variable of a script names whichever queue manager the script was run for.
            qmgr="" if "$" in values.get("-m", "") or "%" in values.get("-m", "") else values.get("-m", ""),
        )


def _of_dspmqaut(asked: str | None, displayed: list[SourceLine], file: str, passed_over: _PassedOver) -> Iterator[Item]:
    """What dspmqaut printed, as the command that grants it. asked: the parameters of dspmqaut, which say of what."""
    first, *words = displayed
    if asked is None:
        why = (
            "dspmqaut prints neither the type of the object nor whether the entity is a user or a group: keep the "
            "command on the line before its output, or give the output of amqoamd -s or dmpmqaut"
        )
        yield unread(file, first.number, first.text, why)
        return
    granted = " ".join(f"+{word.text}" for word in words)
    yield from _setmqaut(first._replace(text=f"setmqaut {asked} {granted}"), file, passed_over)


def _record(dumped: dict[str, tuple[str, SourceLine]], file: str, passed_over: _PassedOver) -> Iterator[Item]:
    def value(field: str) -> str:
        return dumped[field][0] if field in dumped else ""

    first = next(iter(dumped.values()))[1]
    word = value("object type").lower()
    if word in _OTHER_OBJECTS:
        passed_over.add(f"authority on {word}", first.number)
        return
    if value("profile") == _CLASS:
        passed_over.add("authority to create objects (@class)", first.number)
        return
    object_type, entity_type = _OBJECT_TYPES.get(word), _ENTITY_TYPES.get(value("type").lower())
    words = re.split(r"[,\s]+", value("authority").strip(", \t").lower())
    if (
        object_type is None
        or entity_type is None
        or not value("profile")
        or not value("entity")
        or "authority" not in dumped
    ):
        yield unread(file, first.number, first.text, "a record of dmpmqaut that is not complete")
        return
    if not all(map(_AUTHORITY.fullmatch, words)):
        line = dumped["authority"][1]
        yield unread(file, line.number, line.text, "a list of authorities has words between commas or blanks")
        return
    yield LegacyAuthority(
        source=Source(file=file, position=first.number),
        object_type=object_type,
        profile=value("profile"),
        entity_type=entity_type,
        entity=value("entity"),
        authorities=tuple(word.upper() for word in words if word != "none"),
    )
