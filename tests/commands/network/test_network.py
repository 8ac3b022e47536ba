"""Proxy subscriptions, publications that are sent on, scope, clusters, retained publications (guide 3)."""

from __future__ import annotations

import pytest

from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from streams.operations import Delivery, Publication, PublishToTopic, Subscribe
from streams.subscriptions import Subscription
from streams.topic_objects import Scope, TopicObject, TopicObjects
from streams.topic_space import TopicSpace
from tests.commands.network.world import World, at
from tests.commands.scenario import CORREL_ID, KICK_OFF

ASIA = (at("Asia", "HQ"), at("HQ", "Europe"), at("London", "Europe"), at("Europe"))


def test_3_1_figures_1_to_3() -> None:
    """A subscription goes to all, a second one to the same topic to none; a publication goes where it is wanted."""
    world = World(*ASIA)
    world.register("Asia", "Weather", queue="SUB1")
    assert world.flows == [
        "Asia -> HQ: subscribe Weather",
        "HQ -> Europe: subscribe Weather",
        "Europe -> London: subscribe Weather",
    ]
    world.register("HQ", "Weather", queue="SUB2")
    assert world.flows == ["HQ -> Asia: subscribe Weather"]
    assert world.publish("Europe", "Weather") == ["SUB2 at HQ: Weather", "SUB1 at Asia: Weather"]
    assert world.flows == [
        "Europe -> HQ: publish Weather <ibm><Rfp>Europe</Rfp></ibm>",
        "HQ -> Asia: publish Weather <ibm><Rfp>Europe</Rfp><Rfp>HQ</Rfp></ibm>",
    ]


@pytest.mark.rule("DIS-1")
def test_3_1_1_a_proxy_subscription_goes_with_the_last_subscription() -> None:
    world = World(at("QM1"), at("QM2", "QM1"))
    world.register("QM2", "Sport", queue="A")
    world.register("QM2", "Sport", queue="B")
    assert world.flows == []
    world.deregister("QM2", "Sport", queue="A")
    assert world.flows == []
    world.deregister("QM2", "Sport", queue="B")
    assert world.flows == ["QM2 -> QM1: unsubscribe Sport"]
    assert world.publish("QM1", "Sport") == []
    assert world.flows == []


@pytest.mark.rule("DIS-1")
def test_3_1_1_one_copy_satisfies_several_proxy_subscriptions() -> None:
    world = World(at("QM1"), at("QM2", "QM1"))
    world.register("QM2", "Sport/#", queue="ALL")
    world.register("QM2", "Sport/Tennis", queue="TENNIS")
    assert world.publish("QM1", "Sport/Tennis") == ["ALL at QM2: Sport/Tennis", "TENNIS at QM2: Sport/Tennis"]
    assert len(world.flows) == 1


@pytest.mark.rule("DIS-1")
def test_3_1_2_forced_proxy_subscriptions_are_there_before_and_after_any_subscription() -> None:
    world = World(at("QM1"), at("QM2", "QM1", setup="ALTER TOPIC(SYSTEM.BASE.TOPIC) PROXYSUB(FORCE)"))
    assert [str(flow) for flow in world.replay.network.begun.flows] == ["QM2 -> QM1: subscribe #"]
    world.publish("QM1", "Sport")
    assert len(world.flows) == 1
    world.register("QM2", "Sport", queue="A")
    assert world.flows == ["QM2 -> QM1: subscribe Sport"]
    world.deregister("QM2", "Sport", queue="A")
    world.publish("QM1", "Sport")
    assert len(world.flows) == 1


@pytest.mark.rule("DIS-11", "D-19")
def test_3_1_3_wildcards_of_proxy_subscriptions_are_widened() -> None:
    """D-19 too: the neighbour sends a little more, which is filtered out here."""
    world = World(at("QM1"), at("QM2", "QM1"))
    world.register("QM2", "/aaa/bbb/c*d", queue="A", header="MQRFH")
    assert world.flows == ["QM2 -> QM1: subscribe /aaa/bbb/#"]
    assert world.publish("QM1", "/aaa/bbb/cd") == ["A at QM2: /aaa/bbb/cd"]
    assert world.publish("QM1", "/aaa/bbb/xyz") == []
    assert len(world.flows) == 1
    assert world.publish("QM1", "/aaa/bb") == []
    assert world.flows == []


