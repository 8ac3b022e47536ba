"""Native publications of QoS 1 while the bridge and the broker are started again: does any get lost?

    python -m tests.reliability.restarts --restarts 20 --messages 8000

A native program publishes at QoS 1, one after the other, with short pauses. Meanwhile the bridge, a process of its own,
is ended (SIGTERM), killed (SIGKILL), or mosquitto is started again with its persistence, in turn. The control is a
plain paho subscriber with a session of the same kind, which is given up and made again whenever the bridge is, and
which mosquitto's restarts meet as well: what the control got and the bridge did not, the bridge has lost. Publications
may come twice, to either. Prints what it saw; the exit code is 1 where something was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.links.mosquitto import Mosquitto, Native
from tests.commands.links.test_mqtt_crashes import Program
from tests.waiting import until

CONTROL_QUEUE, QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE", "S"
KINDS = ("end", "kill", "broker")
_TOPICS = 7


@dataclass(frozen=True)
class Figures:
    """What was seen. lost, lost_by_control: of those that the broker has accepted; twice: that came more than once.

    unsubscribed: filters that the bridge has unsubscribed from in mosquitto's log, of *filters* that it has.
    """

    published: int
    restarts: int
    filters: int
    lost: int
    lost_by_control: int
    twice: int
    twice_to_control: int
    unsubscribed: int
    out_of_order: int
    ended_badly: int
    seconds: float


class _Control:
    """The plain subscriber: a paho client that acknowledges what it has noted."""

    def __init__(self, broker: Mosquitto) -> None:
        self._broker = broker
        self.came: list[str] = []
        self._native = self._made()

    def _made(self) -> Native:
        native = Native(self._broker, "control", "in/#", lasting=True)
        native.client.on_message = lambda _client, _data, message: self.came.append(message.payload.decode())
        self.came += native.payloads()
        return native

    def give_up(self) -> None:
        """End as a program does that is killed: without a DISCONNECT, in the middle of whatever comes."""
        with suppress(Exception):
            self._native.client.socket().close()
        self._native.client.loop_stop()

    def come_back(self) -> None:
        self._native = self._made()

    def close(self) -> None:
        self._native.close()


def trial(
    directory: Path,
    restarts: int,
    messages: int,
    subscriptions: int = 1,
    kinds: Sequence[str] = KINDS,
    pause_s: float = 0.005,
) -> Figures:
    """Publish so many *messages* through so many *restarts* of *kinds*, in turn, and count.

    pause_s: between two publications, so that the restarts are in the midst of them.
    """
    begun = time.monotonic()
    home = directory / "qmgrs"
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        _register(store, subscriptions)
    broker = Mosquitto(directory / "mosquitto", "log_type unsubscribe", "log_type error")
    broker.start()
    bridge = Program(home, broker)
    bridge.start()
    ended_badly, begins = 0, 0
    try:
        with QueueManagerStore.open(home, "QM1", durability=Durability.NORMAL) as store:
            until(lambda: store.depth(CONTROL_QUEUE) == 0, "the subscriptions")
            until(lambda: _is_settled(home, subscriptions), "the broker to have all filters")
            before = _unsubscribed(broker)
            control = _Control(broker)
            published: list[str] = []
            speaker = threading.Thread(target=_speak, args=(broker, messages, pause_s, published))
            speaker.start()
            for n, kind in enumerate(islice(cycle(kinds), restarts)):
                _wait_for(published, messages * (n + 1) // (restarts + 1), speaker)
                if kind == "broker":
                    broker.stop()
                    broker.start()
                    continue
                assert bridge.process is not None
                assert bridge.process.poll() is None, "the bridge has ended by itself"
                number = signal.SIGTERM if kind == "end" else signal.SIGKILL
                if kind == "end":
                    # Asked to end before it can hear of it, it is killed; that is tried by the other kind.
                    _wait_until_it_listens(home, begins)
                control.give_up()
                ended_badly += bridge.end(number) not in (0, -signal.SIGKILL)
                time.sleep(0.2)
                begins = _log(home).stat().st_size
                bridge.start()
                control.come_back()
            speaker.join(300)
            assert not speaker.is_alive(), "the publisher is stuck"
            _quiet(lambda: len(control.came), 30)
            _quiet(lambda: store.depth(QUEUE) if store.find_queue(QUEUE) else 0, 60)
            came = [decode(m.body, m.md).body.decode() for m in store.browse(QUEUE)]
            control.close()
        _wait_until_it_listens(home, begins)
        ended_badly += bridge.end(signal.SIGTERM) != 0
    finally:
        if bridge.process is not None and bridge.process.poll() is None:
            bridge.end(signal.SIGKILL)
        broker.stop()
    return Figures(
        published=len(published),
        restarts=restarts,
        filters=subscriptions,
        lost=len(set(published) - set(came)),
        lost_by_control=len(set(published) - set(control.came)),
        twice=len(came) - len(set(came)),
        twice_to_control=len(control.came) - len(set(control.came)),
        unsubscribed=_unsubscribed(broker) - before,
        out_of_order=_out_of_order(came),
        ended_badly=ended_badly,
        seconds=round(time.monotonic() - begun, 1),
    )


def _register(store: QueueManagerStore, count: int) -> None:
    """One subscription to all that is published, and others to topics of which most are silent."""
    md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app").encode()
    topics = [("in/#", QUEUE), *((f"other/{n}", "OTHER") for n in range(count - 1))]
    with store.unit_of_work() as unit:
        for topic, queue in topics:
            psc = f"<psc><Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName></psc>"
            unit.put(CONTROL_QUEUE, md, Rfh2((Folder.of(psc),)).encode())


def _is_settled(home: Path, count: int) -> bool:
    try:
        state: dict[str, Any] = json.loads((home / "QM1" / "mqtt.json").read_text())
    except (OSError, ValueError):
        return False
    return len(state["acknowledged"]) == count


def _log(home: Path) -> Path:
    return home / "run.log"


def _wait_until_it_listens(home: Path, begins: int) -> None:
    """begins: where in its log what the bridge says since it was started last begins."""
    until(lambda: b"waiting for commands" in _log(home).read_bytes()[begins:], "the bridge to listen")


def _speak(broker: Mosquitto, count: int, pause_s: float, published: list[str]) -> None:
    speaker = Native(broker, "speaker")
    for n in range(count):
        speaker.insist(f"in/{n % _TOPICS}", str(n))
        published.append(str(n))
        time.sleep(pause_s)
    speaker.close()


def _wait_for(published: list[str], count: int, speaker: threading.Thread) -> None:
    until(lambda: len(published) >= count or not speaker.is_alive(), f"{count} publications", timeout_s=300)


def _quiet(count: Any, timeout_s: float) -> None:
    """Wait until *count* has not changed for three seconds."""
    end = time.monotonic() + timeout_s
    last, since = count(), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < 3:
        time.sleep(0.1)
        if (now := count()) != last:
            last, since = now, time.monotonic()


def _unsubscribed(broker: Mosquitto) -> int:
    log = broker.directory / "log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return sum("qpubsub-QM1 " in line and "$qpubsub/" not in line for line in lines)


def _out_of_order(came: list[str]) -> int:
    """How many came after a later one on the same topic; each counts where it came first."""
    highest: dict[int, int] = {}
    late = 0
    for number in map(int, dict.fromkeys(came)):
        late += number < highest.get(number % _TOPICS, -1)
        highest[number % _TOPICS] = max(number, highest.get(number % _TOPICS, -1))
    return late


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--messages", type=int, default=8_000)
    parser.add_argument("--subscriptions", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="in turn")
    parser.add_argument("--directory", type=Path, help="where to work; else a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.directory or Path(temporary)
        figures = trial(directory, options.restarts, options.messages, options.subscriptions, options.kinds)
    print(json.dumps(asdict(figures)))
    return int(figures.lost > figures.lost_by_control or figures.ended_badly > 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
