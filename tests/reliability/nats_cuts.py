"""Publications both ways while the network between the bridge and NATS, or the server itself, fails at random moments.

    python -m tests.reliability.nats_cuts 200

A native program publishes and subscribes at the server; a legacy program publishes and subscribes by queues; the bridge
reaches the server through a proxy. So many faults follow one another, chosen and timed at random: the proxy cuts all
connections, swallows what passes before it cuts, or delays it; the server is killed (SIGKILL) and started again. The
bridge itself goes on, so nothing may be lost, and nothing may come twice (docs/live-brokers.md, NATS). Prints what it
saw; the exit code is 1 where that is not so.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from random import Random

from tests.commands.links.mosquitto import until
from tests.commands.links.nats_server import NatsNative, NatsServer
from tests.commands.links.proxy import Proxy, proxy
from tests.commands.links.test_mqtt import Bridge
from tests.reliability.tree_faults import Figures, Programs, break_network, main

KINDS = ("cut", "drop", "delay", "kill")


def trial(directory: Path, faults: int, seed: int = 1) -> Figures:
    """Have so many faults, chosen by *seed*, and count."""
    begun, random = time.monotonic(), Random(seed)
    server = NatsServer(directory / "nats")
    server.start()
    kinds = [random.choice(KINDS) for _ in range(faults)]
    try:
        with proxy(server.port) as between, Bridge(directory / "qmgrs", f"nats://127.0.0.1:{between.port}") as bridge:
            bridge.register("in/#")
            listener = NatsNative(server.url, "out.>", lasting=True)
            speaker = NatsNative(server.url)
            programs = Programs(speaker.insist, bridge.home, pause_s=0.003, patience_s=60)
            programs.start()
            for kind in kinds:
                time.sleep(random.uniform(0.05, 0.6))
                _fail(kind, between, server, random)
            programs.stop()
            speaker.close()
            wanted_in, wanted_out = set(programs.spoken), set(programs.put)
            until(lambda: wanted_in <= set(_came(bridge)), 120, "all native publications")
            until(lambda: wanted_out <= set(listener.payloads()), 120, "all legacy publications")
            assert bridge.link.settle(threading.Event())
            came, heard = _came(bridge), listener.payloads()
            listener.close()
    finally:
        server.stop()
    seconds = time.monotonic() - begun
    return Figures.of(kinds, (wanted_in, came), (wanted_out, heard), seconds)


def _fail(kind: str, between: Proxy, server: NatsServer, random: Random) -> None:
    if kind == "kill":
        server.stop(signal.SIGKILL)
        time.sleep(random.uniform(0.0, 0.3))
        server.start()
    else:
        break_network(kind, between, random)


def _came(bridge: Bridge) -> list[str]:
    return [data.decode() for data in bridge.data("S")]


if __name__ == "__main__":
    main(trial, __doc__ or "")
