"""Which messages are ticks: those that let something expire although a later one is earlier."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytest.importorskip("pyspark")

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.replay.spark.replay_setup import ReplaySetup
from rfh2.folders import Folder
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from tests.commands.replay.spark.divided import Row, plane_of, ticks_in
from tests.commands.replay.spark.worlds import START

PUBLISH = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>a</Topic></psc>"),), format="MQSTR").encode()
MD = Mqmd(format="MQHRF2").encode()
WHERE = {"p": (DEFAULT_STREAM, PUBLISH), "c": (CONTROL_QUEUE, PUBLISH), "o": ("OTHER", PUBLISH)}
# Cut off: it does not reach the topic space.
WHERE |= {"x": (DEFAULT_STREAM, PUBLISH[:30]), "y": (CONTROL_QUEUE, PUBLISH[:30])}


def _rows(messages: str) -> tuple[list[Row], tuple[int, ...]]:
    """Where each message is, and its second; a bar begins a range."""
    rows: list[Row] = []
    starts = []
    for part in messages.split("|"):
        starts.append(len(rows) + 1)
        for word in part.split():
            queue, body = WHERE[word[0]]
            rows.append((len(rows) + 1, START + timedelta(seconds=int(word[1:])), "QM1", queue, None, MD, body))
    return rows, (*starts, len(rows) + 1)


# Messages, ticks for the control plane, ticks for what is retained; by seq.
CASES = [
    ("p1 p2 | p2 p3", [], []),
    ("p1 p5 p3 p6 | p7", [2], [2]),
    ("p1 p4 p5 p3 | p6", [3], [3]),
    ("p1 p5 p4 p3 | p6", [2], [2, 3]),
    # The range in which there are any is the one before the step back.
    ("p1 p5 | p3 p6", [2], [2]),
    ("p5 | p6 | p3", [1, 2], [1, 2]),
    ("p1 p3 | p3", [], []),
    # Between two of the control plane's own messages; with those things expire there anyway.
    ("p5 p4 c1 p5 p3 | p9", [1, 4], [4]),
    ("p1 c5 p3 | p9", [], [2]),
    # Only what reaches the topic space.
    ("p1 x5 p3 | p9", [], []),
    ("p1 y5 p3 | p9", [], []),
    ("p1 o5 p3 | p9", [], []),
    ("p2 x5 p4 p3 | p9", [3], [3]),
]


@pytest.mark.parametrize(("messages", "control", "retained"), CASES)
def test_ticks(messages: str, control: list[int], retained: list[int]) -> None:
    rows, starts = _rows(messages)
    others = [(seq, now, "QM2", *rest) for (seq, *_), (_, now, _, *rest) in zip(rows, rows[::-1], strict=True)]
    ticks = ticks_in(rows, plane_of(rows, ReplaySetup(), starts))
    assert [seq for _, seq, _, for_retained in ticks if not for_retained] == control
    assert [seq for _, seq, _, for_retained in ticks if for_retained] == retained
    # Another queue manager has a clock of its own.
    both = sorted([*rows, *others])
    assert [tick for tick in ticks_in(both, plane_of(both, ReplaySetup(), starts)) if tick[0] == "QM1"] == ticks
