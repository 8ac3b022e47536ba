"""The state that a phase of migmbbrk has read, kept while the phase applies it, for use after an interruption.

A phase that is refused keeps nothing, because it has not begun to apply anything. The file has the broker, the phase
and the fingerprint, and only that phase of that broker uses it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commands.disk.permissions import make_directory, private
from migrate.fingerprint import fingerprint
from migrate.legacy_state import LegacyState
from migrate.plan import Phase
from migrate.readers import state_json
from rfh2.errors import MigrationError

NAME: Final = "retrieved.json"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A state with the broker and the phase that it was read for."""

    broker: str
    phase: Phase
    state: LegacyState

    def check(self, broker: str, phase: Phase) -> None:
        """Raises MigrationError if the interrupted phase was another one, or that of another broker."""
        if (self.broker, self.phase) != (broker, phase):
            raise MigrationError(
                f"the {self.phase} phase of broker {self.broker} was interrupted, this is the {phase} phase of broker "
                f"{broker}: run that one again, or discard it with -s. Nothing was changed"
            )

    def check_sources(self, given: LegacyState) -> None:
        """Raises MigrationError if the sources *given* now are not those that the interrupted phase had read."""
        mine, theirs = fingerprint(self.state), fingerprint(given)
        if mine != theirs:
            raise MigrationError(
                f"the interrupted {self.phase} phase had read a state with fingerprint {mine}; the sources have "
                f"{theirs}: omit --source to continue with the former, or discard it with -s. Nothing was changed"
            )


def keep(path: Path, retrieved: Retrieved) -> None:
    """Write *retrieved*, whole or not at all. Raises MigrationError."""
    body = {
        "broker": retrieved.broker,
        "phase": retrieved.phase,
        "state": json.loads(state_json.write([retrieved.state])),
    }
    partial = path.with_name(path.name + ".partial")
    try:
        make_directory(path.parent)
        with open(partial, "w", encoding="utf-8", opener=private) as file:
            file.write(json.dumps(body, ensure_ascii=False))
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MigrationError(f"{path}: {error.strerror or error}; nothing was changed") from error


def kept(path: Path) -> Retrieved | None:
    """What an interrupted phase had read, or None. Raises MigrationError if the file is damaged."""
    if not path.is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        states, problems = state_json.read(json.dumps(body["state"]), str(path))
        if len(states) == 1 and not problems:
            return Retrieved(str(body["broker"]), Phase(body["phase"]), states[0])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    why = "the state that an interrupted run had read is damaged: discard it with -s. Nothing was changed"
    raise MigrationError(f"{path}: {why}")
