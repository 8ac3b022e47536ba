"""The local replay that makes publications from templates gives the same puts and counts as the one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import pytest
from hypothesis import given

from commands.replay import LocalReplay, OutOfOrderError
from commands.replay.put_lines import PutLines
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from tests.commands.qmgr.test_processor_templates import by_template
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, messages


def _check(capture: Sequence[CapturedMessage], setup: str, semantics: str) -> int:
    """Compare both ways; how many messages went the short one."""
    whole, short = LocalReplay(setup, semantics), LocalReplay(setup, semantics)
    written = BytesIO()
    lines = PutLines(written)
    again = 0
    for message in capture:
        outcome = short.put_all(message)
        again += by_template(outcome)
        lines.add(message.seq, outcome.puts)
    wanted = [put.model_dump_json() for put in whole.puts(capture)]
    assert written.getvalue().decode().splitlines() == wanted
    assert short.counts == whole.counts
    return again


@pytest.mark.parametrize(("setup", "semantics"), [(SETUP, "v7"), (SETUP, "v6"), (EXPIRING, "v7")])
def test_any_small_capture(setup: str, semantics: str) -> None:
    @given(capture=messages(None))
    def check(capture: list[CapturedMessage]) -> None:
        _check(capture, setup, semantics)

    check()


def test_a_workload_goes_mostly_the_short_way() -> None:
    options = WorkloadOptions(messages=1500, topics=30, subscribers=40, control=0.03, errors=0.02, strays=0.01, qmgrs=2)
    assert _check(list(Workload(options).messages()), setup_script(options), "v7") > 500


def test_order_is_checked_on_both_ways() -> None:
    replay = LocalReplay()
    replay.put_all(CapturedMessage(seq=2, queue="Q", body_hex=""))
    with pytest.raises(OutOfOrderError):
        replay.put_all(CapturedMessage(seq=1, queue="Q", body_hex=""))
