"""Several embedded queue managers as a network, live: the same as its replay, whatever is interrupted or changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import ADMIN_COMMAND_QUEUE, DEFAULT_STREAM, LocalQueue
from commands.broker.puts import Outgoing, PutKind
from commands.config.home import Home, PostgresqlHome
from commands.links.channels import Channel
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.flow_messages import FOLDER
from commands.qmgr.processor import Processor
from commands.qmgr.sending import transmitted
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from commands.replay.network.local import NetworkReplay, QueueManagerSetup
from commands.running.status import status_of
from rfh2.captured import CapturedMessage
from rfh2.errors import StoreError
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfst, Pcf
from rfh2.pcf_admin_names import MQCACF_SUB_NAME, MQCMD_DELETE_Q, MQCMD_DELETE_SUBSCRIPTION
from rfh2.pcf_names import MQCA_Q_NAME
from tests.commands.cli_runs import run
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.world import World, at
from tests.commands.network_scenarios import NetworkScenario, network_scenarios
from tests.commands.scenario import KICK_OFF, psc, rfh2_message
from tests.examples import FEWEST
from tests.postgresql import needs_postgresql

LINE = (at("QM1"), at("QM2", parent="QM1"), at("QM3", parent="QM2"))
TREE = (at("QM1"), at("QM2", parent="QM1"), at("QM3", parent="QM1"))
CLUSTER = (at("QM1", "", "C"), at("QM2", "", "C"), at("QM3", "", "C"))
MIXED = (at("QM1", "", "C"), at("QM2", "QM1", "C"), at("QM3", "QM2"))
TWO = (at("QM1", "", "C"), at("QM2", "", "C", "D"), at("QM3", "", "D"))
TOPICS = ["a", "a/x", "b", "b/x"]
PATTERNS = [*TOPICS, "a/#", "+/x", "#"]
SETUPS = [
    "",
    "DEFINE TOPIC(B) TOPICSTR('b') PUBSCOPE(QMGR)",
    "DEFINE TOPIC(A) TOPICSTR('a') SUBSCOPE(QMGR)",
    "DEFINE TOPIC(A) TOPICSTR('a') CLUSTER(C)",
    "DEFINE TOPIC(B) TOPICSTR('b') CLUSTER(C) CLROUTE(TOPICHOST)",
    "DEFINE TOPIC(D) TOPICSTR('b') CLUSTER(D) PROXYSUB(FORCE)",
]


def is_live(scenario: NetworkScenario) -> bool:
    """Whether embedded queue managers can be that network: all are of version 7."""
    return all(each.semantics == "v7" for each in scenario.setup.queue_managers)


LIVE = [scenario for scenario in network_scenarios() if is_live(scenario)]
# Those of nine queue managers and more are replayed in the gate (``test_network_scenarios``).
FIGURES = [
    pytest.param(each, id=each.name, marks=[pytest.mark.nightly] if len(each.setup.queue_managers) > 8 else [])
    for each in LIVE
]


def compare(
    home: Home, setups: Sequence[QueueManagerSetup], replay: NetworkReplay, messages: Sequence[CapturedMessage]
):  # type: ignore[no-untyped-def]
    """Put the same messages into the live network and into the replay: each step puts the same, byte for byte.

    Identifiers in descriptors come from the numbers of messages, which differ; so descriptors are not compared.
    """
    with LiveWorld(home, *setups) as world:
        world.settle()
        for message in messages:
            puts = replay.replay(message)[1]
            world.put(message)
            world.settle()
            for qmgr in world.queue_managers:
                taken = world.take(qmgr)
                expected = [(put.queue, bytes.fromhex(put.body_hex)) for put in puts if put.qmgr == qmgr]
                if sorted(taken) != sorted(expected) and b"<Command>RegSub<" in bytes.fromhex(message.body_hex):
                    taken, expected = newest(taken), newest(expected)
                assert sorted(taken) == sorted(expected), (message.seq, qmgr)
        agree(world, replay)


def newest(puts: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The last put of each topic on each queue.

    Neighbours may retain different publications of one topic: those between them had no subscription. What an older one
    sends for a new subscription is put where it comes before the newest, and kept back where it comes after it.
    """
    return list({(queue, body.split(b"<Topic>")[1].split(b"<")[0]): (queue, body) for queue, body in puts}.values())


