"""Messages for programs that share their connection, in the segments that IBM's Java classes read.

Rows of docs/conformance.md: LSN-39, LSN-40, LSN-78.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from rfh2.channel.layouts import REQUEST_MSGS
from rfh2.channel.segments import CALL, LAST, SegmentType, Structure
from rfh2.layouts import MQMD2
from rfh2.mqi_constants import (
    MQGMO_ACCEPT_TRUNCATED_MSG,
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_ASYNC_RESPONSE,
    MQRC_TRUNCATED_MSG_ACCEPTED,
    MQRC_TRUNCATED_MSG_FAILED,
)
from rfh2.mqmd import Mqmd
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient

IN_OUT = MQOO_INPUT_SHARED | MQOO_OUTPUT
NOTHING = (11, 0)


@pytest.fixture
def client(port: int) -> Iterator[MqiClient]:
    """A connected program that shares its connection."""
    with MqiClient(port, sharing=10) as client:
        client.share_connection()
        assert client.connect() == 0
        yield client


@pytest.mark.rule("LSN-39")
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 32_600, 100_001])
def test_each_segment_is_as_long_as_a_multiple_of_4(client: MqiClient, length: int) -> None:
    """IBM's Java classes misread the reply behind one that is not, where both come together."""
    handle, body = client.opened("Q", IN_OUT), bytes(n % 251 for n in range(length))
    for _ in range(2):
        assert client.put(handle, body)[0] == 0
    client.request_message(handle)
    got = client.streamed()
    assert (got.reason, got.body, got.length) == (0, body, length)
    assert [size % 4 for size in got.segments] == [0] * len(got.segments)
    client.request_get(handle)
    last = False
    while not last:
        received = client.receive()
        assert received is not None
        header, payload = received
        assert (header.size + len(payload)) % 4 == 0
        last = bool(header.flags & LAST)


@pytest.mark.rule("LSN-40")
@pytest.mark.parametrize("options", [0, MQGMO_SYNCPOINT])
@pytest.mark.parametrize("longest", [0, 4])
def test_a_message_longer_than_the_buffer_stays_and_its_length_is_said(
    client: MqiClient, longest: int, options: int
) -> None:
    handle = client.opened("Q", IN_OUT)
    client.put(handle, b"0123456789")
    client.request_message(handle, options, longest=longest)
    cut = client.streamed()
    assert (cut.reason, cut.body, cut.length) == (MQRC_TRUNCATED_MSG_FAILED, b"0123456789"[:longest], 10)
    client.request_message(handle, options, longest=cut.length, seq=cut.seq)
    assert client.streamed().body == b"0123456789"
    client.request_message(handle, options)
    assert client.streamed().notified == NOTHING


def test_a_message_whose_end_may_be_lost(client: MqiClient) -> None:
    handle = client.opened("Q", IN_OUT)
    client.put(handle, b"0123456789")
    client.request_message(handle, MQGMO_ACCEPT_TRUNCATED_MSG, longest=4)
    cut = client.streamed()
    assert (cut.reason, cut.body, cut.length) == (MQRC_TRUNCATED_MSG_ACCEPTED, b"0123", 10)
    client.request_message(handle)
    assert client.streamed().notified == NOTHING


@pytest.mark.rule("LSN-40")
def test_other_conversations_have_their_turn_while_a_long_message_is_sent(client: MqiClient, home: Path) -> None:
    """Nothing is read before all was asked for; the message is longer than what the sockets of both ends hold."""
    body = bytes(range(256)) * 80_000
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.put("Q", Mqmd().encode(), body)
    handle = client.opened("Q", IN_OUT)
    for other in (3, 5):
        client.share_connection(other)
        assert client.connect() == 0
    client.conversation = 1
    client.request_message(handle)
    for other in (3, 5):
        client.conversation = other
        client.request(SegmentType.MQCMIT)
    of: list[int | None] = []
    is_last, count = False, 0
    while not is_last:
        received = client.receive()
        assert received is not None
        header, payload = received
        of.append(header.conversation)
        if header.kind == SegmentType.ASYNC_MESSAGE:
            count += len(payload)
            is_last = bool(header.flags & LAST)
    assert of[0] == of[-1] == 1
    assert (of.count(3), of.count(5)) == (1, 1)
    assert len(body) < count < len(body) + 32 * len(of)


@pytest.mark.rule("LSN-40")
def test_puts_without_an_answer_wait_for_their_turn(home: Path) -> None:
    """As many as a program likes, and more than the listener may hold: it reads them when there is room."""
    with listener_at(home, memory_bytes=8_000_000) as port, MqiClient(port, sharing=10) as client:
        client.share_connection()
        assert client.connect() == 0
        handle = client.opened("Q", IN_OUT)
        for size in [*[10] * 500, *[1_000_000] * 20]:
            client.put_unanswered(handle, bytes(size), MQPMO_ASYNC_RESPONSE)
        assert client.status() == (0, 0, 520, 0, "")


@pytest.mark.rule("LSN-78")
def test_a_program_that_reads_ahead_gets_what_it_has_room_for(client: MqiClient) -> None:
    handle, size = client.opened("Q", IN_OUT), MQMD2.size + 1
    for number in range(9):
        client.put(handle, b"%d" % number, persistence=int(number == 6))

    def ask(room: int, last: int, flags: int) -> None:
        asks = Structure.new(REQUEST_MSGS, client.order)
        asks["Version"], asks["ObjectHandle"], asks["MaxMsgLength"] = 1, handle, -1
        asks["BytesRequested"], asks["GlobalMessageIndex"], asks["Flags"] = room, last, flags
        client.send(client.header(SegmentType.REQUEST_MSGS)._replace(request=1).write(bytes(asks)))

    def came(count: int) -> bytes:
        return b"".join(client.streamed().body for _ in range(count))

    ask(3 * size, 0, CALL)
    assert came(3) == b"012"
    ask(3 * size, 1, 0)  # two are on their way to it
    assert came(1) == b"3"
    ask(size, 2, 0)  # as are two now: it gets none
    ask(100 * size, 4, 0)
    assert came(2) == b"45"  # and not the persistent one
    ask(100 * size, 6, CALL)
    assert came(3) == b"678"
    ask(100 * size, 9, CALL)
    assert client.streamed().notified == NOTHING
