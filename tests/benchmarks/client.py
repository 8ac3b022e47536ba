"""The client without IBM's library beside IBM's Java client, in turns at one listener.

    python -m tests.benchmarks.client [--messages 2000] [--rounds 3]

One connection, messages of 1 KiB, without syncpoint, persistent and not: each call waits for its answer. The ratio is
that of the best rounds; above 1 the client here is the faster one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from commands.client.calls import Wanted
from commands.client.connection import Connection, Place, Target
from rfh2.mqi_constants import MQGMO_NO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_NO_SYNCPOINT
from rfh2.mqmd import Mqmd
from tests.benchmarks.listener import SIZE_BYTES, Service, classpath, service, steps
from tests.ibm_java import JARS


def here(server: Service, messages: int, persistent: bool) -> tuple[float, float]:
    """Seconds to put and to get *messages*, as Load does."""
    place = Place((("127.0.0.1", server.port),), "APP.SVRCONN", "QM1")
    md, body = Mqmd(version=2, persistence=int(persistent)).encode(), bytes(SIZE_BYTES)
    with Connection.to(place) as connection:
        handle = connection.open(Target("LOAD"), MQOO_INPUT_SHARED | MQOO_OUTPUT).handle
        wanted = Wanted(MQGMO_NO_SYNCPOINT, 60_000)

        def put(count: int) -> float:
            began = time.perf_counter()
            for _ in range(count):
                connection.put(handle, md, body, MQPMO_NO_SYNCPOINT)
            return time.perf_counter() - began

        def get(count: int) -> float:
            began = time.perf_counter()
            for _ in range(count):
                assert connection.get(handle, wanted) is not None
            return time.perf_counter() - began

        put(200)
        get(200)
        return put(messages), get(messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if not JARS or shutil.which("javac") is None:
        sys.exit("it needs javac, and IBM's client in .venv/peers/java, where .ci/run puts it")
    print("| messages of 1 KiB | put a second: here, Java, ratio | get a second: here, Java, ratio |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = classpath(Path(folder))
        for persistent in (False, True):
            ours, java = [], []
            with service() as server:
                for _ in range(asked.rounds):
                    ours.append(here(server, asked.messages, persistent))
                    java.append([float(s.printed) for s in steps(path, server, 1, asked.messages, persistent)])
            cells = []
            for at in (0, 1):
                fast, slow = min(each[at] for each in ours), min(each[at] for each in java)
                cells.append(f"{asked.messages / fast:,.0f}, {asked.messages / slow:,.0f}, {slow / fast:.2f}")
            print(f"| {'persistent' if persistent else 'not persistent'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
