"""Whether the processor lives, and whether it is ready: what /healthz and /readyz answer.

/healthz is for whoever starts a dead process again. It is not healthy only when the processor has given no sign of life
for longer than any command may take; the supervisor of ``run`` ends a processor that hangs long before.
/readyz is for whoever sends work or waits for a start: it says why the processor does not go on now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Protocol

from commands.qmgr.link_port import LinkState
from commands.qmgr.watchdog import WAITS

_SILENCE_S: Final = 60.0


class Phase(IntEnum):
    """What the processor does, as numbers of MQQMSTA."""

    STARTING = 1
    RUNNING = 2
    ENDING = 3
    STANDBY = 4


class Signs(Protocol):
    """What the processor lets others know (``commands.running.journal.Journal``)."""

    @property
    def waiting(self) -> dict[str, Any] | None: ...
    @property
    def silence_s(self) -> float: ...


class Linked(Protocol):
    """What a link lets others know (``ManagedLink``)."""

    @property
    def state(self) -> LinkState: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe gets. reasons: why not, for people; none where all is well."""

    ok: bool
    reasons: tuple[str, ...]
    about: dict[str, Any]

    def as_dict(self, word: str) -> dict[str, Any]:
        """As JSON. word: ``ready`` or ``healthy``."""
        return {word: self.ok, "reasons": list(self.reasons), **self.about}


class Health:
    """Of one processor. command_s: the most seconds that a command may take; 0 for no limit. link: None for none.

    phase: set as it changes. active: says which instance is active while this one is a standby.
    """

    def __init__(self, qmgr: str, signs: Signs, command_s: float, link: Linked | None) -> None:
        self._qmgr, self._signs, self._link = qmgr, signs, link
        self._most_silence_s = _SILENCE_S + WAITS * command_s if command_s else None
        self.phase = Phase.STARTING
        self.active: Callable[[], str] = lambda: "another instance is active"

    def healthy(self) -> Answer:
        """Whether the processor lives."""
        silence_s = self._signs.silence_s
        reasons: tuple[str, ...] = ()
        if self._most_silence_s is not None and silence_s > self._most_silence_s:
            reasons = (f"the processor has given no sign of life for {silence_s:.0f} seconds",)
        return Answer(not reasons, reasons, self._about())

    def ready(self) -> Answer:
        """Whether the processor goes on with commands, to the topic tree too if there is one."""
        reasons = list(self.healthy().reasons)
        if self.phase is Phase.STANDBY:
            reasons.append(f"standby: {self.active()}")
        elif self.phase is not Phase.RUNNING:
            reasons.append(f"the processor is {self.phase.name.lower()}")
        waiting = self._signs.waiting
        if waiting is not None:
            reasons.append(f"waiting since {waiting['since']}: {waiting['text']}")
        state = None if self._link is None else self._link.state
        if state is not None and not state.connected:
            reasons.append(f"the topic tree is not connected: {state.trouble or 'no answer yet'}")
        return Answer(not reasons, tuple(reasons), self._about())

    def _about(self) -> dict[str, Any]:
        return {"qmgr": self._qmgr, "phase": self.phase.name.lower()}