SCOPES = [
    # publisher, subscriber, local subscriber gets it, remote subscriber gets it: version 7, version 6 (guide 7.5)
    ("ALL", "ALL", (True, True), (True, True)),
    ("ALL", "QMGR", (True, False), (False, False)),
    ("QMGR", "ALL", (True, False), (False, False)),
    ("QMGR", "QMGR", (True, False), (True, False)),
]


@pytest.mark.rule("DIS-5")
@pytest.mark.parametrize(("publisher", "subscriber", "v7", "v6"), SCOPES)
@pytest.mark.parametrize("by", ["option", "topic object"])
def test_7_5_table_2(publisher: str, subscriber: str, v7: tuple[bool, bool], v6: tuple[bool, bool], by: str) -> None:
    setup = f"DEFINE TOPIC(T) TOPICSTR('Sport') PUBSCOPE({publisher}) SUBSCOPE({subscriber})" if by != "option" else ""
    for semantics, expected in (("v7", v7), ("v6", v6)):
        if semantics == "v6" and by != "option":
            continue  # version 6 has no topic objects
        world = World(
            at("HERE", semantics=semantics, setup=setup), at("THERE", "HERE", semantics=semantics, setup=setup)
        )
        # A subscription that brings all publications to the other queue manager does not widen the scope of others.
        world.register("THERE", "#", queue="OTHER")
        local = ["Local"] if by == "option" and subscriber == "QMGR" else []
        for qmgr in ("HERE", "THERE"):
            world.register(qmgr, "Sport", queue="BOARD", options=local)
        received = world.publish("HERE", "Sport", options=["Local"] if by == "option" and publisher == "QMGR" else [])
        boards = [f"BOARD at {qmgr}: Sport" in received for qmgr in ("HERE", "THERE")]
        assert tuple(boards) == expected, semantics


FOOTBALL = """
DEFINE TOPIC(A) TOPICSTR('Football/result') SUBSCOPE(QMGR) CLUSTER(SPORTS)
DEFINE TOPIC(B) TOPICSTR('Football') SUBSCOPE(ALL) CLUSTER(SPORTS)
DEFINE TOPIC(C) TOPICSTR('Football/result/Newport/Cardiff') PUBSCOPE(ALL) SUBSCOPE(ALL) CLUSTER(SPORTS)
DEFINE TOPIC(D) TOPICSTR('Football/matches/Newport/Cardiff') PUBSCOPE(ALL) SUBSCOPE(QMGR) CLUSTER(SPORTS)
"""
RESULT, MATCH = "Football/result/Newport/Cardiff", "Football/matches/Newport/Cardiff"


@pytest.mark.parametrize(
    ("topic", "received"),
    [("Football/result/#", []), ("Football/#", [RESULT, MATCH]), (RESULT, [RESULT]), (MATCH, [])],
)
def test_3_3_6_ungrouped_subscriptions(topic: str, received: list[str]) -> None:
    world = World(at("QM1", "", "SPORTS", setup=FOOTBALL), at("QM2", "", "SPORTS"))
    world.register("QM2", topic, queue="Q")
    got = [put for each in (RESULT, MATCH) for put in world.publish("QM1", each)]
    assert got == [f"Q at QM2: {each}" for each in received]