def agree(world: LiveWorld, replay: NetworkReplay) -> None:
    """Proxy subscriptions and retained publications are the same in both."""
    for name, there in replay.network.queue_managers.items():
        space = there.broker.space
        retained = {each.topic_string: each.publication.published_at for each in space.retained_publications()}
        assert world.retained(name) == retained, name
        proxies = {(each.dest_qmgr, each.topic_string) for each in space.subscriptions() if each.is_proxy}
        assert world.proxies(name) == proxies, name


@pytest.mark.rule("DIS-22", "PUB-3", "QM-5")
@pytest.mark.parametrize("scenario", FIGURES)
def test_the_figures_of_the_guide(scenario: NetworkScenario, tmp_path: Path) -> None:
    setup = scenario.setup
    compare(tmp_path, setup.queue_managers, NetworkReplay(setup), scenario.messages)


@needs_postgresql
def test_a_figure_of_the_guide_in_postgresql(postgresql_home: PostgresqlHome) -> None:
    (scenario,) = (each for each in LIVE if each.name == "3.1-figures-1-to-3")
    compare(postgresql_home, scenario.setup.queue_managers, NetworkReplay(scenario.setup), scenario.messages)


def test_there_are_such_figures() -> None:
    assert {"3.1-figures-1-to-3", "3.4-loop", "3.5-retained"} <= {scenario.name for scenario in LIVE}


def workload(setups: Sequence[QueueManagerSetup], seed: int, size: int) -> list[CapturedMessage]:
    """Commands of all kinds at all queue managers."""
    random, world = Random(seed), World(*setups)
    names = [each.position.qmgr for each in setups]
    live: list[tuple[str, str, str]] = []
    for n in range(size):
        qmgr, topic, local = random.choice(names), random.choice(TOPICS), ["Local"] if random.random() < 0.15 else []
        kind = random.random()
        if kind < 0.25:
            live.append((qmgr, random.choice(PATTERNS), f"Q{n}"))
            world.register(live[-1][0], live[-1][1], queue=live[-1][2], options=local)
        elif kind < 0.35 and live:
            gone = live.pop(random.randrange(len(live)))
            world.deregister(gone[0], gone[1], queue=gone[2])
        elif kind < 0.42:
            world.delete(qmgr, topic, options=local)
        elif kind < 0.65:
            world.publish(qmgr, topic, options=["RetainPub", *local])
        else:
            world.publish(qmgr, topic, options=local)
    return world.messages


NETWORKS = [LINE, TREE, CLUSTER, MIXED, TWO]


@pytest.mark.rule("DIS-22")
@given(st.sampled_from(NETWORKS), st.tuples(*[st.sampled_from(SETUPS)] * 3), st.integers(0, 10_000))
@FEWEST
def test_any_workload_gives_what_its_replay_gives(
    network: tuple[QueueManagerSetup, ...], scripts: tuple[str, ...], seed: int
) -> None:
    setups = [replace(each, setup=script) for each, script in zip(network, scripts, strict=True)]
    messages = workload(setups, seed, 25)
    with TemporaryDirectory() as home:
        compare(Path(home), setups, World(*setups).replay, messages)


# Changes of the network


def message(word: str, qmgr: str, topic: str, queue: str = "", data: bytes = b"", seconds: int = 0) -> CapturedMessage:
    """A RegSub or a Publish at *qmgr*; persistent."""
    mqmd = Mqmd(msg_type=8, priority=0, persistence=1, coded_char_set_id=1208, reply_to_q=queue)
    described, body = rfh2_message([psc(word, ("Topic", topic))], mqmd, data)
    return CapturedMessage(
        seq=1,
        time=KICK_OFF + timedelta(seconds=seconds),
        qmgr=qmgr,
        queue="SYSTEM.BROKER.CONTROL.QUEUE" if queue else DEFAULT_STREAM,
        user="app1",
        md_hex=described.encode().hex(),
        body_hex=body.hex(),
    )


def statuses(world: LiveWorld, qmgr: str) -> list[str]:
    """What DISPLAY PUBSUB TYPE(ALL) STATUS shows, without this queue manager itself."""
    lines = "".join(world.mqsc(qmgr, "DISPLAY PUBSUB TYPE(ALL) STATUS"))
    words = lines.replace(" ", "").split("QMNAME(")[2:]
    return [each.split(")")[0] + " " + each.split("STATUS(")[1].split(")")[0] for each in words]


