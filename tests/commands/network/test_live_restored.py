"""A queue manager of a network gets an older database, or is made anew: the network becomes right by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from commands.links import channels
from commands.links.channels import SequenceState, number_after, sequence_state
from commands.network.topology import Link
from commands.qmgr import flow_messages
from commands.qmgr.flow_messages import INTER_QMGR_FANREQ
from commands.qmgr.store.neighbours import NeighbourRecords
from rfh2.captured import CapturedMessage
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.test_live_network import LINE, TREE, message, statuses, workload
from tests.commands.network.world import at
from tests.commands.scenario import psc, rfh2_message

PAIR = LINE[:2]


def bodies(world: LiveWorld, qmgr: str, queue: str = "BOARD") -> list[bytes]:
    return [decode(each.body, each.md).body for each in world.on(qmgr, queue)]


def retain(qmgr: str, topic: str, data: bytes, seconds: int) -> CapturedMessage:
    """A Publish with RetainPub."""
    plain = message("Publish", qmgr, topic, seconds=seconds)
    described = Mqmd.decode(bytes.fromhex(plain.md_hex or ""))
    mqmd, body = rfh2_message([psc("Publish", ("PubOpt", "RetainPub"), ("Topic", topic))], described, data)
    return plain.model_copy(update={"md_hex": mqmd.encode().hex(), "body_hex": body.hex()})


def agrees(world: LiveWorld) -> None:
    """Nothing changes where everybody is sent everything again."""
    before = {qmgr: world.proxies(qmgr) for qmgr in world.queue_managers}
    for qmgr in world.queue_managers:
        world.mqsc(qmgr, "REFRESH QMGR TYPE(PROXYSUB)")
    world.settle()
    assert {qmgr: world.proxies(qmgr) for qmgr in world.queue_managers} == before


# Which one is older


@pytest.mark.rule("DIS-25")
@pytest.mark.parametrize(
    ("sent", "received", "is_whole", "found"),
    [
        (0, 0, True, SequenceState.SAME),  # the first message
        (7, 7, True, SequenceState.SAME),
        (7, 8, True, SequenceState.SAME),  # the process was killed before it removed the batch
        (7, 8, False, SequenceState.SENDER_BEHIND),  # the batch is not the last one of this database
        (7, 9, True, SequenceState.SENDER_BEHIND),
        (0, 9, True, SequenceState.SENDER_BEHIND),  # made anew
        (7, 6, True, SequenceState.RECEIVER_BEHIND),
        (7, 0, True, SequenceState.RECEIVER_BEHIND),  # made anew
    ],
)
def test_sequence_numbers_say_who_remembers_less(
    sent: int, received: int, is_whole: bool, found: SequenceState
) -> None:
    assert sequence_state(sent, received, is_whole=is_whole) is found


def test_a_crash_while_two_synchronise_is_no_crash_after_a_batch() -> None:
    for sent in range(5):
        for received in range(5):
            after = number_after(sent, received)
            # Only the receiver has the new number.
            assert sequence_state(sent, after, is_whole=True) is SequenceState.SENDER_BEHIND
            assert sequence_state(after, after, is_whole=True) is SequenceState.SAME


# Made anew


@pytest.mark.rule("DIS-25")
def test_a_parent_that_was_made_anew_gets_its_child_back(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *PAIR) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        world.make_anew(at("QM1"))
        assert world.proxies("QM1") == set()
        world.settle()
        assert statuses(world, "QM1") == ["QM2 ACTIVE"]
        assert statuses(world, "QM2") == ["QM1 ACTIVE"]
        assert world.proxies("QM1") == {("QM2", "a")}
        world.put(message("Publish", "QM1", "a", data=b"one"))
        world.settle()
        assert bodies(world, "QM2") == [b"one"]
        agrees(world)


def test_what_waits_for_a_parent_that_is_made_anew_is_published_there(tmp_path: Path) -> None:
    own = "DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('a') DEST(BOARD)"
    with LiveWorld(tmp_path, at("QM1", setup=own), PAIR[1]) as world:
        world.settle()
        world.queue_managers["QM1"].stop()
        for n in range(3):
            world.put(message("Publish", "QM2", "a", data=b"%d" % n))
        world.queue_managers["QM2"].processor.drain()
        world.queue_managers["QM2"].channels.close()  # as if it was not there
        world.make_anew(at("QM1", setup=own))
        world.settle()
        assert bodies(world, "QM1") == [b"0", b"1", b"2"]
        assert world.proxies("QM2") == {("QM1", "a")}


def test_retained_publications_come_back_to_one_that_was_made_anew(tmp_path: Path) -> None:
    """From its parent and from its child, each for what it subscribes to."""
    own = "DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('#') DEST(BOARD)"
    middle = at("QM2", parent="QM1", setup=own)
    with LiveWorld(tmp_path, LINE[0], middle, LINE[2]) as world:
        world.settle()
        world.put(retain("QM1", "a", b"up", 1))
        world.put(retain("QM3", "b", b"down", 1))
        world.settle()
        assert sorted(bodies(world, "QM2")) == [b"down", b"up"]
        world.make_anew(middle)
        world.settle()
        assert sorted(world.retained("QM2")) == ["a", "b"]
        assert sorted(bodies(world, "QM2")) == [b"down", b"up"]
        agrees(world)


def test_a_child_that_was_made_anew_without_a_parent_is_let_go(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, *PAIR) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.put(message("RegSub", "QM1", "b", "BOARD"))
        world.settle()
        world.make_anew(at("QM2"))
        world.put(message("Publish", "QM1", "a"))  # it is still believed to want it
        world.settle()
        assert statuses(world, "QM1") == statuses(world, "QM2") == []
        assert world.proxies("QM1") == world.proxies("QM2") == set()
        assert world.on("QM2", "SYSTEM.INTER.QMGR.PUBS") == []


# Restored


@pytest.mark.rule("DIS-25")
@pytest.mark.parametrize("in_place", [False, True], ids=["another file", "in place"])
@pytest.mark.parametrize("restored", ["QM1", "QM2", "QM3"])
def test_a_backup_becomes_what_its_neighbours_know(tmp_path: Path, restored: str, in_place: bool) -> None:
    with LiveWorld(tmp_path, *LINE) as world:
        for qmgr in ("QM1", "QM3"):
            world.put(message("RegSub", qmgr, "old", "BOARD"))
            world.put(message("RegSub", qmgr, "r/#", "BOARD"))
        world.put(retain("QM1", "r/up", b"1", 1))
        world.put(retain("QM3", "r/down", b"1", 1))
        world.settle()
        copy = world.backup(restored)
        others = [qmgr for qmgr in ("QM1", "QM3") if qmgr != restored]
        for qmgr in others:
            world.put(message("RegSub", qmgr, "new", "BOARD"))
            world.put(message("DeregSub", qmgr, "old", "BOARD"))
            world.put(retain(qmgr, "r/up" if qmgr == "QM1" else "r/down", b"2", 2))
        world.settle()
        retained = {each: world.retained(each) for each in world.queue_managers}
        world.restore(restored, copy, in_place=in_place)
        assert world.retained(restored) != retained[restored]
        world.settle()
        assert {each: world.retained(each) for each in world.queue_managers} == retained
        for qmgr in ("QM1", "QM3"):
            assert {topic for by, topic in world.proxies("QM2") if by == qmgr} == topics_at(world, qmgr)
        agrees(world)
        world.put(message("Publish", restored, "new", data=b"last", seconds=3))
        world.settle()
        assert all(bodies(world, qmgr)[-1] == b"last" for qmgr in others)


def topics_at(world: LiveWorld, qmgr: str) -> set[str]:
    """What programs have subscribed to at a queue manager."""
    found = world.queue_managers[qmgr].store.load_state()[1]
    return {each.topic_string for each in found if not each.is_proxy}


def test_a_backup_from_before_a_queue_manager_had_a_parent_has_none_again(tmp_path: Path) -> None:
    with LiveWorld(tmp_path, at("QM1"), at("QM2")) as world:
        world.put(message("RegSub", "QM1", "a", "BOARD"))
        world.settle()
        copy = world.backup("QM2")
        world.mqsc("QM2", "ALTER QMGR PARENT(QM1)")
        world.settle()
        assert world.proxies("QM2") == {("QM1", "a")}
        world.restore("QM2", copy)
        world.put(message("RegSub", "QM1", "b", "BOARD"))
        world.settle()
        assert statuses(world, "QM1") == statuses(world, "QM2") == []
        assert world.proxies("QM1") == world.proxies("QM2") == set()


def test_a_backup_from_before_a_queue_manager_moved_to_another_parent_goes_back(tmp_path: Path) -> None:
    """PARENT is what the restored database says; the parent that it had last lets it go."""
    with LiveWorld(tmp_path, at("QM1"), at("QM2", parent="QM1"), at("QM3")) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        copy = world.backup("QM2")
        world.mqsc("QM2", "ALTER QMGR PARENT(QM3)")
        world.settle()
        world.restore("QM2", copy)
        for n, qmgr in enumerate(("QM1", "QM3")):
            world.put(message("Publish", qmgr, "a", data=b"%d" % n))
        world.settle()
        assert (statuses(world, "QM1"), statuses(world, "QM3")) == (["QM2 ACTIVE"], [])
        world.put(message("Publish", "QM1", "a", data=b"2"))
        world.settle()
        assert bodies(world, "QM2") == [b"2"]
        agrees(world)


@pytest.mark.parametrize("step", ["ask_there", "ask_here", "number_sent"])
def test_two_that_are_interrupted_while_they_synchronise_do_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with LiveWorld(tmp_path, *PAIR) as world:
        world.put(message("RegSub", "QM2", "a", "BOARD"))
        world.settle()
        copy = world.backup("QM1")
        world.put(message("RegSub", "QM2", "b", "BOARD"))
        world.settle()
        world.restore("QM1", copy)

        class KilledError(Exception):
            pass

        def killed(*_: object) -> None:
            raise KilledError

        owner = NeighbourRecords if step == "number_sent" else channels
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, killed)
            with pytest.raises(KilledError):
                world.settle()
            for each in world.queue_managers.values():
                each.channels.close()
        world.settle()
        assert world.proxies("QM1") == {("QM2", "a"), ("QM2", "b")}
        agrees(world)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_any_workload_with_a_backup_in_it_leaves_a_network_that_agrees(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    setups = random.choice([LINE, TREE])
    with LiveWorld(tmp_path, *setups) as world:
        world.settle()
        commands = workload(setups, seed, 60)
        first, second = sorted(random.sample(range(10, 60), 2))
        restored, copy = random.choice(list(world.queue_managers)), None
        for n, command in enumerate(commands):
            if n == first:
                copy = world.backup(restored)
            if n == second and copy is not None:
                world.restore(restored, copy, in_place=random.random() < 0.5)
            world.put(command)
            if random.random() < 0.7:
                for qmgr in random.sample(sorted(world.queue_managers), 3):
                    world.queue_managers[qmgr].work()
        world.settle()
        agrees(world)


# One that is not known


def forget(world: LiveWorld, at_: str, neighbour: str) -> None:
    """Have a queue manager lose what it knows of a neighbour, in a way that leaves no other sign."""
    with world.queue_managers[at_].store.unit_of_work() as unit:
        unit.neighbours.forget(Link(neighbour))


@pytest.mark.rule("DIS-25")
def test_a_parent_that_does_not_know_its_child_loses_nothing_of_it(tmp_path: Path) -> None:
    own = "DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('a') DEST(BOARD)"
    with LiveWorld(tmp_path, at("QM1", setup=own), PAIR[1]) as world:
        world.put(message("RegSub", "QM2", "b", "BOARD"))
        world.settle()
        forget(world, "QM1", "QM2")
        for n in range(3):
            world.put(message("Publish", "QM2", "a", data=b"%d" % n))
        world.put(message("RegSub", "QM2", "c", "BOARD"))
        world.settle()
        assert bodies(world, "QM1") == [b"0", b"1", b"2"]
        assert statuses(world, "QM1") == ["QM2 ACTIVE"]
        assert statuses(world, "QM2") == ["QM1 ACTIVE"]
        assert world.proxies("QM1") == {("QM2", "b"), ("QM2", "c")}
        agrees(world)


def flows_of(sender: str) -> Sequence[flow_messages.Outgoing]:
    return [
        flow_messages.proxy_topics(sender, Link("QM1"), ["a"]),
        *flow_messages.proxy_ranges(sender, Link("QM1"), ["b"], 10),
    ]


def test_one_that_is_nobodys_child_is_not_let_in(tmp_path: Path) -> None:
    """It says that it is, and gets what it sent back; its own PARENT says that it is not, so it does not attach."""
    with LiveWorld(tmp_path, at("QM1"), at("QM2")) as world:
        world.settle()
        with world.queue_managers["QM1"].store.unit_of_work() as unit:
            unit.neighbours.claim("QM2", "a channel, some time ago")
            unit.ensure_queue(INTER_QMGR_FANREQ)
            for flow in flows_of("QM2"):
                unit.put(flow.queue, flow.message.mqmd.encode(), flow.body)
        world.settle()
        assert world.proxies("QM1") == set()
        assert statuses(world, "QM1") == statuses(world, "QM2") == []
        assert world.on("QM1", INTER_QMGR_FANREQ) == []


@pytest.mark.rule("DIS-25")
@pytest.mark.parametrize("name", ["QM2", "NOBODY"])
def test_what_no_carrier_brought_is_a_dead_letter_and_makes_no_queue(tmp_path: Path, name: str) -> None:
    """A program writes what it likes there: it makes nobody a child, and no transmission queues."""
    with LiveWorld(tmp_path, at("QM1"), at("QM2")) as world:
        world.settle()
        sent = [flow_messages.relationship(name, Link("QM1"), flow_messages.Word.ATTACH), *flows_of(name)]
        with world.queue_managers["QM1"].store.unit_of_work() as unit:
            for flow in sent:
                unit.ensure_queue(flow.queue)
                unit.put(flow.queue, flow.message.mqmd.encode(), flow.body)
        world.settle()
        store = world.queue_managers["QM1"].store
        assert len(world.on("QM1", "SYSTEM.DEAD.LETTER.QUEUE")) == len(sent)
        assert not any(queue.transmission for queue in store.local_queues())
        assert statuses(world, "QM1") == []


def test_only_publications_and_deletions_come_back(tmp_path: Path) -> None:
    """What a queue manager is given back must be something that it sends; anything else is a dead letter."""
    with LiveWorld(tmp_path, *PAIR) as world:
        world.settle()
        (inner, *_) = flows_of("QM2")
        bad = flow_messages._written(
            *("QM1", Link("QM2"), "SYSTEM.INTER.QMGR.CONTROL", flow_messages.Word.UNKNOWN),
            [("Mqmd", inner.message.mqmd.encode().hex())],
            data=inner.body,
        )
        with world.queue_managers["QM2"].store.unit_of_work() as unit:
            unit.put(bad.queue, bad.message.mqmd.encode(), bad.body)
        world.settle()
        assert len(world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")) == 1


def test_what_is_asked_of_a_neighbour_is_never_less_than_before() -> None:
    assert channels.Refresh.NOTHING < channels.Refresh.PROXIES < channels.Refresh.ALL
