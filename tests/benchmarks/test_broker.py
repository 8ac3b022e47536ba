"""Messages a second through each stage of the broker, each beside the least work that could do the same job.

Floors, all measured in the same run: for decode, struct and slices without objects; for parse, lxml and a pydantic
model; for match, a dictionary look-up; for the whole replay, JSON in, hex, struct, lxml, a dictionary, a string, JSON
out.
Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import struct
import timeit
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from lxml import etree
from pydantic import BaseModel
from pytest_benchmark.fixture import BenchmarkFixture

from commands import Broker, parse
from commands.broker.outcome import Arrival
from rfh2 import Folder, Mqmd, Rfh2, decode
from streams.operations import Subscribe
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObjects
from streams.topic_space import TopicSpace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
MD = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app").encode()
DESCRIPTOR = struct.Struct("<4siiiiiii8sii24s24si48s48s12s32s32si28s8s8s4s")
FIXED = struct.Struct("<4siiii8sii")


def _body(psc: str) -> bytes:
    return Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"x" * 100


PUBLISH = _body("<Command>Publish</Command><Topic>Stock/NYSE/IBM</Topic>")


class _Command(BaseModel):
    word: str
    topics: tuple[str, ...]


def _floor_decode() -> tuple[bytes, bytes]:
    fields = DESCRIPTOR.unpack_from(MD)
    for i in (8, 14, 15, 16, 18, 20, 21, 22, 23):
        fields[i].decode("latin-1").rstrip()
    length = FIXED.unpack_from(PUBLISH)[2]
    size = int.from_bytes(PUBLISH[36:40], "little")
    return PUBLISH[40 : 40 + size], PUBLISH[length:]


def _floor_parse(folder: bytes = _floor_decode()[0]) -> _Command:
    root = etree.fromstring(folder.rstrip())
    topics = tuple(child.text for child in root if child.tag == "Topic")
    return _Command(word=root[0].text or "", topics=topics)


def _rate(work: Callable[[], object], least_s: float = 0.3) -> float:
    timer = timeit.Timer(work)
    number, _ = timer.autorange()
    return max(number / seconds for seconds in timer.repeat(max(3, int(least_s / 0.2) + 1), number))


def _say(stage: str, ours: float, floor: float, what: str) -> None:
    print(f"\n{stage:<16}{ours:>12,.0f} /s   floor {floor:>12,.0f} /s   ratio {ours / floor:.2f}   ({what})")


def test_decode(benchmark: BenchmarkFixture) -> None:
    _say("decode", _rate(lambda: decode(PUBLISH, MD)), _rate(_floor_decode), "MQMD and MQRFH2; floor: struct")
    message = benchmark(decode, PUBLISH, MD)
    assert message.body == _floor_decode()[1]


def test_parse(benchmark: BenchmarkFixture) -> None:
    message = decode(PUBLISH, MD)
    _say("parse", _rate(lambda: parse(message)), _rate(_floor_parse), "psc to command; floor: lxml and pydantic")
    command = benchmark(parse, message)
    assert command.topics == _floor_parse().topics


@pytest.mark.parametrize("subscriptions", [100, 10_000])
def test_match(benchmark: BenchmarkFixture, subscriptions: int) -> None:
    space = TopicSpace(TopicObjects())
    for n in range(subscriptions):
        sub_id = n.to_bytes(24, "big")
        space.apply(Subscribe(Subscription(sub_id, f"Stock/NYSE/{n}", "Q", "QM1", NOW), send_retained=False), NOW)
    table = {f"Stock/NYSE/{n}": (n,) for n in range(subscriptions)}
    topics = [f"Stock/NYSE/{n * 7 % subscriptions}" for n in range(1000)]

    def ours() -> int:
        return sum(len(space.match(topic, NOW)) for topic in topics)

    def floor() -> int:
        return sum(len(table[topic]) for topic in topics)

    what = f"{subscriptions:,} exact subscriptions; floor: a dictionary"
    _say("match", _rate(ours) * 1000, _rate(floor) * 1000, what)
    assert benchmark(ours) == floor()


def _register(commands: int, queues: int) -> Callable[[], Broker]:
    def register() -> Broker:
        broker = Broker("QM1")
        for n in range(commands):
            body = _body(f"<Command>RegSub</Command><Topic>t/{n}</Topic><QName>Q{n % queues}</QName>")
            broker.process(Arrival(n + 1, NOW, CONTROL, MD, body))
        return broker

    return register


def test_register_on_one_queue(benchmark: BenchmarkFixture) -> None:
    """Thousands of subscriptions of one subscriber; the floor spreads them over as many queues."""
    commands = 100_000 if benchmark.enabled else 100
    ours, floor = _rate(_register(commands, 1), 0) * commands, _rate(_register(commands, commands), 0) * commands
    _say("register", ours, floor, f"{commands:,} on one queue; floor: a queue each")
    broker = benchmark.pedantic(_register(commands, 1), rounds=1)  # type: ignore[no-untyped-call]
    assert len(broker.space.by_identity(("QM1", "Q0", bytes(24)))) == commands
