"""Pages as a browser shows them: nothing from elsewhere, few elements for many rows, sort, search, fold, small windows.

Screenshots are written to build/screenshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from commands.pages import (
    MOST_ROWS,
    Cell,
    Column,
    ColumnKind,
    Section,
    Series,
    Severity,
    TreeNode,
    document,
    table,
    timeline,
    tree,
)
from commands.replay.analysis.html import page
from commands.replay.analysis.report import report_of
from commands.replay.analysis.tables import MINUTES, QMGRS, SECONDS, Row, Table, TableView
from tests.browser import Browser, chromium, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]

MANY = 100_000
MOST_ELEMENTS = 2_000
"""Elements of a page with MANY rows. All rows would be half a million."""

ANSWER_MS = 3_000
"""What a search in ten tables of MANY rows, or a sort, may take on a machine that is busy with other tests."""

SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def _rows(count: int) -> list[list[Cell]]:
    return [[f"SUBSCRIBER.{n}", f"Price/Fruit/{n % 977}", n * 7919 % 1_000_003, (n % 50, n % 7)] for n in range(count)]


def _many() -> str:
    series = (Series("lost", "red"), Series("gained", "blue"))
    columns = [
        Column("queue", ColumnKind.CODE),
        Column("topic", ColumnKind.CODE),
        Column("messages", ColumnKind.NUMBER),
        Column("differences", ColumnKind.BARS, series),
    ]
    equal: list[list[Cell]] = [[f"Q{n}", "the queue is full", "error"] for n in range(1_378)]
    equal += [[f"R{n}", f"no queue R{n}", "warning: look at it"] for n in range(5)]
    folded = [Column("queue", ColumnKind.CODE), Column("why"), Column("result", ColumnKind.SEVERITY)]
    start = datetime(2026, 1, 5, 8, tzinfo=UTC)
    periods = {start + timedelta(seconds=n): [n % 17 * 1_000, n == 9] for n in range(40)}
    nodes = [
        TreeNode(f"a{n}", [("subscription", f"● S{n}")], [TreeNode(f"b{n}", (), [TreeNode("c")])]) for n in range(9)
    ]
    return document(
        "A page of many rows",
        ["Made by a test."],
        [],
        [
            Section("Equal rows", table(folded, equal, varies=["queue"]), "1,383", Severity.BAD),
            Section("Many rows", table(columns, _rows(MANY)), "100,000"),
            Section("Over time", timeline([Series("messages", "blue"), Series("errors", "red")], periods, 1)),
            Section("Tree", tree(TreeNode("QM1", (), nodes))),
        ],
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "many.html"
    path.write_text(_many(), encoding="utf-8")
    return path


def _first_cells(browser: Browser, section: str, column: int = 1, count: int = 3) -> list[str]:
    cells = f"[...document.querySelectorAll('#{section} tr[data-line] td:nth-child({column})')]"
    found: list[str] = browser.ask(f"{cells}.slice(0, {count}).map(cell => cell.firstChild.textContent)")
    return found


def _elements(browser: Browser) -> int:
    return int(browser.ask("document.querySelectorAll('*').length"))


def _milliseconds(browser: Browser, action: str) -> float:
    """How long the page is busy with *action*."""
    return float(
        browser.ask(f"(() => {{ const start = performance.now(); {action}; return performance.now() - start }})()")
    )


def _search(browser: Browser, text: str) -> None:
    browser.ask(f"box.value = {text!r}; search(); {SETTLED}")


def test_it_asks_nothing_of_the_network_and_complains_of_nothing(browser: Browser, many: Path) -> None:
    browser.open(many)
    assert browser.complaints == []
    assert browser.ask("performance.getEntriesByType('resource').length") == 0


def test_a_script_that_is_not_ours_does_not_run(browser: Browser, tmp_path: Path) -> None:
    """Were a text to escape from its place, the policy would still stop it."""
    page = tmp_path / "attacked.html"
    attack = "<script>document.title = 'attacked'</script><img src=x onerror=\"document.title = 'attacked'\">"
    page.write_text(document("Safe", [], [], [Section("T", Markup(attack))]), encoding="utf-8")
    browser.open(page)
    assert browser.ask("document.title") == "Safe"
    assert any("Content Security Policy" in text for text in browser.complaints)


def test_many_rows_are_few_elements_wherever_one_scrolls(browser: Browser, many: Path) -> None:
    browser.open(many)
    assert _elements(browser) < MOST_ELEMENTS
    seen = set()
    for share in (0, 0.1, 0.5, 0.999, 1):
        height = browser.ask("document.querySelector('#s2 .box').scrollHeight")
        browser.ask(f"document.querySelector('#s2 .box').scrollTop = {share * height}; {SETTLED}")
        assert _elements(browser) < MOST_ELEMENTS
        shown = _first_cells(browser, "s2", count=100)
        assert 20 < len(shown) <= 100
        seen.add(shown[0])
    assert len(seen) >= 4
    assert (
        browser.ask("[...document.querySelectorAll('#s2 tr[data-line]')].at(-1).cells[0].textContent")
        == "SUBSCRIBER.99999"
    )


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an analysis in which each table has MANY rows."""

    def rows(of: Table | TableView, most: int | None) -> tuple[int, list[Row]]:
        columns = (of.table if isinstance(of, TableView) else of).columns
        count = 1 if of in (QMGRS, MINUTES, SECONDS) else MANY
        if of in (MINUTES, SECONDS):
            return 0, []
        made = {str: lambda n: f"Price/Fruit/{n}", int: lambda n: n % 977, datetime: lambda _: None}
        fixed = {"wildcards": lambda _: "char", "options": lambda _: "", "sub_id": lambda n: f"{n:048x}"}
        rows = ({name: fixed.get(name, made[kind])(n) for name, kind in columns.items()} for n in range(count))
        return count, list(islice(rows, most))

    path = tmp_path_factory.mktemp("analysis") / "analysis.html"
    path.write_text(page(report_of(rows, "v7", MOST_ROWS), "capture.jsonl"), encoding="utf-8")
    return path


