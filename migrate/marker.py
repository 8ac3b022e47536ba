"""How a queue manager records that it was migrated: a namelist, committed with everything else.

QPUBSUB.MIGRATION.<tool> has four names: the phase that was done, when, the fingerprint of what was migrated, and the
broker that it came from. It is an ordinary object: DISPLAY NAMELIST shows it, MQSC defines it on a real queue manager,
and undoing the migration removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from commands.broker.objects import Definition, Objects, is_object_name
from migrate.plan import Phase, Tool
from streams.topic_objects import Namelist

PREFIX: Final = "QPUBSUB.MIGRATION."


@dataclass(frozen=True, slots=True)
class Marker:
    """What the namelist says. broker: "" where an earlier release made it, which did not say."""

    tool: Tool
    phase: Phase
    at: str
    fingerprint: str
    broker: str = ""

    def namelist(self) -> Namelist:
        """The namelist that says it."""
        description = f"qpubsub {self.tool}: {self.phase} phase done {self.at}"
        names = (self.phase.upper(), self.at, self.fingerprint, *([broker_as_name(self.broker)] if self.broker else []))
        return Namelist(name_of(self.tool), names, description)

    def is_of(self, broker: str) -> bool:
        """Whether it records a migration of *broker*; true if it names no broker."""
        return self.broker in ("", broker, broker_as_name(broker))


def broker_as_name(broker: str) -> str:
    """*broker* as a namelist can hold it: a name that no object can have becomes 40 hexadecimal digits."""
    return broker if is_object_name(broker) else sha256(broker.encode()).hexdigest()[:40]


def is_marker(definition: Definition) -> bool:
    """Whether *definition* is one of these namelists."""
    return isinstance(definition, Namelist) and definition.name.startswith(PREFIX)


def marker_of(objects: Objects, tool: Tool) -> Marker | None:
    """The record of *tool*, if there is one that can be read."""
    return read_marker(objects.namelists.get(name_of(tool)), tool)


def name_of(tool: Tool) -> str:
    """The name of the namelist that records a migration by *tool*."""
    return f"{PREFIX}{tool.upper()}"


def read_marker(found: Namelist | None, tool: Tool) -> Marker | None:
    """What the namelist says; None where there is none, or it cannot be read."""
    if found is None or len(found.names) not in (3, 4):
        return None
    phase, at, fingerprint, *broker = found.names
    try:
        return Marker(tool, Phase(phase.lower()), at, fingerprint, *broker)
    except ValueError:
        return None


def moment(now: datetime) -> str:
    """*now* as an object name, to the microsecond: two runs of one second are two."""
    return f"{now:%Y%m%dT%H%M%S%fZ}"
