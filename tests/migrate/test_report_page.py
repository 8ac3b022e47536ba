"""The page of a migration: equal results are one row, the page stays small, and a table beside it has every item."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from migrate.report.html import page
from migrate.report.outputs import COLUMNS, TEXT_ITEMS, items_csv, text as report_text
from tests.html_pages import check_page

MANY = 30_000
"""Several times as many as any table of the page shows."""
MOST_BYTES = 1_000_000


def _fate(number: int, verdict: str, *reasons: str) -> dict[str, Any]:
    return {
        "kind": "subscription",
        "number": number,
        "label": f"subscription named sub{number} to Price/Fruit/{number} of QUEUE.{number}",
        "source": f"capture.jsonl, message {number}",
        "verdict": verdict,
        "becomes": "" if verdict == "reported" else f"sub{number}:Fruit",
        "reasons": [{"severity": "warning", "text": text, "ids": ["P09"]} for text in reasons],
    }


def _facts(fates: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    counts = {word: sum(fate["verdict"] == word for fate in fates) for word in ("migrated", "changed", "reported")}
    return {
        "tool": "strmqbrk",
        "phase": "rehearse",
        "broker": "OLD",
        "qmgr": "QM1",
        "at": "2026-01-05T08:00:00Z",
        "sources_until": "2026-01-04T08:00:00Z",
        "options": ["--rehearse"],
        "fingerprint": "0" * 40,
        "items": len(fates),
        "counts": counts,
        "left_by_choice": 0,
        "by_kind": {"subscription": counts},
        "steps": {},
        "warnings": [],
        "problems": [],
        "visibility": [],
        "collisions": [],
        "tree": {"before": [], "after": []},
        "security": [],
        "fates": fates,
        **more,
    }


def _table(page_text: str, head: str) -> dict[str, Any]:
    (found,) = (each for each in check_page(page_text).tables if each["columns"][-1]["head"] == head)
    return found


def test_equal_reasons_are_one_row_whatever_the_names() -> None:
    changed = [
        _fate(n, "changed", f"its name is now sub{n}:Fruit; user trader{n} has no authority there")
        for n in range(1_378)
    ]
    results = _table(page(_facts([*changed, _fate(5_000, "reported", "the topic is empty")])), "first item")
    assert results["rows"] == 2
    verdict, _, count, why, _ = results["columns"]
    assert [verdict["words"][at] for at in verdict["at"]] == ["reported", "changed"]
    assert count["values"] == [[1], [1_378]]
    assert why["words"][why["at"][1]] == "warning: its name is now …; user … has no authority there [P09]."


def test_the_page_is_small_and_the_table_has_every_item() -> None:
    fates = [_fate(n, ("migrated", "changed", "reported")[n % 3], f"reason {n}" * 3) for n in range(MANY)]
    views = [
        {
            "subscription": n,
            "pattern": f"a/{n}/#",
            "gained": [f"b/{n}"],
            "gained_count": 30,
            "lost": [],
            "lost_count": 0,
        }
        for n in range(MANY)
    ]
    collisions = [{"topic_string": f"a/{n}", "topics": [["X", 1, f"a/{n}"], ["Y", 2, "b"]]} for n in range(MANY)]
    lines = [f"setmqaut -m QM1 -t topic -n T{n} -p user{n} +sub" for n in range(MANY)]
    facts = _facts(
        fates, visibility=views, collisions=collisions, security=lines, tree={"before": lines, "after": lines}
    )
    text = page(facts)
    assert len(text.encode()) < MOST_BYTES
    assert "of 10,000 rows. items.csv has all of them." in text
    assert "of 30,000 lines. report.json has all of them." in text
    rows = list(csv.DictReader(io.StringIO("".join(items_csv(facts)))))
    assert len(rows) == MANY
    assert rows[7] == dict(
        zip(
            COLUMNS,
            (
                *("subscription", "7", fates[7]["label"], fates[7]["source"], "changed", "sub7:Fruit"),
                *("warning", "reason 7reason 7reason 7", "P09"),
            ),
            strict=True,
        )
    )


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-1", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_takes_no_item_for_a_formula(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO("".join(items_csv(_facts([_fate(1, "migrated") | {"label": text}])))))
    assert row["item"] == f"'{text}"


def test_the_text_file_is_small_and_says_where_the_rest_is() -> None:
    fates = [_fate(n, ("migrated", "changed", "reported")[n % 3], f"reason {n}" * 3) for n in range(MANY)]
    lines = list(report_text(_facts(fates, outcome="lost"), TEXT_ITEMS))
    assert sum(len(line) + 1 for line in lines) < MOST_BYTES
    more = [line for line in lines if "items.csv and report.json of the report have all of them" in line]
    assert [line.split()[2] for line in more] == ["9500", "9500"]