@pytest.mark.rule("DIS-6")
@pytest.mark.parametrize(("topic", "received"), [(RESULT, ["C"]), (MATCH, [])])
def test_3_3_6_grouped_subscriptions(topic: str, received: list[str]) -> None:
    """The closest of the group is chosen first; where its scope is QMGR, nobody else of the group gets it.

    MQSUB alone groups, so this is the topic space of QM2 when QM1 has sent the publication on.
    """
    topics = TopicObjects()
    for name, topic_string, scope in (
        ("A", "Football/result", Scope.QMGR),
        ("B", "Football", Scope.ALL),
        ("C", RESULT, Scope.ALL),
        ("D", MATCH, Scope.QMGR),
    ):
        topics.define(TopicObject(name, topic_string, sub_scope=scope))
    space = TopicSpace(topics)
    for n, (name, pattern) in enumerate((("A", "Football/result/#"), ("B", "Football/#"), ("C", RESULT), ("D", MATCH))):
        sub_id = bytes(23) + bytes([n])
        member = Subscription(sub_id, pattern, "Q", "QM2", KICK_OFF, name=name, correl_id=CORREL_ID, grouped=True)
        space.apply(Subscribe(member, send_retained=False), KICK_OFF)
    publication = Publication(Message(Mqmd()), KICK_OFF)
    effects = space.apply(PublishToTopic(topic, publication, came_from="QM1"), KICK_OFF)
    assert [each.subscription.name for each in effects if isinstance(each, Delivery)] == received


def test_3_3_4_a_local_topic_goes_to_no_other_member() -> None:
    world = World(
        at("QM1", "", "CL1", setup="DEFINE TOPIC(A) TOPICSTR('USA/Alabama') CLUSTER(CL1)"), at("QM2", "", "CL1")
    )
    world.register("QM2", "USA/Alabama/#", queue="IN")
    world.register("QM2", "USA/Texas", queue="OUT")
    assert world.publish("QM1", "USA/Alabama/Mobile") == ["IN at QM2: USA/Alabama/Mobile"]
    assert world.publish("QM1", "USA/Texas") == []


@pytest.mark.rule("DIS-3")
def test_3_2_1_1_1_a_local_definition_overrides_the_cluster_topic() -> None:
    """PUBSCOPE(QMGR) on the local topic object keeps what is published here among the subscribers here."""
    setup = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1)"
    here = "DEFINE TOPIC(A) TOPICSTR('Sport') PUBSCOPE(QMGR)"
    world = World(at("QM1", "", "CL1", setup=setup), at("QM2", "", "CL1", setup=here), at("QM3", "", "CL1"))
    for qmgr in ("QM1", "QM2", "QM3"):
        world.register(qmgr, "Sport", queue="Q")
    assert world.publish("QM2", "Sport") == ["Q at QM2: Sport"]
    assert [str(each) for each in world.step.kept_back] == [
        "Sport: kept back at QM2 by PUBSCOPE(QMGR) of topic object A"
    ]
    assert sorted(world.publish("QM1", "Sport")) == ["Q at QM1: Sport", "Q at QM3: Sport"]


@pytest.mark.rule("DIS-3")
def test_3_2_1_1_1_the_last_of_several_definitions_counts_and_the_other_is_reported() -> None:
    first = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1) SUBSCOPE(QMGR)"
    last = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1)"
    world = World(
        at("QM1", "", "CL1", setup=first), at("QM2", "", "CL1", setup=last), at("QM3", "", "CL1"), at("QM4", "", "CL1")
    )
    assert world.replay.network.cluster_topics.conflicts() == (
        "topic object A (Sport) of QM1 in cluster CL1 differs from A (Sport) of QM2 in cluster CL1: "
        "the last definition counts (guide 3.2.1.1.1)",
    )
    for qmgr in ("QM1", "QM3"):
        world.register(qmgr, "Sport", queue="Q")
    # QM1 uses its own definition, whose subscriptions stay at home.
    assert world.publish("QM4", "Sport") == ["Q at QM3: Sport"]


