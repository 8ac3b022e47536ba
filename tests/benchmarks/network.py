"""A network of queue managers replayed: time, memory, and the cost of a hop.

``python -m tests.benchmarks.network [--queue-managers N] [--subscriptions N] [--topics N] [--publications N]``

The queue managers are a tree in which each has four children. Subscriptions are to one topic each, at queue managers
chosen by chance, and so are publishers; all commands are in MQRFH2. The puts are written as JSON Lines, to nowhere. A
hop is a publication that goes from one queue manager to a neighbour. Its cost is the processor time of all
publications, less that of as many which go nowhere, divided by the hops: what is put where a hop ends is in it. Those
that go nowhere are a tenth as many, and counted ten times. Ctrl-C ends it with the figures so far. --profile FILE is of
the publications.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from cProfile import Profile
from datetime import timedelta
from pathlib import Path
from random import Random

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.puts import PutKind
from commands.network.topology import Position
from commands.replay.network.local import NetworkReplay, NetworkSetup, QueueManagerSetup
from commands.replay.put_columns import PutLines
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.scenario import KICK_OFF, psc, rfh2_message

_CHILDREN = 4
_AT_ONCE = 1_000


def tree(count: int) -> NetworkSetup:
    """A tree of *count* queue managers."""
    return NetworkSetup(
        tuple(QueueManagerSetup(Position(f"QM{n}", f"QM{(n - 1) // _CHILDREN}" if n else "")) for n in range(count))
    )


def messages(
    first: int, count: int, queue_managers: int, topics: int, word: str, random: Random
) -> Iterator[CapturedMessage]:
    """*count* messages with numbers from *first*; ``RegSub``, or ``Publish`` on a topic."""
    for seq in range(first, first + count):
        topic = f"Trade/{random.randrange(topics)}/Price" if topics else f"Nobody/{seq}"
        to, queue = (CONTROL_QUEUE, f"SUB.{seq}") if word == "RegSub" else (DEFAULT_STREAM, "")
        mqmd = Mqmd(msg_type=8, priority=0, persistence=0, coded_char_set_id=1208, reply_to_q=queue)
        described, body = rfh2_message([psc(word, ("Topic", topic))], mqmd, b"1.25" if word == "Publish" else b"")
        yield CapturedMessage(
            seq=seq,
            time=KICK_OFF + timedelta(milliseconds=seq),
            qmgr=f"QM{random.randrange(queue_managers)}",
            queue=to,
            user="app1",
            md_hex=described.encode().hex(),
            body_hex=body.hex(),
        )


def replayed(
    replay: NetworkReplay, sink: PutLines, given: list[CapturedMessage], profile: Profile | None = None
) -> float:
    """Processor time in seconds of some messages."""
    start = time.process_time()
    if profile is not None:
        profile.enable()
    for message in given:
        replay.put_all(message, sink)
    if profile is not None:
        profile.disable()
    return time.process_time() - start


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = (("queue-managers", 100), ("subscriptions", 100_000), ("topics", 2_000), ("publications", 1_000_000))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--profile", type=Path)
    chosen = parser.parse_args()
    random, size = Random(1), chosen.queue_managers
    profile = None if chosen.profile is None else Profile()
    replay = NetworkReplay(tree(size))
    with Path(os.devnull).open("wb") as nowhere:
        sink = PutLines(nowhere)
        spent = sum(
            replayed(replay, sink, list(messages(at, some, size, chosen.topics, "RegSub", random)))
            for at, some in _portions(1, chosen.subscriptions)
        )
        proxies = sum(each.proxies_here for each in replay.network.queue_managers.values())
        where = f"{chosen.subscriptions:,} subscriptions to {chosen.topics:,} topics at {size} queue managers"
        print(f"{where}: {spent:.1f} s, {proxies:,} proxy subscriptions, {_memory()}", flush=True)
        total, least, few, done = 0.0, 0.0, 0, 0
        with suppress(KeyboardInterrupt):
            for at, some in _portions(chosen.subscriptions + 1, 2 * chosen.publications, 2 * _AT_ONCE):
                given = list(messages(at, some // 2, size, chosen.topics, "Publish", random))
                total += replayed(replay, sink, given, profile)
                done += len(given)
                alone = list(messages(at + some // 2, some // 20, size, 0, "Publish", random))
                least += replayed(replay, sink, alone)
                few += len(alone)
                print(f"{done:,} publications, {total:.0f} s", file=sys.stderr)
    puts = replay.counts.puts[PutKind.PUBLICATION]
    hops = sum(link.publications for link in replay.network.traffic.values())
    print(f"{done:,} publications: {total:.1f} s, {1e6 * total / done:.0f} microseconds each")
    print(f"{puts:,.0f} puts, {hops:,.0f} hops")
    if hops and few:
        alone_s = least / few
        print(f"a publication that goes nowhere: {1e6 * alone_s:.0f} microseconds")
        at_hops = total - alone_s * done
        print(f"a hop, with what is put where it ends: {1e6 * at_hops / hops:.1f} microseconds")
    print(f"most memory: {_memory()}")
    if profile is not None:
        profile.dump_stats(chosen.profile)


def _portions(first: int, count: int, at_once: int = _AT_ONCE) -> Iterator[tuple[int, int]]:
    """*count* numbers from *first* in portions: where each begins, and how many."""
    for at in range(first, first + count, at_once):
        yield at, min(at_once, first + count - at)


def _memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


if __name__ == "__main__":
    main()
