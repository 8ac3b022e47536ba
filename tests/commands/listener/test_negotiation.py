"""INITIAL_DATA: what the listener accepts of an offer, and how it says what it does not."""

from __future__ import annotations

import pytest

from commands.listener.wire import Most, NegotiationAnswer, answer_to_offer
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_PROTECTION, ID_SHARING
from rfh2.channel.segments import Structure, turned
from rfh2.errors import DecodeError

WHOLE = ID_BEGIN.size + ID_MORE.size + ID_SHARING.size + ID_PROTECTION.size


def offer(length: int = WHOLE, **fields: int) -> bytes:
    """An offer of which nothing is refused, with other *fields*; cut to *length*, as older clients send it."""
    data = bytearray(WHOLE)
    values = {
        "FapLevel": 13,
        "CapabilityFlags1": 0x26,
        "MaxTransmissionSize": 32_748,
        "MaxMessageSize": 4_194_304,
        "CapabilityFlags2": 0x51,
        "HeartbeatInterval": 300,
        "ConversationsPerSocket": 10,
        "CapabilityFlags3": 0x20,
    }
    at = 0
    for layout in (ID_BEGIN, ID_MORE, ID_SHARING):
        part = Structure(layout, data, at, "little")
        for name, value in (values | fields).items():
            if name in layout.names:
                part[name] = value
        at = part.end
    Structure(ID_BEGIN, data, 0, "little").put_text("ChannelName", "APP.SVRCONN")
    return bytes(data[:length])


def answered(data: bytes, **options: int) -> NegotiationAnswer:
    return answer_to_offer(data, "little", "QM1", bytes(12), Most(**options))


def test_an_offer_that_is_accepted() -> None:
    found = answered(offer())
    assert found.is_agreed
    terms = found.terms
    assert (terms.fap, terms.channel, terms.conversations, terms.largest) == (13, "APP.SVRCONN", 10, 32_748)


@pytest.mark.parametrize(
    ("fields", "errors", "refused"),
    [
        ({"FapLevel": 99}, 0x08, (0, 0, 0)),
        ({"MaxTransmissionSize": 100_000}, 0x04, (0, 0, 0)),
        ({"MaxMessageSize": 2_000_000_000}, 0x10, (0, 0, 0)),
        ({"HeartbeatInterval": 1}, 0x80, (0, 0, 0)),
        ({"CapabilityFlags1": 0x2F}, 0, (0x09, 0, 0)),
        ({"CapabilityFlags2": 0x71}, 0, (0, 0x20, 0)),
        ({"CapabilityFlags3": 0x28}, 0, (0, 0, 0x08)),
    ],
)
def test_what_is_not_accepted_is_marked_and_then_agreed(
    fields: dict[str, int], errors: int, refused: tuple[int, int, int]
) -> None:
    first = answered(offer(**fields))
    begin = Structure(ID_BEGIN, bytearray(first.payload), 0, "little")
    more = Structure(ID_MORE, bytearray(first.payload), ID_BEGIN.size, "little")
    shared = Structure(ID_SHARING, bytearray(first.payload), more.end, "little")

    assert not first.is_agreed
    assert begin["ErrorFlags1"] == errors
    assert (begin["NotAccepted1"], more["NotAccepted2"], shared["NotAccepted3"]) == refused
    assert answered(first.payload).is_agreed


@pytest.mark.parametrize(
    ("header", "message", "errors"),
    [([0, 255], [9, 255], 2), ([8, 255], [0, 255], 1), ([8, 0], [9, 10, 0, 255], 3), ([0, 0], [0, 255], 0)],
)
def test_nothing_is_compressed(header: list[int], message: list[int], errors: int) -> None:
    """A client that has it in its list further behind would compress all the same."""
    data = bytearray(offer())
    shared = Structure(ID_SHARING, data, ID_BEGIN.size + ID_MORE.size, "little")
    shared["HeaderCompression"], shared["MessageCompression"] = bytes(header), bytes(message).ljust(16, b"\xff")
    first = answered(bytes(data))
    told = Structure(ID_SHARING, bytearray(first.payload), shared.at, "little")
    assert (told["ErrorFlags2"], first.is_agreed) == (errors, not errors)
    assert (told["HeaderCompression"], told["MessageCompression"]) == (b"\0\xff", b"\0" + b"\xff" * 15)


@pytest.mark.parametrize("length", [ID_BEGIN.size, ID_BEGIN.size + ID_MORE.size, WHOLE - ID_PROTECTION.size])
def test_older_clients_offer_less(length: int) -> None:
    found = answered(offer(length, FapLevel=4))
    assert (found.is_agreed, len(found.payload)) == (True, length)
    assert found.terms.conversations == (10 if length >= WHOLE - ID_PROTECTION.size else 0)


def test_no_conversations_are_shared_where_none_may_be() -> None:
    assert answered(offer(), sharing=0).terms.conversations == 0


@pytest.mark.parametrize(("ours", "theirs", "agreed"), [(300, 1, 300), (1, 300, 300), (5, 5, 5), (300, 0, 0)])
def test_the_longer_heartbeat_interval_is_agreed(ours: int, theirs: int, agreed: int) -> None:
    assert answered(offer(HeartbeatInterval=theirs), heartbeat_s=ours).terms.heartbeat_s == agreed


def test_the_shorter_longest_message_is_agreed() -> None:
    assert answered(offer(), longest_message=65_536).terms.longest_message == 65_536


def test_a_queue_managers_channel_is_told_apart() -> None:
    assert not answered(offer(CapabilityFlags1=0x06)).terms.is_client


def test_an_offer_is_turned_into_the_other_byte_order_and_back() -> None:
    there = turned(offer(), "little", "big")
    assert there != offer()
    assert turned(there, "big", "little") == offer()


def test_an_offer_that_is_cut() -> None:
    with pytest.raises(DecodeError):
        answered(offer(20))
