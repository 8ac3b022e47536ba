"""Topologies: what is wrong with a hierarchy, and runbooks with the commands filled in (guide 7.4.1, 7.4.2, 8.6)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from migrate.checklist import checklist, plain
from migrate.ledger import Fate, Reason, Severity, Verdict
from migrate.legacy_state import LegacyState, Publisher, Relation, Source, Stream
from migrate.report.runbooks import check_topology, cluster_runbook, collective_runbook, hierarchy_runbook, topology_of
from tests.migrate.cases import Case

MADE = Source(file="made")


def broker(
    qmgr: str, *, parent: str = "", children: tuple[str, ...] = (), streams: tuple[str, ...] = ()
) -> LegacyState:
    relations = [Relation(source=MADE, role="parent", qmgr=parent)] if parent else []
    relations += [Relation(source=MADE, role="child", qmgr=child) for child in children]
    named = tuple(Stream(source=MADE, name=stream) for stream in streams)
    return LegacyState(qmgr=qmgr, relations=tuple(relations), streams=named)


BANK = [
    broker("HQ", children=("LONDON", "PARIS"), streams=("Rates", "News")),
    broker("LONDON", parent="HQ", streams=("Rates",)),
    broker("PARIS", parent="HQ", children=("LYON",)),
]


def test_a_topology_is_what_its_brokers_say_together() -> None:
    topology = topology_of(BANK)
    assert topology.parents == {"HQ": "", "LONDON": "HQ", "PARIS": "HQ", "LYON": "PARIS"}
    assert list(topology.from_the_top()) == [("HQ", 0), ("LONDON", 1), ("PARIS", 1), ("LYON", 2)]
    assert check_topology(topology) == []


@pytest.mark.parametrize(
    ("states", "ids"),
    [
        ([broker("A", parent="B"), broker("C", children=("A",))], ["P25"]),
        ([broker("A", parent="B"), broker("B", parent="A")], ["P25", "P25"]),
        ([broker("A", parent="A")], ["P25"]),
        ([broker("SAME.FIRST.12.ONE", parent="SAME.FIRST.12.TWO")], ["P24"]),
    ],
    ids=["two-parents", "loop", "own-parent", "names-alike"],
)
def test_what_is_wrong_with_a_topology(states: list[LegacyState], ids: list[str]) -> None:
    topology = topology_of(states)
    assert [finding.id for finding in check_topology(topology)] == ids
    assert {qmgr for qmgr, _ in topology.from_the_top()} == set(topology.parents), "everyone once, loops or not"
    assert "First of all" in hierarchy_runbook(topology)


@pytest.mark.rule("MIG-13")
def test_7_4_1_the_runbook_of_a_hierarchy() -> None:
    text = hierarchy_runbook(topology_of(BANK))
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["HQ", "LONDON", "PARIS", "LYON"]
    assert "`qpubsub strmqbrk -m LONDON --target files --out LONDON -l psmigr.log --source ...`" in text
    assert "PSMODE(ENABLED), PARENT(PARIS)" in text
    assert "ACTIVE for HQ, LYON" in text


@pytest.mark.rule("MIG-4")
def test_7_4_2_the_runbook_to_a_cluster() -> None:
    text = cluster_runbook(topology_of(BANK), "DEMO")
    headings = re.findall(r"^## (\d)", text, re.MULTILINE)
    assert headings == list("1234567")
    order = [
        "HQ: ALTER QMGR PSMODE(COMPAT)",
        "LONDON: STOP CHANNEL(<channel from LONDON to HQ>) MODE(QUIESCE)",
        "HQ: ALTER QMGR PSMODE(ENABLED)",
        "LONDON: ALTER QMGR PARENT('')",
        "HQ: ALTER TOPIC('Rates') CLUSTER('DEMO')",
    ]
    places = [text.index(line) for line in order]
    assert places == sorted(places)
    assert "HQ: ALTER QMGR PARENT" not in text, "the root has no parent to give up"


@pytest.mark.rule("MIG-4")
def test_7_4_2_stream_topics_are_local_everywhere() -> None:
    """P31: the queued interface needs a local topic object for each name in its list."""
    text = cluster_runbook(topology_of(BANK), "DEMO")
    for qmgr in ("HQ", "LONDON", "PARIS", "LYON"):
        for stream in ("Rates", "News"):
            assert re.search(rf"{qmgr}: (?:ALTER|DEFINE) TOPIC\('{stream}'\).* CLUSTER\('DEMO'\)", text)
    assert (
        "LONDON: ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES('SYSTEM.BROKER.DEFAULT.STREAM', "
        "'SYSTEM.BROKER.ADMIN.STREAM', 'Rates', 'News')"
    ) in text


@pytest.mark.rule("MB-13")
def test_8_6_the_runbook_of_a_collective() -> None:
    brokers = {"BRK1": "QM1", "BRK2": "QM2", "BRK3": "QM3"}
    text = collective_runbook(brokers, "DEMO", {"QM1": "one.example(1414)"})
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(number) for number in range(1, 12)]
    assert text.count("ALTER QMGR REPOS('DEMO')") == 2, "two full repositories"
    assert (
        "QM1: DEFINE CHANNEL('TO.QM1') CHLTYPE(CLUSRCVR) TRPTYPE(TCP) CONNAME('one.example(1414)') CLUSTER('DEMO')"
        in text
    )
    assert "QM3: DEFINE CHANNEL('TO.QM1') CHLTYPE(CLUSSDR)" in text
    assert all(f"{qmgr}: ALTER TOPIC(SYSTEM.BASE.TOPIC) CLUSTER('DEMO')" in text for qmgr in brokers.values())
    assert text.index("migmbbrk -c -o -b BRK3") < text.index("REFRESH QMGR TYPE(PROXYSUB)")


def test_a_stream_that_a_default_stream_has_topics_below_is_not_made_there() -> None:
    """P09: GLAS01's topics CB.RATES/... would become those of stream CB.RATES."""
    taken = Publisher(source=MADE, topic="Rates/Libor")
    paris = broker("PARIS", parent="HQ", streams=()).model_copy(update={"publishers": (taken,)})
    text = cluster_runbook(topology_of([*BANK[:2], paris]), "DEMO")
    assert "PARIS: its default stream has topics below Rates, which would be the stream's (P09)." in text
    assert "PARIS: DEFINE TOPIC('Rates')" not in text
    assert "PARIS: DEFINE TOPIC('News')" in text
    assert "'SYSTEM.BROKER.ADMIN.STREAM', 'News')" in text


