"""What the check of the epoch costs: units of work of a processor with an epoch, and without one, in turn.

    python -m tests.benchmarks.epochs

Processor time, the least of many rounds, so that other programs on the machine do not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import Durability, QueueManagerStore
from tests.reliability.workload import CONTROL, NOW, STREAM, clock, put

_ROUNDS, _COMMANDS = 30, 400


def _round(store: QueueManagerStore, epoch: int | None, batch: int) -> float:
    """Microseconds for each of the commands, *batch* to a unit of work."""
    store.database.epoch = None
    with store.unit_of_work() as unit:
        unit.clear_queue("BOARD")
        for _ in range(_COMMANDS):
            put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>")
    store.database.epoch = epoch
    processor = Processor(store, clock, settings=ProcessorSettings(batch=batch))
    begun = time.process_time()
    done = processor.drain()
    assert done == _COMMANDS
    return (time.process_time() - begun) / done * 1e6


def figures(home: Path, rounds: int = _ROUNDS) -> dict[str, dict[str, float]]:
    """Microseconds of a command, by the size of a unit of work: without an epoch, with one, and the check alone."""
    with QueueManagerStore.create(home, QueueManager("QM1"), durability=Durability.NORMAL, clock=lambda: NOW) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("BOARD"))
            put(unit, CONTROL, "<Command>RegSub</Command><Topic>#</Topic><QName>BOARD</QName>")
        Processor(store, clock).drain()
        found = {}
        for batch in (1, 100):
            pairs = [(_round(store, None, batch), _round(store, 0, batch)) for _ in range(rounds)]
            without, with_one = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
            found[f"units of {batch}"] = {"without": round(without, 2), "with": round(with_one, 2)}
        with store.unit_of_work():
            begun = time.process_time()
            for _ in range(10_000):
                store.database.read_epoch()
            found["the check"] = {"alone": round((time.process_time() - begun) / 10_000 * 1e6, 2)}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        sys.stdout.write(json.dumps(figures(Path(directory))) + "\n")
