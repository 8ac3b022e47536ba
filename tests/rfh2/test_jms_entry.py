"""Entries of SYSTEM.JMS.ADMIN.QUEUE: the layout that an independent program writes, both versions, both byte orders."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rfh2.errors import DecodeError
from rfh2.jms_entry import SIGNATURES, JmsEntry, decode_entry, is_entry

BIG, LITTLE = 273, 546
QUEUE = "SYSTEM.JMS.D.SUBSCRIBER.QUEUE"

ENTRIES = [
    (
        "version 1: the queue is padded, no selector",
        b"MQJMS_PS_ADMIN_ENTRY\0\0\0\x05c1:s1\0\0\0\x03a/b\0\0\0\x30" + QUEUE.ljust(48).encode() + b"\0\0\0\0\0n",
        JmsEntry(1, "c1:s1", "a/b", QUEUE.ljust(48), flags=b"\0n"),
    ),
    (
        "version 2: a selector",
        b"MQJMS_PS_SUBENTRY_v2\0\0\0\x05c1:s1\0\0\0\x03a/b\0\0\0\x01Q\0\0\0\x03x=1\0y\0y\0u",
        JmsEntry(2, "c1:s1", "a/b", "Q", "x=1", b"\0y\0y\0u"),
    ),
    (
        "version 2, the other byte order",
        b"MQJMS_PS_SUBENTRY_v2\x01\0\0\0:\x01\0\0\0#\x01\0\0\0Q\0\0\0\0\0n\0y\0i",
        JmsEntry(2, ":", "#", "Q", "", b"\0n\0y\0i", "little"),
    ),
]


@pytest.mark.parametrize(("body", "entry"), [each[1:] for each in ENTRIES], ids=[each[0] for each in ENTRIES])
def test_entries_both_ways(body: bytes, entry: JmsEntry) -> None:
    assert decode_entry(body, LITTLE if entry.order == "little" else BIG) == entry
    assert entry.encode() == body


def test_what_an_entry_says() -> None:
    entry = ENTRIES[0][2]
    assert (entry.client_id, entry.name, entry.queue_name) == ("c1", "s1", QUEUE)


@pytest.mark.parametrize("encoding", [BIG, LITTLE])
def test_a_byte_order_that_the_descriptor_does_not_tell_is_found(encoding: int) -> None:
    assert {decode_entry(body, encoding).order for _, body, _ in ENTRIES} == {"big", "little"}


BAD = [
    ("another message", b"hello", 0, "no signature"),
    ("the signature alone", b"MQJMS_PS_SUBENTRY_v2", 20, "the client and name would take 0 bytes, and 0 are left"),
    ("a length beyond the end", b"MQJMS_PS_SUBENTRY_v2\0\0\1\0c", 20, "would take 256 bytes, and 1 are left"),
    ("not UTF-8", b"MQJMS_PS_SUBENTRY_v2\0\0\0\2c\xff" + bytes(18), 25, "the client and name is not UTF-8"),
    ("too few flags", ENTRIES[1][1][:-1], 48, "5 bytes are left for the flags, not 6"),
    ("bytes behind the flags", ENTRIES[1][1] + b"x", 48, "7 bytes are left for the flags, not 6"),
]


@pytest.mark.parametrize(("body", "offset", "why"), [each[1:] for each in BAD], ids=[each[0] for each in BAD])
def test_what_is_no_entry_is_refused_with_its_offset(body: bytes, offset: int, why: str) -> None:
    with pytest.raises(DecodeError, match="JMS subscription entry") as refused:
        decode_entry(body, BIG)
    assert why in refused.value.why
    assert refused.value.offset == offset


_TEXT = st.text(max_size=30)


@given(
    st.builds(JmsEntry, st.sampled_from([1, 2]), _TEXT, _TEXT, _TEXT, _TEXT, st.just(b""), st.just("big")), st.data()
)
def test_decode_is_the_inverse_of_encode(entry: JmsEntry, data: st.DataObject) -> None:
    size = {1: 2, 2: 6}[entry.version]
    flags = data.draw(st.binary(min_size=size, max_size=size))
    made = JmsEntry(entry.version, entry.identity, entry.topic, entry.queue, entry.selector, flags, entry.order)
    assert decode_entry(made.encode(), BIG) == made


@given(st.binary(max_size=120), st.sampled_from([*SIGNATURES, b""]), st.sampled_from([BIG, LITTLE, 0]))
def test_any_bytes_give_an_entry_or_our_error(data: bytes, signature: bytes, encoding: int) -> None:
    body = signature + data
    try:
        assert decode_entry(body, encoding).encode() == body
    except DecodeError:
        pass
    else:
        assert is_entry(body)