def test_3_2_1_3_overlapping_clusters_are_no_bridge() -> None:
    b, c = "DEFINE TOPIC(B) TOPICSTR('B') CLUSTER(CL1)", "DEFINE TOPIC(C) TOPICSTR('C') CLUSTER(CL2)"
    world = World(
        at("QM1", "", "CL1", setup=b), at("QM3", "", "CL1", "CL2"), at("QM4", "", "CL2", setup=c), at("QM2", "", "CL1")
    )
    for qmgr in ("QM1", "QM3", "QM4"):
        world.register(qmgr, "B", "C", queue="Q")
    assert sorted(world.publish("QM2", "B")) == ["Q at QM1: B", "Q at QM3: B"]
    assert sorted(world.publish("QM3", "C")) == ["Q at QM3: C", "Q at QM4: C"]
    assert world.publish("QM1", "C") == ["Q at QM1: C"]


@pytest.mark.rule("DIS-3")
def test_topic_host_routing_goes_through_one_host() -> None:
    setup = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1) CLROUTE(TOPICHOST)"
    world = World(
        at("QM1", "", "CL1", setup=setup), at("QM2", "", "CL1", setup=setup), at("QM3", "", "CL1"), at("QM4", "", "CL1")
    )
    world.register("QM3", "Sport", queue="Q")
    assert world.flows == ["QM3 -> QM1: subscribe Sport", "QM3 -> QM2: subscribe Sport"]
    assert world.publish("QM4", "Sport") == ["Q at QM3: Sport"]
    assert len(world.flows) == 2
    assert world.publish("QM1", "Sport") == ["Q at QM3: Sport"]
    assert len(world.flows) == 1


@pytest.mark.rule("DIS-29")
@pytest.mark.parametrize("suspended", ["QM1", "QM2"])
def test_a_suspended_host_is_passed_by(suspended: str) -> None:
    def host(qmgr: str) -> str:
        topic = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1) CLROUTE(TOPICHOST)"
        joins = f"DEFINE CHANNEL(CL1.{qmgr}) CHLTYPE(CLUSRCVR) CLUSTER(CL1)"
        return "\n".join((joins, topic, *(["SUSPEND QMGR CLUSTER(CL1)"] if qmgr == suspended else ())))

    world = World(at("QM1", setup=host("QM1")), at("QM2", setup=host("QM2")), at("QM3", "", "CL1"))
    for topic in "abcdefgh":
        world.publish("QM3", f"Sport/{topic}")
        assert [flow.receiver for flow in world.step.flows] == ["QM2" if suspended == "QM1" else "QM1"]


HIERARCHY_OF_CLUSTERS = [
    *(at(f"QM{n}", "", "CL1") for n in (1, 2)),
    at("QM3", "", "CL1", setup="DEFINE TOPIC(USA) TOPICSTR('USA') CLUSTER(CL1)"),
    at("QM4", "QM3", "CL2", setup="DEFINE TOPIC(USA) TOPICSTR('USA') CLUSTER(CL2)"),
    *(at(f"QM{n}", "", "CL2") for n in (5, 6)),
    at("QM7", "QM3", "CL3", setup="DEFINE TOPIC(USA) TOPICSTR('USA') CLUSTER(CL3)"),
    *(at(f"QM{n}", "", "CL3") for n in (8, 9)),
]


def test_3_3_5_3_a_hierarchy_joins_clusters() -> None:
    world = World(*HIERARCHY_OF_CLUSTERS)
    for n in range(1, 10):
        world.register(f"QM{n}", "USA/Alabama", queue="Q")
    for n in range(1, 10):
        received = world.publish(f"QM{n}", "USA/Alabama")
        assert sorted(received) == [f"Q at QM{m}: USA/Alabama" for m in range(1, 10)]


def test_3_3_5_3_a_topic_of_one_cluster_goes_to_the_neighbour_in_the_hierarchy_alone() -> None:
    """USA only defined on QM7: publications and subscriptions are exchanged between QM7, QM8, QM9 and QM3."""
    without = [at(e.position.qmgr, e.position.parent, *e.position.clusters) for e in HIERARCHY_OF_CLUSTERS[:6]]
    world = World(*without, *HIERARCHY_OF_CLUSTERS[6:])
    for n in range(1, 10):
        world.register(f"QM{n}", "USA/Alabama", queue="Q")
    received = sorted(world.publish("QM8", "USA/Alabama"))
    assert received == [f"Q at QM{m}: USA/Alabama" for m in (3, 4, 7, 8, 9)]


