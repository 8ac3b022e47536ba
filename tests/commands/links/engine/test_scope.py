"""Scope with a linked tree (guide 3.3): two bridges on one tree against two queue managers of a hierarchy.

HERE and THERE are on the tree, or neighbours. Each has a subscription to ``Sport``, whose scope is in the table, and
another to ``#``, which brings all publications there: that widens the scope of no other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.links.engine.properties import ForTree, for_tree
from tests.commands.links.engine.memory_tree import ANSWERS_FOR_EACH, UNITS_OF_WORK, MemoryTree, Nature
from tests.commands.links.engine.test_link import NATURES, OUTGOING, RETAIN, World
from tests.commands.links.test_mqtt import CONTROL, STREAM
from tests.commands.network.world import World as Hierarchy, at
from tests.waiting import until

LOCAL_SUB, LOCAL_PUB = "<RegOpt>Local</RegOpt>", "<PubOpt>Local</PubOpt>"
TOPIC = "DEFINE TOPIC(SPORT) TOPICSTR('Sport')"
QMGRS = ("HERE", "THERE")


class SharedTree(MemoryTree):
    """One tree as each of several bridges has it: what others publish is native to it."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[SharedTree] = []

    def take(self, wanted: ForTree) -> None:
        super().take(wanted)
        for other in self.others:
            other.publish(wanted.topic, b"" if wanted.clear else wanted.payload, wanted.clear or wanted.retain)


@contextmanager
def bridges(home: Path, nature: Nature, local: str, setup: str = "") -> Iterator[dict[str, World]]:
    """Two bridges on one tree, set up by MQSC."""
    trees = {qmgr: SharedTree() for qmgr in QMGRS}
    trees["HERE"].others, trees["THERE"].others = [trees["THERE"]], [trees["HERE"]]
    with (
        World(home, trees["HERE"], nature, qmgr="HERE", local=local) as here,
        World(home, trees["THERE"], nature, qmgr="THERE", local=local) as there,
    ):
        both = {"HERE": here, "THERE": there}
        if setup:
            for world in both.values():
                world.mqsc(setup)
        yield both


def native(worlds: dict[str, World], topic: str, data: bytes, retain: bool = False) -> None:
    """A program publishes at the tree."""
    for world in worlds.values():
        world.tree.publish(topic, data, retain)


# Scope of the publication, scope of the subscription at HERE: whose publications it gets. Native ones have no scope.
TABLE = {
    ("ALL", "ALL"): {"HERE", "THERE", "NATIVE"},
    ("ALL", "QMGR"): {"HERE"},
    ("QMGR", "ALL"): {"HERE", "NATIVE"},
    ("QMGR", "QMGR"): {"HERE"},
}
BY_OBJECTS = "\n".join(
    f"DEFINE TOPIC({pub}.{sub}) TOPICSTR('{pub}/{sub}') PUBSCOPE({pub}) SUBSCOPE({sub})" for pub, sub in TABLE
)
BY = [pytest.param("", id="Local"), pytest.param(BY_OBJECTS, id="topic objects")]


def local(scope: str, setup: str) -> bool:
    """Whether a program asks for the scope itself."""
    return scope == "QMGR" and not setup


def publish_all(both: dict[str, World], setup: str) -> None:
    """One publication for each row from each place; then all of it has come to HERE that will."""
    here = both["HERE"]
    fences = here.data("OTHER").count(b"fence")
    for pub, sub in TABLE:
        for qmgr, world in both.items():
            world.publish(f"{pub}/{sub}", qmgr.encode(), LOCAL_PUB if local(pub, setup) else "")
        native(both, f"{pub}/{sub}", b"NATIVE")
    both["THERE"].publish("Fence", b"fence")
    until(lambda: here.data("OTHER").count(b"fence") > fences, "the last publication")


def of_hierarchy(setup: str) -> dict[tuple[str, str], set[str]]:
    """The queue managers whose publications reach the subscription at HERE, for each row."""
    world = Hierarchy(at("HERE", setup=setup), at("THERE", "HERE", setup=setup))
    world.register("HERE", "#", queue="OTHER")
    got: dict[tuple[str, str], set[str]] = {row: set() for row in TABLE}
    for pub, sub in TABLE:
        topic = f"{pub}/{sub}"
        world.register("HERE", topic, queue="S", options=["Local"] * local(sub, setup))
        for qmgr in QMGRS:
            if f"S at HERE: {topic}" in world.publish(qmgr, topic, options=["Local"] * local(pub, setup)):
                got[pub, sub].add(qmgr)
    return got


