"""``replay --step`` on a terminal, driven by Textual's own pilot, and the file of the index."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from commands.explain.selection import Where, compile_where
from commands.options.replays import TEXTUAL_MISSING
from commands.replay.step.index_file import IndexFile, mark_of
from commands.replay.step.state import SnapshotError
from commands.replay.step.timeline import Timeline, blocks_of
from commands.terminal.console import ExitCode
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.errors import StoreError
from tests.commands.cli_runs import run

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
CAPTURE: Final = FIXTURES / "results-service" / "capture.jsonl"
RESULTS: Final = [record.message for record in read_captures(CAPTURE) if record.message]


def made(messages: list[CapturedMessage] = RESULTS, shortest: int = 4) -> IndexFile:
    return IndexFile.temporary(blocks_of(messages, "", "v7", shortest=shortest))


# The terminal


def driven(
    drive: Callable[[Any, Any], Awaitable[None]],
    breakpoints: tuple[Where, ...] = (),
    messages: list[CapturedMessage] = RESULTS,
) -> None:
    pytest.importorskip("textual")
    from commands.replay.step.app import StepApp

    async def go() -> None:
        with made(messages) as index:
            app = StepApp(Timeline(index, "", "v7"), "capture.jsonl", breakpoints)
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.pause()
                await drive(app, pilot)

    asyncio.run(go())


def shown(app: Any, name: str) -> str:
    from textual.widgets import Static

    return str(app.query_one(f"#{name}", Static).render())


# keys, one after the other, and the number of the message that is shown then
MOVES = [
    ((), 1),
    (("right",), 2),
    (("n", "n", "j"), 5),
    (("right", "right", "left"), 6),
    (("end",), 26),
    (("right",), 26),
    (("p", "k"), 24),
    (("home",), 1),
    (("left",), 1),
]


def test_keys_move() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        for keys, seq in MOVES:
            await pilot.press(*keys)
            assert f"message {seq} of 26" in shown(app, "where"), keys
            assert shown(app, "step").startswith(f"seq {seq}, "), keys
            (marked,) = [line for line in shown(app, "messages").splitlines() if line.startswith(">")]
            assert marked.split()[1] == str(seq), keys

    driven(drive)


def test_a_window_of_80_columns_shows_all_keys_and_the_ends_of_topics() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        from textual.widgets._footer import FooterKey

        await pilot.press("n", "n", "question_mark")
        keys = {each.description: each.region.right for each in app.query(FooterKey)}
        assert (list(keys)[-2:], max(keys.values()) <= 80) == (["Help", "Quit"], True)
        assert "g  go to a number" in shown(app, "said")
        (marked,) = [line for line in shown(app, "messages").splitlines() if line.startswith(">")]
        assert re.fullmatch(r"> 3 ReqUpdate 3077 \.\.\..+/#", marked)
        assert len(marked) <= app.query_one("#list").scrollable_content_region.width
        assert app.query_one("#step").region.right <= 80, "long lines wrap"

    driven(drive)


def test_the_views_are_those_of_inspect() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press(*["right"] * 17)
        printed = run("inspect", "--at", "18", str(CAPTURE), "--all").out
        before, after = printed.split("After:")[0].split("Before:")[1], printed.split("After:")[1]
        for state in (after, before):
            for name in ("subscriptions", "retained", "queues"):
                for line in shown(app, name).splitlines():
                    assert line in state
            await pilot.press("s")
        assert "Changed:\n+ subscription QM1 Sport/Soccer/State/LatestScore/+ -> LATE.BOARD" in shown(app, "step")

    driven(drive)


def test_state_before_and_after() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        assert "RESULTS.SERVICE" in shown(app, "subscriptions")
        await pilot.press("s")
        assert shown(app, "subscriptions") == "no subscription"
        assert "state before it" in shown(app, "where")

    driven(drive)


def test_breakpoints_that_were_given_stop() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        assert "message 3 of 26" in shown(app, "where")
        await pilot.press("c")
        assert "message 26 of 26" in shown(app, "where")
        await pilot.press("c")
        assert "no further message" in shown(app, "said")
        await pilot.press("r")
        assert "message 3 of 26" in shown(app, "where")
        await pilot.press("x", "c")
        assert "there is no breakpoint" in shown(app, "said")

    driven(drive, (compile_where("reason is not null"),))


TYPED = [
    ("g", "18", "message 18 of 26", ""),
    ("g", "99", "message 1 of 26", "no message has the number 99"),
    ("g", "x", "message 1 of 26", "no message has the number x"),
    ("b", "command='DeletePub'", "message 1 of 26", "1 breakpoint:"),
    ("b", "topics='a'", "message 1 of 26", "perhaps topic"),
]


def test_what_is_typed() -> None:
    names = {"'": "apostrophe", "=": "equals_sign", " ": "space"}

    async def drive(app: Any, pilot: Any) -> None:
        for key, text, where, said in TYPED:
            await pilot.press("home", key, *(names.get(c, c) for c in text), "enter")
            assert where in shown(app, "where"), text
            assert said in shown(app, "said"), text
            await pilot.press("escape")

    driven(drive)


def test_a_breakpoint_that_was_typed_stops_both_ways() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press("b")
        app.query_one("#input").value = "topic like '%/MatchEnded'"
        await pilot.press("enter", "c")
        assert "message 19 of 26" in shown(app, "where")
        await pilot.press("end", "r")
        assert "message 21 of 26" in shown(app, "where")

    driven(drive)


def test_escape_closes_the_question_and_letters_move_again() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press("g", "n", "escape", "n")
        assert "message 2 of 26" in shown(app, "where")

    driven(drive)


def test_an_empty_capture_is_shown_as_one() -> None:
    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press("right", "end", "home", "s")
        assert "no messages" in shown(app, "where")

    driven(drive, messages=[])


def test_text_of_messages_is_no_markup_and_drives_no_terminal() -> None:
    odd = [RESULTS[0].model_copy(update={"user": "[red]x[/red]\x1b[31m", "queue": "SYSTEM.BROKER.CONTROL.QUEUE"})]

    async def drive(app: Any, pilot: Any) -> None:
        assert "[red]x[/red]" in shown(app, "step")
        assert "\x1b" not in shown(app, "step")

    driven(drive, messages=odd)


# The verb


def test_without_a_terminal_it_says_what_to_use() -> None:
    pytest.importorskip("textual")
    ran = run("replay", "--step", str(CAPTURE))
    assert (ran.code, "qpubsub inspect prints the same" in ran.talk) == (ExitCode.USAGE, True)


def test_without_textual_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "commands.replay.step.app", None)
    ran = run("replay", "--step", str(CAPTURE), terminal=True)
    assert (ran.code, TEXTUAL_MISSING in ran.talk) == (ExitCode.USAGE, True)
    assert "pip install '.[step]'" in TEXTUAL_MISSING


USAGES = [
    (("--step", "-o", "x.jsonl"), "--step can be used with"),
    (("--step", "--where", "seq = 1"), "--step can be used with"),
    (("--break", "seq = 1"), "--break and --index need --step"),
    (("--index", "x.steps"), "--break and --index need --step"),
]


@pytest.mark.parametrize(("given", "said"), USAGES, ids=[" ".join(given) for given, _ in USAGES])
def test_what_does_not_go_together(given: tuple[str, ...], said: str) -> None:
    ran = run("replay", str(CAPTURE), *given)
    assert (ran.code, said in ran.talk) == (ExitCode.USAGE, True)


# inspect


@pytest.mark.parametrize("seq", [1, 3, 18, 26])
@pytest.mark.parametrize("given", [(), ("--json",), ("--semantics", "v6")], ids=" ".join)
def test_inspect_is_the_same_with_an_index(tmp_path: Path, seq: int, given: tuple[str, ...]) -> None:
    plain = run("inspect", "--at", str(seq), str(CAPTURE), *given)
    index = ("--index", str(tmp_path / "x.steps"))
    first, again = (run("inspect", "--at", str(seq), str(CAPTURE), *given, *index) for _ in range(2))
    assert plain.code == first.code == again.code == 0
    assert plain.out == first.out == again.out != ""


def test_inspect_prints_what_a_golden_file_has() -> None:
    golden = FIXTURES / "step" / "inspect-18"
    assert run("inspect", "--at", "18", str(CAPTURE)).out == golden.with_suffix(".txt").read_text()
    found = json.loads(run("inspect", "--at", "18", "--json", str(CAPTURE)).out)
    assert found == json.loads(golden.with_suffix(".json").read_text())


def test_inspect_sorts_a_capture_that_is_out_of_order(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    lines = CAPTURE.read_text().splitlines(keepends=True)
    capture.write_text("".join([*lines[20:], *lines[:20]]))
    plain = run("inspect", "--at", "22", str(CAPTURE)).out
    assert run("inspect", "--at", "22", str(capture)).out == plain
    assert run("inspect", "--at", "22", str(capture), "--index", str(tmp_path / "i")).out == plain


@pytest.mark.parametrize("index", [False, True])
def test_a_number_that_is_not_there(tmp_path: Path, index: bool) -> None:
    given = ("--index", str(tmp_path / "i")) if index else ()
    ran = run("inspect", "--at", "99", str(CAPTURE), *given)
    assert ran.code == ExitCode.USAGE
    assert "no message has this number; the capture has messages 1 to 26" in ran.talk


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    capture = tmp_path / "c.jsonl"
    capture.write_text("nonsense\n" + CAPTURE.read_text())
    ran = run("inspect", "--at", "3", str(capture))
    assert (ran.code, "c.jsonl" in ran.talk, "seq 3" in ran.out) == (ExitCode.PROBLEMS, True, True)


# The file of the index


def opened(
    path: Path, mark: str = "m", messages: list[CapturedMessage] = RESULTS, said: list[str] | None = None
) -> IndexFile:
    said = [] if said is None else said
    return IndexFile.of(path, mark, lambda: blocks_of(messages, "", "v7", shortest=5), said.append)


def test_an_index_is_used_again_and_made_again_for_another_capture(tmp_path: Path) -> None:
    path, said = tmp_path / "x.steps", list[str]()
    with opened(path, "one", said=said) as index:
        assert sum(head.count for head in index.heads()) == 26
        assert len(index.heads()) > 2
    before = path.read_bytes()

    def never() -> Any:
        raise AssertionError("made again")

    with IndexFile.of(path, "one", never, said.append) as index:
        assert len(Timeline(index, "", "v7")) == 26
    assert (path.read_bytes(), said) == (before, [])
    with opened(path, "two", RESULTS[:9], said) as index:
        assert len(Timeline(index, "", "v7")) == 9
    assert "made again" in said[0]
    assert [each.name for each in tmp_path.iterdir()] == ["x.steps"]


def test_the_mark_tells_captures_and_replays_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_text("x")
    two.write_text("y")
    marks = [
        mark_of([one], "auto", "", "v7"),
        mark_of([two], "auto", "", "v7"),
        mark_of([one, two], "auto", "", "v7"),
        mark_of([tmp_path], "auto", "", "v7"),
        mark_of([one], "hex", "", "v7"),
        mark_of([one], "auto", "DEFINE", "v7"),
        mark_of([one], "auto", "", "v6"),
    ]
    assert len({*marks[:3], *marks[4:]}) == 6
    assert marks[0] == mark_of([one], "auto", "", "v7")
    one.write_text("xx")
    assert marks[0] != mark_of([one], "auto", "", "v7")


def test_another_file_is_not_replaced(tmp_path: Path) -> None:
    text, database = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("mine")
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(StoreError, match="is not an index"):
            opened(path)
        assert path.read_bytes() == before


def test_an_index_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        opened(tmp_path / "missing" / "x.steps")


def test_a_damaged_index_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "x.steps"
    opened(path).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE blocks SET snapshot = x'00', facts = x'00' WHERE number = 1")
        database.execute("DELETE FROM blocks WHERE number = 2")
    database.close()
    with opened(path) as index:
        with pytest.raises(SnapshotError, match="damaged"):
            Timeline(index, "", "v7").step(6)
        with pytest.raises(SnapshotError, match="damaged"):
            index.facts(1)
        with pytest.raises(SnapshotError, match="block 2 is missing"):
            index.block(2)


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> Any:
        yield from blocks_of(RESULTS[:5], "", "v7", shortest=2)
        raise OSError("no more")

    with pytest.raises(StoreError):
        IndexFile.of(tmp_path / "x.steps", "m", fails, lambda line: None)
    assert list(tmp_path.iterdir()) == []
