"""What decode keeps from one message for the next changes nothing: with and without it, the same is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from commands.explain.reading import explained
from commands.explain.templates import decoded as templates
from commands.explain.view import MessageView, view
from commands.headers import psc
from rfh2.bounded_cache import BoundedCache
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.explain import annotate, field_problems, meanings
from rfh2.explain.annotate import TextRole, plain
from rfh2.explain.form import json_line
from tests.commands.replay.spark.worlds import captures

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
PATHS: Final = sorted(path for path in FIXTURES.glob("*/*.jsonl") if "captur" in path.name)


def forget() -> None:
    caches: tuple[BoundedCache[Any, Any], ...] = (
        *(
            annotate._LINES,
            annotate._RUNS,
            field_problems._FAULTLESS,
            field_problems._SOUND_HEADERS,
        ),
        *(templates._LINES, templates._VIEWS, psc._SHAPES),
    )
    for cache in caches:
        cache.clear()


def shown(message: CapturedMessage) -> tuple[bytes, list[str], list[str]]:
    found = explained(message)

    def lines(paint: annotate.Paint) -> list[str]:
        return list(view(found.partial, "x", found.command, found.problems, MessageView(paint)))

    line = json_line(found.form("x", 0))
    assert templates.json_of(message, "x", 0) == (line, found.problems), "a template shows what all rules show"
    assert templates.view_of(message, "x", MessageView(plain))[0] == lines(plain)
    return line, lines(plain), lines(lambda _role, text: text)


def check(messages: list[CapturedMessage]) -> None:
    alone = []
    for message in messages:
        forget()
        alone.append(shown(message))
    forget()
    for _ in range(2):
        assert [shown(message) for message in messages] == alone
    for _, with_plain, without in alone:
        assert with_plain == without, (
            "a line that was laid out before is the line that any other paint of no colour gives"
        )


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_captures(path: Path) -> None:
    check([record.message for record in read_captures(path) if record.message is not None][:40])


@settings(max_examples=25)
@given(captures(most=2), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 400), st.integers(0, 255)), max_size=30))
def test_generated_and_damaged_messages(messages: list[CapturedMessage], damage: list[tuple[int, int, int]]) -> None:
    """A damaged message beside the sound one: they differ in one byte, which may be one that a key leaves out."""
    odd = []
    for number, at, value in damage if messages else ():
        message = messages[number % len(messages)]
        whole = bytearray((message.md or b"") + message.body)
        whole[at % len(whole)] = value
        size = len(message.md or b"")
        changes = {"md_hex": None if message.md is None else whole[:size].hex(), "body_hex": whole[size:].hex()}
        odd += [message, message.model_copy(update=changes)]
    check([*messages[:10], *odd])


TIMES = [
    ("20090128", "10300050", "2009-01-28 10:30:00.50 UTC"),
    ("20090128", "103000", "2009-01-28 10:30:00.00 UTC"),
    ("20090230", "10300050", ""),
    ("2009012", "10300050", None),
    ("20090128", "1030", None),
    ("", "", ""),
    ("20090128", "103000xx", ""),
    ("99991231", "23595999", "9999-12-31 23:59:59.99 UTC"),
    ("00000101", "00000000", ""),
    ("09991231", "10300050", None),
    ("10000101", "1030005", None),
]


@pytest.mark.parametrize(("date", "moment", "text"), TIMES, ids=[f"{date}-{moment}" for date, moment, _ in TIMES])
def test_a_time_is_read_as_strptime_reads_it(date: str, moment: str, text: str | None) -> None:
    from datetime import UTC, datetime

    try:
        at = datetime.strptime(date + moment[:6], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        expected = at.strftime("%Y-%m-%d %H:%M:%S.") + f"{int(moment[6:8] or '0'):02} UTC"
    except ValueError:
        expected = ""
    assert meanings.time_text(date, moment) == expected
    assert text is None or text == expected


def test_every_role_can_be_painted_plainly() -> None:
    assert {plain(role, "x") for role in TextRole} == {"x"}
