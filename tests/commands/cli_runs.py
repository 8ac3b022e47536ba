"""The command line in this process: what a verb prints, says and ends with."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from unittest import mock

from commands.cli import main
from commands.terminal.console import Console


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
