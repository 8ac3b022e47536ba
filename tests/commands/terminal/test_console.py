"""The console: progress, quiet, and the encoding of data."""

from __future__ import annotations

import io
import os
import pty
import select
from collections.abc import Iterator

import pytest

from commands.terminal.console import Console, progress_line
from commands.terminal.counted import counted
from tests.waiting import PATIENCE_S


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
    while not text.endswith("\r\x1b[K") and select.select([seen], [], [], PATIENCE_S)[0]:
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


LINES = [
    ("count", (1204, None, None, 0.5), "messages: 1,204"),
    ("rate", (1204, None, None, 2.0), "messages: 1,204  602/s"),
    ("total", (50, 200, 0.25, 0.5), "messages: 50 of 200  [#######                       ]   25%"),
    ("time-left", (50, 200, 0.25, 10.0), "messages: 50 of 200  [#######                       ]   25%  5/s  30 s left"),
    ("share-alone", (50, None, 0.5, 600.0), "messages: 50  [###############               ]   50%  0/s  10 min left"),
    ("hours", (1, 100, 0.01, 600.0), "messages: 1 of 100  [                              ]    1%  0/s  16.5 h left"),
    ("nothing-yet", (0, 100, 0.0, 5.0), "messages: 0 of 100  [                              ]    0%  0/s"),
    ("more-than-all", (3, 2, 1.5, 0.1), "messages: 3 of 2  [##############################]  100%"),
]


@pytest.mark.parametrize(("given", "line"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_the_line_of_progress(given: tuple[int, int | None, float | None, float], line: str) -> None:
    assert progress_line("messages", *given) == line


def test_a_warning_is_a_line_of_its_own_between_two_lines_of_progress(terminal: tuple[Console, int]) -> None:
    to, seen = terminal
    with to.progress("messages put", 10) as advance:
        advance(3)
        to.warn("message 3 is bad")
    text = ""
    while "is bad\r\n" not in text and select.select([seen], [], [], PATIENCE_S)[0]:
        text += os.read(seen, 1000).decode()
    assert "\r\x1b[Kqpubsub: message 3 is bad\r\n" in text


COUNTED = [(0, "0 messages"), (1, "1 message"), (2, "2 messages"), (1204, "1,204 messages")]


@pytest.mark.parametrize(("count", "text"), COUNTED)
def test_numbers_in_sentences(count: int, text: str) -> None:
    assert counted(count, "message") == text
    assert counted(count, "query", "queries") == text.replace("messages", "queries").replace("message", "query")
