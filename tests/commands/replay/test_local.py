"""The local replay that makes publications from templates gives the same puts and counts as the one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO

import pytest
from hypothesis import given

from commands.replay import LocalReplay, OutOfOrderError, RepeatedSeqError
from commands.replay.arrivals import DEFAULT_QMGR, in_order
from commands.replay.put_lines import PutLines
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from tests.commands.qmgr.test_processor_templates import by_template
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, interleaved, messages
from tests.examples import FEW


def _check(capture: Sequence[CapturedMessage], setup: str, semantics: str) -> int:
    """Compare both ways; how many messages went the short one."""
    whole, short = LocalReplay(setup, semantics), LocalReplay(setup, semantics)
    written = BytesIO()
    lines = PutLines(written)
    again = 0
    for message in capture:
        outcome = short.put_all(message)
        again += by_template(outcome)
        lines.add(message.seq, message.qmgr or DEFAULT_QMGR, outcome.puts)
    wanted = [put.model_dump_json() for put in whole.puts(capture)]
    assert written.getvalue().decode().splitlines() == wanted
    assert short.counts == whole.counts
    return again


@pytest.mark.parametrize(("setup", "semantics"), [(SETUP, "v7"), (SETUP, "v6"), (EXPIRING, "v7")])
def test_any_small_capture(setup: str, semantics: str) -> None:
    @FEW
    @given(capture=messages(None))
    def check(capture: list[CapturedMessage]) -> None:
        _check(interleaved([capture], ()), setup, semantics)

    check()


def test_a_workload_goes_mostly_the_short_way() -> None:
    options = WorkloadOptions(messages=1500, topics=30, subscribers=40, control=0.03, errors=0.02, strays=0.01, qmgrs=2)
    assert _check(list(Workload(options).messages()), setup_script(options), "v7") > 500


def test_order_is_checked_on_both_ways() -> None:
    replay = LocalReplay()
    replay.put_all(CapturedMessage(seq=2, queue="Q", body_hex=""))
    with pytest.raises(OutOfOrderError):
        replay.put_all(CapturedMessage(seq=1, queue="Q", body_hex=""))


def _message(seq: int, qmgr: str | None, body: bytes = b"", second: int | None = None) -> CapturedMessage:
    time = None if second is None else datetime(2026, 1, 1, second=second, tzinfo=UTC)
    return CapturedMessage(seq=seq, qmgr=qmgr, queue="Q", body_hex=body.hex(), time=time)


# (messages, the places of those that are replayed); None: an error
SAME_SEQ: list[tuple[list[CapturedMessage], list[int] | None]] = [
    ([], []),
    ([_message(1, "B"), _message(1, "A"), _message(2, "A")], [1, 0, 2]),
    ([_message(1, "R"), _message(1, None), _message(1, "A")], [2, 1, 0]),  # none is QM1
    ([_message(1, "A", b"x"), _message(1, "B"), _message(1, "A", b"x")], [0, 1]),
    ([_message(1, None), _message(1, "QM1")], [0]),
    ([_message(1, "A", b"x"), _message(2, "A", b"x")], [0, 1]),
    ([_message(1, "A", b"x"), _message(1, "A", b"y")], None),
]


@pytest.mark.parametrize(("capture", "wanted"), SAME_SEQ)
def test_one_seq_several_times(capture: list[CapturedMessage], wanted: list[int] | None) -> None:
    if wanted is None:
        with pytest.raises(RepeatedSeqError, match="seq 1 is that of two different messages at queue manager A"):
            list(in_order(capture))
    else:
        assert list(in_order(capture)) == [capture[at] for at in wanted]


def test_a_monotonic_clock_never_goes_back() -> None:
    seconds = [("A", 5), ("A", 3), ("B", 1), ("A", None), ("A", 4), ("A", 6), ("B", 2)]
    capture = [_message(seq, qmgr, second=second) for seq, (qmgr, second) in enumerate(seconds)]
    times = [message.time and message.time.second for message in in_order(capture, monotonic_clock=True)]
    assert times == [5, 5, 1, None, 5, 6, 2]