# docs/conformance.md: DIS-30
@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("nature", NATURES)
@pytest.mark.parametrize("setup", BY)
def test_3_3_3_bridges_that_share_a_tree_keep_scope_as_neighbours_do(
    tmp_path: Path, nature: Nature, setup: str
) -> None:
    with bridges(tmp_path, nature, "keep", setup) as both:
        here = both["HERE"]
        here.register("#", "OTHER")
        for pub, sub in TABLE:
            here.register(f"{pub}/{sub}", f"{pub}.{sub}", LOCAL_SUB if local(sub, setup) else "")
        for times in (1, 2, 3):  # later ones from templates
            publish_all(both, setup)
            got = {(pub, sub): here.data(f"{pub}.{sub}") for pub, sub in TABLE}
            expected = {row: sorted(name.encode() for name in names) * times for row, names in TABLE.items()}
            assert {row: sorted(data) for row, data in got.items()} == {row: sorted(x) for row, x in expected.items()}
        # Without the filter that it shared with others, what is of scope QMGR has none at all.
        assert sorted(topic for topic, _ in here.tree.filters) == ["#", "ALL/ALL", "QMGR/ALL"]
    assert {row: names & set(QMGRS) for row, names in TABLE.items()} == of_hierarchy(setup)


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("setup", BY)
def test_with_share_the_tree_belongs_to_the_queue_manager(tmp_path: Path, setup: str) -> None:
    with bridges(tmp_path, ANSWERS_FOR_EACH, "share", setup) as both:
        here = both["HERE"]
        here.register("#", "OTHER")
        for pub, sub in TABLE:
            here.register(f"{pub}/{sub}", f"{pub}.{sub}", LOCAL_SUB if local(sub, setup) else "")
        publish_all(both, setup)
        for pub, sub in TABLE:
            assert sorted(here.data(f"{pub}.{sub}")) == [b"HERE", b"NATIVE", b"THERE"]


@pytest.mark.parametrize(("options", "pub_scope"), [("", "QMGR"), (LOCAL_PUB, "ALL"), ("", "ALL")])
def test_a_tree_with_scopes_of_its_own_is_told(tmp_path: Path, options: str, pub_scope: str) -> None:
    """``share``: IBM MQ has MQPMO_SCOPE_QMGR, and the same for what is cleared."""
    tree = MemoryTree()
    world = World(tmp_path, tree, UNITS_OF_WORK, local="share")
    world.mqsc(f"{TOPIC} PUBSCOPE({pub_scope})")
    with world:
        tree.go()
        world.publish("Sport", b"x", options)
        world.clear("Sport")
        until(lambda: world.depth(OUTGOING) == 2, "both on the outgoing queue")
        asked = [for_tree(message.md, message.body) for message in world.store.browse(OUTGOING)]
        tree.come()
    assert [(each.clear, each.local) for each in asked] == [
        (False, (options, pub_scope) != ("", "ALL")),
        (True, pub_scope == "QMGR"),
    ]


def test_a_subscription_of_scope_qmgr_needs_no_filter(tmp_path: Path) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, ANSWERS_FOR_EACH, local="keep") as world:
        world.mqsc(f"{TOPIC} SUBSCOPE(QMGR)")
        world.register("Sport/+")
        world.register("News", options=LOCAL_SUB)
        world.register("News/#", "OTHER")
        world.done()
        assert {topic for topic, _ in tree.filters} == {"News/#"}


# An administrator changes the scope while it runs


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("nature", NATURES)
def test_subscope_holds_from_when_it_is_altered(tmp_path: Path, nature: Nature) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, nature, local="keep") as world:
        world.mqsc(TOPIC)
        world.register("Sport")
        world.register("#", "OTHER")
        filters: Sequence[str] = ("#", "Sport")
        for n, scope in enumerate(("ALL", "QMGR", "ALL")):
            world.mqsc(f"ALTER TOPIC(SPORT) SUBSCOPE({scope})")
            filters = ("#",) if scope == "QMGR" else ("#", "Sport")
            until(lambda: sorted(t for t, _ in tree.filters) == [*filters], f"the filters of {scope}")  # noqa: B023
            world.done()
            tree.publish("Sport", b"%d" % n)
            world.done()
        assert world.data("S") == [b"0", b"2"]
        assert world.data("OTHER").count(b"1") > 0


