"""What comes from a tree that is logs, and what the bridge remembers of it: each message once, whatever breaks."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.filters import FollowedFilters, Positions
from commands.links.engine.inbound_writer import NativePublication
from commands.links.engine.log_adapter import LogAdapter, LogReceiver
from commands.links.engine.logs import batches
from commands.links.engine.properties import TreeMessage
from commands.links.kafka.adapter import LastMessages, SentMarks
from tests.commands.links.engine.memory_logs import MemoryLogs

LOG = logging.getLogger("qpubsub.memory")


def _record(data: str, topic: str | None = "a", by: str | None = None, **more: object) -> TreeMessage:
    headers = () if by is None else (("mq.Bridge", by),)
    return TreeMessage(topic, data.encode(), headers, **more)  # type: ignore[arg-type]


def _receiver(
    tmp_path: Path, logs: MemoryLogs, kept: Positions | None = None, since: Positions | None = None
) -> tuple[LogReceiver[TreeMessage], FollowedFilters]:
    filters = FollowedFilters(tmp_path / "filters.json")
    filters.add("/a/#", since or {})
    receiver = LogReceiver(logs, filters, "", LOG)
    receiver.kept = lambda: kept
    return receiver, filters


def _payloads(receiver: LogReceiver[TreeMessage], limit: int = 10) -> list[bytes]:
    return [each.payload for each in receiver.take(limit, 0.0).publications]


def test_what_was_undone_comes_again_and_what_was_accepted_does_not(tmp_path: Path) -> None:
    logs = MemoryLogs(s=[_record(str(n)) for n in range(5)])
    receiver, _ = _receiver(tmp_path, logs)
    assert _payloads(receiver, 2) == [b"0", b"1"]
    receiver.undo()
    again = receiver.take(2, 0.0)
    assert (again.position, [each.payload for each in again.publications]) == ({"s": 1}, [b"0", b"1"])
    receiver.accept()
    assert _payloads(receiver) == [b"2", b"3", b"4"]
    receiver.accept()
    assert _payloads(receiver) == []


def test_a_reader_that_fails_is_opened_anew_behind_what_was_accepted(tmp_path: Path) -> None:
    logs = MemoryLogs(s=[_record("0"), TreeUnreachableError("broken"), _record("2")])
    receiver, _ = _receiver(tmp_path, logs)
    assert _payloads(receiver) == [b"0"]
    receiver.accept()
    with pytest.raises(TreeUnreachableError):
        receiver.take(10, 0.0)
    logs.logs["s"][1] = _record("1")
    assert _payloads(receiver) == [b"1", b"2"]
    assert logs.opened == [{"s": -1}, {"s": 0}]


BEGINNINGS = [
    # id, the position that was kept, since when the filter is there, where reading begins
    ("nothing is known", None, {}, -1),
    ("the position counts", {"s": 2}, {"s": 1}, 2),
    ("the filter is younger", {"s": 1}, {"s": 3}, 3),
    ("a log that nobody knew is read whole", {"other": 7}, {"other": 7}, -1),
    ("it begins later by now", {"s": 0}, {}, 0),
    ("it was made anew", {"s": 9}, {"s": 9}, -1),
]


@pytest.mark.parametrize(
    ("kept", "since", "begin"), [row[1:] for row in BEGINNINGS], ids=[row[0] for row in BEGINNINGS]
)
def test_where_reading_begins(tmp_path: Path, kept: Positions | None, since: Positions, begin: int) -> None:
    logs = MemoryLogs(s=[_record(str(n)) for n in range(5)])
    receiver, _ = _receiver(tmp_path, logs, kept, since)
    assert _payloads(receiver) == [b"%d" % n for n in range(begin + 1, 5)]
    assert logs.opened == [{"s": begin}]


def test_what_is_gone_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logs = MemoryLogs(s=[_record(str(n)) for n in range(5)])
    logs.first["s"] = 3
    receiver, _ = _receiver(tmp_path, logs, {"s": 0, "old": 5})
    assert _payloads(receiver) == [b"3", b"4"]
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "old is gone: what natives published there and had not come yet is lost",
        "s: what natives published at positions 1 to 2 is gone",
    ]


RECORDS = [
    # id, a record, what is made of it: nothing, a publication, or what cannot be read
    ("a native one", _record("x"), NativePublication),
    ("by this bridge", _record("x", by="bridge"), None),
    ("by another one", _record("x", by="other"), NativePublication),
    ("a copy by another one", _record("x", by="other", is_copy=True), None),
    ("a copy by a native program", _record("x", is_copy=True), NativePublication),
    ("that nobody has subscribed to", _record("x", "b"), None),
    ("on no topic", _record("x", None), "unreadable"),
    ("on no topic, but near one that is selected", _record("x", None, near="a/b"), "unreadable"),
    ("on no topic, and near one that is not", _record("x", None, near="b"), None),
    ("expired", _record("x", expires_at=1.0), None),
    ("a fault of ours", _record("a fault"), "unreadable"),
]


@pytest.mark.parametrize(("record", "wanted"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_what_is_made_of_a_record(tmp_path: Path, record: TreeMessage, wanted: object) -> None:
    receiver, _ = _receiver(tmp_path, MemoryLogs(s=[record]))
    arrivals = receiver.take(10, 0.0)
    kinds = [
        NativePublication if isinstance(each, NativePublication) else "unreadable" for each in arrivals.publications
    ]
    assert (kinds, arrivals.count) == ([] if wanted is None else [wanted], 1)


def test_without_filters_nothing_is_read_and_nothing_waits(tmp_path: Path) -> None:
    logs = MemoryLogs(s=[_record("old")])
    receiver, filters = _receiver(tmp_path, logs)
    filters.remove("/a/#")
    assert _payloads(receiver) == []
    receiver.look()
    assert (receiver.is_waiting, logs.opened) == (False, [])
    filters.follow(["/a"], logs.ends())
    receiver.look()
    assert receiver.is_waiting, "until it was read once"
    logs.logs["s"].append(_record("new"))
    assert _payloads(receiver) == [b"new"]
    receiver.accept()
    assert _payloads(receiver) == []
    assert not receiver.is_waiting


def test_positions_before_which_there_was_nothing_are_kept_too_but_seldom(tmp_path: Path) -> None:
    logs = MemoryLogs(s=[_record("x", "b")])
    receiver, _ = _receiver(tmp_path, logs)
    first = receiver.take(10, 0.0)
    assert (first.position, first.count) == ({"s": 0}, 1), "the first one"
    receiver.accept()
    logs.logs["s"].append(_record("x", "b"))
    assert receiver.take(10, 0.0).position is None, "it is soon after"


class Adapter(LogAdapter[TreeMessage]):
    log = LOG


def test_what_is_retained_without_what_is_the_bridges_own(tmp_path: Path) -> None:
    logs = MemoryLogs(
        kept=[
            _record("old", "a/1", is_kept=True),
            _record("new", "a/1", is_kept=True),
            _record("own", "a/2", by="bridge", is_kept=True),
            _record("", "a/3", is_kept=True, clears=True),
            _record("elsewhere", "b", is_kept=True),
        ]
    )
    found = Adapter(logs, tmp_path / "filters.json", "").client().retained(["/a/#"])
    assert [(each.topic, each.payload) for each in found.natives] == [("a/1", b"new")]
    assert found.topics == {"a/1", "a/2"}


def test_last_messages_follow_the_log_and_begin_anew_with_it() -> None:
    logs = MemoryLogs(s=[_record("1", "a"), _record("2", "b"), _record("3", "a")])

    def entry(record: TreeMessage) -> tuple[bytes, TreeMessage | None]:
        return (record.topic or "").encode(), record if record.payload else None

    last = LastMessages(lambda positions: logs.reader(positions, tuple), logs.ends, entry, 0.0)
    assert {key: each.payload for key, each in last.read().items()} == {b"b": b"2", b"a": b"3"}
    logs.logs["s"].append(_record("", "b"))
    assert list(last.read()) == [b"a"]
    assert logs.opened == [{"s": 3}], "it reads on"
    logs.logs["s"] = [_record("new", "c")]
    assert list(last.read()) == [b"c"]
    logs.logs["s"].append(TreeUnreachableError("broken"))
    with pytest.raises(TreeUnreachableError):
        last.read()


BATCHES = [
    ("all at once", "aabb", 100, False, ["aabb"]),
    ("by their length", "aaaaa", 2, False, ["aaa", "aa"]),
    ("apart", "abacb", 100, True, ["ab", "acb"]),
    ("none", "", 1, True, []),
]


@pytest.mark.parametrize(
    ("given", "most", "apart", "wanted"), [row[1:] for row in BATCHES], ids=[r[0] for r in BATCHES]
)
def test_batches(given: str, most: int, apart: bool, wanted: list[str]) -> None:
    found = batches(given, len, most, (lambda each: each) if apart else None)
    assert ["".join(each) for each in found] == wanted


def test_marks_of_what_was_sent_are_there_until_it_has_left_the_queue() -> None:
    before, marks = SentMarks(4), SentMarks(5)
    record = before.record([b"1", b"2"]).encode()
    assert (marks.read(None), marks.read(record)) == (-1, 4)
    assert [marks.has(key) for key in (b"1", b"2", b"3")] == [True, True, False]
    marks.left()
    assert marks.has(b"1"), "a batch that was sent before says nothing of the rest of it"
    marks.sent([b"3"])
    assert json.loads(marks.record([]))["epoch"] == 5
    assert len(json.loads(marks.record([b"4"]))["sent"]) == 4 * 16
    marks.left()
    assert not any(marks.has(key) for key in (b"1", b"2", b"3"))
