"""What collides across the brokers of an estate, and which topic strings are proposed (guide 6.1, 7.4)."""

from __future__ import annotations

import pytest

from migrate.estate.overview import Crossing, estate_findings, prefixes_in_use, proposed_prefixes
from migrate.estate.records import Survey
from migrate.ledger import Severity

A, B = "QMA", "QMB"


def survey(streams: dict[str, str] | None = None, **more: object) -> Survey:
    made = {"SYSTEM.BROKER.DEFAULT.STREAM": "", **(streams or {})}
    return Survey(streams=made, objects=dict(made) | more.pop("objects", {}), **more)  # type: ignore[arg-type, operator]


def crossing(one: Survey, other: Survey, *, apart: bool = False, **more: object) -> Crossing:
    networks = ((A,), (B,)) if apart else ((A, B),)
    return Crossing({A: one, B: other}, networks, {A: "", B: ""}, **more)  # type: ignore[arg-type]


CASES = [
    ("nothing", survey({"Sport": "Sport"}), survey({"Sport": "Sport"}), []),
    (
        "different-prefixes",
        survey({"Sport": "Sport"}),
        survey({"Sport": "Games"}),
        [("prefixes", Severity.ERROR, "stream Sport has several topic strings in one network: Games on QMB; Sport on")],
    ),
    (
        "same-string",
        survey({"Sport": "Games"}),
        survey({"Play": "Games"}),
        [("prefixes", Severity.ERROR, "streams Play and Sport both have topic string Games")],
    ),
    (
        "nested",
        survey({"Sport": "Sport"}),
        survey({"UK": "Sport/UK"}),
        [("prefixes", Severity.WARNING, "stream UK at Sport/UK lies in stream Sport")],
    ),
    (
        "subscription-point",
        survey({"USD": "USD"}),
        survey(points=("USD",)),
        [("prefixes", Severity.ERROR, "subscription point USD of QMB and stream USD")],
    ),
    (
        "topic-objects",
        survey(objects={"NEWS": "News"}),
        survey(objects={"NEWS": "World/News"}),
        [("names", Severity.WARNING, "topic object NEWS has several topic strings")],
    ),
    (
        "default-stream",
        survey({"Sport": "Sport"}),
        survey(levels=("Sport", "Other")),
        [("topics", Severity.WARNING, "2 topics of the default stream of QMB lie below Sport")],
    ),
]


@pytest.mark.rule("MIG-30")
@pytest.mark.parametrize(("one", "other", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_collisions(one: Survey, other: Survey, expected: list[tuple[str, Severity, str]]) -> None:
    topics = {A: (), B: ("Other/x", "Sport", "Sport/x", "Sports/x")}
    found = estate_findings(crossing(one, other, topics=topics.__getitem__))
    assert [(each.kind, each.severity) for each in found] == [each[:2] for each in expected]
    for each, (_, _, words) in zip(found, expected, strict=True):
        assert words in each.text
        assert each.advice
    apart = estate_findings(crossing(one, other, apart=True, topics=topics.__getitem__))
    assert apart == [], "queue managers of different networks do not meet"


def test_names_that_identifiers_do_not_tell_apart() -> None:
    both = Crossing({"PRODUCTION.QM1": survey(), "PRODUCTION.QM2": survey()}, (), {})
    (found,) = estate_findings(both)
    assert (found.kind, found.severity) == ("names", Severity.ERROR)
    assert found.qmgrs == ("PRODUCTION.QM1", "PRODUCTION.QM2")


def test_a_parent_that_the_file_has_otherwise() -> None:
    (found,) = estate_findings(Crossing({A: survey(parents=(B,)), B: survey()}, (), {A: "", B: ""}))
    assert "the parent of QMA is QMB in its sources, and not given in estate.toml" in found.text


def test_a_prefix_for_no_stream() -> None:
    (found,) = estate_findings(Crossing({A: survey()}, (), {}, prefixes={"Sprot": "x"}))
    assert "no broker has a stream of that name" in found.text


def test_proposals_are_free_everywhere() -> None:
    both = crossing(
        survey({"Sport": "Sport"}),
        survey(levels=("Sport", "Sport.stream"), points=("Sport.stream2",)),
        topics=lambda qmgr: ("Sport/x",) if qmgr == B else (),
    )
    findings = estate_findings(both)
    assert proposed_prefixes(both, findings) == {"Sport": "Sport.stream3"}
    assert prefixes_in_use(both) == {"Sport": ("Sport",)}