@pytest.mark.nightly
def test_an_analysis_of_many_rows_answers_at_once(browser: Browser, analysis: Path) -> None:
    browser.open(analysis)
    assert browser.complaints == []
    assert _elements(browser) < 9 * MOST_ELEMENTS / 3
    assert browser.ask("[...document.querySelectorAll('.table')].filter(t => t.querySelector('tr.gap')).length") >= 8
    assert _milliseconds(browser, "box.value = 'fruit/99999'; search()") < ANSWER_MS
    shown = browser.ask("document.querySelector('#s3 tr[data-line]').textContent")
    assert "Price/Fruit/99999" in shown
    browser.ask("box.value = ''; search()")
    assert _milliseconds(browser, "document.querySelector('#s3 th button').click()") < ANSWER_MS
    assert _elements(browser) < 9 * MOST_ELEMENTS / 3
    browser.photograph("analysis-of-many-rows")


def test_a_row_of_the_window_is_where_its_number_says(browser: Browser, many: Path) -> None:
    browser.open(many)
    browser.ask(f"document.querySelector('#s2 .box').scrollTop = 50000 * 1.9 * 16; {SETTLED}")
    place = """(() => {
      const box = document.querySelector('#s2 .box').getBoundingClientRect();
      const row = document.querySelector('#s2 tr[data-line="50005"]').getBoundingClientRect();
      return (row.top - box.top) / row.height;
    })()"""
    assert 4.5 < browser.ask(place) < 8


def test_a_click_on_a_head_sorts(browser: Browser, many: Path) -> None:
    browser.open(many)
    click = "document.querySelectorAll('#s2 th button')[2].click()"
    numbers = sorted((row[2] for row in _rows(MANY) if isinstance(row[2], int)), reverse=True)
    for expected, sort in (
        ([f"{n:,}" for n in numbers[:3]], "descending"),
        ([f"{n:,}" for n in numbers[:-4:-1]], "ascending"),
        (["0", "7,919", "15,838"], None),
    ):
        browser.ask(click)
        assert _first_cells(browser, "s2", 3) == expected
        assert browser.ask("document.querySelectorAll('#s2 th')[2].getAttribute('aria-sort')") == sort


