"""Pages: what programs wrote stays text, the data of a table is what was given, and the first rows need no script."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.pages import (
    MOST_ROWS,
    Cell,
    Column,
    ColumnKind,
    Figure,
    Section,
    Series,
    Severity,
    TreeNode,
    document,
    script_data,
    spelt,
    table,
    timeline,
    tree,
)
from rfh2.terminal_escape import visible
from tests.html_pages import PageParts, check_page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>",
    '"onmouseover="alert(1)',
    "a\x00b\x1b[2J",
    "\u2028\u2029",
    "\ud800",
    "&lt;b&gt;",
]
CODE, NUMBER = ColumnKind.CODE, ColumnKind.NUMBER


def _page(*sections: Section) -> str:
    return document("A page", ["A sentence."], [Figure("1", "thing", section="T")], sections)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    columns = [Column(text), Column("number", NUMBER), Column("bars", ColumnKind.BARS, (Series(text, "red"),))]
    page = document(
        text,
        [text],
        [Figure(text, text, Severity.BAD, text)],
        [
            Section(text, table(columns, [[text, 1, (2,)]], rest=text, count=2), text, about=text),
            Section("severity", table([Column("s", ColumnKind.SEVERITY)], [[text]])),
            Section("tree", tree(TreeNode(text, [("object", text)], [TreeNode(text)]))),
            Section("time", timeline([Series(text, "red")], {datetime(2026, 1, 1, tzinfo=UTC): [3]}, 60)),
        ],
    )
    page.encode()
    parts = check_page(page)
    assert parts.tables[0]["columns"][0]["words"] == [visible(text)]


def test_the_policy_allows_our_script_alone() -> None:
    page = _page(Section("T", "text"))
    assert "default-src 'none'" in page
    assert "script-src 'sha256-" in page
    assert "unsafe-eval" not in page


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_data_comes_back_from_a_script_element(value: Any) -> None:
    text = script_data(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


WORDS = st.sampled_from(["", "a", "b", "c"]) | st.text(max_size=5)


@given(st.lists(st.tuples(WORDS, st.none() | st.integers(0, 10**6), st.tuples(st.integers(0, 9), st.integers(0, 9)))))
def test_the_data_of_a_table_is_what_was_given(rows: list[tuple[Cell, ...]]) -> None:
    series = (Series("x", "red"), Series("y", "blue"))
    columns = [Column("w", CODE), Column("n", NUMBER), Column("b", ColumnKind.BARS, series)]
    (data,) = check_page(_page(Section("T", table(columns, rows)))).tables
    words, numbers, bars = data["columns"]
    found = [
        (words["words"][words["at"][row]], numbers["values"][row], tuple(bars["values"][row]))
        for row in range(data["rows"])
    ]
    assert found == [(visible(str(row[0])), *row[1:]) for row in rows]
    assert len(set(words["words"])) == len(words["words"])


def test_without_a_script_the_first_rows_are_there() -> None:
    words = PageParts(_page(Section("T", table([Column("topic", CODE)], [[f"t/{n}"] for n in range(1_000)])))).words
    assert [word for word in words if word.startswith("t/")] == [f"t/{n}" for n in range(20)]


def test_without_a_script_equal_rows_are_one_row() -> None:
    rows = [[f"Q{n}", "no queue"] for n in range(1_378)] + [["X", "no topic"]]
    page = table([Column("queue", CODE), Column("why")], rows, varies=["queue"])
    words = PageParts(page).words
    assert [word.strip() for word in words if word.strip() in ("Q0", "Q1", "X", "no queue", "no topic")] == [
        *("Q0", "no queue"),
        *("X", "no topic"),
    ]
    assert "and 1,377 more like this" in words


def test_a_table_ends_and_says_where_the_rest_is() -> None:
    page = table([Column("n", NUMBER)], [[n] for n in range(MOST_ROWS + 1)], rest="The file has every row.")
    parts = PageParts(page)
    assert parts.tables[0]["rows"] == MOST_ROWS
    assert "The first 100,000 of 100,001 rows. The file has every row." in parts.words


@pytest.mark.parametrize(
    ("length_s", "text"),
    [(1, "1 s"), (15, "15 s"), (60, "1 min"), (900, "15 min"), (10_800, "3 h"), (86_400, "1 d"), (604_800, "7 d")],
)
def test_a_period_is_spelt_in_its_largest_unit(length_s: int, text: str) -> None:
    assert spelt(length_s) == text


def test_each_series_has_its_own_scale() -> None:
    """399 errors among 1,090,106 messages are seen."""
    first = datetime(2026, 1, 5, 8, tzinfo=UTC)
    periods = {first + timedelta(seconds=at): [100_000, 4 if at == 3 else 0, 0] for at in range(10)}
    drawn = timeline([Series("messages", "blue"), Series("errors", "red"), Series("none", "amber")], periods, 1)
    assert drawn.count("<svg") == 2
    assert '<rect class="red" x="3" y="1.00" width=".9" height="39.00">' in drawn
    assert "4 in all, at most 4 in 1 s" in drawn
    assert "2026-01-05 08:00:00" in drawn


def test_a_tree_opens_two_levels() -> None:
    root = TreeNode("QM1", children=[TreeNode("a", children=[TreeNode("b", children=[TreeNode("c")])])])
    drawn = tree(root)
    assert drawn.count('<details class="node" open>') == 2
    assert drawn.count('<details class="node">') == 1


def test_many_marks_are_in_a_box_of_their_own() -> None:
    """The line of a node stays one line."""
    drawn = tree(TreeNode("a", [("subscription", f"S{n}") for n in range(50)]))
    line = drawn[: drawn.index("</summary>")]
    assert ("S2" in line, "S3" in line, "and 47 more" in line) == (True, False, True)
    assert "S49" in drawn
