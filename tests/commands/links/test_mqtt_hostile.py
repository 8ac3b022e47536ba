"""What an MQTT broker does not bear, and what natives may send: set aside, or carried; nothing behind it waits."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import QueueManager
from commands.headers.registry import parse
from commands.links.engine.inbound_writer import CommandPutter, NativePublication, command_for, usable, why_not_command
from commands.links.engine.properties import ForTree
from commands.links.engine.threads import Backoff
from commands.links.mqtt.packets import (
    MAX_BYTES,
    MqttPublication,
    escaped,
    native_of,
    packet_for,
    unescaped,
    why_not_text,
    why_not_topic,
)
from commands.qmgr.store import QueueManagerStore
from rfh2 import Mqmd, Rfh1, decode
from tests.commands.links.mosquitto import Mosquitto, Native, mosquitto, needs_mosquitto
from tests.commands.links.test_mqtt import CONTROL, STREAM, Bridge
from tests.commands.links.test_mqtt_faults import DEAD, OUTGOING
from tests.waiting import PATIENCE_S, until

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "mosquitto") as running:
        yield running


def _said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


# Text that MQTT does not carry (MQTT 5, 1.5.4)

FORBIDDEN = [
    "\0",
    "\t",
    "\n",
    "\r",
    "\x1f",
    "\x7f",
    "\x80",
    "\x9f",
    "\ufdd0",
    "\ufffe",
    "\uffff",
    "\U0001ffff",
    "\ud800",
]
ALLOWED = ["a", " ", "\\", "é", "\ufffd", "\U0001f600", "\u00a0", "+", "\ue000"]


@pytest.mark.parametrize("character", FORBIDDEN, ids=ascii)
def test_1_5_4_forbidden_characters(character: str) -> None:
    assert why_not_text(f"a{character}b")
    assert why_not_topic(f"a{character}b")
    (mark, (name, value)) = escaped((("n", f"a{character}b"),))
    assert mark == ("mq.Escaped", "1")
    assert (name, why_not_text(value)) == ("n", None)


@pytest.mark.parametrize("character", ALLOWED, ids=ascii)
def test_1_5_4_allowed_characters(character: str) -> None:
    assert why_not_text(f"a{character}b") is None
    assert escaped((("n", f"a{character}b"),)) == (("n", f"a{character}b"),), "sent as it is"


TEXT = st.text(st.one_of(st.sampled_from([*FORBIDDEN, *ALLOWED, "{", "}", "u", "A"]), st.characters()), max_size=12)
PAIRS = st.lists(st.tuples(TEXT.filter(lambda name: name != "mq.Escaped"), TEXT), max_size=5).map(tuple)


@given(PAIRS)
def test_properties_are_the_same_again_when_they_come_back(pairs: tuple[tuple[str, str], ...]) -> None:
    sent = escaped(pairs)
    assert all(why_not_text(text) is None for pair in sent for text in pair)
    assert unescaped(sent) == pairs


@pytest.mark.parametrize("character", ["x", "\n", "\\", "é", "\U0001f600", "\U0010ffff"], ids=ascii)
def test_long_values_are_sent_in_pieces(character: str) -> None:
    for size in (MAX_BYTES, MAX_BYTES + 1, 120_000):  # 120,000: whole pieces alone
        pairs = (("before", "1"), ("long", character * size), ("after", "2"))
        sent = escaped(pairs)
        assert all(len(text.encode()) <= MAX_BYTES for pair in sent for text in pair)
        assert unescaped(sent) == pairs


NOT_ESCAPED = ["\\", "a\\b", "\\u{}", "\\u{110000}", "\\u{a}", "\\u41", "\\+a", "a\\+", "\\\\\\"]


@pytest.mark.parametrize("value", NOT_ESCAPED)
def test_what_says_that_it_is_escaped_and_is_not_is_taken_as_it_is(value: str) -> None:
    pairs = (("mq.Escaped", "1"), ("n", value))
    assert unescaped(pairs) == pairs


@given(PAIRS, TEXT.map(lambda text: text.encode("latin-1", "ignore").decode("latin-1")[:8]))
def test_a_publication_comes_back_as_it_was(pairs: tuple[tuple[str, str], ...], fmt: str) -> None:
    pairs = tuple(pair for pair in pairs if not pair[0].startswith("mq."))
    wanted = ForTree("a", payload=b"data", format=fmt, properties=pairs, stamps=(("Pts", "20\n26"), ("Seq", "7")))
    packet, lost = packet_for(wanted, "", "bridge-1")
    assert lost == ()
    strings = (packet.topic, packet.content_type or "", *(text for pair in packet.properties for text in pair))
    assert [why_not_text(text) for text in strings] == [None] * len(strings)
    assert native_of(packet, "", "bridge-1") is None, "its own"
    native = native_of(packet, "", "bridge-2")
    assert native is not None
    assert (native.properties, native.stamps) == (pairs, (("PubTime", "20\n26"), ("SeqNum", "7")))
    assert native.format == fmt


# Anything that natives may send

ODD = st.one_of(
    st.text(max_size=30),
    TEXT,
    st.sampled_from(["9" * 5_000, "-1", "٣", "1e9", "", "ab\xffcd", "€uro", "x" * 20_000, "2147483648", "1", "\\u{A}"]),
)
OWN = ("Format", "Encoding", "CodedCharSetId", "Priority", "PubTime", "SeqNum", "Escaped", "Data", "Bridge")
NAMES = st.one_of(ODD, st.sampled_from([*(f"mq.{name}" for name in OWN), "colour", "xml", "Command"]))
PACKETS = st.builds(
    MqttPublication,
    topic=st.one_of(st.sampled_from(["a", "a/b", "x" * 10_241, "a\x01", "a\tb", "/", "a" + "/a" * 300]), ODD),
    payload=st.binary(max_size=40),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    expiry_s=st.one_of(st.none(), st.integers(0, 0xFFFF_FFFF), st.sampled_from([214_748_364, 214_748_365])),
    content_type=st.one_of(st.none(), ODD),
    is_text=st.booleans(),
    properties=st.lists(st.tuples(NAMES, ODD), max_size=5).map(tuple),
    response_topic=st.one_of(st.none(), ODD),
    correlation_data=st.one_of(st.none(), st.binary(max_size=30)),
)


@given(PACKETS, st.sampled_from(["", "MYFMT"]))
def test_any_native_publication_is_a_command_or_has_a_reason_why_not(
    packet: MqttPublication, default_format: str
) -> None:
    native = native_of(packet, "", "bridge", default_format)
    if native is None or why_not_command(native.topic) is not None:
        return
    mqmd, body, _lost = command_for(native, "native")
    message = decode(body, mqmd.encode())
    command: Any = parse(message)
    assert command.topics == (native.topic,)
    if command.word == "Publish":
        assert message.body == native.payload


@given(st.lists(PACKETS, max_size=4))
def test_any_retained_native_publication_is_usable_or_passed_over(packets: list[MqttPublication]) -> None:
    natives = [native for packet in packets if (native := native_of(packet, "", "bridge")) is not None]
    for native, operation in usable(natives, "native", NOW):
        assert operation.topic_string == native.topic  # type: ignore[union-attr]


def test_expiry_beyond_what_a_descriptor_can_say_is_the_longest() -> None:
    for expiry_s, tenths in ((214_748_364, 2_147_483_640), (214_748_365, 0x7FFF_FFFF), (0xFFFF_FFFF, 0x7FFF_FFFF)):
        assert command_for(NativePublication("a", b"", expiry_s=expiry_s), "native")[0].expiry == tenths


class _Unit:
    """A unit of work that takes everything."""

    def __init__(self) -> None:
        self.put_to: list[str] = []

    def put(self, queue: str, *_: object, **__: object) -> int:
        self.put_to.append(queue)
        return 1


def test_a_publication_over_which_the_conversion_fails_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("commands.links.engine.inbound_writer.command_for", fails)
    unit: Any = _Unit()
    CommandPutter("QM1", "native", DEAD).put(unit, NativePublication("a", b"data"))
    assert unit.put_to == [DEAD]


# Against mosquitto: out

HOSTILE: list[tuple[str, str, int]] = [
    ("tab", "a\tb", 3072),
    ("line feed", "a&#10;b", 3072),
    ("delete", "a\x7fb", 3072),
    ("C1", "a\u0085b", 3072),
    ("not a character", "a\ufdd0b", 3072),
    ("not a character beyond", "a\U0001fffeb", 3072),
    ("more levels than the broker takes", "a" + "/a" * 250, 3008),
]


@needs_mosquitto
@pytest.mark.faults
def test_a_topic_that_the_broker_does_not_bear_is_a_dead_letter_and_what_is_behind_it_passes(
    tmp_path: Path, broker: Mosquitto
) -> None:
    native = Native(broker, "native", "#")
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("#")
        for n, (_, topic, _) in enumerate(HOSTILE):
            bridge.publish(topic, b"hostile")
            bridge.publish(f"ok/{n}", str(n).encode())
        until(lambda: bridge.depth(OUTGOING) == 0 and bridge.depth(DEAD) == len(HOSTILE), "all to be gone")
        until(lambda: len({m.topic for m in native.messages}) == len(HOSTILE), "what is allowed")
        assert [m.headers[0].reason for m in bridge.browse(DEAD)] == [reason for *_, reason in HOSTILE]  # type: ignore[attr-defined]
        assert bridge.depth("S") == 2 * len(HOSTILE), "legacy subscribers get all of them"
        until(lambda: bridge.link.state.connected)
        assert bridge.link.adapter.mqtt.connection <= 4, "one connection for each break, and the first"
    native.close()


@needs_mosquitto
@pytest.mark.faults
def test_control_characters_in_properties_are_carried_and_come_back(tmp_path: Path, broker: Mosquitto) -> None:
    native = Native(broker, "native", "#")
    note = "line 1\nline 2\t\\end\u0085\ufdd0"
    with (
        Bridge(tmp_path / "one", broker.url, client_id="one") as one,
        Bridge(tmp_path / "two", broker.url, client_id="two") as two,
    ):
        two.register("n/#")
        one.publish("n/2", b"two", "<PubTime>20\t26</PubTime>", f"<usr><Note>{note}</Note><Plain>a\\b</Plain></usr>")
        one.publish("n/3", b"three", "", "<usr><Plain>a\\b</Plain></usr>")
        until(lambda: two.depth("S") == 2 and len(native.messages) == 2, "the publications")
        first, second = two.browse("S")
        assert one.depth(DEAD) == two.depth(DEAD) == 0
        assert one.link.adapter.mqtt.connection == 1
    assert first.rfh2 is not None
    assert second.rfh2 is not None
    assert dict(first.rfh2.folder("usr").pairs()) == {"Note": note, "Plain": "a\\b"}  # type: ignore[union-attr]
    assert dict(second.rfh2.folder("usr").pairs()) == {"Plain": "a\\b"}  # type: ignore[union-attr]
    shown = [dict(m.properties.UserProperty) for m in native.messages]
    assert shown[0]["Note"] == "line 1\\u{A}line 2\\u{9}\\\\end\\u{85}\\u{FDD0}"
    assert shown[0]["mq.Escaped"] == "1"
    assert (shown[1]["Plain"], "mq.Escaped" in shown[1]) == ("a\\b", False)
    native.close()


@needs_mosquitto
@pytest.mark.faults
@pytest.mark.parametrize("character", ["\x01", "\x1b"], ids=ascii)
def test_an_mqrfh_topic_that_xml_has_no_room_for_is_a_dead_letter(
    tmp_path: Path, broker: Mosquitto, character: str
) -> None:
    text = f"MQPSCommand Publish MQPSTopic a{character}b".encode()
    header = Rfh1(text + b" " * (-len(text) % 16), 546, 1208, "MQSTR")
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        with bridge.store.unit_of_work() as unit:
            unit.put(STREAM, Mqmd(format="MQHRF", persistence=1, priority=0).encode(), header.encode() + b"data")
        until(lambda: bridge.depth(DEAD) == 1 and bridge.depth(OUTGOING) == 0, "the dead letter")
        (dead,) = bridge.browse(DEAD)
        assert (dead.headers[0].reason, dead.headers[0].dest_q_name) == (2110, OUTGOING)  # type: ignore[attr-defined]


@needs_mosquitto
@pytest.mark.faults
def test_a_subscription_over_which_the_broker_hangs_up_is_not_asked_for_again(
    tmp_path: Path, broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    native = Native(broker, "native")
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("a" + "/a" * 250, "DEEP")
        bridge.register("tab\there", "TAB")
        bridge.register("in/#")
        until(lambda: _said(caplog, "breaks the connection over a subscription") == 1, "the broker's reason")
        until(lambda: bridge.link.is_idle, "the others")
        native.publish("in/x", "heard")
        until(lambda: bridge.data("S") == [b"heard"])
        assert bridge.link.adapter.mqtt.connection <= 4, "one for each break, and the first"
    native.close()


# Against mosquitto: in


@needs_mosquitto
@pytest.mark.faults
def test_absurd_native_publications_stop_nothing(tmp_path: Path, broker: Mosquitto) -> None:
    native = Native(broker, "native")
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("e/#")
        native.publish("e/1", "x", MessageExpiryInterval=315_360_000)
        native.publish("e/2", "x", UserProperty=[("mq.Format", "€uro")])
        native.publish("e/3", "x", UserProperty=[("mq.Encoding", "9" * 5_000), ("mq.Priority", "9" * 5_000)])
        native.publish("e/4", "x", UserProperty=[("mq.SeqNum", "1"), ("mq.SeqNum", "2"), ("mq.PubTime", "soon")])
        native.publish("e/5", "x", UserProperty=[("mq.Escaped", "1"), ("n", "\\u{110000}")])
        native.publish("e/6", "last")
        until(lambda: bridge.depth("S") == 6, "all of them")
        assert bridge.depth(DEAD) == 0
        assert bridge.browse("S")[0].mqmd.expiry > 2_147_000_000
    native.close()


@needs_mosquitto
@pytest.mark.faults
def test_retained_native_publications_that_cannot_be_used_are_passed_over_by_a_regsub(
    tmp_path: Path, broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    native = Native(broker, "native")
    native.publish("r/1", "long", retain=True, MessageExpiryInterval=315_360_000)
    native.publish("r/2", "odd", retain=True, UserProperty=[("mq.Format", "€uro")])
    native.publish("r/" + "x" * 11_000, "too long", retain=True)
    native.publish("r/3", "good", retain=True)
    native.publish("no/1", "forbidden here", retain=True)
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        bridge.register("r/#")
        until(lambda: bridge.depth("S") == 3)
        assert sorted(bridge.data("S")) == [b"good", b"long", b"odd"]
        assert _said(caplog, "passed over, topic r/xxx") >= 1
        assert bridge.depth(DEAD) == 0
    native.close()


# The broker hangs: it neither answers nor hangs up


@needs_mosquitto
@pytest.mark.faults
def test_a_broker_that_hangs_keeps_no_other_program_waiting(tmp_path: Path, broker: Mosquitto) -> None:
    """S in the middle of 40 RegSubs: puts of other programs are never kept waiting for the broker's patience."""
    native = Native(broker, "native")
    native.publish("hung/1", "kept", retain=True)
    native.close()
    with Bridge(tmp_path / "qmgrs", broker.url) as bridge:
        until(lambda: bridge.link.is_idle)
        broker.hang()
        try:
            with QueueManagerStore.open(tmp_path / "qmgrs", "QM1") as other:
                md = Mqmd(format="MQSTR", persistence=1, priority=0).encode()
                for n in range(40):
                    psc = f"<Command>RegSub</Command><Topic>hung/{n}</Topic><QName>S{n}</QName>"
                    bridge.put(CONTROL, psc)
                longest_s, puts = 0.0, 0
                end = time.monotonic() + 30
                while bridge.depth(CONTROL) and time.monotonic() < end:
                    begun = time.monotonic()
                    with other.unit_of_work() as unit:
                        unit.put("ELSEWHERE", md, b"data")
                    longest_s, puts = max(longest_s, time.monotonic() - begun), puts + 1
                    time.sleep(0.01)
            assert bridge.depth(CONTROL) == 0, "all are registered without the broker"
            assert longest_s < bridge.link._config.patience_s * 0.8, f"a put waited {longest_s:.1f} s of {puts} puts"
            assert bridge.depth(DEAD) == 0
        finally:
            broker.go_on()
        until(lambda: bridge.depth("S1") == 1, "what natives retain, once the broker goes on")


