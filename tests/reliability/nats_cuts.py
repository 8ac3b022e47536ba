"""Publications both ways while the bridge, the network before NATS, or the server itself fails at random moments.

    python -m tests.reliability.nats_cuts 200

A native program publishes and subscribes at the server; a legacy program publishes and subscribes by queues; the bridge
is a process, and reaches the server through a proxy. So many faults follow one another, chosen and timed at random: the
bridge is killed (SIGKILL) and started again; the proxy cuts all connections, swallows what passes before it cuts, or
delays it; the server is killed and started again. Nothing may be lost, nothing may come twice, and nothing may overtake
another publication on its topic (docs/live-brokers.md, NATS). Prints what it saw; the exit code is 1 where that is not
so.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from tests.commands.links.nats_server import NatsNative, NatsServer
from tests.commands.links.proxy import Proxy, proxy
from tests.reliability.tree_faults import BridgeProcess, Figures, Programs, break_network, came_to, main, subscribe
from tests.waiting import until

# A bridge that is killed is what the position is for: a third of all faults.
KINDS = ("bridge", "bridge", "cut", "drop", "delay", "kill")


def trial(directory: Path, faults: int, seed: int = 1) -> Figures:
    """Have so many faults, chosen by *seed*, and count."""
    begun, random = time.monotonic(), Random(seed)
    server = NatsServer(directory / "nats")
    server.start()
    home = directory / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    kinds = [random.choice(KINDS) for _ in range(faults)]
    try:
        with proxy(server.port) as between, QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
            bridge = BridgeProcess(home, f"nats://127.0.0.1:{between.port}")
            bridge.start()
            try:
                subscribe(store)
                listener = NatsNative(server.url, "out.>", lasting=True)
                speaker = NatsNative(server.url)
                programs = Programs(speaker.insist, home, pause_s=0.003, patience_s=60)
                programs.start()
                for kind in kinds:
                    time.sleep(random.uniform(0.05, 0.6))
                    _fail(kind, bridge, between, server, random)
                programs.stop()
                speaker.close()
                wanted_in, wanted_out = set(programs.spoken), set(programs.put)
                until(lambda: wanted_in <= set(came_to(store)), "all native publications")
                until(lambda: wanted_out <= set(listener.payloads()), "all legacy publications")
                time.sleep(1.0)  # for what would come twice
                came, heard = came_to(store), listener.payloads()
                listener.close()
            finally:
                bridge.kill()
    finally:
        server.stop()
    seconds = time.monotonic() - begun
    return Figures.of(kinds, (wanted_in, came), (wanted_out, heard), seconds)


def _fail(kind: str, bridge: BridgeProcess, between: Proxy, server: NatsServer, random: Random) -> None:
    if kind == "bridge":
        bridge.restart(random)
    elif kind == "kill":
        server.stop(signal.SIGKILL)
        time.sleep(random.uniform(0.0, 0.3))
        server.start()
    else:
        break_network(kind, between, random)


if __name__ == "__main__":
    main(trial, __doc__ or "")
