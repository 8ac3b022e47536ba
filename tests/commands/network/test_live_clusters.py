"""Clusters of embedded queue managers, live: who joins, who leaves, whose topics count, and what a crash leaves."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import QueueManager
from commands.links.channels import RepositoryManager
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import Link, Position
from commands.qmgr import flow_messages
from commands.qmgr.flow_messages import INTER_QMGR_CONTROL, Word
from commands.qmgr.store import QueueManagerStore, StoreBusyError
from commands.qmgr.store.opening import directory_of
from commands.replay.network.local import NetworkSetup, QueueManagerSetup
from rfh2.dlh import decode_dlh
from streams.topic_objects import TopicObject
from tests.commands.cli_runs import run
from tests.commands.network.live_world import LiveQueueManager, LiveWorld, joining
from tests.commands.network.test_live_network import message, run_once
from tests.commands.network.world import at
from tests.examples import FEWEST

SPORT = "DEFINE TOPIC(SPORT) TOPICSTR('Sport') CLUSTER(C)"
THREE = (at("QM1", "", "C", setup=SPORT), at("QM2", "", "C"), at("QM3", "", "C"))


def publish(world: LiveWorld, qmgr: str, data: bytes = b"goal", topic: str = "Sport/Tennis") -> None:
    world.put(message("Publish", qmgr, topic, data=data))
    world.settle()


def subscribe(world: LiveWorld, qmgr: str, topic: str = "Sport/#", queue: str = "BOARD") -> None:
    world.put(message("RegSub", qmgr, topic, queue))
    world.settle()
    world.take(qmgr)


def boards(world: LiveWorld, *qmgrs: str) -> list[str]:
    """What programs got at these queue managers, the end of each message; taken off."""
    return [f"{qmgr}: {body[-4:].decode()}" for qmgr in qmgrs for _, body in world.take(qmgr)]


def topics(world: LiveWorld, qmgr: str) -> dict[str, str]:
    """The cluster topics that count at a queue manager, with the host of a copy."""
    objects = world.queue_managers[qmgr].store.load_state()[0]
    return {
        each.name: "copy" if objects.topics.is_copy(each.name) else "own" for each in objects.topics if each.cluster
    }


@pytest.mark.rule("DIS-28")
def test_3_2_1_1_a_topic_that_one_member_defines_is_known_to_all(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        world.settle()
        assert [topics(world, qmgr) for qmgr in ("QM1", "QM2", "QM3")] == [{"SPORT": "own"}, *[{"SPORT": "copy"}] * 2]
        subscribe(world, "QM2")
        publish(world, "QM3")
        assert boards(world, "QM1", "QM2", "QM3") == ["QM2: goal"]
        publish(world, "QM3", topic="News")
        assert boards(world, "QM2") == []


def test_one_that_joins_later_gets_what_is_retained_and_what_comes(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE[:2], at("QM3")) as world:
        publish(world, "QM1")
        subscribe(world, "QM3")
        assert world.proxies("QM1") == set()
        world.mqsc("QM3", joining("C", "QM3"))
        world.settle()
        assert world.proxies("QM1") == world.proxies("QM2") == {("QM3", "Sport/#")}
        publish(world, "QM2")
        assert boards(world, "QM3") == ["QM3: goal"]


LEAVING = {
    "by DELETE CHANNEL": "DELETE CHANNEL('C.QM3')",
    "by another cluster": "ALTER CHANNEL('C.QM3') CHLTYPE(CLUSRCVR) CLUSTER(D)",
}


@pytest.mark.rule("DIS-28")
@pytest.mark.parametrize("is_running", [True, False], ids=["while it runs", "while it is stopped"])
@pytest.mark.parametrize("how", LEAVING.values(), ids=LEAVING)
def test_one_that_leaves_gets_and_sends_nothing_more(tmp_path: Path, how: str, is_running: bool) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        for qmgr in ("QM2", "QM3"):
            subscribe(world, qmgr)
        if not is_running:
            world.queue_managers.pop("QM3").stop()
        world.mqsc("QM3", how)
        world.settle()
        if not is_running:
            assert world.proxies("QM1") == {("QM2", "Sport/#")}
            world.queue_managers["QM3"] = LiveQueueManager(world, "QM3")
            world.settle()
        assert topics(world, "QM3") == {}
        assert world.proxies("QM3") == set()
        publish(world, "QM1")
        publish(world, "QM3", b"away")
        assert boards(world, "QM2", "QM3") == ["QM2: goal", "QM3: away"]
        world.mqsc("QM3", joining("C", "AGAIN"))
        world.settle()
        publish(world, "QM1", b"back")
        assert boards(world, "QM2", "QM3") == ["QM2: back", "QM3: back"]


def test_one_that_is_deleted_is_forgotten(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        subscribe(world, "QM1")
        world.queue_managers.pop("QM1").stop()
        shutil.rmtree(directory_of(tmp_path, "QM1"))
        world.settle()
        assert [topics(world, qmgr) for qmgr in ("QM2", "QM3")] == [{}, {}]
        assert [world.proxies(qmgr) for qmgr in ("QM2", "QM3")] == [set(), set()]


CHANGES = {
    "no cluster": "ALTER TOPIC(SPORT) CLUSTER(' ')",
    "a cluster that it is not in": "ALTER TOPIC(SPORT) CLUSTER(D)",
    "no topic": "DELETE TOPIC(SPORT)",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_topic_that_is_in_the_cluster_no_more(tmp_path: Path, change: str) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        subscribe(world, "QM2")
        world.mqsc("QM1", change)
        world.settle()
        assert topics(world, "QM2") == {}
        assert world.proxies("QM1") == world.proxies("QM3") == set()
        world.mqsc("QM3", "DEFINE TOPIC(AGAIN) TOPICSTR('Sport') CLUSTER(C)")
        world.settle()
        assert world.proxies("QM3") == {("QM2", "Sport/#")}


@pytest.mark.rule("DIS-28")
def test_3_2_1_1_1_a_members_own_definition_counts_until_it_is_deleted(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        subscribe(world, "QM2")
        world.mqsc("QM2", "DEFINE TOPIC(SPORT) TOPICSTR('Sport')")
        world.settle()
        assert topics(world, "QM2") == {}
        assert world.proxies("QM1") == set()
        world.mqsc("QM2", "DELETE TOPIC(SPORT)")
        world.settle()
        assert topics(world, "QM2") == {"SPORT": "copy"}
        assert world.proxies("QM1") == {("QM2", "Sport/#")}


@pytest.mark.rule("DIS-29")
def test_a_suspended_host_gets_publications_only_where_there_is_no_other(tmp_path: Path) -> None:
    hosted = f"{SPORT} CLROUTE(TOPICHOST)"
    hosts = (at("QM1", "", "C", setup=hosted), at("QM2", "", "C", setup=hosted))
    with LiveWorld(tmp_path, *hosts, at("QM3", "", "C"), at("QM4", "", "C")) as world:
        subscribe(world, "QM4")
        world.mqsc("QM1", "SUSPEND QMGR CLUSTER(C)")
        world.settle()
        asked = [("QM4", "Sport/#")]
        assert [sorted(world.proxies(qmgr)) for qmgr in ("QM1", "QM2")] == [asked, asked]
        ways = set()
        for suspended, resumed in (("", ""), ("QM2", ""), ("", "QM1")):
            if suspended or resumed:
                word = "SUSPEND" if suspended else "RESUME"
                world.mqsc(suspended or resumed, f"{word} QMGR CLUSTER(C)")
                world.settle()
            for n in range(8):
                ways |= {(suspended or resumed, way) for way in ways_of(world, f"Sport/{n}")}
        assert ways == {("", "QM2"), ("QM2", "QM1"), ("QM2", "QM2"), ("QM1", "QM1")}
        assert len(boards(world, "QM4")) == 24


def ways_of(world: LiveWorld, topic: str) -> set[str]:
    """The hosts through which a publication of QM3 goes."""
    before = {qmgr: world.queue_managers["QM3"].store.sequence(qmgr).sent for qmgr in ("QM1", "QM2")}
    publish(world, "QM3", topic=topic)
    return {qmgr for qmgr, sent in before.items() if world.queue_managers["QM3"].store.sequence(qmgr).sent > sent}


@pytest.mark.parametrize("who", ["QM1", "QM2"])
def test_a_member_with_an_older_database_synchronises(tmp_path: Path, who: str) -> None:
    """Restored from before it joined, or from before others subscribed."""
    with LiveWorld(tmp_path, at("QM1", setup=SPORT), at("QM2"), at("QM3", "", "C")) as world:
        world.settle()
        before = world.backup(who)
        for qmgr in ("QM1", "QM2"):
            world.mqsc(qmgr, joining("C", qmgr))
        world.settle()
        subscribe(world, "QM2")
        subscribe(world, "QM3")
        world.restore(who, before)
        world.settle()
        world.mqsc(who, joining("C", who))
        world.settle()
        if who == "QM2":
            subscribe(world, "QM2")
        assert world.proxies("QM1") == {("QM2", "Sport/#"), ("QM3", "Sport/#")}
        publish(world, "QM1")
        assert boards(world, "QM2", "QM3") == ["QM2: goal", "QM3: goal"]


def test_one_that_is_no_member_says_so(tmp_path: Path) -> None:
    """Somebody has it as a member still, or again: it is told, and does not ask for ever."""
    with LiveWorld(tmp_path, *THREE[:2], at("QM3")) as world:
        with world.queue_managers["QM1"].store.unit_of_work() as unit:
            unit.neighbours.learn(RepositoryEntry("QM3", ("C",)))
        assert world.settle() < 8
        assert {each.qmgr for each in world.queue_managers["QM1"].store.neighbours()} == {"QM2"}
        assert [each.qmgr for each in world.queue_managers["QM3"].store.neighbours()] == []


def test_what_a_member_says_of_itself_is_not_undone_by_what_was_read_before(tmp_path: Path) -> None:
    """It joins while another one reads its database: the later word counts."""
    with LiveWorld(tmp_path, *THREE[:2], at("QM3")) as world:
        world.settle()
        here = world.queue_managers["QM1"].store

        def joins_then(name: str) -> QueueManagerStore:
            there = QueueManagerStore.open(tmp_path, name)
            if name == "QM3":
                with here.unit_of_work() as unit:
                    said = flow_messages.relationship("QM3", Link("QM1", "C"), Word.JOIN)
                    unit.neighbours.claim("QM3", "a channel")
                    unit.put(INTER_QMGR_CONTROL, said.message.mqmd.encode(), said.body)
                world.queue_managers["QM1"].processor.drain()
            return there

        manager = RepositoryManager(tmp_path, here, joins_then)
        assert manager.look() == 0
        assert {each.qmgr: each.clusters for each in here.repository()} == {"QM2": ("C",), "QM3": ("C",)}


def test_what_one_sent_before_it_left_is_delivered(tmp_path: Path) -> None:
    """That it has left is seen before its last messages are read."""
    with LiveWorld(tmp_path, *THREE[:2]) as world:
        subscribe(world, "QM2")
        one, two = (world.queue_managers[qmgr] for qmgr in ("QM1", "QM2"))
        for n in range(5):
            world.put(message("Publish", "QM1", f"Sport/{n}", data=b"go%02d" % n))
        one.processor.drain()
        one.channels.carry()
        world.mqsc("QM1", "DELETE CHANNEL('C.QM1')")
        two.channels.carry()
        assert two.store.repository() == []
        world.settle()
        assert boards(world, "QM2") == [f"QM2: go{n:02}" for n in range(5)]


@pytest.mark.parametrize("other", ["DEFINE QLOCAL(QM2)", "DEFINE QLOCAL(OTHER)\nDEFINE QALIAS(QM2) TARGET(OTHER)"])
def test_a_queue_with_the_name_of_a_member_gets_nothing_of_its(tmp_path: Path, other: str) -> None:
    with LiveWorld(tmp_path, at("QM1", setup=other), *THREE[1:]) as world:
        world.mqsc("QM1", f"{joining('C', 'QM1')}\n{SPORT}")
        world.put(message("RegSub", "QM1", "Sport/#", "BOARD"))
        world.settle()
        assert world.on("QM1", "QM2") == []
        letters = [decode_dlh(each.body, 0, 1208) for each in world.on("QM1", "SYSTEM.DEAD.LETTER.QUEUE")]
        assert {letter.reason for letter in letters} == {2092}
        assert world.proxies("QM2") == set()
        world.mqsc("QM1", "DELETE QALIAS(QM2)" if "QALIAS" in other else "DELETE QLOCAL(QM2)")
        world.mqsc("QM1", "REFRESH CLUSTER(C)")
        world.settle()
        assert world.proxies("QM2") == {("QM1", "Sport/#")}


def test_what_comes_back_has_two_synchronise_once(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE[:2]) as world:
        subscribe(world, "QM1")
        one = world.queue_managers["QM1"]
        with one.store.unit_of_work() as unit:
            unit.neighbours.claim("QM2", "a channel")
            for _ in range(30):
                said = flow_messages._written("QM2", Link("QM1", "C"), INTER_QMGR_CONTROL, Word.UNKNOWN, ())
                unit.put(INTER_QMGR_CONTROL, said.message.mqmd.encode(), said.body)
        one.processor.drain()
        assert len(world.on("QM1", "QM2")) < 5


def test_a_directory_that_nobody_may_enter_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's queue manager, or lost+found."""
    with LiveWorld(tmp_path, *THREE) as world:
        subscribe(world, "QM3")
        is_file = Path.is_file

        def refused(path: Path) -> bool:
            if path.parent.name in ("QM3", "lost+found"):
                raise PermissionError(13, "Permission denied", str(path))
            return is_file(path)

        (tmp_path / "lost+found").mkdir()
        monkeypatch.setattr(Path, "is_file", refused)
        for each in world.queue_managers.values():
            each.channels.close()
        for qmgr in ("QM1", "QM2"):
            world.queue_managers[qmgr].work()
        assert world.proxies("QM1") == {("QM3", "Sport/#")}


