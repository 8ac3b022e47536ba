"""What a program's user may open once there are authority records: IBM's authorizations for MQI calls (guide 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.objects import (
    ADMIN_COMMAND_QUEUE,
    CONTROL_QUEUE,
    DEAD_LETTER_QUEUE,
    DEFAULT_STREAM,
    AliasQueue,
    AuthorityRecord,
    LocalQueue,
    ModelQueue,
    QueueManager,
)
from commands.qmgr.mqi.authority import OpenAuthority, TopicDefinitions
from commands.qmgr.mqi.calls import Program
from commands.qmgr.mqi.handles import Application, ConnectedProgram, OpenQueues, Target
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.subscription_rules import REPLY_QUEUE, REQUEST_QUEUE
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from rfh2.errors import QueueError
from rfh2.mqi_constants import (
    MQOO_ALTERNATE_USER_AUTHORITY,
    MQOO_BROWSE,
    MQOO_INPUT_AS_Q_DEF,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQOO_PASS_ALL_CONTEXT,
    MQOO_PASS_IDENTITY_CONTEXT,
    MQOO_SET,
    MQOO_SET_ALL_CONTEXT,
    MQOO_SET_IDENTITY_CONTEXT,
)
from rfh2.mqmd import Mqmd, read_mqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_Q_MGR, MQOT_TOPIC
from streams.topic_objects import TopicObject

REFUSED = 2035
IN, OUT, SET_ALL, ALTERNATE = MQOO_INPUT_SHARED, MQOO_OUTPUT, MQOO_SET_ALL_CONTEXT, MQOO_ALTERNATE_USER_AUTHORITY
SHARED_MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"
DEFINED = (
    LocalQueue("BOBQ"),
    LocalQueue("QM2", transmission=True),
    AliasQueue("ALIAS", "BOBQ"),
    AliasQueue("NEWS.ALIAS", "NEWS", target_type="TOPIC"),
    TopicObject("NEWS", topic_string="News"),
    LocalQueue(REQUEST_QUEUE),
    LocalQueue(REPLY_QUEUE),
    LocalQueue("SYSTEM.INTER.QMGR.CONTROL"),
    ModelQueue("KEPT.MODEL", definition_type="PERMDYN"),
)

Connect = Callable[[str], Program]


def may(user: str, object_type: str, profile: str, *authorities: str) -> AuthorityRecord:
    return AuthorityRecord(object_type, profile, "PRINCIPAL", user, authorities)


SOMETHING = may("somebody", "QUEUE", "SOMETHING", "GET")


@contextmanager
def programs(home: Path, *records: AuthorityRecord, groups_of: GroupsOf = no_groups) -> Iterator[Connect]:
    """Connects programs to QM1, which has these records."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    with QueueManagerStore.open(home, "QM1") as store:
        with store.unit_of_work() as unit:
            for definition in (*DEFINED, *records):
                unit.save_definition(definition)
        numbers, holder, open_queues = count(1), store.connect(), OpenQueues()
        definitions = TopicDefinitions(groups_of)
        connections = [holder]

        def connect(user: str) -> Program:
            with store.unit_of_work() as unit:
                OpenAuthority(definitions, user).connect(unit)
            connections.append(connection := store.connect())
            connected = ConnectedProgram(
                qmgr="QM1",
                application=Application(user, "test", 6),
                number=next(numbers),
                connection=connection,
                holder=holder,
                open_queues=open_queues,
                topics=definitions,
                new_id=lambda: bytes(24),
                clock=utc_now,
            )
            return Program(connected)

        yield connect
        for connection in connections:
            connection.disconnect()


def reason_of(program: Program, target: Target | str, options: int, dynamic: str = "AMQ.*") -> int:
    """What MQOPEN gives; 0 where it succeeds."""
    target = Target(MQOT_Q, target) if isinstance(target, str) else target
    try:
        handle = program.open(target, options, dynamic, unit_of_work(program))
    except (MqiError, QueueError) as error:
        return error.reason
    program.close(handle, 0)
    return 0


def unit_of_work(program: Program):  # type: ignore[no-untyped-def]
    return program._connected.connection._store.unit_of_work


def put1_of(program: Program, target: Target | str, options: int = 0) -> int:
    target = Target(MQOT_Q, target) if isinstance(target, str) else target
    with unit_of_work(program)() as unit:
        try:
            program.put1(unit, target, read_mqmd(Mqmd().encode()), options, b"x")
        except (MqiError, QueueError) as error:
            return error.reason
    return 0


