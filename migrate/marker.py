"""How a queue manager remembers that it was migrated: a namelist that commits with everything else.

QPUBSUB.MIGRATION.<tool> has three names: the phase that was done, when, and the fingerprint of what was migrated. It is
an ordinary object: DISPLAY NAMELIST shows it, MQSC carries it to a real queue manager, undoing takes it away.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.objects import Definition, Objects
from migrate.plan import Phase, Tool
from streams.namelists import Namelist

PREFIX: Final = "QPUBSUB.MIGRATION."


@dataclass(frozen=True, slots=True)
class Marker:
    """What the namelist says."""

    tool: Tool
    phase: Phase
    at: str
    fingerprint: str

    def namelist(self) -> Namelist:
        """The namelist that says it."""
        description = f"qpubsub {self.tool}: {self.phase} phase done {self.at}"
        return Namelist(f"{PREFIX}{self.tool.upper()}", (self.phase.upper(), self.at, self.fingerprint), description)


def is_marker(definition: Definition) -> bool:
    """Whether *definition* is one of these namelists."""
    return isinstance(definition, Namelist) and definition.name.startswith(PREFIX)


def marker_of(objects: Objects, tool: Tool) -> Marker | None:
    """What is remembered of *tool*, if anything that can be read."""
    found = objects.namelists.get(f"{PREFIX}{tool.upper()}")
    if found is None or len(found.names) != 3:
        return None
    phase, at, fingerprint = found.names
    try:
        return Marker(tool, Phase(phase.lower()), at, fingerprint)
    except ValueError:
        return None


def moment(now: datetime) -> str:
    """*now* as an object name, to the microsecond: two runs of one second are two."""
    return f"{now:%Y%m%dT%H%M%S%fZ}"