def test_one_that_is_locked_is_left_alone_for_a_while_and_the_others_are_looked_at(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        world.settle()
        opened: list[str] = []

        def locked(name: str) -> QueueManagerStore:
            opened.append(name)
            if name == "QM2":
                raise StoreBusyError(name, 0.1)
            return QueueManagerStore.open(tmp_path, name)

        manager = RepositoryManager(tmp_path, world.queue_managers["QM1"].store, locked)
        manager.look()
        world.mqsc("QM3", "DEFINE TOPIC(LATER) TOPICSTR('Later') CLUSTER(C)")
        assert manager.look() == 1
        assert sorted(opened) == ["QM2", "QM3", "QM3"]
        assert [each.qmgr for each in world.queue_managers["QM1"].store.repository()] == ["QM2", "QM3"]


def test_one_that_cannot_be_read_stays_a_member(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *THREE) as world:
        subscribe(world, "QM3")
        path = directory_of(tmp_path, "QM3") / "qmgr.sqlite3"
        world.queue_managers.pop("QM3").stop()
        kept = path.read_bytes()
        path.write_bytes(b"damaged" * 1000)
        world.settle()
        assert world.proxies("QM1") == {("QM3", "Sport/#")}
        path.write_bytes(kept)


NAMES = ("QM1", "QM2", "QM3")
_ROUTES = ("DIRECT", "TOPICHOST")


def changed(world: LiveWorld, random: Random, had: dict[str, set[str]]) -> None:
    """One change of an administrator at one of the queue managers. had: the names of what each has defined."""
    qmgr = random.choice(NAMES)
    cluster, topic = random.choice("CD"), random.choice(("A", "B"))
    channel = f"{cluster}.{qmgr}"
    mine = had[qmgr]
    match random.randrange(7):
        case 0 | 1 if channel not in mine:
            world.mqsc(qmgr, joining(cluster, qmgr))
            mine.add(channel)
        case 2 if channel in mine:
            world.mqsc(qmgr, f"DELETE CHANNEL('{channel}')")
            mine.remove(channel)
        case 3 | 4 if topic not in mine:
            route = random.choice(_ROUTES)
            world.mqsc(qmgr, f"DEFINE TOPIC({topic}) TOPICSTR('{topic}') CLUSTER({cluster}) CLROUTE({route})")
            mine.add(topic)
        case 5 if topic in mine:
            world.mqsc(qmgr, f"DELETE TOPIC({topic})")
            mine.remove(topic)
        case _:
            world.put(message("RegSub", qmgr, random.choice(("A/#", "B/x", "+/x", "#")), f"Q{random.randrange(4)}"))
    match random.randrange(6):
        case 0:
            world.settle(random.sample(NAMES, 2))
        case 1:
            world.queue_managers.pop(qmgr).stop()
            world.queue_managers[qmgr] = LiveQueueManager(world, qmgr)
        case 2:
            world.settle()


def as_defined(world: LiveWorld) -> Iterable[QueueManagerSetup]:
    """What the queue managers have defined and subscribed to by now, as setups in the order of their names."""
    for name, each in sorted(world.queue_managers.items()):
        objects, subscriptions, _ = each.store.load_state()
        lines = [_topic(topic) for topic in objects.topics.own if topic.cluster]
        own = (subscription for subscription in subscriptions if not subscription.is_proxy)
        lines += [
            f"DEFINE SUB(S{n}) TOPICSTR('{subscription.topic_string}') DEST({subscription.dest_queue})"
            for n, subscription in enumerate(own)
        ]
        yield QueueManagerSetup(Position(name, clusters=objects.clusters), "\n".join(lines))


def _topic(topic: TopicObject) -> str:
    attributes = f"CLUSTER({topic.cluster}) CLROUTE({topic.cluster_route})"
    return f"DEFINE TOPIC({topic.name}) TOPICSTR('{topic.topic_string}') {attributes}"


@pytest.mark.rule("DIS-28")
@given(st.integers(0, 10_000))
@FEWEST
def test_whatever_changes_ends_as_if_it_had_always_been_so(seed: int) -> None:
    """Members, topics and subscriptions come and go, and queue managers stop, in any order."""
    random = Random(seed)
    had: dict[str, set[str]] = {name: set() for name in NAMES}
    with TemporaryDirectory() as home, LiveWorld(Path(home), *map(at, NAMES)) as world:
        for _ in range(30):
            changed(world, random, had)
        world.settle()
        network = NetworkSetup(tuple(as_defined(world))).build()
        for name, there in network.queue_managers.items():
            expected = {
                (each.dest_qmgr, each.topic_string) for each in there.broker.space.subscriptions() if each.is_proxy
            }
            assert world.proxies(name) == expected, name
            objects = world.queue_managers[name].store.load_state()[0]
            assert [each for each in objects.topics if each.cluster] == [
                each for each in there.broker.objects.topics if each.cluster
            ]


def test_a_queue_manager_alone_in_its_cluster_and_one_of_many_homes(tmp_path: Path) -> None:
    """A home that cannot be one of queue managers, and a database of something else, are passed over."""
    (tmp_path / "not a name").mkdir()
    (tmp_path / "not a name" / "qmgr.sqlite3").write_bytes(b"")
    (tmp_path / "QM9").mkdir()
    (tmp_path / "QM9" / "qmgr.sqlite3").write_bytes(b"no database")
    with LiveWorld(tmp_path, THREE[0]) as world:
        subscribe(world, "QM1")
        publish(world, "QM1")
        assert boards(world, "QM1") == ["QM1: goal"]
        QueueManagerStore.create(tmp_path, QueueManager("QM2")).close()
        world.settle()
        assert world.queue_managers["QM1"].store.repository() == []


def test_run_once_joins_and_carries(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path))
    for qmgr in ("QM1", "QM2"):
        assert run("create", qmgr, *home).code == 0
        script = f"{joining('C', qmgr)}\n{SPORT if qmgr == 'QM1' else ''}\n"
        assert run("mqsc", "-m", qmgr, *home, stdin=script).code == 0
    run_once(tmp_path, message("RegSub", "QM2", "Sport/#", "BOARD"))
    run_once(tmp_path, message("Publish", "QM1", "Sport/Tennis"))
    assert len(run("browse", "-m", "QM2", *home, "BOARD").lines) == 1


@pytest.mark.rule("DIS-26")
def test_a_cluster_and_a_linked_tree_do_not_go_together(tmp_path: Path) -> None:
    home, linked = ("--home", str(tmp_path)), ("--topics", "mqtt://127.0.0.1:1", "--once")
    assert run("create", "QM1", *home).code == 0
    assert run("mqsc", "-m", "QM1", *home, stdin=f"{joining('C', 'QM1')}\n").code == 0
    refused = run("run", "-m", "QM1", *home, *linked)
    assert refused.code == 2
    assert "--topics: queue manager QM1 is in cluster C" in refused.talk
    assert "DELETE CHANNEL('C.QM1')" in refused.talk