def test_the_keyboard_sorts_and_searches(browser: Browser, many: Path) -> None:
    browser.open(many)
    browser.ask("document.querySelectorAll('#s2 th button')[0].focus()")
    for _ in range(2):
        browser.press("Enter")
    assert _first_cells(browser, "s2") == ["SUBSCRIBER.99999", "SUBSCRIBER.99998", "SUBSCRIBER.99997"]
    browser.press("/")
    assert browser.ask("document.activeElement.id") == "search"


def test_a_search_finds_rows_in_all_tables(browser: Browser, many: Path) -> None:
    browser.open(many)
    found = [str(queue) for queue, topic, *_ in _rows(MANY) if "BER.976" in str(queue) and "ruit/9" in str(topic)]
    _search(browser, "ruit/9 BER.976")
    assert _first_cells(browser, "s2") == found[:3]
    assert browser.ask("found.textContent") == f"{len(found):,} found"
    assert browser.ask("document.getElementById('s1').hidden")
    _search(browser, "")
    assert not browser.ask("document.getElementById('s1').hidden")
    assert _first_cells(browser, "s2")[0] == "SUBSCRIBER.0"


def test_equal_rows_are_one_row_that_unfolds(browser: Browser, many: Path) -> None:
    browser.open(many)
    lines = "document.querySelectorAll('#s1 tr[data-line]').length"
    assert browser.ask(lines) == 6
    assert browser.ask("document.querySelector('#s1 button.like').textContent") == "and 1,377 more like this"
    browser.ask("document.querySelector('#s1 button.like').click()")
    assert 20 < browser.ask(lines) < 120
    assert _first_cells(browser, "s1") == ["Q0", "Q1", "Q2"]
    browser.ask("document.querySelector('#s1 button.like').click()")
    assert browser.ask(lines) == 6


def test_a_row_that_is_cut_is_shown_whole(browser: Browser, many: Path) -> None:
    browser.open(many)
    browser.ask("document.querySelector('#s2 tr[data-line=\"4\"]').focus()")
    browser.press("Enter")
    shown = browser.ask("[...document.querySelectorAll('#s2 .whole dd')].map(each => each.textContent)")
    assert shown == ["SUBSCRIBER.4", "Price/Fruit/4", "31,676", "8"]


def test_a_tree_is_searched_and_opened(browser: Browser, many: Path) -> None:
    browser.open(many)
    visible = "[...document.querySelectorAll('.tree details, .tree .leaf')].filter(e => e.checkVisibility()).length"
    assert browser.ask(visible) == 19
    _search(browser, "b7")
    assert browser.ask(visible) == 3
    _search(browser, "")
    assert browser.ask(visible) == 19
    browser.ask("document.querySelector('.tree .tools button').click()")
    assert browser.ask(visible) == 28


WINDOWS: dict[str, dict[str, Any]] = {
    "1200": {},
    "390": {"width": 390, "height": 844},
    "dark": {"dark": True},
    "print": {"width": 800, "height": 1100, "media": "print"},
}


@pytest.mark.parametrize("name", WINDOWS)
def test_nothing_runs_out_of_the_window(browser: Browser, many: Path, name: str) -> None:
    browser.open(many, **WINDOWS[name])
    width = WINDOWS[name].get("width", 1200)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    # A screenshot of one colour would be a page that shows nothing.
    assert browser.photograph(f"many-{name}").stat().st_size > 10_000
    assert _elements(browser) < MOST_ELEMENTS


def test_dark_is_dark_and_paper_is_white(browser: Browser, many: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(many, dark=True)
    assert browser.ask(colour) == "rgb(20, 24, 28)"
    browser.open(many, dark=True, media="print")
    assert browser.ask(colour) == "rgb(255, 255, 255)"
    assert browser.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
