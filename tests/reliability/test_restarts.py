"""Native publications of QoS 1 survive every restart of the bridge and of the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.links.mosquitto import needs_mosquitto
from tests.reliability.restarts import trial

pytestmark = [needs_mosquitto, pytest.mark.faults]

TRIALS = [
    pytest.param(3, 600, 3, id="one of each"),
    pytest.param(10, 2_500, 1, id="10 restarts", marks=pytest.mark.nightly),
    pytest.param(3, 3_000, 5_000, id="5,000 subscriptions", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("restarts", "messages", "subscriptions"), TRIALS)
def test_nothing_of_qos_1_is_lost_where_a_plain_subscriber_loses_nothing(
    tmp_path: Path, restarts: int, messages: int, subscriptions: int
) -> None:
    seen = trial(tmp_path, restarts, messages, subscriptions)
    assert seen.published == messages
    assert (seen.lost_by_control, seen.lost) == (0, 0), seen
    assert seen.unsubscribed == 0, "what is wanted is never unsubscribed from"
    assert (seen.out_of_order, seen.ended_badly) == (0, 0), seen
