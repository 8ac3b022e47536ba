"""What differs between scripts that define objects and the objects that are there: drift.

The scripts run on a copy of the definitions, in memory, and what they would change now is the drift. DEFINE counts as
DEFINE with REPLACE: a definition that was altered by hand since is one that the script would change. Subscriptions are
not compared: programs make and change them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final

from commands.broker.attribute_kinds import shown
from commands.broker.objects import Definition, Objects, kind_of
from commands.mqsc.administration import Administration
from commands.mqsc.attributes import QMGR, ObjectKind
from commands.mqsc.execute import execute
from commands.mqsc.families import FAMILIES, SERVER_CHANNEL
from commands.mqsc.model import Command, Keyword, Statement
from commands.mqsc.script import parse
from streams.topic_space import TopicSpace

_VERBS: Final = frozenset({"ALTER", "DEFINE", "DELETE", "SET"})
_KINDS: Final[dict[str, ObjectKind]] = {
    family.stored_as: family.kind for family in (*FAMILIES.values(), SERVER_CHANNEL)
} | {"qmgr": QMGR}


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. name: the object, ``QLOCAL(BOARD)``. attribute: "" where the whole object is meant.

    script: what the script says; here: what is there; ``missing`` and ``extra`` for a whole object.
    """

    name: str
    attribute: str
    script: str
    here: str

    @property
    def text(self) -> str:
        """For a person."""
        if not self.attribute:
            return f"{self.name} is {self.here}"
        return f"{self.name}: {self.attribute} is ({self.here}), in the script ({self.script})"


def drift(scripts: Iterable[str], objects: Objects, now: datetime) -> list[Drift]:
    """What *scripts*, in their order, would change in *objects*, which stay as they are. now: UTC."""
    planned = deepcopy(objects)
    administration = Administration.of(planned, TopicSpace(planned.topics), now)
    for script in scripts:
        for statement in parse(script):
            if _defines(statement.command):
                execute(_replacing(statement), administration)
    here, there = _by_name(objects), _by_name(planned)
    return [
        found
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key)
        for found in _differences(key, here.get(key), there.get(key))
    ]


def _defines(command: Command | None) -> bool:
    return command is not None and command.verb in _VERBS and command.target != "SUB"


def _replacing(statement: Statement) -> Statement:
    command = statement.command
    if command is None or command.verb != "DEFINE" or command.keyword("REPLACE") is not None:
        return statement
    kept = tuple(keyword for keyword in command.keywords if keyword.name != "NOREPLACE")
    return replace(statement, command=replace(command, keywords=(*kept, Keyword("REPLACE", None))))


def _by_name(objects: Objects) -> dict[tuple[str, str], Definition]:
    definitions = (objects.qmgr, *objects.topics.own, *objects.named)
    return {(kind_of(each), each.name): each for each in definitions}


def _differences(key: tuple[str, str], here: Definition | None, there: Definition | None) -> Iterator[Drift]:
    word = _KINDS[key[0]].word if key[0] in _KINDS else key[0].upper()
    name = f"{word}({key[1]})"
    if here is None or there is None:
        yield Drift(name, "", "", "missing" if here is None else "extra: the scripts delete it")
        return
    kind = _KINDS.get(key[0])
    attributes = {} if kind is None else {each.field: each for each in kind.attributes}
    for field in fields(here) if type(here) is type(there) else ():
        if getattr(here, field.name) == getattr(there, field.name):
            continue
        attribute = attributes.get(field.name)
        if attribute is None:
            yield Drift(name, field.name, str(getattr(there, field.name)), str(getattr(here, field.name)))
        else:
            yield Drift(name, attribute.keyword, _shown(shown(there, attribute)), _shown(shown(here, attribute)))


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
