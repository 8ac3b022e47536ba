"""Order instead of mutation, for MQTT: a broker that sends whole packets when no broker would, to a bridge at work.

    python -m tests.reliability.packets 5000

Mosquitto sends what comes next, and before that comes, now and then, any packet: a second CONNACK, answers to what was
never asked, answers before CONNACK, packets that only clients send. Nothing that programs of either side publish
meanwhile may be lost, but for what becomes a dead letter because the connection breaks over it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pytest

from commands.broker.objects import DEAD_LETTER_QUEUE
from commands.links.mqtt import client
from tests.commands.links.mosquitto import Native, mosquitto
from tests.commands.links.proxy import Proxy
from tests.commands.links.test_mqtt import Bridge
from tests.reliability.orders import Faults
from tests.waiting import until

GOES_ON: Final = 0.7
CONNECT, PUBLISH, SUBSCRIBE, PINGREQ, DISCONNECT = 0x1, 0x3, 0x8, 0xC, 0xE


def packet(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    """A packet of fewer than 128 bytes."""
    return bytes((kind << 4 | flags, len(body))) + body


def publication(topic: str, data: bytes, qos: int, number: int = 40_001) -> bytes:
    """PUBLISH, without properties."""
    name = topic.encode()
    identifier = number.to_bytes(2, "big") if qos else b""
    return packet(PUBLISH, len(name).to_bytes(2, "big") + name + identifier + b"\0" + data, qos << 1)


# What answers nothing has numbers that the bridge does not use, or one that it may have used.
PACKETS: Final = {
    "CONNACK": packet(0x2, b"\0\0\0"),
    "CONNACK with a session": packet(0x2, b"\1\0\0"),
    "CONNACK refused": packet(0x2, b"\0\x87\0"),
    **{f"PUBLISH at QoS {qos}": publication("in/x", b"native", qos) for qos in (0, 1, 2)},
    "PUBLISH again": packet(PUBLISH, publication("in/x", b"native", 1)[2:], 0xA),
    **{
        f"{name} of nothing": packet(kind, b"\x9c\x40\0\0")
        for name, kind in (("PUBACK", 4), ("PUBREC", 5), ("PUBCOMP", 7))
    },
    "PUBREL of nothing": packet(6, b"\x9c\x40\0\0", 2),
    "PUBREL": packet(6, b"\x9c\x41\0\0", 2),
    **{f"SUBACK of {n}": packet(0x9, bytes((0, n, 0, 1))) for n in (1, 2)},
    "SUBACK without a reason": packet(0x9, b"\0\1\0"),
    "SUBACK refused": packet(0x9, b"\0\1\0\x87"),
    "UNSUBACK of nothing": packet(0xB, b"\x9c\x40\0\0"),
    "UNSUBACK without a reason": packet(0xB, b"\0\1\0"),
    "PINGRESP": packet(0xD),
    "PINGREQ": packet(PINGREQ),
    "CONNECT": packet(CONNECT, b"\0\4MQTT\5\2\0\0\0\0\0"),
    "SUBSCRIBE": packet(SUBSCRIBE, b"\0\1\0\0\1a\0", 2),
    "DISCONNECT": packet(DISCONNECT, b"\x8b\0"),
    "AUTH": packet(0xF, b"\x18\0"),
}


class Misbehaving(Proxy):
    """Between the bridge and mosquitto; before what that sends goes any of ``PACKETS``. left: so many more times."""

    def __init__(self, target: int, seed: int | str) -> None:
        super().__init__(target)
        self.left, self._chance = 0, random.Random(f"{seed}")

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_bridge = writer.get_extra_info("sockname")[1] == self.port
        with suppress(OSError):
            while data := await reader.read(65_536):
                while to_bridge and self.left and self._chance.random() > GOES_ON:
                    self.left -= 1
                    writer.write(PACKETS[self._chance.choice(list(PACKETS))])
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
        self._writers.discard(writer)


@contextmanager
def misbehaving(target: int, seed: int | str) -> Iterator[Misbehaving]:
    running = Misbehaving(target, seed)
    running.start()
    try:
        yield running
    finally:
        running.stop()


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of it. faults: what the log of the bridge tells of."""

    packets: int
    faults: int
    seconds: float


@contextmanager
def _hurried() -> Iterator[None]:
    """The bridge connects again at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_FIRST_PAUSE_S", 0.001)
        patch.setattr(client, "_LONGEST_PAUSE_S", 0.001)
        yield


def tried(place: Path, count: int, seed: int | str) -> list[str]:
    """The faults that *count* packets bring to light."""
    told = Faults()
    with mosquitto(place / "mosquitto") as broker, misbehaving(broker.port, seed) as between, _hurried():
        native = Native(broker, "native", "out/#", lasting=True)
        with Bridge(place / "qmgrs", f"mqtt://127.0.0.1:{between.port}") as bridge, told.listening():
            published: list[bytes] = []

            def publish() -> None:
                published.append(b"%d" % len(published))
                bridge.publish("out/x", published[-1])
                native.insist("in/x", published[-1].decode())

            bridge.register("in/#")
            between.left = count
            while between.left and not bridge.link.fault:
                publish()
            publish()
            until(lambda: set(published) <= set(bridge.data("S")), "what natives published")
            refused = {each.body for each in bridge.browse(DEAD_LETTER_QUEUE)}
            until(lambda: set(published) - {*map(str.encode, native.payloads())} <= refused, "what programs published")
            told.told += [bridge.link.fault] if bridge.link.fault else []
        native.close()
    return told.told


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures as JSON; 1 where there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packets", type=int, nargs="?", default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        faults = tried(Path(home), asked.packets, asked.seed)
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    print(json.dumps(asdict(Figures(asked.packets, len(faults), round(time.monotonic() - began, 1)))))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
