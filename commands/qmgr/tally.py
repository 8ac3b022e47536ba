"""Counts of the work of a processor."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from commands.broker.puts import PutKind


@dataclass(slots=True)
class ProcessorTally:
    """What a processor has done since it started, or in one unit of work."""

    commands: int = 0
    publications: int = 0
    responses: int = 0
    dead_letters: int = 0
    errors: int = 0
    discarded: int = 0
    linked: int = 0

    def as_dict(self) -> dict[str, int]:
        """Name and count, in order."""
        return {name: getattr(self, name) for name in _NAMES}

    def add(self, other: ProcessorTally) -> None:
        """Count what *other* counted as well."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def put(self, kind: PutKind, times: int = 1) -> None:
        """Count one put, or *times* of them."""
        if kind is PutKind.PUBLICATION:
            self.publications += times
        elif kind is PutKind.RESPONSE:
            self.responses += times
        else:
            self.dead_letters += times


_NAMES: Final = tuple(field.name for field in fields(ProcessorTally))
