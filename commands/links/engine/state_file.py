"""A small JSON file in which an adapter keeps what its next process needs, beside the queue manager's database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commands.disk.files import to_disk
from commands.disk.permissions import private
from rfh2.errors import StoreError


def read_state(path: Path) -> dict[str, Any] | None:
    """What was written last; None if there is no file. Raises OSError, ValueError."""
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return state


def unreadable(path: Path, error: Exception) -> StoreError:
    """The error for a file that *error* shows to be damaged."""
    return StoreError(f"{path}: cannot be read ({error}); remove it, and the bridge makes it anew")


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Replace the file; after a crash it is the old one or the new one. Raises StoreError."""
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "w", encoding="utf-8", opener=private) as file:
            json.dump(state, file)
            to_disk(file)
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
