"""The likeliest reason beside each subscription that was never matched."""

from __future__ import annotations

import pytest

from commands.replay.analysis import AnalysisReport, LocalAnalysis
from commands.replay.analysis.html import page
from commands.replay.analysis.report import LIKELY_DETAIL, LIKELY_REASON, lines_of, report_of
from tests.commands.silent_subscribers import EXPECTED, SETUP, version_7


def _report() -> AnalysisReport:
    analysis = LocalAnalysis(SETUP)
    for message in version_7():
        analysis.take(message)
    return report_of(analysis.look, "v7", 1000)


REPORT = _report()
LIKELY = {str(row["subscriber"]): str(row[LIKELY_REASON]) for row in REPORT.section("never_matched").rows}
NOT_KNOWN = {"BLOCKED", "LEVEL", "OWN.PUBLICATION", "NEW.ONLY"}
"""The tables do not show by which rule."""


@pytest.mark.parametrize(
    "queue", ["NO.MATCH", "TOO.LATE", "SCHEME.STAR", "SCHEME.HASH", "CASE", "BLANK", "BLANK.INSIDE"]
)
def test_topics_that_nearly_match(queue: str) -> None:
    assert LIKELY[queue] == EXPECTED[queue].value


@pytest.mark.parametrize("queue", ["SLASH.FIRST", "SLASH.LAST", "FILTER", "FILTER.NOT.SET", "REQUEST.ONLY"])
def test_other_reasons(queue: str) -> None:
    assert LIKELY[queue] == EXPECTED[queue].value


@pytest.mark.parametrize("queue", sorted(NOT_KNOWN & LIKELY.keys()))
def test_where_the_tables_do_not_show_the_rule_the_reason_is_left_to_why(queue: str) -> None:
    assert LIKELY[queue] in ("", "no-match")


def test_the_report_shows_them() -> None:
    text = "\n".join(lines_of(REPORT, 200))
    assert "likely" in text
    assert "wildcard-scheme" in text
    row = next(row for row in REPORT.section("never_matched").rows if row["subscriber"] == "CASE")
    detail = "the topic is 'Sport/Soccer', the subscription says 'sport/soccer': case differs"
    assert row[LIKELY_DETAIL] == detail
    assert "case differs" in page(REPORT, "captures")