@pytest.mark.rule("DIS-6")
def test_3_3_4_member_of_a_cluster_and_of_a_hierarchy_gets_one_copy() -> None:
    setup = "DEFINE TOPIC(A) TOPICSTR('Sport') CLUSTER(CL1)"
    world = World(at("QM1", "", "CL1", setup=setup), at("QM2", "QM1", "CL1"), at("QM3", "", "CL1"))
    for qmgr in ("QM1", "QM2", "QM3"):
        world.register(qmgr, "Sport", queue="Q")
    for qmgr in ("QM1", "QM2", "QM3"):
        assert sorted(world.publish(qmgr, "Sport")) == ["Q at QM1: Sport", "Q at QM2: Sport", "Q at QM3: Sport"]
    assert world.replay.network.topology.loops() == ()


@pytest.mark.rule("DIS-7")
def test_3_4_a_loop_is_reported_and_ends_at_the_fingerprint() -> None:
    parents = [f"ALTER QMGR PARENT({parent})" for parent in ("QM2", "QM3", "QM1")]
    world = World(*(at(f"QM{n}", setup=setup) for n, setup in enumerate(parents, 1)))
    assert world.replay.network.topology.loops() == (("QM3", "QM2", "QM1", "QM3"),)
    world.register("QM2", "Sport", queue="Q")
    # Both ways round: duplicates until the loop is broken.
    assert world.publish("QM1", "Sport") == ["Q at QM2: Sport", "Q at QM2: Sport"]
    assert [each.qmgr for each in world.step.kept_back] == ["QM1", "QM1"]
    assert world.step.kept_back[0].why.endswith("QM1 - QM2 - QM3 - QM1 (guide 3.4)")


@pytest.mark.rule("DIS-7")
def test_3_4_1_a_program_passes_fingerprints_on() -> None:
    world = World(at("QM1"), at("QM2", "QM1"))
    for qmgr in ("QM1", "QM2"):
        world.register(qmgr, "Sport", queue="Q")
    been = "<ibm><Rfp>QM2</Rfp></ibm>"
    assert world.publish("QM1", "Sport", folder=been) == ["Q at QM1: Sport"]
    assert world.flows == ["QM1 -> QM2: publish Sport <ibm><Rfp>QM2</Rfp><Rfp>QM1</Rfp></ibm>"]


@pytest.mark.rule("DIS-8")
def test_3_5_retained_publications_come_with_the_proxy_subscription() -> None:
    world = World(*ASIA)
    world.publish("London", "Weather", options=["RetainPub"])
    assert world.register("Asia", "Weather", queue="Q1") == ["Q1 at Asia: Weather"]
    assert (
        world.flows[-1]
        == "HQ -> Asia: send retained Weather <ibm><Rfp>London</Rfp><Rfp>Europe</Rfp><Rfp>HQ</Rfp></ibm>"
    )
    assert all(world.retained(qmgr) == ["Weather"] for qmgr in ("Asia", "HQ", "Europe", "London"))
    # It is there now: a second subscription asks nobody.
    assert world.register("Asia", "Weather", queue="Q2") == ["Q2 at Asia: Weather"]
    assert world.flows == []
    assert world.register("HQ", "Weather/#", queue="Q3") == ["Q3 at HQ: Weather"]


@pytest.mark.rule("DIS-8")
def test_3_5_options_about_retained_publications_hold_for_those_of_neighbours() -> None:
    world = World(at("QM1"), at("QM2", "QM1"))
    world.publish("QM1", "Weather", options=["RetainPub"])
    assert world.register("QM2", "Weather", queue="NEW", options=["NewPubsOnly"]) == []
    assert world.register("QM2", "Weather", queue="ASKS", options=["PubOnReqOnly"]) == []
    assert world.request("QM2", "Weather", queue="ASKS") == ["ASKS at QM2: Weather"]


