"""A network of queue managers replayed: time, memory, and the cost of a hop.

``python -m tests.benchmarks.network [--queue-managers N] [--subscriptions N] [--topics N] [--publications N]``

The queue managers are a tree in which each has four children. Subscriptions are to one topic each, at queue managers
chosen by chance, and so are publishers; all commands are in MQRFH2. A hop is a publication that goes from one queue
manager to a neighbour. Its cost is the processor time of all publications, less that of as many which go nowhere,
divided by the hops: what is put where a hop ends is in it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from datetime import timedelta
from random import Random

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.network.topology import Position
from commands.replay.network.building import NetworkSetup, QueueManagerSetup
from commands.replay.network.local import NetworkReplay
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.scenario import KICK_OFF, psc, rfh2_message

_CHILDREN = 4


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


def replayed(replay: NetworkReplay, given: list[CapturedMessage]) -> tuple[float, int, int]:
    """Processor time in seconds, hops and puts of some messages."""
    traffic = replay.network.traffic
    before = sum(each.publications for each in traffic.values())
    puts, start = 0, time.process_time()
    for message in given:
        puts += len(replay.replay(message)[1])
    spent = time.process_time() - start
    return spent, sum(each.publications for each in traffic.values()) - before, puts


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = (("queue-managers", 100), ("subscriptions", 100_000), ("topics", 2_000), ("publications", 1_000_000))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    random, size = Random(1), chosen.queue_managers
    replay = NetworkReplay(tree(size))
    subscribing = list(messages(1, chosen.subscriptions, size, chosen.topics, "RegSub", random))
    spent, _, _ = replayed(replay, subscribing)
    proxies = sum(each.proxies_here for each in replay.network.queue_managers.values())
    where = f"{chosen.subscriptions:,} subscriptions at {size} queue managers"
    print(f"{where}: {spent:.1f} s, {proxies:,} proxy subscriptions")
    del subscribing
    total = hops = puts = 0.0
    at, left, least = chosen.subscriptions + 1, chosen.publications, 0.0
    while left:
        some = min(left, 1_000)
        now, went, made = replayed(replay, list(messages(at, some, size, chosen.topics, "Publish", random)))
        alone, _, _ = replayed(replay, list(messages(at + some, some, size, 0, "Publish", random)))
        total, hops, puts, least = total + now, hops + went, puts + made, least + alone
        at, left = at + 2 * some, left - some
    each = 1e6 * total / chosen.publications
    print(f"{chosen.publications:,} publications: {total:.1f} s, {each:.0f} microseconds each")
    print(f"{puts:,.0f} puts, {hops:,.0f} hops")
    if hops:
        print(f"a hop, with what is put where it ends: {1e6 * (total - least) / hops:.0f} microseconds")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
