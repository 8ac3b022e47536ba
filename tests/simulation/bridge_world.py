"""A bridge with an MQTT broker as its topic tree: ``Bridge`` with all its threads, its database and paho.

Programs publish numbered publications here, native ones there; subscriptions come and go. Meanwhile connections are
cut or held up, the bridge is killed, stopped, or its clock set, and the broker forgets its sessions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import commands.links.mqtt.adapter  # noqa: F401  # the bridge loads it where it is used: too late to stand in
from commands.broker.objects import QueueManager
from commands.broker.puts import PutKind
from commands.config.settings import TopicsConfig
from commands.qmgr.store import Durability, QueueManagerStore
from commands.replay import LocalReplay
from rfh2 import decode
from tests.reliability.workload import CONTROL, STREAM
from tests.simulation.capture import Capture
from tests.simulation.faults import Fate, Fault, Life, Profile, disk_full, some_time
from tests.simulation.kernel import Kernel, Process
from tests.simulation.mqtt_broker import Broker
from tests.simulation.network import Network
from tests.simulation.world import HOME, PATIENCE_S, bridge_of, put_command, until

BOARD, COMES_AND_GOES = "BOARD", "SOME"
_OUTGOING: Final = TopicsConfig().outgoing_queue
_CLIENT: Final = "qpubsub-QM1"
_COUNT: Final = 45

_WEIGHTS: Final = {
    "kill": 4, "hold": 2, "jump": 1, "full": 1, "cut": 4, "slow": 4, "away": 2, "usurp": 1, "forget": 3, "old": 2,
}  # fmt: skip


class BridgeWorld:
    """``World``."""

    weights: Mapping[str, float] = _WEIGHTS

    def __init__(self, kernel: Kernel, faults_every_s: float) -> None:
        self._kernel, self._chance = kernel, kernel.chance
        self._network, self._broker = Network(kernel), Broker(kernel)
        self._broker.watched = _CLIENT
        self._network.listening["tree"] = self._broker.connect
        self._capture = Capture(kernel)
        self._programs = 0
        QueueManagerStore.create(HOME, QueueManager("QM1")).close()
        self._store = QueueManagerStore.open(HOME, "QM1", durability=Durability.NORMAL)
        self._put(CONTROL, f"<Command>RegSub</Command><Topic>#</Topic><QName>{BOARD}</QName>")
        self._begin()
        self._fate = Fate(
            kernel,
            Profile(faults_every_s, self.weights),
            {
                **self._lives_faults(),
                "full": lambda: disk_full(kernel),
                "cut": self._network.cut_one,
                "slow": lambda: self._network.slow_one(some_time(kernel)),
                "away": self._away,
                "usurp": lambda: self._broker.usurp(_CLIENT),
                "forget": self._broker.lose_sessions,
                "old": self._broker.go_back,
            },
        )

    # What runs

    def _begin(self) -> None:
        self._life = Life(self._kernel, "QM1", self._bridge)

    def _lives_faults(self) -> dict[str, Fault]:
        return {"kill": self._life.kill, "hold": self._life.hold, "jump": self._life.jump}

    def _heal(self) -> None:
        self._life.heal()

    def _bridge(self, _process: Process) -> None:
        with bridge_of("QM1", "mqtt://tree:1883") as bridge:
            bridge.serve()

    def _put(self, queue: str, psc: str, body: bytes = b"") -> None:
        put_command(self._kernel, self._store, queue, psc, body)

    def _legacy(self, count: int) -> None:
        for n in range(count):
            topic = f"l/{self._chance.randrange(3)}"
            kind = self._chance.random()
            if kind < 0.05:
                self._put(STREAM, f"<Command>DeletePub</Command><Topic>{topic}</Topic>")
            retain = "<PubOpt>RetainPub</PubOpt>" if kind > 0.7 else ""
            self._put(STREAM, f"<Command>Publish</Command>{retain}<Topic>{topic}</Topic>", b"L%d" % n)
            self._kernel.sleep(self._chance.expovariate(2))
        self._programs -= 1

    def _native(self, count: int) -> None:
        for n in range(count):
            topic = f"n/{self._chance.randrange(3)}"
            self._broker.publish(topic, b"N%d" % n, self._chance.random() < 0.5)
            self._kernel.sleep(self._chance.expovariate(self._chance.choice((1, 20))))
        self._programs -= 1

    def _subscriber(self, count: int) -> None:
        for _ in range(count):
            topic = f"n/{self._chance.randrange(3)}"
            word = self._chance.choice(("RegSub", "DeregSub"))
            where = f"<Topic>{topic}</Topic><QName>{COMES_AND_GOES}</QName>"
            self._put(CONTROL, f"<Command>{word}</Command>{where}")
            self._kernel.sleep(self._chance.expovariate(1))
        self._programs -= 1

    # What goes wrong

    def _away(self) -> float:
        seconds = some_time(self._kernel)
        self._network.down.add("tree")
        for each in self._network.connections:
            each.cut()
        self._kernel.at(self._kernel.now + seconds, lambda: self._network.down.discard("tree"))
        return seconds + 1.0

    # The plan

    @property
    def faults(self) -> int:
        return self._fate.count

    def run(self) -> None:
        kernel, count = self._kernel, _COUNT
        is_known = until(kernel, 60, lambda: "#" in self._session_filters())
        self._broker.missed.clear()
        assert is_known or self._fate.count, "the first subscription did not reach the tree"
        if not is_known:
            until(kernel, 300, lambda: "#" in self._session_filters())
        for name, work, number in (
            ("legacy", self._legacy, count),
            ("native", self._native, 2 * count),
            ("subscriber", self._subscriber, count // 2),
        ):
            self._programs += 1
            kernel.plan.start(lambda work=work, number=number: work(number), name)  # type: ignore[misc]
        kernel.wait(lambda: self._programs == 0, None)
        self._fate.end()
        self._network.down.clear()
        kernel.full_until = 0.0
        self._heal()

    def amiss(self) -> Iterator[str]:
        yield from self._kernel.broken
        if not until(self._kernel, PATIENCE_S, self._is_settled, 5.0):
            yield f"it does not settle: {self._left()}"
            return
        self._kernel.sleep(5.0)
        yield from self._kernel.broken
        yield from self._native_amiss()
        yield from self._legacy_amiss()
        yield from self._state_amiss()
        yield from self._replay_amiss()

    def _session_filters(self) -> set[str]:
        session = self._broker.sessions.get(_CLIENT)
        return set() if session is None else set(session.filters)

    def _left(self) -> dict[str, int]:
        session = self._broker.sessions.get(_CLIENT)
        left = {name: self._depth(name) for name in (CONTROL, STREAM, _OUTGOING)}
        left["session"] = 1 if session is None else len(session.waiting) + len(session.sent)
        left["filters"] = len(self._session_filters() ^ self._needed())
        return left

    def _is_settled(self) -> bool:
        return not any(self._left().values())

    def _depth(self, queue: str) -> int:
        return 0 if self._store.find_queue(queue) is None else sum(1 for _ in self._store.browse(queue))

    def _needed(self) -> set[str]:
        return {each.topic_string for each in self._store.load_state()[1]}

    def _board(self) -> list[tuple[bytes, bytes, bytes]]:
        found = self._store.browse(BOARD) if self._store.find_queue(BOARD) is not None else ()
        return [(decode(each.body, each.md).body, each.md, each.body) for each in found]

    def _native_amiss(self) -> Iterator[str]:
        board = [data for data, _, _ in self._board() if data[:1] == b"N"]
        of_native = [each for each in self._broker.accepted if each.by == "native"]
        came = Counter(board)
        for each in of_native:
            if not came[each.payload] and each.payload not in self._broker.missed:
                yield f"native {each.payload!r} on {each.topic} is lost"
            if came[each.payload] > 1 and self._broker.sends.get(each.payload, 0) < 2 and not each.retain:
                yield f"native {each.payload!r} came {came[each.payload]} times, and was sent once"
        # What is retained also comes where the bridge looks at that, out of its turn.
        topics = {each.payload: each.topic for each in of_native if not each.retain}
        yield from _out_of_order("native", [data for data in board if data in topics], topics)

    def _legacy_amiss(self) -> Iterator[str]:
        board = [data for data, _, _ in self._board() if data[:1] == b"L"]
        for data, times in Counter(board).items():
            if times > 1:
                yield f"local {data!r} came {times} times to {BOARD}"
        there = defaultdict(list)
        for each in self._broker.accepted:
            if each.by == _CLIENT and each.payload:
                there[each.payload].append(each)
        published = {b"L%d" % n for n in range(len(board))}
        if set(board) != published:
            yield f"local publications are lost: {sorted(published - set(board))[:5]}"
        for data in sorted(set(board) - set(there)):
            yield f"{data!r} did not reach the tree"
        for data, times_there in there.items():
            for one, two in pairwise(times_there):
                if not self._fate.was_between(one.at_s, two.at_s):
                    yield f"{data!r} came twice to the tree, at {one.at_s:.3f} and {two.at_s:.3f}, for no reason"
        yield from _out_of_order("legacy here", board, {data: all_[0].topic for data, all_ in there.items()})
        first = list(dict.fromkeys(each.payload for each in self._broker.accepted if each.payload in there))
        yield from _out_of_order("legacy there", first, {data: all_[0].topic for data, all_ in there.items()})

    def _state_amiss(self) -> Iterator[str]:
        _, subscriptions, retained = self._store.load_state()
        here = {each.topic_string: each.publication.message.body for each in retained}
        tree = {topic: each.payload for topic, each in self._broker.retained.items()}
        bodies = {topic: decode(body, b"").body if body[:3] == b"RFH" else body for topic, body in here.items()}
        if bodies != tree:
            yield f"retained here {bodies}, there {tree}"
        del subscriptions

    def _replay_amiss(self) -> Iterator[str]:
        """A replay of the commands gives what came to the queue that has everything."""
        replay = LocalReplay()
        puts = [put for each in self._capture.committed[self._store.database.path] for put in replay.replay(each)[1]]
        replayed = [
            (put.md_hex, put.body_hex) for put in puts if put.queue == BOARD and put.kind is PutKind.PUBLICATION
        ]
        found = [(md.hex(), body.hex()) for _, md, body in self._board()]
        if replayed != found:
            at = next((n for n, (one, two) in enumerate(zip(replayed, found, strict=False)) if one != two), -1)
            yield f"a replay gives other puts: {len(replayed)} and {len(found)}, the first difference at {at}"


def _out_of_order(who: str, came: Sequence[bytes], topics: dict[bytes, str]) -> Iterator[str]:
    last: dict[str, int] = {}
    for data in dict.fromkeys(came):
        topic, number = topics.get(data, ""), int(data[1:])
        if number < last.get(topic, -1):
            yield f"{who}: {data!r} on {topic} came after {last[topic]}"
        last[topic] = max(number, last.get(topic, -1))
