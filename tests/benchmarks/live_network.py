"""Publications through embedded queue managers in a line: the cost of a hop, in processor time.

``python -m tests.benchmarks.live_network [--queue-managers N] [--publications N]``

A program publishes at the first queue manager, one subscriber is at the last one. All of them work in one process, one
after the other, with commits that outlast the process (``--durability normal``). The floor, measured in the same run,
is one queue manager that does both. A hop is the transmission queue, the carrier, and the publication at the next one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.world import at
from tests.commands.scenario import KICK_OFF, psc, rfh2_message

_BATCH = 500


def message(seq: int, qmgr: str, word: str, topic: str, queue: str = "") -> CapturedMessage:
    """A RegSub for *queue*, or a Publish."""
    mqmd = Mqmd(msg_type=8, priority=0, persistence=1, coded_char_set_id=1208, reply_to_q=queue)
    described, body = rfh2_message([psc(word, ("Topic", topic))], mqmd, b"" if queue else b"1.25")
    return CapturedMessage(
        seq=seq,
        time=KICK_OFF + timedelta(milliseconds=seq),
        qmgr=qmgr,
        queue=CONTROL_QUEUE if queue else DEFAULT_STREAM,
        user="app1",
        md_hex=described.encode().hex(),
        body_hex=body.hex(),
    )


def publishing(count: int, publications: int) -> float:
    """Seconds of processor time until *publications* have gone through *count* queue managers in a line."""
    setups = [at(f"QM{n}", f"QM{n - 1}" if n > 1 else "") for n in range(1, count + 1)]
    with tempfile.TemporaryDirectory() as home, LiveWorld(Path(home), *setups) as world:
        world.settle()
        world.put(message(0, f"QM{count}", "RegSub", "Trade/#", "BOARD"))
        world.settle()
        spent = 0.0
        for first in range(0, publications, _BATCH):
            for n in range(first, min(first + _BATCH, publications)):
                world.put(message(n + 1, "QM1", "Publish", f"Trade/{n % 100}/Price"))
            start = time.process_time()
            world.settle()
            spent += time.process_time() - start
        assert len(world.on(f"QM{count}", "BOARD")) == publications
    return spent


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queue-managers", type=int, default=5)
    parser.add_argument("--publications", type=int, default=5_000)
    asked = parser.parse_args()
    alone, line = (publishing(count, asked.publications) for count in (1, asked.queue_managers))
    each, hop = (1e6 * seconds / asked.publications for seconds in (alone, (line - alone) / (asked.queue_managers - 1)))
    print(f"one queue manager: {each:.0f} microseconds a publication")
    print(f"a hop, of {asked.queue_managers - 1}: {hop:.0f} microseconds, {hop / each:.1f} times as much")


if __name__ == "__main__":
    main()
