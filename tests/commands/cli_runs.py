"""The command line in this process: what a verb prints, says and ends with."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from commands.cli import main
from commands.running.bridge import Bridge
from commands.running.run_settings import RunSettings
from commands.terminal.console import Console
from tests.waiting import PATIENCE_S


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    talk: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def run(*args: str, stdin: str | bytes = b"", terminal: bool = False) -> Ran:
    """``qpubsub`` with these arguments; terminal: stdout is one."""
    console = Console(_Terminal() if terminal else io.BytesIO(), io.StringIO())
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
        try:
            main(list(args), obj=console)
        except SystemExit as ended:
            code = ended.code
    assert isinstance(console.stdout, io.BytesIO)
    assert isinstance(console.stderr, io.StringIO)
    assert isinstance(code, int)
    return Ran(code, console.stdout.getvalue().decode(), console.stderr.getvalue())


class Working:
    """The bridge of a queue manager at work, as ``qpubsub run`` makes it, on a thread of this process."""

    def __init__(self, home: Path, qmgr: str = "QM1") -> None:
        console = Console(io.BytesIO(), io.StringIO(), quiet=True)
        self.bridge = Bridge(console, RunSettings(qmgr=qmgr, home=home))
        self._has_started = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        assert self._has_started.wait(PATIENCE_S)

    def _work(self) -> None:
        with self.bridge:
            self._has_started.set()
            self.bridge.serve()

    def end(self) -> None:
        """Stop it, and wait for that."""
        self.bridge.stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@contextmanager
def working(home: Path, qmgr: str = "QM1") -> Iterator[Working]:
    """A bridge at work while inside."""
    made = Working(home, qmgr)
    try:
        yield made
    finally:
        made.end()