@pytest.mark.rule("DIS-8", "DEL-7")
@pytest.mark.parametrize(("options", "left"), [([], []), (["Local"], ["Weather"])])
def test_6_7_1_delete_publication_everywhere_or_local(options: list[str], left: list[str]) -> None:
    world = World(*ASIA)
    world.register("Asia", "Weather", queue="Q")
    world.publish("London", "Weather", options=["RetainPub"])
    world.delete("Asia", "Weather", options=options)
    assert world.retained("Asia") == []
    assert world.retained("HQ") == world.retained("London") == left


def test_6_1_figure_1_version_6_streams_and_version_7_topics() -> None:
    new = """
    DEFINE QLOCAL('Sport')
    DEFINE TOPIC('Sport') TOPICSTR('xyz') WILDCARD(BLOCK)
    ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) +
      NAMES('Sport', 'SYSTEM.BROKER.DEFAULT.STREAM', 'SYSTEM.BROKER.ADMIN.STREAM')
    """
    world = World(at("NEW", setup=new), at("OLD", "NEW", setup="DEFINE QLOCAL('Sport')", semantics="v6"))
    world.register("OLD", "Soccer/Results", queue="Q6", stream="Sport")
    assert world.flows == ["OLD -> NEW: subscribe xyz/Soccer/Results"]
    world.register("NEW", "xyz/Soccer/#", queue="Q7")
    assert world.flows == ["NEW -> OLD: subscribe Sport/Soccer/# on stream Sport"]
    both = ["Q6 at OLD: Soccer/Results", "Q7 at NEW: xyz/Soccer/Results"]
    assert sorted(world.publish("NEW", "xyz/Soccer/Results")) == both
    assert sorted(world.publish("OLD", "Soccer/Results", on="Sport", header="MQRFH")) == both
    # The default stream is another topic space, and needs nothing (guide 6.1).
    world.register("OLD", "Soccer/Results", queue="D6", header="MQRFH")
    assert world.publish("NEW", "Soccer/Results") == ["D6 at OLD: Soccer/Results"]


def test_3_3_4_a_stream_that_is_missing_on_the_way_connects_nobody() -> None:
    stream = "DEFINE QLOCAL(X)"
    world = World(
        at("QMA", setup=stream, semantics="v6"),
        at("QMB", "QMA", semantics="v6"),
        at("QMC", "QMB", setup=stream, semantics="v6"),
    )
    world.register("QMC", "a", queue="Q", stream="X")
    assert world.flows == []
    assert world.publish("QMA", "a", on="X", header="MQRFH") == []
    world.register("QMC", "a", queue="Q", header="MQRFH")
    assert world.publish("QMA", "a", header="MQRFH") == ["Q at QMC: a"]


def test_4_8_a_hierarchy_passes_no_correlation_identifier() -> None:
    """A cluster does; DESTCORL of zeros asks for the publisher's."""
    sub = f"DEFINE SUB(S) TOPICSTR('Sport') DEST(Q) DESTCORL('{'00' * 24}')"
    topic = "DEFINE TOPIC(T) TOPICSTR('Sport') CLUSTER(CL1)"
    for there, expected in ((at("QM2", "QM1", setup=sub), bytes(24)), (at("QM2", "", "CL1", setup=sub), CORREL_ID)):
        world = World(at("QM1", "", "CL1", setup=topic), there, correl_id=CORREL_ID)
        world.publish("QM1", "Sport")
        (put,) = world.puts
        assert decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex)).mqmd.correl_id == expected


def test_an_expired_subscription_withdraws_its_proxy_subscription() -> None:
    setup = "DEFINE SUB(S) TOPICSTR('Sport') DEST(Q) EXPIRY(30)"
    world = World(at("QM1"), at("QM2", "QM1", setup=setup))
    assert world.publish("QM1", "Sport") == ["Q at QM2: Sport"]
    for _ in range(5):
        received = world.publish("QM1", "Sport")
    assert received == []