OPTIONS = [
    (MQOO_INPUT_AS_Q_DEF, ("GET",)),
    (MQOO_INPUT_SHARED, ("GET",)),
    (MQOO_INPUT_EXCLUSIVE, ("GET",)),
    (MQOO_BROWSE, ("BROWSE",)),
    (MQOO_OUTPUT, ("PUT",)),
    (MQOO_INQUIRE, ("INQ",)),
    (MQOO_SET, ("SET",)),
    (MQOO_OUTPUT | MQOO_PASS_IDENTITY_CONTEXT, ("PASSID", "PUT")),
    (MQOO_OUTPUT | MQOO_PASS_ALL_CONTEXT, ("PASSALL", "PUT")),
    (MQOO_OUTPUT | MQOO_SET_IDENTITY_CONTEXT, ("PUT", "SETID")),
    (MQOO_OUTPUT | MQOO_SET_ALL_CONTEXT, ("PUT", "SETALL")),
    (MQOO_INPUT_SHARED | MQOO_BROWSE | MQOO_INQUIRE, ("BROWSE", "GET", "INQ")),
]
ALL = ("BROWSE", "GET", "INQ", "PASSALL", "PASSID", "PUT", "SET", "SETALL", "SETID")


@pytest.mark.rule("SEC-10")
@pytest.mark.parametrize(("options", "needed"), OPTIONS)
def test_what_an_option_of_mqopen_needs(tmp_path: Path, options: int, needed: tuple[str, ...]) -> None:
    """Each of them, and nothing else; a dot stands for what the queue manager has to grant too."""
    lacks = [(word, may(f"no{word.lower()}", "QUEUE", "BOBQ", *set(ALL) - {word})) for word in needed]
    of_qmgr = [may(record.entity, "QMGR", "QM1", "SETALL", "SETID") for _, record in lacks]
    context = {"SETALL", "SETID"}.intersection(needed)
    exact = [may("exact", "QUEUE", "BOBQ", *needed), may("exact", "QMGR", "QM1", *context)]
    on_queue_alone = [may("halfway", "QUEUE", "BOBQ", *needed)]
    records = [record for _, record in lacks] + of_qmgr + exact + on_queue_alone
    with programs(tmp_path, *records) as connect:
        assert reason_of(connect("exact"), "BOBQ", options) == 0
        assert reason_of(connect("stranger"), "BOBQ", options) == REFUSED
        assert reason_of(connect("mqm"), "BOBQ", options) == 0
        for word, record in lacks:
            assert reason_of(connect(record.entity), "BOBQ", options) == REFUSED, word
        assert reason_of(connect("halfway"), "BOBQ", options) == (REFUSED if context else 0)
        if options & MQOO_OUTPUT:
            pmo = options & (0x1F00)
            no_context = bool(options & (MQOO_PASS_IDENTITY_CONTEXT | MQOO_PASS_ALL_CONTEXT))  # no handle is given
            assert put1_of(connect("exact"), "BOBQ", pmo) == (2097 if no_context else 0)
            assert put1_of(connect("stranger"), "BOBQ", pmo) == REFUSED


def test_nothing_is_checked_before_the_first_record(tmp_path: Path) -> None:
    with programs(tmp_path) as connect:
        for options in (IN, MQOO_BROWSE, OUT | SET_ALL, MQOO_SET):
            assert reason_of(connect("mallory"), "BOBQ", options) == 0


@pytest.mark.rule("SEC-10")
def test_groups_and_generic_profiles_count(tmp_path: Path) -> None:
    records = (
        AuthorityRecord("QUEUE", "BOB*", "GROUP", "staff", ("GET",)),
        AuthorityRecord("QUEUE", "**", "GROUP", "staff", ("PUT",)),
    )
    groups = {"bob": ("staff",), "root": ("mqm",)}
    with programs(tmp_path, *records, groups_of=lambda user: groups.get(user, ())) as connect:
        bob, root = connect("bob"), connect("root")
        assert (reason_of(bob, "BOBQ", IN), reason_of(bob, "BOBQ", OUT)) == (0, REFUSED)  # the closest profile alone
        assert (reason_of(bob, "OTHER", OUT), reason_of(root, "BOBQ", OUT | SET_ALL)) == (0, 0)


