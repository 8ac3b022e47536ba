"""What goes between queues and a tree of MQTT or NATS: native publications inwards, legacy ones outwards, and back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from commands.broker.objects import DEFAULT_STREAM
from commands.links.engine.inbound_writer import CommandPutter, NativePublication, as_operation
from commands.links.engine.properties import ForTree, for_tree, native_of as of_record, publishing
from commands.links.mqtt.packets import MqttPublication, native_of, packet_for, why_not_topic
from commands.links.nats.connection import message_for, record_of, subject_of, topic_of
from rfh2 import CapturedMessage, DecodeError, Folder, Message, Mqmd, Rfh2, decode
from rfh2.folders import write
from streams.operations import Publication, PublishToTopic
from tests.reliability.hostile import subscribed
from tests.reliability.trials import Json, Target

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FIT: Final = ("ab/", "äß€日\U0001f600", "a b'\"&<>", "\t\n\r", "\x01\x1f\x7f\x85\x9f", "\ufdd0\ufffe\uffff\u2028")
_OWN: Final = ("mq.Format", "mq.Priority", "mq.Encoding", "mq.CodedCharSetId", "mq.PubTime", "mq.SeqNum", "mq.Data")
_VALUES: Final = (
    *("0", "9", "-1", "10", "546", "273", "1208", "1200", "819", "65535", "2147483647", "2147483648", "99999999999"),
    *("٣", "1" * 4_301, "--1", "MQSTR", "MQHRF2", "MQPCF", "é日", "x" * 9, "", " ", "a=b", "20260101", "\u0085", "\n"),
)
_TYPES: Final = (None, "text/plain", "text/plain; charset=latin-1", "application/json", "x" * 300, "", "text/", ";")
_EXPIRIES: Final = (None, None, 0, 1, 3600, 214_748_364, 214_748_365, 315_360_000, 0xFFFF_FFFF)


def _text(random: Random, longest: int = 12) -> str:
    """A few characters, most of them harmless."""
    alphabet = random.choice(_FIT) if random.random() < 0.4 else "abc/"
    return "".join(random.choices(alphabet, k=random.randrange(longest)))


def _packet(random: Random) -> Json:
    topic = "/".join(filter(None, (_text(random, 5) for _ in range(random.randint(1, 4))))) or "e"
    names = [
        random.choice((*_OWN, *_OWN, "a", "a b", "", "1", "usr", "é", "mq.Bridge")) for _ in range(random.randrange(4))
    ]
    properties = [[name, random.choice((random.choice(_VALUES), _text(random)))] for name in names]
    payload = random.choice((b"", b"data", b"\0\xff", "日".encode(), b"RFH \2\0\0\0", b"x" * 5_000))
    return {
        "topic": topic if random.random() < 0.95 else "t/" * 300 + "x",
        "payload": payload.hex(),
        "qos": random.randrange(3),
        "retain": random.random() < 0.4,
        "expiry_s": random.choice(_EXPIRIES),
        "content_type": random.choice(_TYPES),
        "is_text": random.random() < 0.3,
        "properties": properties,
        "response_topic": random.choice((None, "r/t", "")),
        "correlation_data": random.choice((None, "00ff", "")),
    }


def _of(case: Json) -> MqttPublication:
    data = case["correlation_data"]
    kept = {
        "payload": bytes.fromhex(case["payload"]),
        "properties": tuple((name, value) for name, value in case["properties"]),
        "correlation_data": None if data is None else bytes.fromhex(data),
    }
    return MqttPublication(**(case | kept))


class _Queues:
    """What an intake puts."""

    def __init__(self) -> None:
        self.puts: list[tuple[str, bytes, bytes]] = []

    def put(self, queue: str, md: bytes, body: bytes, **_: Any) -> None:
        self.puts.append((queue, md, body))


def _inward(case: Json) -> str:
    """A native publication comes to legacy subscribers with its topic and its payload, or to the dead-letter queue."""
    native = native_of(_of(case), "", "bridge") if case["topic"] else None
    return "not taken" if native is None else _delivered(native)


def _message(random: Random) -> Json:
    packet = _packet(random)
    headers = {name: value for name, value in packet["properties"] if not set(name + value) & set("\r\n")}
    more = ("Nats-TTL", "mq.Retain", "mq.Persistence", "mq.Properties", "KV-Operation", "Content-Type")
    texts = (
        "1",
        "0",
        "5s",
        "1h",
        "never",
        "99999999999",
        "[]",
        "{}",
        '[["a", "b"]]',
        '[["a"]]',
        "[1]",
        "DEL",
        "text/plain",
    )
    for name in random.sample(more, random.randrange(len(more))):
        headers[name] = random.choice(texts)
    subject = random.choice((subject_of(packet["topic"]), packet["topic"].replace("/", ".").replace(" ", "=20")))
    return {"subject": subject, "payload": packet["payload"], "headers": headers, "in_bucket": random.random() < 0.3}


def _from_nats(case: Json) -> str:
    """A message of NATS comes to legacy subscribers, or to the dead-letter queue; so does one on an odd subject."""
    topic = topic_of(case["subject"])
    if topic is None or not topic:
        return "the subject of no topic string"
    assert subject_of(topic) == case["subject"]
    record = record_of(case["subject"], bytes.fromhex(case["payload"]), case["headers"], 0.0, case["in_bucket"])
    native = of_record(replace(record, topic=topic), 1.0)
    return "expired" if native is None else _delivered(native)


def _delivered(native: NativePublication) -> str:
    """What becomes of it as a command."""
    queues = _Queues()
    CommandPutter("QM1", "mqtt", "DEAD").put(queues, native)  # type: ignore[arg-type]
    ((queue, md, body),) = queues.puts
    if queue != DEFAULT_STREAM:
        decode(body, md)
        return "dead letter"
    if native.retain:
        as_operation(native, "mqtt", _NOW)
    tracer = subscribed()
    message = CapturedMessage(seq=9, queue=queue, md_hex=md.hex(), body_hex=body.hex(), user="mqtt", time=_NOW)
    outcome = tracer.trace(message).outcome
    if outcome.completion is None or outcome.completion.value == "error":
        assert outcome.reason in (3072, 3081, 2051), f"reason {outcome.reason}: {outcome.why}"
        return "refused"
    told = [put for put in outcome.puts if put.queue == "ALL"]
    assert native.clears or len(told) == 1
    for put in told:
        assert put.topic == native.topic
        assert put.body.endswith(native.payload)
        decode(put.body, put.message.mqmd.encode())
    return "delivered"


def _legacy(random: Random) -> Json:
    return {
        "topic": "/".join(_text(random, 5) or "x" for _ in range(random.randint(1, 4))),
        "stamps": [[random.choice(("PubTime", "SeqNum", "IntData", "StringData")), _text(random)] for _ in range(2)],
        "usr": [[random.choice(("a", "b", "Note")), _text(random)] for _ in range(random.randrange(3))],
        "format": random.choice(("MQSTR", "", "OURS", "é", "A\x01B")),
        "ccsid": random.choice((1208, 819, 1200, 500, 0, -2, 4711)),
        "encoding": random.choice((273, 546, 785, 0, 2**31 - 1)),
        "expiry": random.choice((-1, 1, 9, 11, 2**31 - 1)),
        "priority": random.randrange(10),
        "persistent": random.randrange(2),
        "retain": random.random() < 0.3,
        "payload": random.choice((b"", b"data", b"\xff\0", "日".encode())).hex(),
    }


def _published(case: Json) -> Message | None:
    pairs = [("Command", "Publish"), ("Topic", case["topic"]), *((tag, value) for tag, value in case["stamps"])]
    usr = write("usr", [(tag, value) for tag, value in case["usr"]])
    header = Rfh2(
        (Folder.of(write("psc", pairs)), Folder.of(usr)),
        encoding=case["encoding"],
        coded_char_set_id=case["ccsid"],
        format=case["format"],
    )
    md = Mqmd(format="MQHRF2", persistence=case["persistent"], priority=case["priority"], expiry=case["expiry"])
    body = header.encode() + bytes.fromhex(case["payload"])
    tracer = subscribed()
    captured = CapturedMessage(seq=9, queue=DEFAULT_STREAM, md_hex=md.encode().hex(), body_hex=body.hex(), time=_NOW)
    return decode(body, md) if tracer.trace(captured).outcome.completion is not None else None


def _wanted(case: Json) -> ForTree | str:
    """The request to a tree; or why there is none."""
    message = _published(case)
    if not case["topic"] or message is None:
        return "no publication"
    put = publishing(
        PublishToTopic(case["topic"], Publication(message, _NOW), case["retain"]), "QM1", "OUT", local=False
    )
    try:
        return for_tree(put.message.mqmd.encode(), put.body)
    except DecodeError:
        return "set aside"


def _outward(case: Json) -> str:
    """A legacy publication becomes a packet that every MQTT broker takes, or is known not to fit; and comes back."""
    wanted = _wanted(case)
    if isinstance(wanted, str):
        return wanted
    if why_not_topic(case["topic"]) is not None:
        return "no topic of MQTT"
    packet, _lost = packet_for(wanted, "", "bridge")
    strings = (packet.topic, packet.content_type or "", *(string for pair in packet.properties for string in pair))
    assert all(map(_is_mqtt, strings)), "a string that an MQTT broker may close the connection for"
    assert packet.payload == bytes.fromhex(case["payload"])
    assert packet.expiry_s is None or 10 * packet.expiry_s >= wanted.expiry, "gone before its time"
    back = native_of(packet, "", "another")
    assert back is not None
    return _back(case, back)


def _to_nats(case: Json) -> str:
    """A legacy publication becomes a subject and headers that every NATS server takes, and comes back."""
    wanted = _wanted(case)
    if isinstance(wanted, str):
        return wanted
    message = message_for(wanted, "bridge", 60)
    assert re.fullmatch(r"[^\s*>\x00-\x20]+", message.subject)
    assert re.fullmatch(r"[-=_.A-Za-z0-9]+", message.key)
    for name, value in message.headers.items():
        assert re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name)
        assert value == value.strip()
        assert not set(value) & set("\r\n\0")
    assert topic_of(message.subject) == topic_of(message.key, key=True) == case["topic"]
    native = of_record(record_of(message.subject, message.payload, message.headers, 0.0, in_bucket=False), 0.0)
    assert native is not None
    return _back(case, native)


def _back(case: Json, back: NativePublication) -> str:
    """That it came back as it was, as far as every tree has room for it."""
    payload, persistent = bytes.fromhex(case["payload"]), bool(case["persistent"])
    assert (back.topic, back.payload, back.persistent) == (case["topic"], payload, persistent)
    assert back.priority == case["priority"]
    again = _Queues()
    CommandPutter("QM2", "mqtt", "DEAD").put(again, back._replace(retain=False))  # type: ignore[union-attr]
    return "there and back" if again.puts[0][0] == DEFAULT_STREAM else "not back"


def _is_mqtt(string: str) -> bool:
    """MQTT 5, 1.5.4: no null and no surrogate; a receiver may close the connection for control and non-characters."""
    codes = [ord(character) for character in string]
    controls = any(code < 0x20 or 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF for code in codes)
    none = any(0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE for code in codes)
    return not controls and not none and len(string.encode("utf-8", "surrogatepass")) <= 65_535


TARGETS: Final = (
    Target("mqtt-in", "any MQTT publication: delivered as it is, or a dead letter", _packet, _inward, 2_500),
    Target(
        "mqtt-out", "any legacy publication: a packet that no broker refuses, and back again", _legacy, _outward, 2_500
    ),
    Target("nats-in", "any message of NATS: delivered as it is, or a dead letter", _message, _from_nats, 2_500),
    Target("nats-out", "any legacy publication: a message that NATS takes, and back again", _legacy, _to_nats, 2_500),
)