@pytest.mark.rule("DIS-23")
def test_a_queue_manager_moves_to_another_parent(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, at("QM1"), at("QM2", parent="QM1"), at("QM3")) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        assert statuses(world, "QM2") == ["QM1 ACTIVE"]
        assert statuses(world, "QM1") == ["QM2 ACTIVE"]
        assert world.proxies("QM1") == {("QM2", "a")}
        world.mqsc("QM2", "ALTER QMGR PARENT(QM3)")
        assert statuses(world, "QM2") == ["QM3 INACTIVE"]
        world.settle()
        assert (statuses(world, "QM1"), statuses(world, "QM3")) == ([], ["QM2 ACTIVE"])
        assert (world.proxies("QM1"), world.proxies("QM3")) == (set(), {("QM2", "a")})
        for n, qmgr in enumerate(("QM1", "QM3")):
            world.put(message("Publish", qmgr, "a", data=b"%d" % n))
        world.settle()
        assert [decode(each.body, each.md).body for each in world.on("QM2", "BOARD")] == [b"1"]
        world.mqsc("QM2", "ALTER QMGR PARENT(' ')")
        world.settle()
        assert statuses(world, "QM2") == statuses(world, "QM3") == []
        assert world.proxies("QM3") == set()


@pytest.mark.rule("DIS-23")
def test_a_parent_that_comes_later_gets_everything_then(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, at("QM2", parent="QM1")) as world:
        world.put(message("RegSub", "QM2", "a/#", "BOARD"))
        world.settle()
        assert statuses(world, "QM2") == ["QM1 STARTING"]
        world.add(at("QM1"))
        world.put(message("Publish", "QM1", "a/x", data=b"early"))  # it does not know its child yet
        world.queue_managers["QM1"].processor.drain()
        world.settle()
        assert statuses(world, "QM2") == ["QM1 ACTIVE"]
        world.put(message("Publish", "QM1", "a/x", data=b"late"))
        world.settle()
        assert [decode(each.body, each.md).body for each in world.on("QM2", "BOARD")] == [b"late"]


@pytest.mark.rule("DIS-23")
def test_two_cannot_be_the_parents_of_each_other(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, at("QM1", parent="QM2"), at("QM2", parent="QM1")) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        assert statuses(world, "QM1") == ["QM2 REFUSED"]
        assert statuses(world, "QM2") == ["QM1 REFUSED"]
        assert world.proxies("QM1") == set()