def test_a_subscription_whose_scope_becomes_all_gets_what_the_tree_retains(tmp_path: Path) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, ANSWERS_FOR_EACH, local="keep") as world:
        world.mqsc(f"{TOPIC} SUBSCOPE(QMGR)")
        world.register("Sport")
        tree.publish("Sport", b"retained there", retain=True)
        world.done()
        assert world.data("S") == []
        world.mqsc("ALTER TOPIC(SPORT) SUBSCOPE(ALL)")
        until(lambda: world.data("S") == [b"retained there"], "what the tree retains")


@pytest.mark.rule("DIS-30")
def test_pubscope_holds_from_when_it_is_altered_and_the_tree_keeps_what_it_had(tmp_path: Path) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, ANSWERS_FOR_EACH, local="keep") as world:
        world.mqsc(TOPIC)
        for n, scope in enumerate(("ALL", "QMGR", "ALL")):
            world.mqsc(f"ALTER TOPIC(SPORT) PUBSCOPE({scope})")
            for again in range(3):  # as learnt, too
                world.publish("Sport", b"%d%d" % (n, again), RETAIN)
            world.done()
            if scope == "QMGR":
                world.clear("Sport")
                world.done()
                assert list(tree.retained) == ["Sport"]
                assert tree.cleared == []
        world.clear("Sport")
        world.done()
    assert [data for _, data in tree.published] == [b"00", b"01", b"02", b"20", b"21", b"22"]
    assert (list(tree.retained), tree.cleared) == ([], ["Sport"])


# Retained publications


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("nature", NATURES)
def test_what_is_retained_elsewhere_is_not_for_a_subscription_of_scope_qmgr(tmp_path: Path, nature: Nature) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, nature, local="keep") as world:
        world.mqsc(f"{TOPIC} SUBSCOPE(QMGR)")
        tree.publish("Sport/there", b"there", retain=True)
        world.publish("Sport/here", b"here", RETAIN)
        world.register("#", "OTHER")  # brings what the tree retains
        until(lambda: sorted(world.data("OTHER")) == [b"here", b"there"])
        world.register("Sport/#")
        world.request("Sport/#")
        world.done()
        assert world.data("S") == [b"here", b"here"]
    # After a restart too.
    with World(tmp_path, tree, nature, local="keep") as again:
        again.request("Sport/#")
        again.done()
        assert again.data("S") == [b"here"] * 3


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize(("scope", "kept"), [("QMGR", b"here"), ("ALL", b"there")])
def test_what_the_tree_had_before_does_not_replace_what_is_retained_here_alone(
    tmp_path: Path, scope: str, kept: bytes
) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, ANSWERS_FOR_EACH, local="keep") as world:
        world.mqsc(f"{TOPIC} PUBSCOPE({scope})")
        world.publish("Sport", b"here", RETAIN)
        world.done()
        tree.publish("Sport", b"there", retain=True)  # nobody here had a filter
        world.register("#")
        assert world.data("S") == [kept]
        tree.publish("Sport", b"now", retain=True)
        world.done()
        world.request("#")
        world.done()
        assert world.data("S") == [kept, b"now", b"now"]


@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("pub_scope", ["ALL", "QMGR"])
def test_6_7_1_a_deletion_of_scope_qmgr_stays_too(tmp_path: Path, pub_scope: str) -> None:
    tree = MemoryTree()
    with World(tmp_path, tree, ANSWERS_FOR_EACH, local="keep") as world:
        world.mqsc(f"{TOPIC} PUBSCOPE({pub_scope})")
        for topic in ("Sport/a", "News/a"):
            tree.publish(topic, b"there", retain=True)
        world.register("#")
        world.put(STREAM, "<Command>DeletePub</Command><Topic>#</Topic>")
        world.done()
        world.put(CONTROL, "<Command>ReqUpdate</Command><Topic>#</Topic><QName>S</QName>")
        world.done()
        assert world.link.settle(threading.Event())
    assert sorted(tree.cleared) == ["News/a"] + (["Sport/a"] if pub_scope == "ALL" else [])
