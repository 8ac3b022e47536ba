"""The processor on a home in PostgreSQL, beside bare psycopg doing the same statements in the same run.

    python -m tests.benchmarks.postgresql [--messages 4000] [--rounds 5]

Bare: for each batch, of as many as the processor commits, the row of the state is locked, the messages are read 256 at
a time and deleted with one statement, and what the subscribers get is copied to the table in one go; then the counters,
the state and COMMIT. So the same rows are read and written, with the same commits. The last row has a commit for each
message. Both take turns, and a ratio is the median of those of the rounds: other programs slow down both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from commands.broker.objects import QueueManager
from commands.qmgr.processor import BATCH, Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.counters import _ADD_QUEUE, _ADD_SUBSCRIPTION, _ADD_TOPIC
from commands.qmgr.store.port import BEFORE_ALL, DELETE_MESSAGE, INSERT_MESSAGE, NEXT_SHORT_MESSAGES
from tests.commands.qmgr.test_dynamic_queues import send
from tests.commands.qmgr.test_processor import CONTROL, STREAM
from tests.postgresql import empty, postgresql_server

_AHEAD: Final = 256
Measured = tuple[float, float]


def timed(work: Callable[[], object], messages: int) -> Measured:
    """Microseconds a message: of this process's processor time, and of time."""
    processor_s, time_s = time.process_time(), time.perf_counter()
    work()
    return (
        (time.process_time() - processor_s) / messages * 1e6,
        (time.perf_counter() - time_s) / messages * 1e6,
    )


def filled(store: QueueManagerStore, messages: int) -> None:
    """Put as many publications, each like the first."""
    send(store, STREAM, "<Command>Publish</Command><Topic>a</Topic>")
    first = next(store.browse(STREAM))
    with store.unit_of_work() as unit:
        for _ in range(messages - 1):
            unit.put(STREAM, first.md, first.body)


def bare(store: QueueManagerStore, subscribers: int, batch: int = BATCH) -> None:
    """The statements of the processor, without the processor."""
    database = cast(Any, store.database)
    execute, now, numbers = database.connection.execute, time.time_ns() // 1000, database.highest("messages")
    sub_ids = [sub_id for (sub_id,) in execute("SELECT sub_id FROM subscriptions").fetchall()]
    while True:
        database.begin()
        place = BEFORE_ALL
        taken: list[tuple[int]] = []
        put = []
        while len(taken) < batch:
            after = execute(NEXT_SHORT_MESSAGES, (STREAM, *place, min(_AHEAD, batch - len(taken)))).fetchall()
            for seq, _, rank, at, user, persistent, expires_at, md, body, _ in after:
                taken.append((seq,))
                place = rank, seq
                for subscriber in range(subscribers):
                    numbers += 1
                    put.append((numbers, f"Q{subscriber}", rank, at, user, persistent, expires_at, md, body, 0))
            if not after:
                break
        done = len(taken)
        if not done:
            database.rollback()
            return
        database.write(DELETE_MESSAGE, taken)
        database.write(INSERT_MESSAGE, put)
        database.reached("messages", numbers)
        database.write(_ADD_TOPIC, [("a", done, now)])
        database.write(_ADD_SUBSCRIPTION, [(each, done, now, 0, 0) for each in sub_ids])
        queues = [(f"Q{n}", done, now, 0, None) for n in range(subscribers)]
        database.write(_ADD_QUEUE, [(STREAM, 0, None, done, now), *queues])
        database.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=4_000, help="of a round; a tenth with a commit for each")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("| subscribers | messages a commit | | bare psycopg, µs a message | bridge | ratio |")
    print("|---|---|---|---|---|---|")
    with postgresql_server() as server:
        for subscribers, batch in ((1, BATCH), (10, BATCH), (1, 1)):
            home, messages = server.home(), given.messages if batch > 1 else given.messages // 10
            with QueueManagerStore.create(home, QueueManager("QM1")) as store:
                for n in range(subscribers):
                    send(store, CONTROL, f"<Command>RegSub</Command><Topic>a</Topic><QName>Q{n}</QName>")
                processor = Processor(store, lambda: datetime.now(UTC), settings=ProcessorSettings(batch))
                processor.drain()
                rounds = []
                for _ in range(given.rounds):
                    filled(store, messages)
                    floor = timed(partial(bare, store, subscribers, batch), messages)
                    filled(store, messages)
                    rounds.append((floor, timed(processor.drain, messages)))
            empty(home)
            for which, name in enumerate(("processor time here", "time, with the server")):
                floors, bridges = zip(*[(floor[which], bridge[which]) for floor, bridge in rounds], strict=True)
                ratio = statistics.median(floor / bridge for floor, bridge in zip(floors, bridges, strict=True))
                took = f"{statistics.median(floors):.0f} | {statistics.median(bridges):.0f}"
                print(f"| {subscribers} | {batch} | {name} | {took} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