@pytest.mark.rule("CMD-4")
@pytest.mark.parametrize(
    "queue",
    [
        *(CONTROL_QUEUE, DEFAULT_STREAM, ADMIN_COMMAND_QUEUE, DEAD_LETTER_QUEUE),
        *(REQUEST_QUEUE, REPLY_QUEUE, "SYSTEM.INTER.QMGR.CONTROL", "QM2"),
    ],
)
def test_system_queues_are_checked_like_others(tmp_path: Path, queue: str) -> None:
    with programs(tmp_path, SOMETHING) as connect:
        mallory = connect("mallory")
        for options in (IN, MQOO_BROWSE, OUT, MQOO_SET, MQOO_INQUIRE):
            assert reason_of(mallory, queue, options) == REFUSED, options
        assert put1_of(mallory, queue) == REFUSED


@pytest.mark.rule("SEC-14")
def test_the_queues_of_the_bridge_are_for_mqm_whatever_records_say(tmp_path: Path) -> None:
    with programs(tmp_path, may("alice", "QUEUE", "**", *ALL)) as connect:
        for queue in (REQUEST_QUEUE, REPLY_QUEUE):
            assert (reason_of(connect("alice"), queue, IN), reason_of(connect("alice"), queue, OUT)) == (REFUSED,) * 2
            assert reason_of(connect("mqm"), queue, IN) == 0
        assert reason_of(connect("alice"), "BOBQ", IN) == 0


def test_a_queue_is_made_only_for_who_may_put_to_it(tmp_path: Path) -> None:
    with programs(tmp_path, may("alice", "QUEUE", "ALICE.**", "PUT")) as connect:
        alice = connect("alice")
        assert (reason_of(alice, "NEW", OUT), put1_of(alice, "NEW")) == (REFUSED, REFUSED)
        assert (reason_of(alice, "NEW", IN), reason_of(connect("mqm"), "NEW", IN)) == (2085, 2085)
        assert reason_of(alice, "ALICE.NEW", OUT) == 0


@pytest.mark.rule("SEC-11")
def test_an_alias_of_a_queue_is_checked_and_not_its_base(tmp_path: Path) -> None:
    records = (may("alice", "QUEUE", "ALIAS", "PUT", "SET"), may("bob", "QUEUE", "BOBQ", "PUT"))
    with programs(tmp_path, *records) as connect:
        assert reason_of(connect("alice"), "ALIAS", OUT) == 0
        assert reason_of(connect("alice"), "BOBQ", OUT) == REFUSED
        assert reason_of(connect("bob"), "ALIAS", OUT) == REFUSED
        assert reason_of(connect("alice"), "ALIAS", MQOO_SET) == REFUSED  # MQSET changes the queue behind it


@pytest.mark.rule("SEC-11")
def test_5_an_alias_of_a_topic_and_the_topic_are_both_checked(tmp_path: Path) -> None:
    put, pub = may("putter", "QUEUE", "NEWS.ALIAS", "PUT"), may("carl", "TOPIC", "NEWS", "PUB")
    both = (replace(put, entity="both"), replace(pub, entity="both"))
    with programs(tmp_path, put, pub, *both) as connect:
        for user, reason in (("putter", REFUSED), ("carl", REFUSED), ("both", 0)):
            assert put1_of(connect(user), "NEWS.ALIAS") == reason, user
            assert reason_of(connect(user), "NEWS.ALIAS", OUT) == reason, user


def test_a_topic_needs_pub_and_its_context_the_queue_manager(tmp_path: Path) -> None:
    records = (may("carl", "TOPIC", "NEWS", "PUB"), may("dora", "TOPIC", "NEWS", "PUB"))
    topic = Target(MQOT_TOPIC, "NEWS")
    with programs(tmp_path, *records, may("dora", "QMGR", "QM1", "SETALL")) as connect:
        assert reason_of(connect("carl"), topic, OUT) == 0
        assert reason_of(connect("carl"), topic, OUT | SET_ALL) == REFUSED
        assert put1_of(connect("carl"), topic, SET_ALL) == REFUSED
        assert reason_of(connect("dora"), topic, OUT | SET_ALL) == 0


def test_another_queue_manager_is_reached_by_its_transmission_queue(tmp_path: Path) -> None:
    records = (
        may("alice", "QUEUE", "QM2", "PUT"),
        may("alice", "QUEUE", "X", "PUT"),
        may("bob", "QUEUE", "X", "PUT"),
        may("carl", "QUEUE", "QM2", "SETALL"),
        may("carl", "QMGR", "QM1", "SETALL"),
    )
    there = Target(MQOT_Q, "X", "QM2")
    with programs(tmp_path, *records) as connect:
        assert (reason_of(connect("alice"), there, OUT), put1_of(connect("alice"), there)) == (0, 0)
        assert (reason_of(connect("bob"), there, OUT), put1_of(connect("bob"), there)) == (REFUSED, REFUSED)
        assert reason_of(connect("alice"), there, OUT | SET_ALL) == REFUSED
        assert reason_of(connect("mqm"), there, MQOO_SET) == 2046
        # Opened by its own name it takes SETALL: what is put there says whose message it is.
        assert (reason_of(connect("alice"), "QM2", OUT), reason_of(connect("carl"), "QM2", OUT)) == (REFUSED, 0)


