"""What an administrator sees of clusters: channels, members, and the topic objects that members define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.authority import no_groups
from commands.broker.objects import ClusterChannel, Objects, QueueManager
from commands.mqsc.administration import Administration, Neighbour, Relation
from commands.mqsc.answers import Answer
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import Position
from commands.qmgr.admin import StatementRunner
from commands.replay.network.local import NetworkSetup, QueueManagerSetup
from commands.running.status import status_of
from streams import TopicSpace
from streams.topic_objects import ClusterRoute, TopicObject
from tests.commands.cli_runs import run
from tests.commands.network.live_world import LiveWorld, joining

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOIN = "DEFINE CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CLUSTER(SALES)"
GOODS = TopicObject("GOODS", "goods", cluster="SALES", cluster_route=ClusterRoute.TOPICHOST)
PRICES = TopicObject("PRICES", "prices", cluster="SALES")
QM2 = RepositoryEntry("QM2", ("SALES",), (GOODS, PRICES), (), (("SALES", "SALES.QM2"),))
QM3 = RepositoryEntry("QM3", ("OTHER", "SALES"), (), ("SALES",))


@dataclass(frozen=True)
class Others:
    """Members of clusters. joined: those that the command processor has met, with their status."""

    entries: Sequence[RepositoryEntry] = ()
    joined: Mapping[str, str] | None = None

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        return (Neighbour(qmgr.parent, Relation.PARENT, "ACTIVE"),) if qmgr.parent else ()

    def members(self) -> tuple[Neighbour, ...]:
        return tuple(Neighbour(q, Relation.MEMBER, status, "SALES") for q, status in (self.joined or {}).items())

    def refresh_proxies(self) -> int:
        return 0

    def refresh_cluster(self, cluster: str) -> int:
        return len(self.entries) if cluster == "SALES" else 0

    def repository(self) -> Sequence[RepositoryEntry]:
        return self.entries


class Desk:
    """An administrator at queue manager QM1, which knows *others*, and has the copies of what they define."""

    def __init__(self, setup: str = "", others: Others = Others()) -> None:
        self.objects = Objects(QueueManager("QM1"))
        space = TopicSpace(self.objects.topics)
        self.administration = Administration.of(self.objects, space, NOW)
        self.administration.neighbours = others
        for line in setup.splitlines():
            self.must(line)
        self.administration.renew_copies()

    def ask(self, command: str) -> Answer:
        [statement] = parse(command)
        return execute(statement, self.administration)

    def must(self, command: str) -> Answer:
        answer = self.ask(command)
        assert answer.ok, answer.lines
        return answer

    def show(self, command: str) -> list[Mapping[str, Any]]:
        return list(self.must(command).objects)


# Channels

DEFINED: list[tuple[str, str, ClusterChannel, tuple[str, ...], str]] = [
    ("receiver", "CHLTYPE(CLUSRCVR) CLUSTER(SALES)", ClusterChannel("C", cluster="SALES"), ("SALES",), ""),
    (
        "receiver-of-several",
        "CHLTYPE(CLUSRCVR) CLUSNL(CLUSTERS)",
        ClusterChannel("C", cluster_namelist="CLUSTERS"),
        ("SALES", "STOCK"),
        "",
    ),
    ("no-such-namelist", "CHLTYPE(CLUSRCVR) CLUSNL(NO)", ClusterChannel("C", cluster_namelist="NO"), (), "no namelist"),
    ("in-no-cluster", "CHLTYPE(CLUSRCVR)", ClusterChannel("C"), (), "is in no cluster"),
    (
        "sender",
        "CHLTYPE(CLUSSDR) CLUSTER(SALES) CONNAME('host(1414)')",
        ClusterChannel("C", "CLUSSDR", "SALES", connection_name="host(1414)"),
        (),
        "CLUSSDR has no effect here",
    ),
]


@pytest.mark.parametrize(
    ("keywords", "channel", "clusters", "note"), [d[1:] for d in DEFINED], ids=[d[0] for d in DEFINED]
)
def test_a_channel_makes_a_member(keywords: str, channel: ClusterChannel, clusters: tuple[str, ...], note: str) -> None:
    desk = Desk("DEFINE NAMELIST(CLUSTERS) NAMES(STOCK, SALES)")
    answer = desk.must(f"DEFINE CHANNEL(C) {keywords}")
    assert answer.amq == "AMQ8014"
    assert desk.objects.channels == {"C": channel}
    assert desk.objects.clusters == clusters
    assert note in " ".join(answer.notes)
    assert bool(note) == bool(answer.notes)


REFUSED: list[tuple[str, str, str, int | None]] = [
    ("another-type", "DEFINE CHANNEL(TO.QM2) CHLTYPE(SDR)", "AMQ8404", 3034),
    ("no-type-at-all", "DEFINE CHANNEL(C) CHLTYPE(SIDEWAYS)", "AMQ8425", None),
    ("name-21", f"DEFINE CHANNEL({'C' * 21}) CHLTYPE(CLUSRCVR)", "AMQ8413", None),
    ("no-type", "DEFINE CHANNEL(C) CLUSTER(SALES)", "AMQ8421", None),
    ("exists", JOIN, "AMQ8150", None),
    ("cluster-and-list", "DEFINE CHANNEL(C) CHLTYPE(CLUSRCVR) CLUSTER(A) CLUSNL(B)", "AMQ8404", 3088),
    ("cluster-and-list-in-the-end", "ALTER CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CLUSNL(B)", "AMQ8404", 3088),
    ("type-altered", "ALTER CHANNEL(SALES.QM1) CHLTYPE(CLUSSDR)", "AMQ8404", 3034),
    ("type-replaced", "DEFINE CHANNEL(SALES.QM1) CHLTYPE(CLUSSDR) REPLACE", "AMQ8404", 3034),
    ("type-of-what-is-deleted", "DELETE CHANNEL(SALES.QM1) CHLTYPE(CLUSSDR)", "AMQ8404", 3034),
    ("alter-what-is-not-there", "ALTER CHANNEL(NO) CHLTYPE(CLUSRCVR)", "AMQ8147", None),
    ("delete-what-is-not-there", "DELETE CHANNEL(NO)", "AMQ8147", None),
    ("show-what-is-not-there", "DISPLAY CHANNEL(NO)", "AMQ8147", None),
    ("keyword", "ALTER CHANNEL(SALES.QM1) COLOUR(RED)", "AMQ8405", None),
    ("stopped", "STOP CHANNEL(SALES.QM1)", "AMQ8404", None),
]


@pytest.mark.parametrize(("command", "amq", "reason"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_refused_leaves_the_channel_as_it_is(command: str, amq: str, reason: int | None) -> None:
    desk = Desk(JOIN)
    answer = desk.ask(command)
    assert (answer.ok, answer.amq, answer.reason) == (False, amq, reason)
    assert desk.objects.channels == {"SALES.QM1": ClusterChannel("SALES.QM1", cluster="SALES")}


@pytest.mark.parametrize(
    ("command", "amq"),
    [
        ("ALTER CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CLUSTER(' ')", "AMQ8016"),
        ("ALTER CHL(SALES.QM1) CLUSTER('')", "AMQ8016"),
        ("DELETE CHANNEL(SALES.QM1)", "AMQ8015"),
        ("DELETE CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CHLTABLE(QMGRTBL)", "AMQ8015"),
    ],
)
def test_leaving_a_cluster(command: str, amq: str) -> None:
    desk = Desk(JOIN)
    assert desk.must(command).amq == amq
    assert desk.objects.clusters == ()


SHOWN: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "DISPLAY CHANNEL(SALES*)",
        [{"CHANNEL": "SALES.QM1", "CHLTYPE": "CLUSRCVR"}, {"CHANNEL": "SALES.REPOS", "CHLTYPE": "CLUSSDR"}],
    ),
    ("DISPLAY CHANNEL(*) TYPE(CLUSSDR)", [{"CHANNEL": "SALES.REPOS", "CHLTYPE": "CLUSSDR"}]),
    (
        "DISPLAY CHANNEL(*) CHLTYPE(CLUSRCVR) CLUSTER",
        [{"CHANNEL": "SALES.QM1", "CHLTYPE": "CLUSRCVR", "CLUSTER": "SALES"}],
    ),
    (
        "DIS CHL(S*) WHERE(CONNAME EQ 'host')",
        [{"CHANNEL": "SALES.REPOS", "CHLTYPE": "CLUSSDR", "CONNAME": "host"}],
    ),
    (
        "DISPLAY CHANNEL(SALES.QM1)",
        [
            {
                "CHANNEL": "SALES.QM1",
                "CHLTYPE": "CLUSRCVR",
                "CLUSTER": "SALES",
                "CLUSNL": "",
                "CONNAME": "",
                "DESCR": "",
            }
        ],
    ),
    ("DISPLAY CHANNEL(SALES.QM1) XMITQ", [{"CHANNEL": "SALES.QM1", "CHLTYPE": "CLUSRCVR", "XMITQ": ""}]),
]


@pytest.mark.parametrize(("command", "rows"), SHOWN, ids=[command for command, _ in SHOWN])
def test_channels_are_shown_with_their_type(command: str, rows: list[dict[str, Any]]) -> None:
    desk = Desk(f"{JOIN}\nDEFINE CHANNEL(SALES.REPOS) CHLTYPE(CLUSSDR) CLUSTER(SALES) CONNAME('host')")
    answer = desk.must(command)
    assert answer.amq == "AMQ8414"
    assert list(answer.objects) == rows
    assert [list(row) for row in answer.objects] == [list(row) for row in rows]


# Members


def _member(qmgr: str, channel: str, **more: str) -> dict[str, str]:
    return {"CLUSQMGR": qmgr, "CHANNEL": channel, "CLUSTER": "SALES", **more}


MEMBERS: list[tuple[str, list[dict[str, str]]]] = [
    ("DISPLAY CLUSQMGR(*)", [_member("QM1", "SALES.QM1"), _member("QM2", "SALES.QM2"), _member("QM3", "")]),
    (
        "DISPLAY CLUSQMGR(*) QMTYPE DEFTYPE",
        [
            _member("QM1", "SALES.QM1", QMTYPE="REPOS", DEFTYPE="CLUSRCVR"),
            _member("QM2", "SALES.QM2", QMTYPE="REPOS", DEFTYPE="CLUSSDRB"),
            _member("QM3", "", QMTYPE="REPOS", DEFTYPE="CLUSSDRA"),
        ],
    ),
    (
        "DISPLAY CLUSQMGR(QM*) STATUS SUSPEND",
        [
            _member("QM1", "SALES.QM1", STATUS="RUNNING", SUSPEND="NO"),
            _member("QM2", "SALES.QM2", STATUS="RUNNING", SUSPEND="NO"),
            _member("QM3", "", STATUS="STARTING", SUSPEND="YES"),
        ],
    ),
    ("DISPLAY CLUSQMGR(*) WHERE(SUSPEND EQ YES)", [_member("QM3", "", SUSPEND="YES")]),
    ("DISPLAY CLUSQMGR(*) CHANNEL(SALES.*)", [_member("QM1", "SALES.QM1"), _member("QM2", "SALES.QM2")]),
    ("DISPLAY CLUSQMGR(QM1) CLUSTER(S*) QMID", [_member("QM1", "SALES.QM1", QMID="")]),
    (
        "DISPLAY CLUSQMGR(QM2)",
        [
            _member("QM2", "SALES.QM2", QMTYPE="REPOS", DEFTYPE="CLUSSDRB", CONNAME="host", DESCR="")
            | {"STATUS": "RUNNING", "SUSPEND": "NO"}
        ],
    ),
]


@pytest.mark.parametrize(("command", "rows"), MEMBERS, ids=[command for command, _ in MEMBERS])
def test_clusqmgr_shows_this_queue_manager_and_the_others(command: str, rows: list[dict[str, str]]) -> None:
    setup = f"{JOIN}\nDEFINE CHANNEL(SALES.QM2) CHLTYPE(CLUSSDR) CLUSTER(SALES) CONNAME('host')"
    answer = Desk(setup, Others((QM2, QM3), {"QM2": "ACTIVE", "QM3": "STARTING"})).must(command)
    assert answer.amq == "AMQ8441"
    assert list(answer.objects) == rows


@pytest.mark.parametrize("command", ["DISPLAY CLUSQMGR(QM9)", "DISPLAY CLUSQMGR(*) CLUSTER(OTHER)"])
def test_clusqmgr_of_what_is_not_shared(command: str) -> None:
    answer = Desk(JOIN, Others((QM2, QM3))).ask(command)
    assert (answer.ok, answer.amq) == (False, "AMQ8147")


def test_members_are_not_shown_as_children() -> None:
    desk = Desk(f"{JOIN}\nALTER QMGR PARENT(QM0)", Others((QM2,), {"QM2": "ACTIVE"}))
    assert [row["TYPE"] for row in desk.show("DISPLAY PUBSUB TYPE(ALL)")] == ["LOCAL", "PARENT"]


# Suspending and refreshing


def test_suspend_and_resume_change_what_others_are_told() -> None:
    desk = Desk(f"{JOIN}\nDEFINE NAMELIST(N) NAMES(SALES)")
    steps = []
    for command in ("SUSPEND QMGR CLUSTER(SALES)", "RESUME QMGR CLUSNL(N)", "SUSPEND QMGR CLUSNL(N) MODE(QUIESCE)"):
        amq = desk.must(command).amq
        steps.append(
            (amq, RepositoryEntry.of(desk.objects).suspended, desk.show("DISPLAY CLUSQMGR(QM1)")[0]["SUSPEND"])
        )
    assert steps == [("AMQ8557", ("SALES",), "YES"), ("AMQ8556", (), "NO"), ("AMQ8557", ("SALES",), "YES")]


@pytest.mark.parametrize(
    ("command", "count"), [("REFRESH CLUSTER(SALES)", "1 member"), ("REFRESH CLUSTER(*)", "1 member")]
)
def test_refresh_cluster_says_to_how_many(command: str, count: str) -> None:
    answer = Desk(JOIN, Others((QM2,))).must(command)
    assert (answer.amq, answer.notes) == ("AMQ8558", (f"sent again to {count}",))


@pytest.mark.parametrize(
    ("command", "amq"),
    [
        ("SUSPEND QMGR CLUSTER(OTHER)", "AMQ8404"),
        ("RESUME QMGR CLUSTER(SALES) CLUSNL(N)", "AMQ8421"),
        ("RESUME QMGR CLUSNL(N)", "AMQ8147"),
        ("REFRESH CLUSTER(OTHER)", "AMQ8404"),
        ("REFRESH CLUSTER", "AMQ8421"),
    ],
)
def test_clusters_that_the_queue_manager_is_not_in(command: str, amq: str) -> None:
    desk = Desk(JOIN)
    answer = desk.ask(command)
    assert (answer.ok, answer.amq) == (False, amq)
    assert desk.objects.qmgr.suspended == ()


# Topic objects of clusters

OWN = "DEFINE TOPIC(LOCAL) TOPICSTR('local')\nDEFINE TOPIC(PRICES) TOPICSTR('prices') CLUSTER(SALES) PUB(DISABLED)"


def _topic(name: str, kind: str, **more: str) -> dict[str, str]:
    return {"TOPIC": name, "TYPE": kind, **more}


TOPICS: list[tuple[str, list[dict[str, str]]]] = [
    ("DISPLAY TOPIC(L*)", [_topic("LOCAL", "LOCAL")]),
    ("DISPLAY TOPIC(P*)", [_topic("PRICES", "LOCAL")]),
    ("DISPLAY TOPIC(P*) TYPE(ALL)", [_topic("PRICES", "LOCAL")]),
    (
        "DISPLAY TOPIC(P*) CLUSINFO CLUSQMGR",
        [
            _topic("PRICES", "LOCAL", CLUSQMGR=""),
            _topic("PRICES", "CLUSTER", CLUSQMGR="QM1"),
            _topic("PRICES", "CLUSTER", CLUSQMGR="QM2"),
        ],
    ),
    ("DISPLAY TOPIC(P*) CLUSINFO TYPE(LOCAL)", [_topic("PRICES", "LOCAL")]),
    (
        "DISPLAY TOPIC(*) TYPE(CLUSTER) CLUSQMGR CLSTATE CLROUTE TOPICSTR",
        [
            _topic("GOODS", "CLUSTER", CLUSQMGR="QM2", CLSTATE="ACTIVE", CLROUTE="TOPICHOST", TOPICSTR="goods"),
            _topic("PRICES", "CLUSTER", CLUSQMGR="QM1", CLSTATE="INVALID", CLROUTE="DIRECT", TOPICSTR="prices"),
            _topic("PRICES", "CLUSTER", CLUSQMGR="QM2", CLSTATE="ACTIVE", CLROUTE="DIRECT", TOPICSTR="prices"),
        ],
    ),
    ("DISPLAY TCLUSTER(*) WHERE(CLSTATE EQ INVALID)", [_topic("PRICES", "CLUSTER", CLSTATE="INVALID")]),
    ("DISPLAY TCLUSTER(G*) CLUSTER(SA*)", [_topic("GOODS", "CLUSTER", CLUSTER="SALES")]),
]


@pytest.mark.parametrize(("command", "rows"), TOPICS, ids=[command for command, _ in TOPICS])
def test_topics_of_clusters_are_shown_where_they_are_asked_for(command: str, rows: list[dict[str, str]]) -> None:
    answer = Desk(f"{JOIN}\n{OWN}", Others((QM2,))).must(command)
    assert answer.amq == "AMQ8633"
    assert list(answer.objects) == rows


NOT_HERE = [
    "ALTER TOPIC(GOODS) PUB(DISABLED)",
    "DELETE TOPIC(GOODS)",
    "DEFINE TOPIC(OTHER) LIKE(GOODS) TOPICSTR('other')",
]


@pytest.mark.parametrize("command", NOT_HERE)
def test_a_copy_is_changed_where_it_is_defined(command: str) -> None:
    answer = Desk(JOIN, Others((QM2,))).ask(command)
    assert answer.lines == (
        "AMQ8147: WebSphere MQ object GOODS not found.",
        "It is a cluster topic, which is defined at QM2.",
    )


def test_defining_a_topic_of_the_name_of_a_copy_makes_ones_own() -> None:
    desk = Desk(JOIN, Others((QM2,)))
    assert desk.ask("DISPLAY TOPIC(GOODS)").amq == "AMQ8147"
    assert desk.must("DEFINE TOPIC(GOODS) TOPICSTR('goods/here')").amq == "AMQ8690"
    assert desk.show("DISPLAY TOPIC(GOODS) TOPICSTR") == [_topic("GOODS", "LOCAL", TOPICSTR="goods/here")]
    assert not desk.objects.topics.is_copy("GOODS")
    assert desk.objects.topics.at("goods") is None


COPIES: list[tuple[str, list[str], list[str]]] = [
    ("deleted", ["DEFINE TOPIC(GOODS) TOPICSTR('mine')", "DELETE TOPIC(GOODS)"], ["GOODS", "PRICES"]),
    ("topic-string-taken", ["DEFINE TOPIC(MINE) TOPICSTR('goods')"], ["PRICES"]),
    ("topic-string-free-again", ["DEFINE TOPIC(MINE) TOPICSTR('goods')", "DELETE TOPIC(MINE)"], ["GOODS", "PRICES"]),
    ("left", ["ALTER CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CLUSTER(' ')"], []),
    ("left-and-joined", ["DELETE CHANNEL(SALES.QM1)", JOIN], ["GOODS", "PRICES"]),
    (
        "joined-by-a-namelist",
        [
            "DEFINE NAMELIST(N) NAMES(OTHER)",
            "ALTER CHANNEL(SALES.QM1) CLUSTER(' ') CLUSNL(N)",
            "ALTER NL(N) NAMES(SALES)",
        ],
        ["GOODS", "PRICES"],
    ),
]


@pytest.mark.parametrize(("commands", "copies"), [c[1:] for c in COPIES], ids=[c[0] for c in COPIES])
def test_copies_come_and_go_at_once(commands: list[str], copies: list[str]) -> None:
    desk = Desk(JOIN, Others((QM2,)))
    for command in commands:
        desk.must(command)
    topics = desk.objects.topics
    assert [topic.name for topic in topics if topics.is_copy(topic.name)] == copies


@pytest.mark.parametrize(
    ("topic", "cluster", "route"),
    [("goods", "SALES", "TOPICHOST"), ("prices", "SALES", "DIRECT"), ("local", "", "NONE")],
)
def test_tpstatus_says_how_publications_go(topic: str, cluster: str, route: str) -> None:
    [row] = Desk(f"{JOIN}\n{OWN}", Others((QM2,))).show(f"DISPLAY TPSTATUS('{topic}') CLUSTER CLROUTE")
    assert (row["CLUSTER"], row["CLROUTE"]) == (cluster, route)


# Queue managers that run


def test_live_members_know_each_others_channels_and_topics(tmp_path: Path) -> None:
    topics = "DEFINE TOPIC(GOODS) TOPICSTR('goods') CLUSTER(SALES)"
    first = QueueManagerSetup(Position("QM1", clusters=("SALES",)), topics)
    with LiveWorld(tmp_path, first, QueueManagerSetup(Position("QM2", clusters=("SALES",)))) as world:
        world.settle()
        store = world.queue_managers["QM2"].store

        def show(command: str) -> list[Mapping[str, Any]]:
            [statement] = parse(command)
            runner = StatementRunner(store, "admin", no_groups, lambda: world.now)
            [(_, answer)] = runner.run([statement])
            return list(answer.objects)

        members = show("DISPLAY CLUSQMGR(*) STATUS")
        assert [(row["CLUSQMGR"], row["CHANNEL"], row["STATUS"]) for row in members] == [
            ("QM1", "SALES.QM1", "RUNNING"),
            ("QM2", "SALES.QM2", "RUNNING"),
        ]
        assert [row["CLUSQMGR"] for row in show("DISPLAY TCLUSTER(*) CLUSQMGR")] == ["QM1"]
        neighbours = status_of(store, world.now)["neighbours"]
        assert [(each["qmgr"], each["relation"], each["cluster"], each["status"]) for each in neighbours] == [
            ("QM1", "MEMBER", "SALES", "ACTIVE")
        ]


# Replay


def test_a_channel_in_a_setup_makes_a_member_in_the_replay() -> None:
    topic = "DEFINE TOPIC(GOODS) TOPICSTR('goods') CLUSTER(SALES) DURSUB(NO)"
    namelist = "DEFINE NAMELIST(N) NAMES(SALES)\nDEFINE CHANNEL(C) CHLTYPE(CLUSRCVR) CLUSNL(N)"
    setups = (
        QueueManagerSetup(Position("QM1"), f"{joining('SALES', 'QM1')}\n{topic}"),
        QueueManagerSetup(Position("QM2", clusters=("STOCK",)), namelist),
        QueueManagerSetup(Position("QM3"), "DEFINE CHANNEL(C) CHLTYPE(CLUSSDR) CLUSTER(SALES)"),
    )
    network = NetworkSetup(setups).build()
    assert [position.clusters for position in network.topology.positions] == [("SALES",), ("STOCK", "SALES"), ()]
    durable = [each.broker.objects.topics.resolve("goods/1").durable_subs for each in network.queue_managers.values()]
    assert durable == [False, False, True]


# A tree elsewhere


def test_a_cluster_and_a_linked_tree_do_not_go_together(tmp_path: Path) -> None:
    """A publication would reach the members both ways. run and check say how to leave the cluster."""
    home, linked = ("--home", str(tmp_path)), ("--topics", "mqtt://127.0.0.1:1", "--once")
    for qmgr in ("QM1", "QM2"):
        assert run("create", qmgr, *home).code == 0
        assert run("mqsc", "-m", qmgr, *home, stdin=f"{joining('SALES', qmgr)}\n").code == 0
    for qmgr in ("QM1", "QM2", "QM1"):
        assert run("run", "-m", qmgr, *home, "--once").code == 0
    assert "Member QM2 of cluster SALES: ACTIVE" in run("status", "-m", "QM1", *home).out
    refused = run("run", "-m", "QM1", *home, *linked)
    assert refused.code == 2
    assert "--topics: queue manager QM1 is in cluster SALES" in refused.talk
    checked = run("check", "-m", "QM1", *home, *linked[:2]).out
    assert "MISSING cluster: queue manager QM1 is in cluster SALES" in checked
    assert run("mqsc", "-m", "QM1", *home, stdin="DELETE CHANNEL('SALES.QM1')\n").code == 0
    assert "let run --once without --topics work" in run("run", "-m", "QM1", *home, *linked).talk
    assert run("run", "-m", "QM1", *home, "--once").code == 0
    assert "is in cluster" not in run("check", "-m", "QM1", *home, *linked[:2]).out


def test_a_namelist_of_clusters_that_is_deleted_is_noted() -> None:
    desk = Desk("DEFINE NAMELIST(BOTH) NAMES(SALES, OTHER)\nDEFINE CHANNEL(X) CHLTYPE(CLUSRCVR) CLUSNL(BOTH)")
    assert desk.objects.clusters == ("OTHER", "SALES")
    answer = desk.must("DELETE NAMELIST(BOTH)")
    assert any("channel X is in no cluster any more: its CLUSNL is gone" in line for line in answer.lines)
    assert desk.objects.clusters == ()