# What ends all the same


@needs_mosquitto
@pytest.mark.faults
@pytest.mark.parametrize("thread", ["inward", "outward", "keeper"])
def test_a_thread_that_ends_all_the_same_ends_the_process(tmp_path: Path, broker: Mosquitto, thread: str) -> None:
    import sys

    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    broken = {
        "inward": "commands.links.engine.pumps.InboundPump._one_batch",
        "outward": "commands.links.engine.pumps.OutboundPump.one_batch",
        "keeper": "commands.links.engine.link.Keeper.one_round",
    }[thread]
    module, owner, name = broken.rsplit(".", 2)
    program = (
        f"import sys; from {module} import {owner}\n"
        f"def fails(*_): raise ZeroDivisionError('injected')\n"
        f"{owner}.{name} = fails\n"
        "from commands.cli import main\n"
        f"sys.exit(main(['run', '-m', 'QM1', '--home', {str(tmp_path)!r}, '--topics', {broker.url!r}]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 70, ended.stderr
    assert (
        f"thread {thread} of the link to the topic tree has failed: ZeroDivisionError('injected')".encode()
        in ended.stderr
    )


def test_pauses_grow_to_a_bound_and_begin_anew() -> None:
    pauses = Backoff(1, 30, lambda: 1.0)
    assert [pauses.next() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    pauses.reset()
    assert pauses.next() == 1
    least = Backoff(1, 30, lambda: 0.0)
    assert [least.next() for _ in range(3)] == [0.5, 1, 2]


@needs_mosquitto
@pytest.mark.faults
@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.nightly)])
def test_a_broker_that_is_killed_makes_no_publication_a_dead_letter(
    tmp_path: Path, broker: Mosquitto, kills: int
) -> None:
    """What was on its way when the broker died is suspected, and acquitted."""
    with Bridge(tmp_path / "qmgrs", broker.url, batch=50) as bridge:
        for n in range(kills):
            for k in range(100):
                bridge.publish(f"out/{k % 5}", b"data")
            until(lambda: bridge.link.wait_up(0.1), "a connection")
            broker.stop(signal.SIGKILL)
            broker.start()
            time.sleep(0.1 * (n % 10))
        until(lambda: bridge.depth(STREAM) == 0 and bridge.depth(OUTGOING) == 0, "all to be gone")
        assert bridge.depth(DEAD) == 0
        assert bridge.link.refused == 0
