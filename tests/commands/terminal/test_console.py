"""The console: progress, quiet, and the encoding of data."""

from __future__ import annotations

import io
import os
import pty
import select
from collections.abc import Iterator

import pytest

from commands.terminal.console import Console


def console(*, quiet: bool = False, debug: bool = False) -> Console:
    return Console(io.BytesIO(), io.StringIO(), quiet=quiet, debug=debug)


def talk(of: Console) -> str:
    assert isinstance(of.stderr, io.StringIO)
    return of.stderr.getvalue()


@pytest.fixture
def terminal() -> Iterator[tuple[Console, int]]:
    """A console whose stderr is a terminal, and the terminal's other end."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stderr:
        yield Console(io.BytesIO(), stderr), ours
    os.close(ours)


def test_progress_on_a_terminal_is_wiped_away(terminal: tuple[Console, int]) -> None:
    to, seen = terminal
    with to.progress("messages put", 10) as advance:
        advance(3)
    text = ""
    while not text.endswith("\x1b[K") and select.select([seen], [], [], 10)[0]:
        text += os.read(seen, 1000).decode()

    assert text.startswith("\rmessages put: 3 of 10")
    assert text.endswith("\r\x1b[K")


@pytest.mark.parametrize("quiet", [False, True], ids=["no-terminal", "quiet"])
def test_no_progress_elsewhere(quiet: bool) -> None:
    to = console(quiet=quiet)
    with to.progress("messages put") as advance:
        advance(3)

    assert talk(to) == ""


def test_quiet_silences_talk_and_not_warnings() -> None:
    to = console(quiet=True)
    to.say("done")
    to.warn("not done")

    assert talk(to) == "qpubsub: not done\n"


def test_data_is_utf_8_whatever_the_locale() -> None:
    to = console()
    to.data("ä")

    assert isinstance(to.stdout, io.BytesIO)
    assert to.stdout.getvalue() == b"\xc3\xa4\n"
