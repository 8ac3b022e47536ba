"""``qpubsub cleanup``: what goes at each level, what stays at every level, and that a kill in between is harmless."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import ADMIN_QUEUE, DEFAULT_QUEUES, REPORT_QUEUE, LocalQueue, QueueManager
from commands.cli.maintenance import identifier
from commands.qmgr import jms_cleanup
from commands.qmgr.jms_cleanup import (
    Level,
    MessageKind,
    QueueCleaning,
    Records,
    Situation,
    is_durable,
    is_dynamic,
    subscription_verdict,
)
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import StoredMessage
from rfh2.folders import Folder
from rfh2.jms_entry import JmsEntry
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.operations import SubscriptionAdded
from streams.subscriptions import Subscription
from tests.commands.cli_runs import Ran, run

START = datetime(2026, 1, 1, tzinfo=UTC)
ND, D = "SYSTEM.JMS.ND.SUBSCRIBER.QUEUE", "SYSTEM.JMS.D.SUBSCRIBER.QUEUE"
ND_OWN, ND_GONE, ND_EMPTY = (f"SYSTEM.JMS.ND.65A1B2C32000{n:04X}" for n in (1, 2, 3))
D_OWN = "SYSTEM.JMS.D.65A1B2C320000004"
ND_MADE = "SYSTEM.JMS.ND.MINE"
LIVE, DURABLE, DEAD, OTHER = (name.ljust(24).encode() for name in ("LIVE", "DURABLE", "DEAD", "OTHER"))
LEVELS = list(Level)


def subscription(number: int, queue: str, correl_id: bytes = MQCI_NONE, **more: Any) -> Subscription:
    given_ = {"stream": None, **more}
    return Subscription(
        sub_id=number.to_bytes(24, "big"),
        topic_string=f"Sport/{number}",
        dest_queue=queue,
        dest_qmgr="QM1",
        created=START,
        correl_id=correl_id,
        **given_,
    )


# The rules


NO_RECORDS = Records()


def cleaning(queue: str, level: Level, *subscriptions: Subscription, records: Records = NO_RECORDS) -> QueueCleaning:
    queues = {each.dest_queue: each.dest_queue for each in subscriptions}
    return QueueCleaning(queue, Situation(level, subscriptions, queues, records))


PUB, RESPONSE, PLAIN = MessageKind.PUBLICATION, MessageKind.RESPONSE, MessageKind.OTHER
ELSEWHERE = MessageKind.ELSEWHERE
SUBS = (subscription(1, ND, LIVE), subscription(2, D, DURABLE, name="JMS:QM1:c:s"))
RECORDS = Records(frozenset({(D, OTHER), (ND, OTHER)}))

# (id, queue, CorrelId, what, records, the lowest level at which it goes: None for never)
MESSAGES: list[tuple[str, str, bytes, MessageKind, Records, Level | None]] = [
    ("a subscriber's that runs", ND, LIVE, PUB, NO_RECORDS, None),
    ("a subscriber's that runs, no publication", ND, LIVE, PLAIN, NO_RECORDS, None),
    ("nobody's publication", ND, DEAD, PUB, NO_RECORDS, Level.SAFE),
    ("nobody's, no publication", ND, DEAD, PLAIN, NO_RECORDS, Level.STRONG),
    ("nobody's, and a record has it", ND, OTHER, PUB, RECORDS, Level.FORCE),
    ("a durable subscriber's", D, DURABLE, PUB, NO_RECORDS, None),
    ("nobody's on a durable queue", D, DEAD, PUB, NO_RECORDS, Level.FORCE),
    ("nobody's on a durable queue, a record has it", D, OTHER, PUB, RECORDS, None),
    ("nobody's on a durable queue, a record is unread", D, DEAD, PUB, Records(unread=1), None),
    ("a response", REPORT_QUEUE, DEAD, RESPONSE, NO_RECORDS, Level.FORCE),
    ("no response", REPORT_QUEUE, DEAD, PLAIN, NO_RECORDS, Level.STRONG),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("queue", "correl_id", "kind", "records", "lowest"),
    [each[1:] for each in MESSAGES],
    ids=[each[0] for each in MESSAGES],
)
def test_which_messages_go(
    queue: str, correl_id: bytes, kind: MessageKind, records: Records, lowest: Level | None, level: Level
) -> None:
    verdict = cleaning(queue, level, *SUBS, records=records).message(correl_id, kind)
    assert (verdict is not None and verdict.goes) == (lowest is not None and level >= lowest)


def test_a_subscription_without_a_correl_id_takes_the_whole_queue() -> None:
    for sub in (subscription(1, ND), subscription(1, ND, LIVE, keep_correl_id=True)):
        assert cleaning(ND, Level.FORCE, sub).message(DEAD, PUB) is None


SUBSCRIPTIONS: list[tuple[str, Subscription, Level | None]] = [
    ("its own queue is gone", subscription(1, ND_GONE), Level.SAFE),
    ("its own queue is there", subscription(1, ND_OWN), Level.NONDUR),
    ("on the shared queue", subscription(1, ND, LIVE), Level.NONDUR),
    ("named, on a queue for others", subscription(1, ND_GONE, name="JMS:QM1:c:s"), None),
    ("with an identity set", subscription(1, ND_GONE, identities=("a",)), None),
    ("an administrator's", subscription(1, ND_GONE, admin=True), None),
    ("a durable one", subscription(1, D_OWN), None),
    ("another program's", subscription(1, "APP.Q"), None),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("sub", "lowest"), [each[1:] for each in SUBSCRIPTIONS], ids=[each[0] for each in SUBSCRIPTIONS]
)
def test_which_subscriptions_go(sub: Subscription, lowest: Level | None, level: Level) -> None:
    queues = {sub.dest_queue: None if sub.dest_queue == ND_GONE else sub.dest_queue}
    verdict = subscription_verdict(sub, Situation(level, (sub,), queues))
    assert (verdict is not None and verdict.goes) == (lowest is not None and level >= lowest)


QUEUES: list[tuple[str, str, bool, bool, Records, Level | None]] = [
    ("a dynamic queue that was not empty", ND_OWN, True, False, NO_RECORDS, Level.SAFE),
    ("a dynamic queue that was empty", ND_OWN, False, False, NO_RECORDS, Level.FORCE),
    ("one that something is owed to", ND_OWN, True, True, NO_RECORDS, None),
    ("one that a record names", ND_OWN, True, False, Records(frozenset({(ND_OWN, DEAD)})), None),
    ("a durable subscriber's", D_OWN, True, False, NO_RECORDS, Level.FORCE),
    ("a durable subscriber's, a record is unread", D_OWN, True, False, Records(unread=2), None),
    ("a shared one", ND, True, False, NO_RECORDS, None),
    ("one with a name of its own", ND_MADE, True, False, NO_RECORDS, None),
    ("the report queue", REPORT_QUEUE, True, False, NO_RECORDS, None),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("queue", "had", "owed", "records", "lowest"), [each[1:] for each in QUEUES], ids=[each[0] for each in QUEUES]
)
def test_which_queues_go(
    queue: str, had: bool, owed: bool, records: Records, lowest: Level | None, level: Level
) -> None:
    verdict = cleaning(queue, level, records=records).queue(had, owed)
    assert (verdict is not None and verdict.goes) == (lowest is not None and level >= lowest)
    assert cleaning(queue, level, subscription(1, queue), records=records).queue(had, owed) is None


_NAMES = st.sampled_from([ND, D, ND_OWN, D_OWN, ND_MADE, REPORT_QUEUE])
_SUBSCRIPTIONS = st.lists(
    st.builds(
        lambda number, queue, correl, name: subscription(number, queue, correl, name=name),
        st.integers(1, 9),
        _NAMES,
        st.sampled_from([MQCI_NONE, LIVE, DURABLE]),
        st.sampled_from([None, "JMS:QM1:c:s"]),
    ),
    max_size=4,
)


@given(_SUBSCRIPTIONS, _NAMES, st.sampled_from([MQCI_NONE, LIVE, DURABLE, DEAD]), st.sampled_from(list(MessageKind)))
def test_a_durable_subscriptions_messages_go_at_no_level_and_a_higher_level_removes_no_less(
    subs: list[Subscription], queue: str, correl_id: bytes, kind: MessageKind
) -> None:
    goes = []
    for level in LEVELS:
        verdict = cleaning(queue, level, *subs).message(correl_id, kind)
        goes.append(verdict is not None and verdict.goes)
    assert goes == sorted(goes)
    owners = [
        sub for sub in subs if is_durable(sub) and sub.dest_queue == queue and sub.correl_id in (MQCI_NONE, correl_id)
    ]
    if owners and queue != REPORT_QUEUE:
        assert not any(goes)


def test_names_of_dynamic_queues() -> None:
    assert [is_dynamic(name) for name in (ND_OWN, D_OWN, "SYSTEM.JMS.ND.APP.65A1B2C320000001")] == [True] * 3
    assert [is_dynamic(name) for name in (ND, D, ND_MADE, REPORT_QUEUE, "SYSTEM.JMS.ND.65A1")] == [False] * 5


# A queue manager


def publication(correl_id: bytes, **mqmd_fields: Any) -> tuple[bytes, bytes]:
    header = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>Sport/1</Topic></psc>"),), format="MQSTR")
    mqmd = Mqmd(format="MQHRF2", encoding=546, coded_char_set_id=1208, correl_id=correl_id, persistence=1)
    return replace(mqmd, **mqmd_fields).encode(), header.encode() + b"2:1"


def plain(correl_id: bytes) -> tuple[bytes, bytes]:
    return Mqmd(format="MQSTR", correl_id=correl_id, persistence=1).encode(), b"hello"


def response() -> tuple[bytes, bytes]:
    header = Rfh2((Folder.of("<pscr><Completion>ok</Completion></pscr>"),))
    return Mqmd(format="MQHRF2", encoding=546, coded_char_set_id=1208).encode(), header.encode()


def record(msg_id: bytes, queue: str) -> tuple[bytes, bytes]:
    body = JmsEntry(2, "c:s", "Sport/2", queue, flags=b"\0n\0y\0i").encode()
    return Mqmd(encoding=273, msg_id=msg_id, persistence=1).encode(), body


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A queue manager on which one JMS program runs, one has a durable subscription, and several have died."""
    made = tmp_path / "qmgrs"
    with QueueManagerStore.create(made, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        messages = [
            (ND, publication(LIVE), 3),
            (ND, publication(DEAD), 4),
            (ND, plain(DEAD), 1),
            (ND_OWN, publication(MQCI_NONE), 2),
            (ND_MADE, publication(MQCI_NONE), 1),
            (D, publication(DURABLE), 5),
            (D, publication(DEAD), 2),
            (D, publication(OTHER), 2),
            (D_OWN, publication(MQCI_NONE), 1),
            (REPORT_QUEUE, response(), 1),
            (REPORT_QUEUE, plain(MQCI_NONE), 1),
            (ADMIN_QUEUE, record(OTHER, D), 1),
        ]
        for queue, (md, body), count in messages:
            for _ in range(count):
                unit.put(queue, md, body)
        unit.save_definition(LocalQueue(ND_EMPTY))
        subs = [*SUBS, subscription(3, ND_GONE)]
        unit.save_effects([SubscriptionAdded(sub) for sub in subs])
    return made


def cleanup(home: Path, *words: str) -> Ran:
    return run("cleanup", "-m", "QM1", "--home", str(home), *words)


def beside_empty_defaults(depths: dict[str, int]) -> dict[str, int]:
    """*depths* without those queues that every queue manager has and that hold nothing."""
    defaults = {queue.name for queue in DEFAULT_QUEUES}
    return Counter({name: depth for name, depth in depths.items() if depth or name not in defaults})


def held(home: Path) -> tuple[dict[str, int], list[str]]:
    """Depths of the SYSTEM.JMS queues, and the topics of the subscriptions."""
    with QueueManagerStore.open(home, "QM1") as store:
        objects, subscriptions, _ = store.load_state()
        with store.unit_of_work() as unit:
            depths = {name: unit.depth(name) for name in sorted(objects.queues) if name.startswith("SYSTEM.JMS.")}
    return beside_empty_defaults(depths), [sub.topic_string for sub in subscriptions]


KEPT = {ND: 3, ADMIN_QUEUE: 1}
HELD: dict[Level, tuple[dict[str, int], list[str]]] = {
    Level.SAFE: (
        {**KEPT, ND: 4, ND_EMPTY: 0, ND_MADE: 0, D: 9, D_OWN: 1, REPORT_QUEUE: 2},
        ["Sport/1", "Sport/2"],
    ),
    Level.STRONG: ({**KEPT, ND_EMPTY: 0, ND_MADE: 0, D: 9, D_OWN: 1, REPORT_QUEUE: 1}, ["Sport/1", "Sport/2"]),
    Level.FORCE: ({**KEPT, ND_MADE: 0, D: 7, REPORT_QUEUE: 0}, ["Sport/1", "Sport/2"]),
    Level.NONDUR: ({**KEPT, ND: 0, ND_MADE: 0, D: 7, REPORT_QUEUE: 0}, ["Sport/2"]),
}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_what_is_there_after_each_level_and_after_it_was_run_again(home: Path, level: Level) -> None:
    rehearsed = cleanup(home, "--level", level.name, "--rehearse", "--json")
    before = held(home)
    assert before[0][ND] == 8
    ran = cleanup(home, "--level", level.name.lower(), "--json")
    assert ran.code == rehearsed.code == 0
    depths, topics = HELD[level]
    assert held(home) == (beside_empty_defaults(depths), topics)
    assert json.loads(ran.out)["items"] == json.loads(rehearsed.out)["items"]
    again = json.loads(cleanup(home, "--level", level.name, "--json").out)
    assert [item for item in again["items"] if item["action"] == "remove"] == []
    depths, topics = HELD[level]
    assert held(home) == (beside_empty_defaults(depths), topics)


def test_a_rehearsal_changes_nothing(home: Path) -> None:
    before = held(home)
    ran = cleanup(home, "--level", "NONDUR", "--rehearse")
    assert held(home) == before
    assert "would be removed; nothing was changed" in ran.talk


def test_the_report_says_each_thing_and_why(home: Path) -> None:
    ran = cleanup(home)
    nobodys = "no subscription for this queue has its CorrelId"
    neither = "it is a message that is neither a publication nor a response: level STRONG removes it"
    dead, other = DEAD.hex().upper(), OTHER.hex().upper()
    assert ran.lines == [
        f"removed: subscription Sport/3 for {ND_GONE}: its queue does not exist",
        f"removed: 2 messages on {ND_OWN}: {nobodys}",
        f"removed: queue {ND_OWN}: no subscription names it, and its messages were removed",
        f"removed: 1 message on {ND_MADE}: {nobodys}",
        f"removed: 4 messages on {ND} with CorrelId {dead}: {nobodys}",
        f"left: 1 message on {D_OWN}: {nobodys}: level FORCE removes it",
        f"left: 2 messages on {D} with CorrelId {dead}: {nobodys}: level FORCE removes it",
        f"left: 2 messages on {D} with CorrelId {other}: {nobodys}, and a record of SUBSTORE(QUEUE) has it",
        f"left: queue {ND_EMPTY}: no subscription names it: level FORCE deletes it",
        f"left: 1 message on {ND} with CorrelId {dead}: {nobodys}; {neither}",
        f"left: 1 message on {REPORT_QUEUE}: {neither}",
    ]
    assert "1 subscription, 7 messages, 1 queue removed" in ran.talk


def test_records_that_cannot_be_read_keep_what_may_be_durable(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.put(ADMIN_QUEUE, *plain(MQCI_NONE))
    ran = cleanup(home, "--level", "NONDUR")
    assert ran.code == 1
    assert "1 of the messages on SYSTEM.JMS.ADMIN.QUEUE cannot be read" in ran.talk
    depths, _ = held(home)
    assert (depths[D], depths[D_OWN], depths[ND]) == (9, 1, 0)


WHAT = [
    ("a publication", publication(DEAD), MessageKind.PUBLICATION),
    ("one that a broker here sent", publication(DEAD, reply_to_qmgr="QM1"), MessageKind.PUBLICATION),
    ("one that a broker elsewhere sent", publication(DEAD, reply_to_qmgr="QM2"), MessageKind.ELSEWHERE),
    ("a response", response(), MessageKind.RESPONSE),
    ("plain data", plain(DEAD), MessageKind.OTHER),
    ("a broken header", (publication(DEAD)[0], b"RFH \2\0\0\0"), MessageKind.OTHER),
]


@pytest.mark.parametrize(("message", "kind"), [each[1:] for each in WHAT], ids=[each[0] for each in WHAT])
def test_6_7_9_what_a_message_is(message: tuple[bytes, bytes], kind: MessageKind) -> None:
    md, body = message
    stored = StoredMessage(1, ND, START, None, md, body, True, 0)
    assert identifier("QM1")(stored) is kind


def test_a_queue_manager_that_is_not_there(tmp_path: Path) -> None:
    assert cleanup(tmp_path / "none").code == 2


def test_a_queue_manager_without_jms_programs(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    ran = cleanup(tmp_path, "--level", "NONDUR")
    assert (ran.code, ran.out) == (0, "")


def test_a_subscription_that_is_registered_between_two_units_of_work_keeps_its_messages(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jms_cleanup, "_MOST_MESSAGES", 1)
    with QueueManagerStore.open(home, "QM1") as store:
        seen = []

        def identify(message: object) -> MessageKind:
            seen.append(message)
            return MessageKind.PUBLICATION

        cleaner = jms_cleanup.JmsCleaner(store, Level.SAFE, identify)
        unit_of_work = store.unit_of_work

        def registering() -> Any:
            unit = unit_of_work()
            if len(seen) == 12:
                unit.save_effects([SubscriptionAdded(subscription(8, ND, DEAD))])
                seen.append(None)
            return unit

        monkeypatch.setattr(store, "unit_of_work", registering)
        cleaner.clean()
    depths, _ = held(home)
    assert 3 < depths[ND] < 8


def test_a_processor_that_runs_delivers_nothing_more_to_a_subscription_that_is_gone(home: Path) -> None:
    md, body = publication(MQCI_NONE)
    with QueueManagerStore.open(home, "QM1") as store:
        processor = Processor(store, lambda: START)
        processor.drain()
        for level, gained in (("SAFE", 1), ("NONDUR", 0)):
            cleanup(home, "--level", level)
            before = held(home)[0][ND]
            with store.unit_of_work() as unit:
                unit.put("SYSTEM.BROKER.DEFAULT.STREAM", md, body)
            processor.drain()
            assert held(home)[0][ND] == before + gained


def command(word: str, number: int, *options: str) -> tuple[bytes, bytes]:
    """RegSub or DeregSub of a JMS program: the shared queue, and a CorrelId of its own."""
    named = f"<QMgrName>QM1</QMgrName><QName>{ND}</QName><Topic>Sport/1</Topic>"
    folder = f"<psc><Command>{word}</Command><RegOpt>{'</RegOpt><RegOpt>'.join(options)}</RegOpt>{named}</psc>"
    correl_id = number.to_bytes(24, "big")
    mqmd = Mqmd(format="MQHRF2", encoding=546, coded_char_set_id=1208, correl_id=correl_id, reply_to_q=REPORT_QUEUE)
    return mqmd.encode(), Rfh2((Folder.of(folder),)).encode()


def test_two_programs_on_the_shared_queue_one_deregisters_and_leaves_its_messages(tmp_path: Path) -> None:
    control = "SYSTEM.BROKER.CONTROL.QUEUE"
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        processor = Processor(store, lambda: START)
        for queue, message in [
            (control, command("RegSub", 1, "CorrelAsId")),
            (control, command("RegSub", 2, "CorrelAsId")),
            ("SYSTEM.BROKER.DEFAULT.STREAM", publication(MQCI_NONE)),
            ("SYSTEM.BROKER.DEFAULT.STREAM", publication(MQCI_NONE)),
            (control, command("DeregSub", 2, "CorrelAsId")),
        ]:
            with store.unit_of_work() as unit:
                unit.put(queue, *message)
            processor.drain()
    assert held(tmp_path)[0][ND] == 4
    ran = cleanup(tmp_path)
    left_behind = (2).to_bytes(24, "big").hex().upper()
    reason = "no subscription for this queue has its CorrelId"
    assert ran.lines == [f"removed: 2 messages on {ND} with CorrelId {left_behind}: {reason}"]
    assert held(tmp_path) == ({ND: 2}, ["Sport/1"])
