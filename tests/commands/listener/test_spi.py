"""SPI calls: what Java programs use beside the MQI, in each version in which they ask.

Rows of docs/conformance.md: LSN-41, LSN-42.
"""

from __future__ import annotations

from collections.abc import Iterator
from select import select

import pytest

from rfh2.channel.layouts import LPOO, MQGMO, MQOD, SPGO2, SPI, SPI_BLOCK
from rfh2.channel.segments import FAILURE, SegmentType, Structure
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQRC_FUNCTION_NOT_SUPPORTED,
    MQRC_NO_MSG_AVAILABLE,
    MQRC_TRUNCATED_MSG_FAILED,
)
from tests.commands.listener.mqi_client import MqiClient

XWAIT_CANCELED = 2107
_GET, _NOTIFY, _OPEN = 3, 11, 12
_COMMIT = 2


@pytest.fixture(params=[0, 10], ids=["alone", "shared"])
def client(port: int, request: pytest.FixtureRequest) -> Iterator[MqiClient]:
    """A connected program, whose connection is shared or not."""
    with MqiClient(port, sharing=request.param) as client:
        if request.param:
            client.share_connection()
        assert client.connect() == 0
        yield client


@pytest.mark.rule("LSN-41")
@pytest.mark.parametrize(("spoi", "version", "policy"), [(1, 1, 0), (2, 3, 216)])
def test_an_open_is_answered_in_the_version_that_was_asked(
    client: MqiClient, spoi: int, version: int, policy: int
) -> None:
    """IBM's Java classes 9.0 and 9.1.0 ask in version 1, later ones in version 3."""
    lpoo = client.structure(LPOO[version], "LPOO", version, Options=MQOO_INPUT_SHARED | MQOO_OUTPUT)
    reply = client.spi(_OPEN, "SPO", bytes(lpoo) + client.od("Q"), spoi)
    assert reply.reason == 0
    at = SPI.size + SPI_BLOCK.size
    block = Structure(SPI_BLOCK, bytearray(reply.body), at, client.order)
    assert (block["StrucId"], block["Version"], block["StrucLength"]) == (b"SPOO", spoi, len(reply.body) - at)
    opened = Structure(MQOD[2], bytearray(reply.body), block.end + LPOO[version].size, client.order)
    assert (opened["StrucId"], opened.text("ObjectName"), opened["KnownDestCount"]) == (b"OD  ", "Q", 1)
    assert len(reply.body) - opened.end == policy
    assert client.put(reply.handle, b"x")[0] == 0
    assert client.get(reply.handle).body == b"x"


def get(client: MqiClient, handle: int, options: int, longest: int = 4096) -> tuple[int, bytes, int]:
    """The SPI call that gets: reason, data and length."""
    gmo = client.structure(MQGMO[3], "GMO ", 3, Options=MQGMO_SYNCPOINT)
    wanted = b"".join(map(client.long, (1, 1, longest, options)))
    described = client.md() + bytes(gmo)
    reply = client.spi(_GET, "SPG", wanted, 2, handle, described)
    spgo = Structure(SPGO2, bytearray(reply.body), SPI.size + SPI_BLOCK.size + len(described), client.order)
    assert (spgo["StrucId"], spgo["Version"], spgo["StrucLength"]) == (b"SPGO", 2, len(reply.body) - spgo.at)
    return reply.reason, reply.body[spgo.end :], spgo["DataLength"]


@pytest.mark.rule("LSN-42")
def test_a_get_can_acknowledge_what_was_got_before(client: MqiClient) -> None:
    """As JMS programs in queued mode get publications with SYNCPOINTALLGETS; they call MQCMIT after the last one."""
    handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    for body in (b"one", b"two", b"three"):
        assert client.put(handle, body)[0] == 0
    assert client.get(handle, MQGMO_SYNCPOINT).body == b"one"
    assert get(client, handle, _COMMIT) == (0, b"two", 3)
    assert client.backout() == 0
    assert get(client, handle, 0) == (0, b"two", 3)
    assert get(client, handle, 0, longest=2) == (MQRC_TRUNCATED_MSG_FAILED, b"th", 5)
    assert get(client, handle, 0) == (0, b"three", 5)
    assert get(client, handle, _COMMIT) == (MQRC_NO_MSG_AVAILABLE, b"", 0)
    assert client.backout() == 0
    assert client.get(handle).reason == MQRC_NO_MSG_AVAILABLE


def cancel(client: MqiClient, connection_id: bytes, action: int = 1) -> int:
    """End the waits of the program whose connection has that identifier; the reason."""
    return client.spi(_NOTIFY, "SPN", client.long(action) + client.long(XWAIT_CANCELED) + connection_id).reason


def answers(client: MqiClient) -> bool:
    """Whether anything has come for it, or comes soon."""
    return bool(select([client.socket], [], [], 0.1)[0])


@pytest.mark.rule("LSN-42")
def test_a_wait_is_ended_by_another_thread_of_the_program(client: MqiClient, port: int) -> None:
    """A thread closes what another one is receiving from: the wait ends with the reason that it gives."""
    handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    with MqiClient(port) as other:
        assert other.connect() == 0
        assert cancel(other, client.connection_id) == 0  # nothing waits
        client.request_get(handle, wait_ms=-1)
        while not answers(client):
            assert cancel(other, client.connection_id) == 0
        assert client.reply(SegmentType.MQGET).reason == XWAIT_CANCELED
        assert client.get(handle).reason == MQRC_NO_MSG_AVAILABLE
        assert cancel(other, bytes(24)) == 0
        assert cancel(other, client.connection_id, action=2) == MQRC_FUNCTION_NOT_SUPPORTED


def test_a_streamed_wait_is_ended_too(port: int) -> None:
    with MqiClient(port, sharing=10) as client:
        client.share_connection()
        assert client.connect() == 0
        handle, waiting = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT), client.connection_id
        client.share_connection(3)
        assert client.connect() == 0
        client.conversation = 1
        client.request_message(handle, wait_ms=-1)
        client.conversation = 3
        assert cancel(client, waiting) == 0
        assert client.streamed().notified == (FAILURE, XWAIT_CANCELED)


@pytest.mark.rule("LSN-42")
def test_another_user_ends_no_wait(client: MqiClient, port: int) -> None:
    handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    client.request_get(handle, wait_ms=-1)
    with MqiClient(port) as other:
        assert other.connect("bob") == 0
        assert cancel(other, client.connection_id) == 0
        assert other.put1("Q", b"x") == 0
    assert client.reply(SegmentType.MQGET).reason == 0
