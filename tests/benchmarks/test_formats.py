"""Publications a second from header to header, each beside the least work that could do the same job.

Floors, measured in the same run: the string, the folder or the structure put together by hand from a topic and a
sequence number that are known already, with struct and slices.
Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import struct
import timeit
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands import Arrival, Broker, Command, Outcome, parse
from commands.headers.publication import DeliveryForm
from commands.headers.registry import content_of, render
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.message import Message, encode
from rfh2.pcf import Pcf
from rfh2.pcf_names import MQCACF_STRING_DATA
from rfh2.pcf_parameters import Cfin, Cfst
from rfh2.rfh1 import Rfh1
from streams.operations import Subscribe
from streams.subscriptions import PublicationFormat, Subscription

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOPIC, NUMBER, BODY = "Stock/NYSE/IBM", "7", b"x" * 100
RFH2, RFH1, PCF = PublicationFormat.RFH2, PublicationFormat.RFH1, PublicationFormat.PCF


def _published() -> dict[PublicationFormat, tuple[Mqmd, bytes]]:
    psc = f"<psc><Command>Publish</Command><Topic>{TOPIC}</Topic><SeqNum>{NUMBER}</SeqNum></psc>"
    names = [("MQPSCommand", "Publish"), ("MQPSTopic", TOPIC), ("MQPSSeqNum", NUMBER)]
    pcf = Pcf(63, (Cfst.of(3031, TOPIC, 819), Cfin(1079, 7)), rest=BODY)
    return {
        RFH2: (Mqmd(format="MQHRF2", coded_char_set_id=819), Rfh2((Folder.of(psc),), format="MQSTR").encode() + BODY),
        RFH1: (
            Mqmd(format="MQHRF", coded_char_set_id=819),
            Rfh1(format="MQSTR").with_pairs(names).encode() + BODY,
        ),
        PCF: (Mqmd(format="MQPCF", coded_char_set_id=819), pcf.encode()),
    }


PUBLISHED = _published()
_PROLOGUE = struct.Struct("<4s4i8si")
_CFH, _STRING, _INTEGER = struct.Struct("<9i"), struct.Struct("<5i"), struct.Struct("<4i")


def _floor_rfh2() -> bytes:
    text = f"<psc><Command>Publish</Command><Topic>{TOPIC}</Topic><SeqNum>{NUMBER}</SeqNum></psc>".encode()
    text += b" " * (-len(text) % 4)
    fixed = _PROLOGUE.pack(b"RFH ", 2, 40 + len(text), 546, -2, b"MQSTR   ", 0)
    return fixed + struct.pack("<2i", 1208, len(text)) + text + BODY


def _floor_rfh1() -> bytes:
    text = f"MQPSCommand Publish MQPSTopic {TOPIC} MQPSSeqNum {NUMBER}\0".encode()
    text += bytes(-len(text) % 4)
    return _PROLOGUE.pack(b"RFH ", 1, 32 + len(text), 546, -2, b"MQSTR   ", 0) + text + BODY


def _floor_pcf() -> bytes:
    text = TOPIC.encode()
    padded = text + bytes(-len(text) % 4)
    header = _CFH.pack(1, 36, 1, 63, 1, 1, 0, 0, 2)
    parameter = _STRING.pack(4, 20 + len(padded), 3031, 819, len(text)) + padded
    number = _INTEGER.pack(3, 16, 1079, int(NUMBER))
    return header + parameter + number + _STRING.pack(4, 20 + len(BODY), MQCACF_STRING_DATA, 819, len(BODY)) + BODY


FLOORS: dict[PublicationFormat, Callable[[], bytes]] = {RFH2: _floor_rfh2, RFH1: _floor_rfh1, PCF: _floor_pcf}


def _rate(work: Callable[[], object]) -> float:
    timer = timeit.Timer(work)
    number, _ = timer.autorange()
    return max(number / seconds for seconds in timer.repeat(3, number))


def _say(what: str, ours: float, floor: float) -> None:
    print(f"\n{what:<24}{ours:>12,.0f} /s   floor {floor:>12,.0f} /s   ratio {ours / floor:.3f}")


@pytest.mark.parametrize("form", [RFH2, RFH1, PCF])
def test_decode_and_parse(benchmark: BenchmarkFixture, form: PublicationFormat) -> None:
    """The floor is the same of an MQRFH2."""

    def read(form: PublicationFormat) -> Command:
        mqmd, body = PUBLISHED[form]
        return parse(decode(body, mqmd))

    assert read(form).topics == (TOPIC,)
    benchmark(lambda: read(form))
    if benchmark.enabled:
        _say(f"read {form}", _rate(lambda: read(form)), _rate(lambda: read(RFH2)))


@pytest.mark.parametrize("to", [RFH2, RFH1, PCF])
@pytest.mark.parametrize("form", [RFH2, RFH1, PCF])
def test_render(benchmark: BenchmarkFixture, form: PublicationFormat, to: PublicationFormat) -> None:
    mqmd, body = PUBLISHED[form]
    message: Message = decode(body, mqmd)
    command = parse(message)
    wanted = DeliveryForm(to, (TOPIC,))

    def convert() -> bytes:
        return encode(render(content_of(message, command), wanted).message)

    if form is not PCF:
        assert len(convert()) == len(FLOORS[to]())
    assert convert().endswith(BODY)
    benchmark(convert)
    if benchmark.enabled:
        _say(f"{form} rendered as {to}", _rate(convert), _rate(FLOORS[to]))


@pytest.mark.parametrize("to", [RFH2, RFH1, PCF])
@pytest.mark.parametrize("form", [RFH2, RFH1, PCF])
def test_publish_to_one_subscriber(benchmark: BenchmarkFixture, form: PublicationFormat, to: PublicationFormat) -> None:
    """The whole way through the broker, in memory; the floor is the same with MQRFH2 on either side."""

    def world(publisher: PublicationFormat, subscriber: PublicationFormat) -> Callable[[], Outcome]:
        broker = Broker("QM1")
        subscription = Subscription(bytes(24), TOPIC, "SUB.Q", "QM1", NOW, format=subscriber)
        broker.space.apply(Subscribe(subscription, send_retained=False), NOW)
        mqmd, body = PUBLISHED[publisher]
        arrival = Arrival(1, NOW, "SYSTEM.BROKER.DEFAULT.STREAM", mqmd.encode(), body, "app")
        return lambda: broker.process(arrival)

    publish = world(form, to)
    assert len(publish().puts) == 1
    benchmark(publish)
    if benchmark.enabled:
        _say(f"publish {form} to {to}", _rate(publish), _rate(world(RFH2, RFH2)))
