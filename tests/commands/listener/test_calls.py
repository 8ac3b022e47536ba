"""MQI calls over a channel, one after the other, as a program's: what each does and what it gives.

Rows of docs/conformance.md: LSN-1, LSN-2, LSN-3, LSN-4, LSN-5, LSN-15, LSN-18.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from commands.broker.objects import AliasQueue, LocalQueue
from commands.listener import conversation
from commands.qmgr.mqi.handles import MARKED_US, Handle, OpenQueues
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from rfh2 import Folder, Rfh2, decode
from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import MQGMO
from rfh2.channel.segments import SegmentType, Structure
from rfh2.errors import QueueError
from rfh2.layouts import MQMD2
from rfh2.mqi_constants import (
    MQGMO_ACCEPT_TRUNCATED_MSG,
    MQGMO_BROWSE_FIRST,
    MQGMO_BROWSE_NEXT,
    MQGMO_LOCK,
    MQGMO_MARK_BROWSE_CO_OP,
    MQGMO_MARK_BROWSE_HANDLE,
    MQGMO_MSG_UNDER_CURSOR,
    MQGMO_NO_PROPERTIES,
    MQGMO_SET_SIGNAL,
    MQGMO_SYNCPOINT,
    MQGMO_UNLOCK,
    MQGMO_UNMARK_BROWSE_CO_OP,
    MQGMO_UNMARK_BROWSE_HANDLE,
    MQGMO_UNMARKED_BROWSE_MSG,
    MQMO_MATCH_CORREL_ID,
    MQMO_MATCH_MSG_ID,
    MQMO_MATCH_MSG_TOKEN,
    MQOO_BROWSE,
    MQOO_CO_OP,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQOO_PASS_ALL_CONTEXT,
    MQOO_PASS_IDENTITY_CONTEXT,
    MQOO_SAVE_ALL_CONTEXT,
    MQOO_SET,
    MQOO_SET_ALL_CONTEXT,
    MQOO_SET_IDENTITY_CONTEXT,
    MQPMO_ASYNC_RESPONSE,
    MQPMO_NEW_CORREL_ID,
    MQPMO_NO_CONTEXT,
    MQPMO_PASS_ALL_CONTEXT,
    MQPMO_PASS_IDENTITY_CONTEXT,
    MQPMO_SET_ALL_CONTEXT,
    MQPMO_SET_IDENTITY_CONTEXT,
    MQPMO_SYNCPOINT,
    MQSO_CREATE,
    MQSO_MANAGED,
)
from rfh2.pcf_admin_names import MQOT_Q_MGR, MQOT_TOPIC
from streams.topic_objects import TopicObject
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_MS, until

IN, OUT, BROWSE, INQUIRE = MQOO_INPUT_SHARED, MQOO_OUTPUT, MQOO_BROWSE, MQOO_INQUIRE
PASS_ID, PASS_ALL = MQOO_PASS_IDENTITY_CONTEXT, MQOO_PASS_ALL_CONTEXT
SET_ID, SET_ALL = MQOO_SET_IDENTITY_CONTEXT, MQOO_SET_ALL_CONTEXT
EMPTY = 2033


@pytest.fixture(params=["little", "big"])
def client(port: int, request: pytest.FixtureRequest) -> Iterator[MqiClient]:
    """A connected program, in each byte order."""
    order: ByteOrder = request.param
    with MqiClient(port, order) as client:
        assert client.connect() == 0
        yield client


@pytest.fixture
def other(port: int) -> Iterator[MqiClient]:
    with MqiClient(port) as client:
        assert client.connect("bob") == 0
        yield client


def test_gets_are_counted(client: MqiClient, home: Path) -> None:
    handle = client.opened("Q", IN | OUT | BROWSE)
    for _ in range(2):
        client.put(handle, b"hello")
    client.get(handle, MQGMO_BROWSE_FIRST)
    client.get(handle)
    client.get(handle, MQGMO_SYNCPOINT)
    assert client.commit() == 0
    assert client.get(handle).reason == EMPTY
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        counts = unit.counters.queues()["Q"]
    assert (counts.puts, counts.gets, counts.last_get is not None) == (2, 2, True)


@pytest.mark.rule("LSN-1")
def test_a_message_is_put_and_got(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    reason, put = client.put(handle, b"hello", format="MQSTR", priority=3, persistence=1)
    got = client.get(handle)

    assert (reason, got.reason, got.body) == (0, 0, b"hello")
    assert put.msg_id == got.mqmd.msg_id != bytes(24)
    assert (got.mqmd.format, got.mqmd.priority, got.mqmd.persistence) == ("MQSTR", 3, 1)
    assert (got.mqmd.user_identifier, got.mqmd.put_appl_name, got.mqmd.put_appl_type) == ("alice", "test", 28)
    assert got.mqmd.order == client.order
    assert len(got.mqmd.put_date) == len(got.mqmd.put_time) == 8
    assert client.get(handle).reason == EMPTY


def test_a_long_message_takes_many_segments(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    body = bytes(range(256)) * 1_000
    assert client.put(handle, body)[0] == 0
    assert client.get(handle).body == body


def test_messages_come_by_priority_then_by_arrival(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    for priority, body in ((0, b"a"), (5, b"b"), (0, b"c"), (5, b"d")):
        client.put(handle, body, priority=priority)
    assert [client.get(handle).body for _ in range(4)] == [b"b", b"d", b"a", b"c"]


def test_a_get_matches_by_identifiers(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    ids = [bytes([n]) * 24 for n in range(4)]
    for n in (1, 2, 3):
        client.put(handle, b"%d" % n, msg_id=ids[n], correl_id=ids[4 - n])
    both = MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID

    assert client.get(handle, match=both, msg_id=ids[1], correl_id=ids[1]).reason == EMPTY
    assert client.get(handle, match=MQMO_MATCH_CORREL_ID, correl_id=ids[1]).body == b"3"
    assert client.get(handle, match=both, msg_id=ids[2]).body == b"2"  # a CorrelId of zeros matches any
    assert client.get(handle, msg_id=ids[3]).body == b"1"  # nothing is to match


def test_a_browse_goes_through_the_queue_and_leaves_it(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT | BROWSE)
    for body in (b"a", b"b", b"c"):
        client.put(handle, body)
    options = (MQGMO_BROWSE_FIRST, MQGMO_BROWSE_NEXT, MQGMO_BROWSE_FIRST, MQGMO_BROWSE_NEXT, MQGMO_BROWSE_NEXT)

    assert [client.get(handle, each).body for each in options] == [b"a", b"b", b"a", b"b", b"c"]
    assert client.get(handle, MQGMO_BROWSE_NEXT).reason == EMPTY
    assert client.get(handle, MQGMO_MSG_UNDER_CURSOR).body == b"c"
    assert client.get(handle, MQGMO_MSG_UNDER_CURSOR).reason == 2034
    assert [client.get(handle).body for _ in range(2)] == [b"a", b"b"]


def test_a_browsed_message_can_be_locked(client: MqiClient, other: MqiClient) -> None:
    mine, theirs = client.opened("Q", IN | OUT | BROWSE), other.opened("Q", IN | BROWSE)
    for body in (b"a", b"b"):
        client.put(mine, body)
    assert client.get(mine, MQGMO_BROWSE_FIRST | MQGMO_LOCK).body == b"a"
    assert other.get(theirs, MQGMO_BROWSE_FIRST).body == b"b"
    assert client.get(mine, MQGMO_UNLOCK).reason == 0
    assert client.get(mine, MQGMO_UNLOCK).reason == 2209
    assert other.get(theirs).body == b"a"


def test_a_message_too_long_stays_unless_its_end_may_be_lost(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    client.put(handle, b"0123456789")
    failed = client.get(handle, longest=4)
    accepted = client.get(handle, MQGMO_ACCEPT_TRUNCATED_MSG, longest=4)

    assert (failed.reason, failed.body, failed.length) == (2080, b"0123", 10)
    assert (accepted.reason, accepted.body, accepted.length) == (2079, b"0123", 10)
    assert client.get(handle).reason == EMPTY


@pytest.mark.rule("LSN-43")
def test_a_get_chooses_by_a_selector(client: MqiClient, other: MqiClient) -> None:
    """Also among more messages than are looked at in one turn, and of those that a unit of work puts late or back."""
    handle = client.opened_with("Q", IN | OUT | BROWSE | MQOO_SET, "JMSPriority > 4").handle
    sender = other.opened("Q", IN | OUT)
    for n in range(120):
        other.put(sender, b"low %d" % n, priority=0)
    other.put(sender, b"high", MQPMO_SYNCPOINT, priority=5)
    for _ in range(120):
        other.put(sender, b"low", priority=0)
    assert client.get(handle).reason == EMPTY
    client.request_get(handle, wait_ms=PATIENCE_MS)
    assert other.commit() == 0
    reply = client.reply(SegmentType.MQGET)
    assert (reply.reason, reply.body[-4:]) == (0, b"high")
    assert client.get(handle, MQGMO_BROWSE_FIRST).reason == EMPTY
    other.put(sender, b"higher", priority=9)
    assert other.get(sender, MQGMO_SYNCPOINT).body == b"higher"
    assert client.get(handle).reason == EMPTY
    assert other.backout() == 0
    assert client.get(handle, MQGMO_BROWSE_FIRST).body == b"higher"
    assert client.get(handle, longest=2).reason == 2080
    assert client.get(handle).body == b"higher"
    client.set(handle, {9: 1})
    assert client.get(handle).reason == 2016


def test_a_get_waits_for_a_message(client: MqiClient, other: MqiClient) -> None:
    mine, theirs = client.opened("Q", IN | OUT), other.opened("Q", OUT)
    late = threading.Timer(0.2, lambda: other.put(theirs, b"late"))
    late.start()

    assert client.get(mine, wait_ms=PATIENCE_MS).body == b"late"
    late.join()
    assert client.get(mine, wait_ms=50).reason == EMPTY


def test_a_get_waits_for_what_another_process_puts(client: MqiClient, home: Path) -> None:
    mine = client.opened("Q", IN | OUT)

    def put() -> None:
        with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
            unit.put("Q", None, b"from elsewhere")

    late = threading.Timer(0.2, put)
    late.start()
    assert client.get(mine, wait_ms=PATIENCE_MS).body == b"from elsewhere"
    late.join()


@pytest.mark.rule("LSN-2")
def test_syncpoint(client: MqiClient, other: MqiClient) -> None:
    mine, theirs = client.opened("Q", IN | OUT), other.opened("Q", IN | OUT)
    client.put(mine, b"kept back", MQPMO_SYNCPOINT)
    assert other.get(theirs).reason == EMPTY
    assert client.commit() == 0
    assert other.get(theirs, MQGMO_SYNCPOINT).body == b"kept back"
    assert client.get(mine).reason == EMPTY
    assert other.backout() == 0
    again = client.get(mine, MQGMO_SYNCPOINT)
    assert (again.body, again.mqmd.backout_count) == (b"kept back", 1)
    client.put(mine, b"answer", MQPMO_SYNCPOINT)
    assert client.backout() == 0
    assert client.get(mine).body == b"kept back"
    assert client.get(mine).reason == EMPTY


@pytest.mark.rule("LSN-2")
@pytest.mark.parametrize(("end", "left"), [("close", [b"got", b"there"]), ("disconnect", [b"there", b"put"])])
def test_the_end_of_a_connection_ends_its_unit_of_work(
    client: MqiClient, port: int, end: str, left: list[bytes]
) -> None:
    """MQDISC commits; a program that dies has its work backed out."""
    with MqiClient(port) as dying:
        dying.connect()
        handle = dying.opened("Q", IN | OUT)
        dying.put(handle, b"got")
        dying.put(handle, b"there")
        assert dying.get(handle, MQGMO_SYNCPOINT).body == b"got"
        dying.put(handle, b"put", MQPMO_SYNCPOINT)
        getattr(dying, end)()
    mine = client.opened("Q", IN)
    assert [client.get(mine, wait_ms=PATIENCE_MS).body for _ in left] == left
    assert client.get(mine).reason == EMPTY


@pytest.mark.rule("LSN-77")
def test_the_depth_counts_what_units_of_work_have_put_and_not_what_they_have_got(client: MqiClient) -> None:
    handle = client.opened("Q.1", IN | OUT | MQOO_INQUIRE)

    def depth() -> int:
        return int.from_bytes(client.inquire(handle, 3, integers=1).body[16:20], client.order)

    steps: list[tuple[Callable[[], object], int]] = [
        (lambda: client.put(handle, b"1"), 1),
        (lambda: client.put(handle, b"2", MQPMO_SYNCPOINT), 2),
        (lambda: client.get(handle, MQGMO_SYNCPOINT), 1),
        (client.backout, 1),
        (lambda: client.put(handle, b"3", MQPMO_SYNCPOINT), 2),
        (client.commit, 2),
    ]
    found = [(step(), depth())[1] for step, _ in steps]
    assert found == [expected for _, expected in steps]


def test_a_queue_with_uncommitted_messages_is_not_deleted(client: MqiClient, home: Path) -> None:
    handle = client.opened("Q.1", IN | OUT)
    client.put(handle, b"x")
    assert client.get(handle, MQGMO_SYNCPOINT).body == b"x"
    with QueueManagerStore.open(home, "QM1") as store:
        with pytest.raises(QueueError, match="2042"), store.unit_of_work() as unit:
            unit.delete_definition("qlocal", "Q.1")
        client.commit()
        with store.unit_of_work() as unit:
            unit.delete_definition("qlocal", "Q.1")


def test_a_dynamic_queue_goes_with_its_program(client: MqiClient, port: int) -> None:
    with MqiClient(port) as program:
        program.connect()
        reply = program.open("SYSTEM.DEFAULT.MODEL.QUEUE", IN)
        name = program.opened_name(reply)
        assert name.startswith("AMQ.")
        handle = client.opened(name, OUT)
        assert client.put(handle, b"reply")[0] == 0
        assert program.get(reply.handle).body == b"reply"
        program.disconnect()
    assert client.put(handle, b"too late")[0] in (2052, 2085)
    assert client.open(name, OUT).reason == 2085


OPEN_ERRORS = [
    ("NOWHERE", IN, 2085),
    ("NOWHERE", INQUIRE, 2085),
    ("T.ALIAS", IN, 2046),
    ("BROKEN.ALIAS", OUT, 2082),
]


@pytest.mark.parametrize(("name", "options", "reason"), OPEN_ERRORS)
def test_what_cannot_be_opened(client: MqiClient, home: Path, name: str, options: int, reason: int) -> None:
    define(home)
    assert client.open(name, options).reason == reason


def define(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("T", topic_string="sport/soccer"))
        unit.save_definition(AliasQueue("T.ALIAS", "T", "TOPIC"))
        unit.save_definition(AliasQueue("BROKEN.ALIAS", "NONE", "TOPIC"))
        unit.save_definition(LocalQueue("SHORT", max_message_length=4, max_depth=1))
        unit.save_definition(LocalQueue("NO.PUT", put_enabled=False))
        unit.save_definition(LocalQueue("NO.GET", get_enabled=False))


@pytest.mark.rule("LSN-3")
def test_calls_that_fail_change_nothing(client: MqiClient, home: Path) -> None:
    define(home)
    output, source = client.opened("Q", OUT), client.opened("Q", IN)
    short, no_put, no_get = (client.opened(name, IN | OUT) for name in ("SHORT", "NO.PUT", "NO.GET"))
    settable = client.opened("Q", MQOO_SET)
    closed = client.opened("Q", IN)
    assert client.shut(closed) == 0
    reasons = {
        "get from what is open for output": client.get(output).reason,
        "browse without MQOO_BROWSE": client.get(source, MQGMO_BROWSE_FIRST).reason,
        "put to what is open for input": client.put(source, b"x")[0],
        "inquire without MQOO_INQUIRE": client.inquire(output, 3).reason,
        "a handle that is closed": client.get(closed).reason,
        "a handle that never was": client.shut(88),
        "too long for the queue": client.put(short, b"12345")[0],
        "put inhibited": client.put(no_put, b"x")[0],
        "get inhibited": client.get(no_get).reason,
        "a signal": client.get(source, MQGMO_SET_SIGNAL).reason,
        "expiry of none": client.put(output, b"x", expiry=0)[0],
        "another queue manager": client.open("Q", OUT, qmgr="QM9").reason,
        "put to another queue manager": client.put1("Q", b"x", qmgr="QM9"),
        "a queue manager for input": client.open("", IN, MQOT_Q_MGR).reason,
        "a namelist": client.open("X", INQUIRE, 2).reason,
        "MQSTAT of a reconnection": client.status(1)[0],
        "set without MQOO_SET": client.set(output, {10: 1}),
        "set what cannot be set": client.set(settable, {3: 1}),
        "set to no value": client.set(settable, {10: 0, 9: 2}),
        "XA that nobody asks for": client.call(0xAA).reason,
    }
    assert reasons == {
        "get from what is open for output": 2037,
        "browse without MQOO_BROWSE": 2036,
        "put to what is open for input": 2039,
        "inquire without MQOO_INQUIRE": 2038,
        "a handle that is closed": 2019,
        "a handle that never was": 2019,
        "too long for the queue": 2030,
        "put inhibited": 2051,
        "get inhibited": 2016,
        "a signal": 2046,
        "expiry of none": 2013,
        "another queue manager": 2087,
        "put to another queue manager": 2087,
        "a queue manager for input": 2046,
        "a namelist": 2043,
        "MQSTAT of a reconnection": 2430,
        "set without MQOO_SET": 2040,
        "set what cannot be set": 2067,
        "set to no value": 2020,
        "XA that nobody asks for": 2298,
    }
    assert client.put(short, b"1")[0] == 0
    assert client.put(short, b"2")[0] == 2053
    assert client.get(source).reason == EMPTY


def test_exclusive_input(client: MqiClient, other: MqiClient) -> None:
    client.put1("Q", b"")
    held = client.opened("Q", MQOO_INPUT_EXCLUSIVE)
    assert other.open("Q", IN).reason == 2042
    assert client.shut(held) == 0
    shared = other.opened("Q", IN)
    assert client.open("Q", MQOO_INPUT_EXCLUSIVE).reason == 2042
    assert other.shut(shared) == 0
    assert client.open("Q", MQOO_INPUT_EXCLUSIVE).reason == 0


def test_the_context_that_a_program_may_set(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT | MQOO_SET_ALL_CONTEXT)
    own = {"user_identifier": "carol", "put_appl_name": "other", "put_date": "20200102", "put_time": "03040506"}
    client.put(handle, b"1", **own)
    client.put(handle, b"2", MQPMO_SET_ALL_CONTEXT, **own)
    first, second = client.get(handle).mqmd, client.get(handle).mqmd
    assert (first.user_identifier, first.put_appl_name, first.put_date == "20200102") == ("alice", "test", False)
    assert {name: getattr(second, name) for name in own} == own


@pytest.mark.rule("LSN-18")
def test_the_context_of_a_message_is_passed_on(client: MqiClient, other: MqiClient) -> None:
    theirs = other.opened("IN", OUT | MQOO_SET_ALL_CONTEXT)
    source, plain = client.opened("IN", IN | MQOO_SAVE_ALL_CONTEXT), client.opened("IN", IN)
    target = client.opened("Q", IN | OUT | MQOO_PASS_ALL_CONTEXT)
    passes_all, passes_identity = MQPMO_PASS_ALL_CONTEXT, MQPMO_PASS_IDENTITY_CONTEXT
    assert client.put(target, b"", passes_all, context=source)[0] == 2098  # nothing was got yet
    assert client.put(target, b"", passes_all, context=plain)[0] == 2097
    assert client.put(target, b"", passes_all, context=88)[0] == 2097
    own = {"user_identifier": "carol", "put_appl_name": "theirs", "appl_identity_data": "data"}
    other.put(theirs, b"", MQPMO_SET_ALL_CONTEXT, **own)
    assert client.get(source).reason == 0
    for options in (passes_all, passes_identity, MQPMO_NO_CONTEXT, 0):
        assert client.put(target, b"", options, context=source)[0] == 0
    passed, identity, none, default = (client.get(target).mqmd for _ in range(4))
    assert {name: getattr(passed, name) for name in own} == own
    assert (identity.user_identifier, identity.appl_identity_data, identity.put_appl_name) == ("carol", "data", "test")
    assert (none.user_identifier, none.put_appl_name, none.put_appl_type) == ("", "", 0)
    assert (default.user_identifier, default.put_appl_name) == ("alice", "test")


COOPERATES = MQGMO_BROWSE_FIRST | MQGMO_UNMARKED_BROWSE_MSG | MQGMO_MARK_BROWSE_CO_OP


@pytest.mark.rule("LSN-18")
def test_programs_that_browse_together_get_each_message_once(client: MqiClient, other: MqiClient) -> None:
    mine = client.opened("Q", IN | OUT | BROWSE | MQOO_CO_OP)
    theirs, alone = other.opened("Q", BROWSE | MQOO_CO_OP), other.opened("Q", BROWSE)
    for body in (b"a", b"b", b"c"):
        client.put(mine, body)
    assert client.get(mine, COOPERATES).body == b"a"
    assert other.get(theirs, COOPERATES).body == b"b"
    assert other.get(theirs, MQGMO_BROWSE_FIRST).body == b"a"  # who does not ask, sees all
    assert other.get(alone, MQGMO_BROWSE_FIRST | MQGMO_UNMARKED_BROWSE_MSG).body == b"a"  # nor does it share the marks
    assert client.get(mine, MQGMO_BROWSE_FIRST | MQGMO_UNMARK_BROWSE_CO_OP).body == b"a"
    assert [other.get(theirs, COOPERATES).body for _ in range(2)] == [b"a", b"c"]
    assert other.get(theirs, COOPERATES).reason == EMPTY


@pytest.mark.rule("LSN-18")
def test_a_program_marks_what_it_has_browsed(client: MqiClient, other: MqiClient) -> None:
    mine, theirs = client.opened("Q", OUT | BROWSE), other.opened("Q", BROWSE)
    for body in (b"a", b"b"):
        client.put(mine, body)
    marks = MQGMO_BROWSE_FIRST | MQGMO_UNMARKED_BROWSE_MSG | MQGMO_MARK_BROWSE_HANDLE
    assert [client.get(mine, marks).body for _ in range(2)] == [b"a", b"b"]
    assert client.get(mine, marks).reason == EMPTY
    assert other.get(theirs, marks).body == b"a"
    assert client.get(mine, MQGMO_BROWSE_FIRST | MQGMO_UNMARK_BROWSE_HANDLE).body == b"a"
    assert client.get(mine, marks).body == b"a"


def test_marks_that_programs_share_end_by_themselves() -> None:
    queues, handle = OpenQueues(), Handle(1, "Q", MQOO_CO_OP)
    queues.mark(handle, 1, MQGMO_MARK_BROWSE_CO_OP, 0)
    assert [queues.is_marked(handle, 1, at) for at in (0, MARKED_US - 1, MARKED_US)] == [True, True, False]


@pytest.mark.rule("LSN-18")
@pytest.mark.parametrize(
    ("folders", "left"),
    [
        (("<jms><Dst>q</Dst></jms>", "<usr><a>1</a></usr>"), []),
        (("<mcd><Msd>jms_text</Msd></mcd>", "<mine><a>1</a></mine>"), ["mine"]),
        (("<mine><a>1</a></mine>",), ["mine"]),
    ],
)
def test_a_get_without_properties(client: MqiClient, folders: tuple[str, ...], left: list[str]) -> None:
    handle = client.opened("Q", IN | OUT)
    header = Rfh2(tuple(map(Folder.of, folders)), coded_char_set_id=1208, format="MQSTR")
    client.put(handle, header.encode() + b"text", format="MQHRF2", encoding=546, coded_char_set_id=1208)
    got = client.get(handle, MQGMO_NO_PROPERTIES)
    message = decode(got.body, got.mqmd.encode())
    assert (message.body, message.body_format) == (b"text", "MQSTR")
    assert [folder.name for header in message.headers for folder in header.folders] == left


@pytest.mark.parametrize(
    ("option", "allowed_by", "reason"),
    [
        (MQPMO_PASS_IDENTITY_CONTEXT, (PASS_ID, PASS_ALL, SET_ID, SET_ALL), 2094),
        (MQPMO_PASS_ALL_CONTEXT, (PASS_ALL, SET_ALL), 2093),
        (MQPMO_SET_IDENTITY_CONTEXT, (SET_ID, SET_ALL), 2096),
        (MQPMO_SET_ALL_CONTEXT, (SET_ALL,), 2095),
    ],
)
def test_context_needs_an_option_of_mqopen(
    client: MqiClient, option: int, allowed_by: tuple[int, ...], reason: int
) -> None:
    passes = option in (MQPMO_PASS_IDENTITY_CONTEXT, MQPMO_PASS_ALL_CONTEXT)
    allowed = 2097 if passes else 0  # no handle is given whose message has a context
    for opened in (0, PASS_ID, PASS_ALL, SET_ID, SET_ALL):
        handle = client.opened("Q", OUT | opened)
        assert client.put(handle, b"", option)[0] == (allowed if opened in allowed_by else reason), opened
    assert client.put1("Q", b"", option) == allowed


def test_a_correl_id_is_made(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT)
    made = {client.put(handle, b"", MQPMO_NEW_CORREL_ID)[1].correl_id for _ in range(3)}
    assert len(made) == 3
    assert {client.get(handle).mqmd.correl_id for _ in range(3)} == made


@pytest.mark.rule("LSN-4", "LSN-41")
def test_inquiry(client: MqiClient) -> None:
    queue = client.opened("Q", OUT | INQUIRE)
    client.put(queue, b"x")
    reply = client.inquire(queue, 3, 2016, 20, integers=2, characters=48)
    assert (reply.reason, reply.body[12 + 12 :]) == (0, client.long(1) + client.long(1) + b"Q".ljust(48))
    assert client.inquire(queue, 2002, characters=48).reason == 2068
    assert client.inquire(queue, 9999).reason == 2067
    # DEFREADA, QDEPTHHI, PROPCTL; CUSTOM, ALTDATE.
    reply = client.inquire(queue, 188, 40, 2119, 190, 2027, integers=3, characters=140)
    assert reply.body[12 + 20 :] == b"".join(map(client.long, (0, 80, 0))) + b" " * 140
    qmgr = client.opened("", INQUIRE, MQOT_Q_MGR)
    assert client.inquire(qmgr, 47, 68, integers=2).body[12 + 8 :] == client.long(0) + client.long(5000)
    assert client.inquire(qmgr, 31, 2015, integers=1, characters=48).body[20:] == client.long(943) + b"QM1".ljust(48)
    # Clients 9.0 ask for one integer more than there are, and read the characters behind that.
    reply = client.inquire(qmgr, 31, 2015, integers=2, characters=48)
    assert reply.body == b"".join(map(client.long, (2, 2, 48, 31, 2015, 943, 0))) + b"QM1".ljust(48)


@pytest.mark.rule("LSN-5")
@pytest.mark.parametrize(("name", "kind"), [("T", MQOT_TOPIC), ("T.ALIAS", 1)])
def test_what_is_put_on_a_topic_is_published(client: MqiClient, home: Path, name: str, kind: int) -> None:
    define(home)
    with QueueManagerStore.open(home, "QM1") as store:
        control = b"<psc><Command>RegSub</Command><Topic>sport/#</Topic><QName>BOARD</QName></psc>"
        board = client.opened("BOARD", IN | OUT)
        subscribe(client, control)
        handle = client.opened(name, OUT, kind)
        assert client.put(handle, b"goal", format="MQSTR")[0] == 0
        Processor(store, utc_now).drain()
    got = client.get(board, wait_ms=PATIENCE_MS)
    assert (got.body[-4:], b"<Topic>sport/soccer</Topic>" in got.body) == (b"goal", True)


def subscribe(client: MqiClient, psc: bytes) -> None:
    psc += b" " * (-len(psc) % 4)
    length = 36 + 4 + len(psc)
    header = b"RFH " + b"".join(n.to_bytes(4, "big") for n in (2, length, 273, 1208)) + b" " * 8
    header += bytes(4) + (1208).to_bytes(4, "big") + len(psc).to_bytes(4, "big") + psc
    handle = client.opened("SYSTEM.BROKER.CONTROL.QUEUE", OUT)
    assert client.put(handle, header, format="MQHRF2", encoding=273, coded_char_set_id=1208)[0] == 0


@pytest.mark.rule("LSN-15")
def test_mqset_inhibits_puts_and_gets(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT | MQOO_SET)
    assert client.put(handle, b"x")[0] == 0
    assert client.set(handle, {10: 1, 9: 1}) == 0
    assert (client.put(handle, b"y")[0], client.get(handle).reason) == (2051, 2016)
    assert client.set(handle, {9: 0}) == 0
    assert (client.put(handle, b"y")[0], client.get(handle).body) == (2051, b"x")


def test_a_get_that_waits_ends_when_its_queue_is_inhibited(client: MqiClient, other: MqiClient) -> None:
    handle, setting = client.opened("Q", IN | OUT), other.opened("Q", MQOO_SET)
    client.request_get(handle, wait_ms=60_000)
    assert other.set(setting, {9: 1}) == 0
    assert client.reply(SegmentType.MQGET).reason == 2016


@pytest.mark.rule("LSN-15")
def test_mqstat_tells_what_became_of_puts_without_an_answer(client: MqiClient) -> None:
    handle = client.opened("Q", IN | OUT | MQOO_SET)
    for inhibited in (0, 1):
        client.set(handle, {10: inhibited})
        for _ in range(3):
            client.put_unanswered(handle, b"x", MQPMO_ASYNC_RESPONSE)
    assert client.status() == (0, 2051, 3, 3, "Q")
    assert client.status() == (0, 0, 0, 0, "")
    assert [client.get(handle).reason for _ in range(4)] == [0, 0, 0, EMPTY]


def test_mqsub_leaves_nothing_where_no_processor_answers(
    client: MqiClient, port: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = MQSO_CREATE | MQSO_MANAGED
    with MqiClient(port) as broken:
        assert broken.connect() == 0
        broken.request(0x8E, broken.long(-1) + broken.long(0) + broken.sd(options, "Sport/Soccer", "scores"), 0)
        with QueueManagerStore.open(home, "QM1") as store:
            until(lambda: managed_queues(store))
            broken.close()
            until(lambda: not managed_queues(store))
    monkeypatch.setattr(conversation, "ANSWER_WITHIN_S", 0)
    monkeypatch.setattr(conversation, "_ANSWERED_S", 0.1)
    assert [client.subscribe(options, "Sport/Soccer", "scores").reason for _ in range(2)] == [2102, 2102]
    with QueueManagerStore.open(home, "QM1") as store:
        assert managed_queues(store) == []


def managed_queues(store: QueueManagerStore) -> list[str]:
    return [name for name in store.load_state()[0].queues if name.startswith("SYSTEM.MANAGED.")]


def test_another_queue_manager_is_not_here(port: int) -> None:
    with MqiClient(port) as client:
        assert client.connect(qmgr="QM2") == 2058
        assert client.connect(qmgr="*GROUP.OF.A.CCDT") == 0


def test_a_message_is_got_again_by_its_token(client: MqiClient) -> None:
    """As IBM's Java classes do with a larger buffer, when theirs was too small for what they had matched."""
    handle = client.opened("Q", IN | OUT)
    for body in (b"first", b"wanted"):
        client.put(handle, body, correl_id=body.ljust(24))
    token, matched = b"", {"correl_id": b"wanted".ljust(24)}
    for longest, match, reason in ((3, MQMO_MATCH_CORREL_ID, 2080), (100, MQMO_MATCH_MSG_TOKEN, 0)):
        gmo = client.structure(MQGMO[3], "GMO ", 3, MatchOptions=match)
        gmo["MsgToken"] = token.ljust(16, b"\0")
        reply = client.call(SegmentType.MQGET, client.md(**matched) + bytes(gmo) + client.long(longest), handle)
        assert reply.reason == reason
        token = Structure(MQGMO[3], bytearray(reply.body), MQMD2.size)["MsgToken"]
    assert reply.body.endswith(b"wanted")
