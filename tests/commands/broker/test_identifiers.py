"""What the queue manager stamps: identifiers that are unique and ascend, names that fit their fields."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commands.broker.descriptor import Ids, Origin, fitting, message_id

IDS = [
    ("6.7.9-first", "QM1", 1, 1, b"AMQ QM1         \0\0\0\0\1\0\0\1"),
    ("name-cut-to-12", "A.LONG.QUEUE.MANAGER", 1, 2, b"AMQ A.LONG.QUEUE\0\0\0\0\1\0\0\2"),
    ("five-bytes", "QM1", 2**40 - 1, 1, b"AMQ QM1         \xff\xff\xff\xff\xff\0\0\1"),
    ("more-than-five-bytes", "QM1", 2**40, 1, b"AMQ QM1      \x80\0\1\0\0\0\0\0\0\0\1"),
    (
        "more-than-five-bytes-and-a-long-name",
        "A.LONG.QUEUE.MANAGER",
        2**40,
        1,
        b"AMQ A.LONG.QU\x80\0\1\0\0\0\0\0\0\0\1",
    ),
]


@pytest.mark.parametrize(("qmgr", "seq", "n", "expected"), [row[1:] for row in IDS], ids=[row[0] for row in IDS])
def test_message_ids(qmgr: str, seq: int, n: int, expected: bytes) -> None:
    assert message_id(qmgr, seq, n) == expected


def test_ids_of_one_command_and_of_the_next_ascend() -> None:
    first, second = Ids("QM1", 7), Ids("QM1", 8)
    made = [first(), first(), first(), second(), second()]
    assert made == sorted(set(made))


def test_6_7_9_put_date_and_time_are_utc_to_hundredths() -> None:
    origin = Origin.of("QM1", datetime(2009, 1, 28, 11, 43, 54, 189_999, tzinfo=UTC))
    assert (origin.put_date, origin.put_time) == ("20090128", "11435418")


NAMES = [
    ("fits", "app1", 12, "app1"),
    ("too-long", "a-very-long-user", 12, "a-very-long-"),
    ("no-latin-1", "Łukasz", 12, "?ukasz"),
    ("latin-1", "José", 12, "José"),
]


@pytest.mark.parametrize(("name", "size", "expected"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_names_fit_their_fields(name: str, size: int, expected: str) -> None:
    assert fitting(name, size) == expected
