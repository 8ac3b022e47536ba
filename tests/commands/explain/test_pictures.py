"""The topic tree as a picture: what is at each node, and what is left out is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from commands.explain.pictures import outline, page, svg, text_tree
from streams.mapping import TopicPrefix
from streams.subscriptions import Subscription, SubscriptionOptions
from streams.topic_objects import TopicObject, Wildcard
from tests.html_pages import check_page

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPORT = TopicObject("SPORT", "Sport", wildcard=Wildcard.BLOCK)


def _sub(topic: str, queue: str = "Q", n: int = 1) -> Subscription:
    return Subscription(n.to_bytes(24, "big"), topic, queue, "QM1", NOW)


RESULTS = [
    replace(_sub("Sport/Soccer/State/LatestScore/#", "RESULTS"), options=SubscriptionOptions(pub_on_req_only=True)),
    _sub("Sport/Soccer/State/LatestScore/#", "BOARD", 2),
    replace(_sub("Sport/Soccer/Event/+", "RESULTS", 3), name="EVENTS"),
]
RETAINED = ["Sport/Soccer/State/LatestScore/Liverpool ManUtd"]


def test_text() -> None:
    root = outline([SPORT], RESULTS, RETAINED)
    assert list(text_tree(root, "QM1")) == [
        "QM1",
        "└── Sport                             ■ SPORT WILDCARD(BLOCK)",
        "    └── Soccer",
        "        ├── Event/+                   ● EVENTS to RESULTS",
        "        └── State/LatestScore",
        "            ├── #                     ● RESULTS on request  ● BOARD",
        "            └── Liverpool ManUtd      ◆ retained",
    ]


def test_streams_and_subscription_points_are_marked() -> None:
    """Guide 6.1, 6.2: where they lie."""
    lying = [TopicPrefix("stream", "SPORT", "Sport"), TopicPrefix("subscription point", "USD", "Money/USD")]
    root = outline([SPORT, TopicObject("USD", "Money/USD")], [], [], places=lying)
    assert list(text_tree(root, "QM1")) == [
        "QM1",
        "├── Money/USD                         ■ USD  ▲ subscription point USD",
        "└── Sport                             ■ SPORT WILDCARD(BLOCK)  ▲ stream SPORT",
    ]
    assert "▲ stream SPORT" in page(root, "QM1")
    texts = [each.text for each in ET.fromstring(svg(root, "QM1")).iter("{http://www.w3.org/2000/svg}text")]
    assert "stream SPORT" in texts
    # What is too deep is counted by its object, and once.
    assert list(
        text_tree(outline([SPORT], [], [], depth=1, places=[TopicPrefix("stream", "X", "Sport/a")]), "QM1")
    ) == [
        "QM1",
        "└── Sport                             ■ SPORT WILDCARD(BLOCK)",
    ]


def test_under_and_depth() -> None:
    root = outline([SPORT], RESULTS, RETAINED, under="Sport/Soccer", depth=1)
    assert list(text_tree(root, "QM1: Sport/Soccer")) == [
        "QM1: Sport/Soccer",
        "├── Event                             … 1 more below",
        "└── State                             … 3 more below",
    ]


def test_svg_is_well_formed_and_names_every_subscriber() -> None:
    hostile = _sub('a<b>&"c"/#', "Q<1>", 9)
    picture = ET.fromstring(svg(outline([SPORT], [*RESULTS, hostile], RETAINED), "QM<1>"))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"QM<1>", "EVENTS to RESULTS", "BOARD", "Q<1>", 'a<b>&"c"/#', "retained"} <= set(texts)


def test_svg_has_a_legend() -> None:
    picture = ET.fromstring(svg(outline([SPORT], RESULTS, RETAINED), "QM1"))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-4:] == ["topic object", "stream or subscription point", "subscription", "retained publication"]
    assert float(picture.attrib["height"]) > max(float(e.attrib["y"]) for e in picture.iter() if "y" in e.attrib)


def test_control_characters_do_not_reach_terminals_and_files() -> None:
    root = outline([], [_sub("a\x1b[2J/\x00b/", "Q\x07")], [])
    lines = list(text_tree(root, "QM1"))
    assert lines[1:] == [r"└── a\x1b[2J/\x00b/                   ● Q\x07"]
    ET.fromstring(svg(root, "QM1"))
    assert "\x1b" not in page(root, "QM1")


def test_page_escapes_what_programs_wrote() -> None:
    text = page(outline([], [_sub("<script>alert(1)</script>")], []), "QM1")
    assert check_page(text).words.count("<script>alert(1)</script>") == 1


LEVELS = st.lists(st.sampled_from(["", "a", "b", "#", "+"]), min_size=1, max_size=5).map("/".join)


@given(st.lists(LEVELS), st.lists(LEVELS, unique=True), st.integers(1, 4) | st.none())
def test_nothing_is_lost(topics: list[str], retained: list[str], depth: int | None) -> None:
    subscriptions = [_sub(topic, n=n) for n, topic in enumerate(topics)]
    nodes = list(outline([], subscriptions, retained, depth=depth).walk())
    shown = sum(len(node.subscriptions) for node in nodes) + sum(node.retained for node in nodes)
    assert shown + sum(node.hidden for node in nodes) == len(topics) + len(retained)


DEEP = 1_500


@pytest.mark.parametrize("at_each_level", [False, True], ids=["one-chain", "something-at-each-level"])
def test_a_tree_of_thousands_of_levels_is_drawn(at_each_level: bool) -> None:
    """2.5.3: there is no limit to the number of levels."""
    depths = range(1, DEEP + 1) if at_each_level else [DEEP]
    root = outline([], [_sub("/".join("a" * depth), f"Q{depth}", depth) for depth in depths], [])
    assert sum(1 for _ in root.walk()) == 1 + len(depths)
    lines = list(text_tree(root, "QM1"))
    assert len(lines) == 1 + len(depths)
    assert lines[-1].endswith(f"● Q{DEEP}")
    assert svg(root, "QM1").count("<circle") == len(depths) + 1
    html = page(root, "QM1")
    assert html.count('<details class="node"') == len(depths)
    check_page(html)
    assert f"● Q{DEEP}<" in html


def test_an_empty_first_level_is_a_level() -> None:
    root = outline([], [_sub("/a", n=1), _sub("/b", n=2)], [])
    assert [node.topic_string for node in root.walk()] == ["", "", "/a", "/b"]
