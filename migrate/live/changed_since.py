"""What others have changed since on what an undo is going to take back, so that it can be named.

changes      an attribute has another value than the migration left: undo gives the one before, or deletes the object
additions    a queue was altered, names or authorities were added: they go with the object or the record
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from commands.mqsc import parse
from migrate.live.differences import Difference, How
from migrate.live.snapshot import LiveState, authorities, names, record_key, text
from migrate.marker import PREFIX as MARKER
from migrate.planned_state import PlannedObject

_QUEUES: Final = frozenset({"QLOCAL", "QALIAS", "QMODEL"})
_GROUPS: Final = frozenset({"ALL", "ALLMQI", "ALLADM"})


@dataclass(frozen=True, slots=True)
class Touched:
    """What commands of an undo change. objects: by kind and name, the attributes; None for one that is deleted.

    names: of a namelist that is altered, the names that it will have. records: the keys of those that are deleted.
    """

    objects: dict[tuple[str, str], frozenset[str] | None] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.objects or self.records)

    @classmethod
    def by(cls, commands: Iterable[str]) -> Self:
        """What *commands* change, which are MQSC."""
        made = cls()
        for statement in (each for command in commands for each in parse(command)):
            command = statement.command
            if command is None:
                continue
            kind = "QUEUE" if command.target in _QUEUES else command.target
            key = kind, "" if command.name is None else command.name.text
            given = {k.name: tuple(value.text for value in k.values or ()) for k in command.keywords}
            if (command.verb, kind) == ("DELETE", "AUTHREC"):
                entity = "PRINCIPAL" if "PRINCIPAL" in given else "GROUP"
                shown = {word: ",".join(values) for word, values in given.items()}
                made.records.add(record_key({**shown, "ENTTYPE": entity, "ENTITY": shown.get(entity, "")}))
            elif command.verb == "DELETE":
                made.objects[key] = None
            elif command.verb == "ALTER":
                before = made.objects.get(key, frozenset())
                made.objects[key] = before if before is None else before | given.keys()
                if kind == "NAMELIST" and "NAMES" in given:
                    made.names[key[1]] = given["NAMES"]
        return made

    def has(self, kind: str, name: str, attribute: str) -> bool:
        """Whether the attribute is changed, or its object deleted."""
        if (kind, name) not in self.objects:
            return False
        changed = self.objects[kind, name]
        return changed is None or attribute in changed


def others_changes(found: Iterable[Difference], touched: Touched, loaded: bool, enabled: bool) -> Iterator[str]:
    """Those of *found*, between the plan and what is live, that the undo takes back.

    loaded: whether it deletes what a load registered. enabled: whether PSMODE is as planned at the end.
    """
    for each in found:
        if each.how is How.EXTRA and loaded:
            yield f"{each.what} was made since, where a planned one is: it is deleted"
        if each.how is not How.CHANGED or (each.attribute == "PSMODE" and not enabled):
            continue
        is_of_load = loaded and each.kind == "SUB" and ("SUB", each.name) not in touched.objects
        if is_of_load or touched.has(each.kind, each.name, each.attribute):
            yield f"{each.what}: {each.attribute} is ({each.live}), the migration left ({each.planned})"


def others_additions(planned: Iterable[PlannedObject], touched: Touched, live: LiveState) -> Iterator[str]:
    """What is there besides what is planned, and goes with the objects and records that are taken back."""
    for each in planned:
        name = each.name or ""
        if each.kind == "QUEUE" and touched.has("QUEUE", name, ""):
            row = live.queues.get(name, {})
            made, altered = (f"{text(row, f'{at}DATE')} {text(row, f'{at}TIME')}".strip() for at in ("CR", "ALT"))
            if made and altered and made != altered:
                yield f"{each.label} was altered at {altered}: it is deleted"
        elif each.kind == "NAMELIST" and touched.has("NAMELIST", name, "NAMES") and not name.startswith(MARKER):
            there = names(live.namelists.get(name, {}), "NAMES")
            kept = (*names(each.attributes, "NAMES"), *touched.names.get(name, ()))
            if more := [one for one in there if one not in kept]:
                yield f"{each.label}: {', '.join(more)} was added since, and is taken out"
        elif each.kind == "AUTHREC" and (key := record_key(each.attributes)) in touched.records:
            wanted = authorities(each.attributes)
            more = sorted(live.records.get(key, frozenset()) - wanted)
            if more and not wanted & _GROUPS:
                yield f"{each.label}: {','.join(more)} was granted since; the record is deleted"