def test_no_neighbours_no_plumbing() -> None:
    text = cluster_runbook(topology_of([broker("ALONE")]), "DEMO")
    assert "There are none." in text
    assert "There are no named streams." in text


# What sources hold is no markup

HOSTILE = "<script>alert(1)</script>![x](http://evil) `code`*b* _e_ [ ](y)\x1b[2J\n# FORGED"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.DEFAULT.STREAM"),
        ("PROD_QM_1", "PROD_QM_1"),
        ("Sport/#", "Sport/#"),
        ("Sport/*", "Sport/\\*"),
        ("a<b>&c", "a&lt;b&gt;&amp;c"),
        ("[text](link) [4]", "[text\\](link) [4]"),
        ("_all_ of it", "\\_all\\_ of it"),
        ("`x` ~y~ \\ |", "\\`x\\` \\~y\\~ \\\\ \\|"),
    ],
)
def test_a_name_in_markdown(text: str, shown: str) -> None:
    assert plain(text) == shown


def hostile(document: str) -> str:
    topology = topology_of([broker(HOSTILE, children=(f"{HOSTILE}2",), streams=(HOSTILE,)), *BANK])
    if document == "hierarchy":
        return hierarchy_runbook(topology)
    if document == "cluster":
        return cluster_runbook(topology, HOSTILE)
    if document == "collective":
        return collective_runbook({HOSTILE: HOSTILE, "B": f"{HOSTILE}2"}, HOSTILE)
    plan = Case.of("streams").plan()
    reason = Reason(HOSTILE, Severity.ERROR)
    item = Stream(source=Source(file=HOSTILE), name=HOSTILE)
    fate = Fate(plan.fates[0].key, item, Verdict.REPORTED, reasons=(reason,))
    return checklist(replace(plan, fates=plan.fates.with_changed([fate])), [HOSTILE], {HOSTILE: HOSTILE})


@pytest.mark.parametrize("document", ["hierarchy", "cluster", "collective", "checklist"])
def test_nothing_of_the_sources_is_markup(document: str) -> None:
    text = hostile(document)
    assert "\x1b" not in text
    assert "\n# FORGED" not in text
    blocks = re.compile(r"^```\n.*?^```$", re.MULTILINE | re.DOTALL)
    prose = [line for line in blocks.sub("", text).splitlines() if not line.startswith("    ")]
    assert any("script" in line for line in prose)
    for line in prose:
        outside = re.sub(r"(?<!\\)`[^`]*`", "", line)
        assert "<script" not in outside
        assert not re.search(r"(?<!\\)\](?=\()", outside)
        assert not re.search(r"(?<![\\*])\*b", outside)
