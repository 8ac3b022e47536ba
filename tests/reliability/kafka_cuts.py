"""Publications both ways while the bridge, Kafka, or the network between them fails at random moments.

    python -m tests.reliability.kafka_cuts 200

A native program publishes and reads at the broker; a legacy program publishes and subscribes by queues; the bridge is a
process, and reaches the broker through a proxy. So many faults follow one another, chosen and timed at random: the
bridge is killed (SIGKILL) and started again; the proxy cuts all connections, swallows what passes before it cuts, or
delays it; the broker is killed and started again. Nothing may be lost, nothing may come twice to a reader with
read_committed or to the legacy subscriber, and nothing may overtake another publication on its topic
(docs/live-brokers.md, Kafka). Prints what it saw; the exit code is 1 where that is not so.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from tests.commands.links.kafka_server import KafkaNative, KafkaServer
from tests.commands.links.mosquitto import free_port
from tests.commands.links.proxy import Proxy
from tests.reliability.tree_faults import BridgeProcess, Figures, Programs, break_network, came_to, main, subscribe
from tests.waiting import until

# A bridge that is killed is what transactions are for: half of all faults.
KINDS = ("bridge", "bridge", "bridge", "bridge", "cut", "drop", "delay", "kill")


def trial(directory: Path, faults: int, seed: int = 1) -> Figures:
    """Have so many faults, chosen by *seed*, and count."""
    begun, random = time.monotonic(), Random(seed)
    between = Proxy(free_port())
    server = KafkaServer(directory / "kafka", advertised=between.port)
    between.target = server.port
    server.start()
    between.start()
    home = directory / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    kinds = [random.choice(KINDS) for _ in range(faults)]
    bridge = BridgeProcess(home, f"kafka://127.0.0.1:{between.port}")
    try:
        bridge.start()
        with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
            subscribe(store)
            listener = KafkaNative(server.servers, "qpubsub")
            # Idempotent: librdkafka sends it again until the broker has answered, and the broker takes it once.
            programs = Programs(KafkaNative(server.servers).publish, home, pause_s=0.005, patience_s=120)
            programs.start()
            for kind in kinds:
                time.sleep(random.uniform(0.1, 1.5))
                _fail(kind, bridge, between, server, random)
            programs.stop()
            wanted_in, wanted_out = set(programs.spoken), set(programs.put)
            until(lambda: wanted_in <= set(came_to(store)), "all native publications", 240)
            until(lambda: wanted_out <= set(_heard(listener)), "all legacy publications", 240)
            time.sleep(1.0)  # for what would come twice
            came, heard = came_to(store), _heard(listener)
            listener.close()
    finally:
        bridge.kill()
        between.stop()
        server.stop()
    seconds = time.monotonic() - begun
    return Figures.of(kinds, (wanted_in, came), (wanted_out, heard), seconds)


def _fail(kind: str, bridge: BridgeProcess, between: Proxy, server: KafkaServer, random: Random) -> None:
    if kind == "bridge":
        bridge.restart(random)
    elif kind == "kill":
        server.stop()
        time.sleep(random.uniform(0.0, 0.3))
        server.start()
    else:
        break_network(kind, between, random)


def _heard(listener: KafkaNative) -> list[str]:
    return [(each.payload or b"").decode() for each in tuple(listener.messages) if each.topic.startswith("out/")]


if __name__ == "__main__":
    main(trial, __doc__ or "")
