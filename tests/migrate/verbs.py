"""Calling the migration verbs as an administrator does, on a queue manager of its own."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from commands.cli import main
from commands.config.home import Home
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console
from migrate import embedded
from tests.migrate.cases import told


class Ran:
    """What one call of a verb came to."""

    def __init__(self, verb: str, home: Path, *arguments: str, qmgr: str = "QM1") -> None:
        out, err = io.BytesIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended:
            main.main([verb, "-m", qmgr, "--home", str(home), *arguments], obj=Console(out, err))
        self.code, self.out, self.err = ended.value.code, out.getvalue().decode(), err.getvalue()


def state(home: Home, qmgr: str = "QM1") -> dict[str, object]:
    """What the queue manager knows."""
    with QueueManagerStore.open(home, qmgr) as store:
        return told(embedded.load(store))