@pytest.mark.rule("SEC-14")
def test_a_dynamic_queue_is_its_makers(tmp_path: Path) -> None:
    records = (may("alice", "QUEUE", "*.MODEL", "DSP", "GET"), may("bob", "QUEUE", "*.MODEL", "GET"))
    with programs(tmp_path, *records) as connect:
        alice, bob = connect("alice"), connect("bob")
        assert reason_of(bob, "KEPT.MODEL", IN, "B") == REFUSED
        assert reason_of(alice, "KEPT.MODEL", IN | OUT, "A") == REFUSED
        assert reason_of(alice, SHARED_MODEL, IN) == REFUSED
        assert reason_of(alice, "KEPT.MODEL", IN, "A") == 0
        for options in (IN, OUT, MQOO_BROWSE, MQOO_INQUIRE):
            assert reason_of(connect("alice"), "A", options) == 0, options
            assert reason_of(bob, "A", options) == REFUSED, options
    with QueueManagerStore.open(tmp_path, "QM1") as store:
        assert store.load_state()[0].queues["A"].owner == "alice"


@pytest.mark.rule("SEC-14")
def test_a_managed_queue_is_its_owners_alone(tmp_path: Path) -> None:
    records = (may("bob", "QUEUE", "**", *ALL), may("alice", "QUEUE", "KEPT.MODEL", "DSP", "GET"))
    with programs(tmp_path, *records) as connect:
        name = "SYSTEM.MANAGED.DURABLE.1"
        assert reason_of(connect("alice"), "KEPT.MODEL", IN, name) == 0
        for options in (IN, OUT, MQOO_BROWSE):
            assert reason_of(connect("bob"), name, options) == REFUSED
            assert reason_of(connect("alice"), name, options) == 0


@pytest.mark.rule("SEC-13")
def test_5_2_the_alternate_user_is_checked(tmp_path: Path) -> None:
    records = (
        may("server", "QMGR", "QM1", "ALTUSR"),
        may("server", "QUEUE", "SERVER.Q", "PUT"),
        may("bob", "QUEUE", "BOBQ", "PUT"),
        may("mallory", "QUEUE", "BOBQ", "GET"),
    )
    with programs(tmp_path, *records) as connect:
        server, mallory = connect("server"), connect("mallory")

        def for_bob(name: str = "BOBQ", user: str = "BOB") -> Target:
            return Target(MQOT_Q, name, alternate_user=user)

        assert (reason_of(server, for_bob(), OUT | ALTERNATE), put1_of(server, for_bob(), ALTERNATE)) == (0, 0)
        assert reason_of(server, for_bob(), OUT) == REFUSED  # the name alone says nothing
        assert reason_of(server, for_bob("SERVER.Q"), OUT | ALTERNATE) == REFUSED  # bob's count, not its own
        assert reason_of(server, for_bob(user=""), OUT | ALTERNATE) == REFUSED
        assert reason_of(mallory, for_bob(), OUT | ALTERNATE) == REFUSED
        assert put1_of(mallory, for_bob(), ALTERNATE) == REFUSED


@pytest.mark.rule("SEC-15")
def test_the_queue_manager_is_checked_once_a_record_grants_connect(tmp_path: Path) -> None:
    qmgr = Target(MQOT_Q_MGR)
    with programs(tmp_path / "a", SOMETHING, may("admin", "QMGR", "QM1", "DSP")) as connect:
        assert reason_of(connect("alice"), qmgr, MQOO_INQUIRE) == 0
    records = (may("alice", "QMGR", "QM1", "CONNECT", "INQ"), may("bob", "QMGR", "QM1", "CONNECT"))
    with programs(tmp_path / "b", *records) as connect:
        assert reason_of(connect("alice"), qmgr, MQOO_INQUIRE) == 0
        assert reason_of(connect("bob"), qmgr, MQOO_INQUIRE) == REFUSED
        connect("mqm")
        with pytest.raises(MqiError) as refused:
            connect("mallory")
        assert refused.value.reason == REFUSED
