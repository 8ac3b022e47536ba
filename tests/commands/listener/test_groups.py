"""Message groups: numbered by the queue manager, got in their order, and only when all of a group is there.

Rows of docs/conformance.md: LSN-46.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from commands.qmgr.mqi.handles import Current, Member, is_complete, numbered
from commands.qmgr.mqi.refusals import MqiError
from rfh2.channel.segments import SegmentType
from rfh2.mqi_constants import (
    MQGMO_ALL_MSGS_AVAILABLE,
    MQGMO_BROWSE_FIRST,
    MQGMO_BROWSE_NEXT,
    MQGMO_LOGICAL_ORDER,
    MQGMO_MSG_UNDER_CURSOR,
    MQGMO_SYNCPOINT,
    MQMO_MATCH_GROUP_ID,
    MQMO_MATCH_MSG_SEQ_NUMBER,
    MQOO_BROWSE,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_LOGICAL_ORDER,
    MQPMO_SYNCPOINT,
)
from rfh2.mqmd import Mqmd
from tests.commands.listener.mqi_client import MqiClient

MORE, LAST = {"msg_flags": 0x8}, {"msg_flags": 0x10}
ORDER, WHOLE = MQGMO_LOGICAL_ORDER, MQGMO_ALL_MSGS_AVAILABLE
A, B = b"a" * 24, b"b" * 24

# What is put with MQPMO_LOGICAL_ORDER, one after the other: flags, in syncpoint, persistence; and its group and number.
Step = tuple[int, bool, int, tuple[int, int] | int]
PUTS: list[tuple[str, list[Step]]] = [
    ("two groups", [(8, False, 0, (1, 1)), (8, False, 0, (1, 2)), (0x10, False, 0, (1, 3)), (0x10, False, 0, (2, 1))]),
    ("both flags", [(0x18, False, 0, (1, 1)), (8, False, 0, (2, 1))]),
    ("no group between", [(0, False, 0, (0, 1)), (8, False, 0, (1, 1)), (0, False, 0, 2241), (0x10, False, 0, (1, 2))]),
    ("syncpoint", [(8, True, 0, (1, 1)), (8, False, 0, 2245), (0x10, True, 0, (1, 2)), (8, False, 0, (2, 1))]),
    ("persistence", [(8, False, 1, (1, 1)), (8, False, 0, 2185), (0x10, False, 1, (1, 2)), (8, False, 0, (2, 1))]),
]


@pytest.mark.rule("LSN-46")
@pytest.mark.parametrize("steps", [row[1] for row in PUTS], ids=[row[0] for row in PUTS])
def test_numbers_of_the_queue_manager(steps: list[Step]) -> None:
    current, groups = Current(), [bytes(24)]
    for flags, in_syncpoint, persistence, expected in steps:
        mqmd = Mqmd(version=2, msg_flags=flags, persistence=persistence, group_id=bytes(24))
        if isinstance(expected, int):
            with pytest.raises(MqiError, match=str(expected)):
                current.put(mqmd, in_syncpoint, A)
            continue
        put = current.put(mqmd, in_syncpoint, bytes([len(groups)]) * 24)
        groups += () if put.group_id in groups else (put.group_id,)
        assert (groups.index(put.group_id), put.msg_seq_number) == expected


@pytest.mark.rule("LSN-46")
def test_numbers_of_the_program() -> None:
    assert numbered(Mqmd(version=2, msg_flags=8), A).group_id == A
    own = Mqmd(version=2, msg_flags=8, group_id=B, msg_seq_number=7)
    assert numbered(own, A) == own
    with pytest.raises(MqiError, match="2250"):
        numbered(Mqmd(version=2, msg_flags=8, msg_seq_number=0), A)


@pytest.mark.rule("LSN-46")
@pytest.mark.parametrize("order", ["little", "big"])
def test_what_descriptors_say_of_a_group(order: Any) -> None:
    described = [
        Mqmd(version=2, order=order, group_id=A, msg_flags=flags, msg_seq_number=number).encode()
        for number, flags in ((2, 8), (1, 8), (3, 0x10))
    ]
    assert Member.of(described[2]) == Member(A, 3, True)
    assert Member.of(Mqmd(order=order).encode()) == Member.of(Mqmd(version=2).encode()) == Member(b"", 1, False)
    assert is_complete(described)
    assert not any(is_complete(described[:n] + described[n + 1 :]) for n in range(3))


@pytest.fixture
def client(port: int) -> Iterator[MqiClient]:
    with MqiClient(port) as client:
        assert client.connect() == 0
        yield client


def of(client: MqiClient, queue: int, options: int, **asked: Any) -> bytes | int:
    got = client.get(queue, options, **asked)
    return got.reason or got.body


@pytest.mark.rule("LSN-46")
def test_programs_put_and_get_in_order(client: MqiClient) -> None:
    queue = client.opened("Q", MQOO_INPUT_SHARED | MQOO_BROWSE | MQOO_OUTPUT)
    other = client.opened("Q", MQOO_INPUT_SHARED | MQOO_BROWSE | MQOO_OUTPUT)
    first = client.put(queue, b"a1", MQPMO_LOGICAL_ORDER, **MORE)[1]
    assert (first.group_id != bytes(24), first.msg_seq_number) == (True, 1)
    client.put(other, b"b2", group_id=B, msg_seq_number=2, **LAST)
    client.put(other, b"none")
    assert client.put(queue, b"x", MQPMO_LOGICAL_ORDER)[0] == 2241
    assert client.put1("Q", b"x", MQPMO_LOGICAL_ORDER) == 2046
    # Nothing but what is in no group is whole.
    assert [of(client, other, ORDER | WHOLE), of(client, other, ORDER | WHOLE)] == [b"none", 2033]
    client.put(other, b"b1", group_id=B, msg_seq_number=1, **MORE)
    browsed = [of(client, queue, ORDER | way) for way in (MQGMO_BROWSE_FIRST, *(MQGMO_BROWSE_NEXT,) * 2)]
    assert browsed == [b"a1", 2033, 2033]
    assert of(client, other, WHOLE | MQGMO_BROWSE_FIRST) == b"b2"
    assert [of(client, other, ORDER | WHOLE) for _ in range(3)] == [b"b1", b"b2", 2033]
    last = client.put(queue, b"a2", MQPMO_LOGICAL_ORDER, **LAST)[1]
    assert (last.group_id, last.msg_seq_number) == (first.group_id, 2)
    assert of(client, queue, 0, match=MQMO_MATCH_MSG_SEQ_NUMBER, msg_seq_number=3) == 2033
    assert of(client, queue, ORDER, match=MQMO_MATCH_MSG_SEQ_NUMBER, msg_seq_number=2) == 2247
    by_number = {"match": MQMO_MATCH_MSG_SEQ_NUMBER | MQMO_MATCH_GROUP_ID, "group_id": first.group_id}
    assert of(client, queue, MQGMO_BROWSE_FIRST, msg_seq_number=2, **by_number) == b"a2"
    assert of(client, queue, ORDER | MQGMO_MSG_UNDER_CURSOR) == 2246
    assert [of(client, queue, ORDER | WHOLE) for _ in range(3)] == [b"a1", b"a2", 2033]


@pytest.mark.rule("LSN-46")
def test_units_of_work_and_closing(client: MqiClient) -> None:
    queue = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    client.put(queue, b"1", MQPMO_LOGICAL_ORDER | MQPMO_SYNCPOINT, **MORE)
    assert client.put(queue, b"2", MQPMO_LOGICAL_ORDER, **MORE)[0] == 2245
    client.backout()
    for number in (1, 2):
        assert client.put(queue, b"%d" % number, MQPMO_LOGICAL_ORDER, **MORE)[1].msg_seq_number == number
    assert of(client, queue, ORDER | MQGMO_SYNCPOINT) == b"1"
    assert of(client, queue, ORDER) == 2245
    client.backout()
    assert [of(client, queue, ORDER | MQGMO_SYNCPOINT) for _ in range(3)] == [b"1", b"2", 2033]
    client.commit()
    closed = client.call(SegmentType.MQCLOSE, client.long(0), queue)
    assert (closed.comp_code, closed.reason) == (1, 2241)
    assert client.call(SegmentType.MQCLOSE, client.long(0), queue).reason == 2019