@pytest.mark.rule("DIS-21")
def test_refresh_makes_proxy_subscriptions_what_they_have_to_be(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        for n in range(5):
            world.put(message("RegSub", "QM3", f"t/{n}", "BOARD"))
        world.settle()
        right = {("QM3", f"t/{n}") for n in range(5)}
        assert world.proxies("QM2") == right
        store = world.queue_managers["QM2"].store
        subscriptions = [each for each in store.load_state()[1] if each.topic_string == "t/3"]
        with store.unit_of_work() as unit:
            unit.database.connection.execute("DELETE FROM subscriptions WHERE sub_id = ?", (subscriptions[0].sub_id,))
            unit._tables.state.changed()
        world.settle()
        assert world.proxies("QM2") == right - {("QM3", "t/3")}
        assert world.proxies("QM1") == {("QM2", topic) for _, topic in right - {("QM3", "t/3")}}
        (answer,) = world.mqsc("QM3", "REFRESH QMGR TYPE(PROXYSUB)")
        assert answer == "Proxy subscriptions are sent to 1 queue manager again."
        world.settle()
        assert world.proxies("QM2") == right
        assert world.proxies("QM1") == {("QM2", topic) for _, topic in right}
        assert statuses(world, "QM3") == ["QM2 ACTIVE"]


def test_scope_that_an_administrator_changes_counts_at_once(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        world.put(message("RegSub", "QM3", "a/x", "BOARD"))
        world.settle()
        world.mqsc("QM3", "DEFINE TOPIC(A) TOPICSTR('a') SUBSCOPE(QMGR)")
        world.settle()
        assert world.proxies("QM2") == world.proxies("QM1") == set()
        world.mqsc("QM3", "ALTER TOPIC(A) SUBSCOPE(ALL)")
        world.settle()
        assert (world.proxies("QM2"), world.proxies("QM1")) == ({("QM3", "a/x")}, {("QM2", "a/x")})


def test_subscriptions_of_mqsc_and_odd_topics_travel(tmp_path: Path) -> None:
    odd = "a\t&<b> "
    with LiveWorld(tmp_path, *LINE) as world:
        world.mqsc("QM3", f"DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('{odd}') DEST(BOARD)")
        world.settle()
        assert world.proxies("QM1") == {("QM2", odd)}
        world.mqsc("QM3", "DELETE SUB(S)")
        world.settle()
        assert world.proxies("QM1") == set()


# The way between two queue managers


class _KilledError(Exception):
    pass


@pytest.mark.rule("DIS-24")
@pytest.mark.parametrize("after", ["arrived", "removed"])
def test_a_carrier_that_ends_at_any_step_neither_loses_nor_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """A process that is killed leaves what its last commit left; here the steps between commits fail."""
    with LiveWorld(tmp_path, *LINE) as world:
        world.put(message("RegSub", "QM3", "a", "BOARD"))
        world.settle()
        name = {"arrived": "discard", "removed": "_waiting"}[after]
        owner = {"arrived": EmbeddedUnitOfWork, "removed": Channel}[after]
        original, calls = getattr(owner, name), [0]

        def killed(*given: object) -> object:
            calls[0] += 1
            if calls[0] % 3 == 0:
                raise _KilledError
            return original(*given)

        monkeypatch.setattr(owner, name, killed)
        for n in range(30):
            world.put(message("Publish", "QM1", "a", data=b"%d" % n))
            for each in world.queue_managers.values():
                try:
                    each.work()
                except _KilledError:
                    each.channels.close()  # as a new process, it knows nothing
        monkeypatch.undo()
        world.settle()
        assert calls[0] > 10
        assert [decode(each.body, each.md).body for each in world.on("QM3", "BOARD")] == [b"%d" % n for n in range(30)]
        for _ in range(2):  # the next messages have what has gone forgotten
            world.put(message("Publish", "QM1", "a"))
            world.settle()
        last = world.queue_managers["QM3"].store.database.connection
        assert last.execute("SELECT count(*) FROM arrived").fetchone() == (1,)


@pytest.mark.rule("DIS-24")
def test_a_carrier_that_was_held_up_brings_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has taken over, and has carried what the first one had already read."""
    with LiveWorld(tmp_path, *LINE[:2]) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        held_up = world.queue_managers["QM1"]
        world.put(message("Publish", "QM1", "a", data=b"one"))
        held_up.processor.drain()
        waiting = Channel._waiting
        original_put = Channel._put

        def late(self: Channel, messages: object) -> None:
            monkeypatch.setattr(Channel, "_put", original_put)
            with QueueManagerStore.open(tmp_path, "QM1") as store:
                other = Channel(store, "QM2", lambda: QueueManagerStore.open(tmp_path, "QM2"))
                assert other.carry() == 1
                assert waiting(other) == []
                other.close()
            original_put(self, messages)  # type: ignore[arg-type]

        monkeypatch.setattr(Channel, "_put", late)
        held_up.channels.carry()
        world.settle()
        assert [decode(each.body, each.md).body for each in world.on("QM2", "BOARD")] == [b"one"]


def test_messages_for_programs_at_another_queue_manager_go_there(tmp_path: Path) -> None:
    """Without a network between them: a transmission queue that an administrator defined."""
    with LiveWorld(tmp_path, at("QM1", setup="DEFINE QLOCAL(QM2) USAGE(XMITQ)"), at("QM2")) as world:
        to = message("RegSub", "QM1", "a", "BOARD")
        mqmd = replace(Mqmd.decode(bytes.fromhex(to.md_hex or "")), reply_to_qmgr="QM2")
        world.put(to.model_copy(update={"md_hex": mqmd.encode().hex()}))
        world.put(message("Publish", "QM1", "a", data=b"one"))
        world.settle()
        assert [decode(each.body, each.md).body for each in world.on("QM2", "BOARD")] == [b"one"]
        assert world.on("QM1", "QM2") == []


def test_what_a_queue_refuses_is_a_dead_letter_there(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, at("QM1", setup="DEFINE QLOCAL(QM2) USAGE(XMITQ)"), at("QM2")) as world:
        with world.queue_managers["QM1"].store.unit_of_work() as unit:
            unit.put("QM2", None, b"no header")
        with world.queue_managers["QM2"].store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("BOARD", put_enabled=False))
        to = message("RegSub", "QM1", "a", "BOARD")
        mqmd = replace(Mqmd.decode(bytes.fromhex(to.md_hex or "")), reply_to_qmgr="QM2")
        world.put(to.model_copy(update={"md_hex": mqmd.encode().hex()}))
        world.put(message("Publish", "QM1", "a", data=b"one"))
        world.settle()
        letters = [decode(each.body, each.md).headers[0] for each in world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")]
        assert sorted(letter.reason for letter in letters) == [271, 2051]  # type: ignore[union-attr]
        assert world.on("QM1", "QM2") == []


def sent_to_qm2(world: LiveWorld, queue: str, user: str, body: bytes, **fields: object) -> None:
    """A message for *queue* of QM2, as a program of *user* puts it to the transmission queue at QM1.

    user: "" for one that says nothing of itself, in its descriptor neither.
    """
    mqmd = Mqmd(user_identifier="mqm" if user else "", **fields)  # type: ignore[arg-type]
    put = transmitted(Outgoing(PutKind.PUBLICATION, "QM2", queue, mqmd.encode(), body))
    with world.queue_managers["QM1"].store.unit_of_work() as unit:
        unit.put(put.queue, put.md, put.body, user=user or None)
    world.settle()


def test_a_message_of_a_group_arrives_as_one(tmp_path: Path) -> None:
    """What only an MQMD of version 2 has goes in an MQMDE, behind the MQXQH."""
    here, there = at("QM1", setup="DEFINE QLOCAL(QM2) USAGE(XMITQ)"), at("QM2", setup="DEFINE QLOCAL(BOARD)")
    with LiveWorld(tmp_path, here, there) as world:
        group = {"version": 2, "group_id": b"g" * 24, "msg_seq_number": 3, "msg_flags": 0x8, "coded_char_set_id": 819}
        sent_to_qm2(world, "BOARD", "alice", b"last", format="MQSTR", **group)
        (got,) = world.on("QM2", "BOARD")
        mqmd = Mqmd.decode(got.md)
        assert {name: getattr(mqmd, name) for name in group} == group
        assert (mqmd.format.rstrip(), got.body) == ("MQSTR", b"last")


def reasons_at_qm2(world: LiveWorld) -> list[int]:
    letters = [decode(each.body, each.md).headers[0] for each in world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")]
    return [letter.reason for letter in letters]  # type: ignore[union-attr]


@pytest.mark.rule("SEC-16")
@pytest.mark.parametrize(("user", "is_deleted"), [("mallory", False), ("", False), ("alice", True), ("mqm", True)])
def test_a_command_for_another_queue_manager_acts_as_who_put_it(tmp_path: Path, user: str, is_deleted: bool) -> None:
    """SEC-16. Not as the user in its descriptor, which a program may have set."""
    rights = """
        DEFINE QLOCAL(SECRET)
        SET AUTHREC PROFILE(SECRET) OBJTYPE(QUEUE) PRINCIPAL('alice') AUTHADD(DLT)
        SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('alice') AUTHADD(DSP)
    """
    with LiveWorld(tmp_path, at("QM1", setup="DEFINE QLOCAL(QM2) USAGE(XMITQ)"), at("QM2", setup=rights)) as world:
        there = world.queue_managers["QM2"]
        there.processor = Processor(there.store, lambda: world.now, command_servers=(PcfCommandServer,))
        delete = Pcf(MQCMD_DELETE_Q, (Cfst.of(MQCA_Q_NAME, "SECRET"),))
        sent_to_qm2(world, ADMIN_COMMAND_QUEUE, user, delete.encode(), format="MQADMIN")
        assert (there.store.find_queue("SECRET") is None) is is_deleted


@pytest.mark.rule("DIS-9")
@pytest.mark.parametrize("user", ["mallory", ""])
@pytest.mark.parametrize(
    "queue", ["SYSTEM.INTER.QMGR.CONTROL", "SYSTEM.INTER.QMGR.PUBS", "SYSTEM.QPUBSUB.MQSUB.REQUEST"]
)
def test_programs_may_not_put_to_the_queues_of_queue_managers_elsewhere(tmp_path: Path, queue: str, user: str) -> None:
    """DIS-9."""
    rights = "SET AUTHREC PROFILE(X) OBJTYPE(QUEUE) PRINCIPAL('alice') AUTHADD(PUT)"
    with LiveWorld(tmp_path, at("QM1"), at("QM2", "QM1", setup=rights)) as world:
        world.settle()
        before = world.proxies("QM2")
        sent_to_qm2(world, queue, user, _flow("<Word>subscribe</Word><From>QM1</From><Topic>#</Topic>"))
        assert reasons_at_qm2(world) == [2035]
        assert world.proxies("QM2") == before
        world.put(message("RegSub", "QM1", "a", "BOARD"))
        world.settle()
        assert world.proxies("QM2") == before | {("QM1", "a")}  # what queue managers send each other arrives


@pytest.mark.rule("DIS-10")
def test_3_7_1_what_neighbours_send_waits_there_while_its_queue_is_unavailable(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE[:2]) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        world.put(message("Publish", "QM1", "a", data=b"one"))
        world.settle()
        world.mqsc("QM2", "ALTER QLOCAL(SYSTEM.INTER.QMGR.PUBS) PUT(DISABLED)")
        world.put(message("Publish", "QM1", "a", data=b"two"))
        world.settle()
        assert len(world.on("QM1", "QM2")) == 1
        assert world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE") == []
        world.mqsc("QM2", "ALTER QLOCAL(SYSTEM.INTER.QMGR.PUBS) PUT(ENABLED)")
        world.settle()
        assert [decode(each.body, each.md).body for each in world.on("QM2", "BOARD")] == [b"one", b"two"]


@pytest.mark.rule("DIS-10")
def test_3_7_1_without_its_transmission_queue_a_publication_is_a_dead_letter(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE[:2]) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.put(message("RegSub", "QM1", "a", "BOARD"))
        world.settle()
        world.mqsc("QM1", "ALTER QLOCAL(QM2) PUT(DISABLED)")
        world.put(message("Publish", "QM1", "a", data=b"one"))
        world.settle()
        assert len(world.on("QM1", "BOARD")) == len(world.on("QM1", "SYSTEM.DEAD.LETTER.QUEUE")) == 1


def test_what_administrators_change_by_pcf_counts_at_once(tmp_path: Path) -> None:
    """The command processor itself carries these commands out."""
    with LiveWorld(tmp_path, *LINE[:2]) as world:
        world.mqsc("QM2", "DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('a') DEST(BOARD)")
        world.settle()
        assert world.proxies("QM1") == {("QM2", "a")}
        there = world.queue_managers["QM2"]
        there.processor = Processor(there.store, lambda: world.now, command_servers=(PcfCommandServer,))
        delete = Pcf(MQCMD_DELETE_SUBSCRIPTION, (Cfst.of(MQCACF_SUB_NAME, "S"),))
        with there.store.unit_of_work() as unit:
            unit.put(ADMIN_COMMAND_QUEUE, Mqmd(format="MQADMIN").encode(), delete.encode(), user="admin")
        world.settle()
        assert world.proxies("QM1") == set()


def test_what_is_no_message_of_a_neighbour_is_a_dead_letter(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        world.settle()
        bodies = [b"", b"text", message("Publish", "QM1", "a").body_hex.encode()]
        words = ["publish", "dance", "join", "leave"]
        bodies += [_flow(f"<Word>{word}</Word><From>QM1</From>") for word in words]
        bodies += [_flow("<Word>attach</Word><From>QM1</From><Cluster>C</Cluster>")]
        with world.queue_managers["QM2"].store.unit_of_work() as unit:
            for body in bodies:
                unit.put("SYSTEM.INTER.QMGR.PUBS", Mqmd(format="MQHRF2").encode(), body)
        world.settle()
        assert len(world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")) == len(bodies)


def _flow(values: str) -> bytes:
    return bytes(rfh2_message([f"<{FOLDER}>{values}</{FOLDER}>"], Mqmd(), b"")[1])


def test_run_once_carries_what_is_for_others(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path))
    for qmgr in ("QM1", "QM2"):
        assert run("create", qmgr, *home).code == 0
    assert run("mqsc", "-m", "QM2", *home, stdin="ALTER QMGR PARENT(QM1)\n").code == 0
    run_once(tmp_path, message("RegSub", "QM2", "a", "BOARD"))
    run_once(tmp_path, message("Publish", "QM1", "a"))
    assert len(run("browse", "-m", "QM2", *home, "BOARD").lines) == 1


def run_once(home: Path, put: CapturedMessage) -> None:
    """Put a message, and have run --once work for QM2, QM1 and QM2 again."""
    assert put.qmgr is not None
    with QueueManagerStore.open(home, put.qmgr) as store, store.unit_of_work() as unit:
        unit.put(put.queue, bytes.fromhex(put.md_hex or ""), bytes.fromhex(put.body_hex))
    for qmgr in ("QM2", "QM1", "QM2"):
        ended = run("run", "-m", qmgr, "--home", str(home), "--once")
        assert ended.code == 0, ended.talk


@pytest.mark.rule("DIS-26")
def test_a_hierarchy_and_a_linked_tree_do_not_go_together(tmp_path: Path) -> None:
    """A publication would reach the others both ways. run says which of the two to end, at either end."""
    home, linked = ("--home", str(tmp_path)), ("--topics", "mqtt://127.0.0.1:1", "--once")
    for qmgr in ("QM1", "QM2"):
        assert run("create", qmgr, *home).code == 0
    assert run("mqsc", "-m", "QM2", *home, stdin="ALTER QMGR PARENT(QM1)\n").code == 0
    refused = run("run", "-m", "QM2", *home, *linked)
    assert refused.code == 2
    assert "--topics: queue manager QM2 has PARENT(QM1)" in refused.talk
    assert "ALTER QMGR PARENT(' ') at QM2" in refused.talk
    checked = run("check", "-m", "QM2", *home, *linked[:2])
    assert checked.code == 1
    assert "MISSING hierarchy: queue manager QM2 has PARENT(QM1)" in checked.out
    for qmgr in ("QM2", "QM1", "QM2"):
        assert run("run", "-m", qmgr, *home, "--once").code == 0
    refused = run("run", "-m", "QM1", *home, *linked)
    assert refused.code == 2
    assert "--topics: queue manager QM1 is the parent of QM2" in refused.talk
    # What the message says to do.
    assert run("mqsc", "-m", "QM2", *home, stdin="ALTER QMGR PARENT(' ')\n").code == 0
    for qmgr in ("QM2", "QM1"):
        assert run("run", "-m", qmgr, *home, "--once").code == 0
    for qmgr in ("QM2", "QM1"):
        with QueueManagerStore.open(tmp_path, qmgr) as store:
            assert store.neighbours() == []


def test_a_store_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LiveWorld(tmp_path, *LINE[:2]) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(Channel, "_put", full)
            for each in world.queue_managers.values():
                each.work()
        assert len(world.on("QM2", "QM1")) == 3  # attach, none yet, one
        world.settle()
        assert world.proxies("QM1") == {("QM2", "a")}


def test_status_shows_neighbours_and_what_waits_for_each(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        world.put(message("RegSub", "QM3", "a", "BOARD"))
        world.settle()
        world.put(message("Publish", "QM2", "a"))
        world.queue_managers["QM2"].processor.drain()
        shown = status_of(world.queue_managers["QM2"].store, world.now + timedelta(seconds=7))["neighbours"]
        parent = {"qmgr": "QM1", "relation": "PARENT", "status": "ACTIVE", "waiting": 0, "oldest_s": None}
        child = {"qmgr": "QM3", "relation": "CHILD", "status": "ACTIVE", "waiting": 1, "oldest_s": 7.0}
        assert shown == [parent, child]
        world.queue_managers["QM2"].stop()
        lines = run("status", "-m", "QM2", "--home", str(tmp_path)).lines
        assert "Parent QM1: ACTIVE" in lines
        assert any(line.startswith("Child QM3: ACTIVE; 1 message for it, the first for ") for line in lines)


def test_one_that_cannot_be_reached_does_not_keep_others_waiting(tmp_path: Path) -> None:
    """QM2 is locked by another program; what is for QM3 goes at once, and QM2 is not tried before it is due."""
    with LiveWorld(tmp_path, *TREE) as world:
        for qmgr in ("QM2", "QM3"):
            world.put(message("RegSub", qmgr, "a", "BOARD"))
        world.settle()
        channels = world.queue_managers["QM1"].channels
        for n in range(3):
            world.put(message("Publish", "QM1", "a", data=b"%d" % n))
            world.queue_managers["QM1"].processor.drain()
            if n == 0:
                locked = QueueManagerStore.open(tmp_path, "QM2")
                locked.unit_of_work()
            assert channels.carry(only_due=n > 0) == 1
            assert len(world.on("QM1", "QM3")) == 0
        assert len(world.on("QM1", "QM2")) == 3
        locked.close()
        world.settle()
        assert len(world.on("QM2", "BOARD")) == len(world.on("QM3", "BOARD")) == 3
