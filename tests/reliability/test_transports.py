"""Some of the kills of ``python -m tests.reliability transports``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.commands.links.mosquitto import needs_mosquitto
from tests.commands.links.mqi.harness import needs_mqi
from tests.reliability.transports import Embedded, Flow, killed, transports
from tests.soak.programs import publication

pytestmark = pytest.mark.faults


def test_a_few_kills_on_its_own_queues(tmp_path: Path) -> None:
    transport = Embedded(tmp_path, random.Random(7))
    done, _ = killed(transport, 4, random.Random(7))
    flow = transport.queues
    assert done >= 4
    assert flow.published > 50
    assert (flow.lost("0"), flow.seen.twice, flow.seen.late) == (0, 0, 0)


KILLS = [
    pytest.param("embedded", id="embedded"),
    pytest.param("mqtt", marks=needs_mosquitto, id="mqtt"),
    pytest.param("mq", marks=needs_mqi, id="mq"),
]


@pytest.mark.nightly
@pytest.mark.parametrize("name", KILLS)
def test_kills_over_a_transport(name: str) -> None:
    table = transports(12, 20261122, (name,))
    print(f"\n{table.markdown()}")
    assert not table.broken
    assert all(int(row[1]) >= 12 for row in table.rows)


@pytest.mark.parametrize(
    ("came", "lost", "twice", "late"),
    [([0, 1, 2], 0, 0, 0), ([0, 1], 1, 0, 0), ([0, 2], 1, 0, 0), ([0, 2, 1], 0, 0, 1), ([0, 1, 1, 2], 0, 1, 0)],
    ids=["all", "last lost", "one lost", "late", "twice"],
)
def test_a_flow_counts_what_is_lost_twice_and_late(came: list[int], lost: int, twice: int, late: int) -> None:
    flow = Flow("", once=True, published=3)
    for number in came:
        flow.note(publication("0", number))
    assert (flow.lost("0"), flow.seen.twice, flow.seen.late) == (lost, twice, late)
