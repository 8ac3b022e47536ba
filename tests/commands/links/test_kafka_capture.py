"""``qpubsub capture --out kafka://``: from the stand-in for IBM MQ to a real broker; nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.cli import main
from commands.config.settings import ConfigError, QueuesConfig, TopicsConfig
from commands.config.urls import parse_address, parse_topic_address
from commands.links.ibmmq.manager import MqMessages
from commands.running.capture_files import CaptureTopic
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.mqmd import Mqmd
from tests.commands.links.kafka_server import KafkaNative, KafkaServer, kafka_server, needs_kafka
from tests.commands.links.mqi.harness import StandIn, needs_mqi, stand_in
from tests.waiting import until

URL = "ibmmq://127.0.0.1:1414/QM1?channel=C"


@pytest.fixture
def kafka(shared_kafka: KafkaServer) -> KafkaServer:
    return shared_kafka


@pytest.fixture
def topic(name: str) -> str:
    """A topic of the test's own."""
    return name


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[StandIn]:
    with stand_in(tmp_path / "mq", {"S": {}}) as running:
        yield running


@pytest.fixture
def programs(mq: StandIn) -> Iterator[MqMessages]:
    made = MqMessages(parse_address(URL, "--queues"), QueuesConfig())
    yield made
    made.close()


def put(programs: MqMessages, *data: str) -> None:
    for each in data:
        with programs.unit_of_work() as unit:
            md = Mqmd(format="MQSTR", persistence=1, user_identifier="app").encode()
            unit.put("S", md, each.encode(), user="app", application="program")


def lines(kafka: KafkaServer, topic: str) -> list[tuple[bytes | None, bytes]]:
    """All records: key and value."""
    consumer, found = KafkaNative(kafka.servers).reader(topic), []
    while (record := consumer.poll(1.5)) is not None:
        found.append((record.key(), record.value()))
    consumer.close()
    return found


def captured(kafka: KafkaServer, topic: str) -> list[CapturedMessage]:
    return [CapturedMessage.model_validate_json(value) for _, value in lines(kafka, topic)]


def words(kafka: KafkaServer, topic: str, *arguments: str) -> list[str]:
    return ["capture", "--queues", URL, "--to", f"{kafka.url}/{topic}", *arguments]


def capture(kafka: KafkaServer, topic: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, words(kafka, topic, *arguments))


@needs_mqi
@needs_kafka
def test_a_record_has_all_of_a_message_and_its_values_are_a_capture_file(
    tmp_path: Path, kafka: KafkaServer, topic: str, mq: StandIn, programs: MqMessages
) -> None:
    put(programs, "1", "2")
    done = capture(kafka, topic, "--take", "S=SPORT.STREAM")
    assert done.exit_code == 0, done.stderr
    assert f"2 messages captured in {kafka.url}/{topic}" in done.stderr
    assert mq.depth("S") == 0
    records = lines(kafka, topic)
    assert {key for key, _ in records} == {b"QM1"}
    (tmp_path / "topic.jsonl").write_bytes(b"".join(value + b"\n" for _, value in records))
    found = [record.message for record in read_captures(tmp_path / "topic.jsonl") if record.message is not None]
    assert [(m.seq, m.qmgr, m.queue, m.user, m.body) for m in found] == [
        (1, "QM1", "SPORT.STREAM", "app", b"1"),
        (2, "QM1", "SPORT.STREAM", "app", b"2"),
    ]
    assert all(message.md is not None and message.time is not None for message in found)


@needs_mqi
@needs_kafka
def test_a_capture_goes_on_and_a_second_look_is_refused(
    kafka: KafkaServer, topic: str, mq: StandIn, programs: MqMessages
) -> None:
    put(programs, *"12345")
    assert capture(kafka, topic, "--take", "--limit", "3", "S").exit_code == 0
    assert capture(kafka, topic, "--take", "S").exit_code == 0
    assert [(m.seq, m.body) for m in captured(kafka, topic)] == [(n, b"%d" % n) for n in range(1, 6)]
    put(programs, "6")
    again = capture(kafka, topic, "S")
    assert (again.exit_code, "give another directory or topic" in again.stderr) == (2, True)
    assert mq.depth("S") == 1


@needs_mqi
@needs_kafka
@pytest.mark.faults
@pytest.mark.parametrize(
    ("op", "how"),
    [("M", {"reason": 2003}), ("M", {"when": "before"}), ("M", {"when": "after"}), ("G", {"when": "after"})],
    ids=["backed out", "commit not done", "commit done", "get done"],
)
def test_nothing_is_lost_or_twice_when_a_call_fails(
    kafka: KafkaServer, topic: str, mq: StandIn, programs: MqMessages, op: str, how: dict[str, Any]
) -> None:
    put(programs, *"123")
    mq.fault(op, **how)
    done = capture(kafka, topic, "--take", "--follow", "--every", "0.05", "--limit", "3", "S")
    assert done.exit_code == 0, done.stderr
    assert [m.body for m in captured(kafka, topic)] == [b"1", b"2", b"3"]
    assert mq.depth("S") == 0


@needs_mqi
@needs_kafka
@pytest.mark.faults
@pytest.mark.slow
def test_a_killed_capture_goes_on(kafka: KafkaServer, topic: str, mq: StandIn, programs: MqMessages) -> None:
    expected = [str(number) for number in range(120)]
    for first in range(0, 120, 20):
        put(programs, *expected[first : first + 20])
        command = [sys.executable, "-m", "commands.cli", *words(kafka, topic, "--take", "--follow", "S")]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=dict(os.environ) | mq.environment) as process:
            until(lambda: mq.depth("S") < 20, "messages to be taken")
            process.send_signal(signal.SIGKILL)
    until(lambda: capture(kafka, topic, "--take", "S").exit_code == 0 and mq.depth("S") == 0, "the rest")
    assert [(m.seq, m.body.decode()) for m in captured(kafka, topic)] == list(enumerate(expected, 1))


def message(n: int, qmgr: str = "QM1", size: int = 1) -> CapturedMessage:
    return CapturedMessage(seq=0, qmgr=qmgr, queue="S", md_hex=f"{n:08x}", body_hex="00" * size)


def opened(kafka: KafkaServer, topic: str, qmgr: str = "QM1", patience_s: float = 30.0) -> CaptureTopic:
    return CaptureTopic(*parse_topic_address(f"{kafka.url}/{topic}", "--to"), TopicsConfig(), qmgr, patience_s)


@needs_kafka
def test_what_was_acknowledged_by_kafka_alone_is_known_again(kafka: KafkaServer, topic: str) -> None:
    """The program ended between the record and MQCMIT: the messages come again, with others behind them."""
    with opened(kafka, topic) as first:
        assert first.add([message(1), message(2), message(3)]) == 3
    with opened(kafka, topic) as second:
        assert second.add([message(2), message(3), message(4)]) == 1
        assert second.add([message(3)]) == 1, "another message like it, which nobody was in doubt about"
    assert [(m.seq, m.md_hex) for m in captured(kafka, topic)] == [
        (n, f"{md:08x}") for n, md in enumerate((1, 2, 3, 4, 3), 1)
    ]


@needs_kafka
@pytest.mark.faults
@pytest.mark.slow
def test_without_kafka_the_messages_stay_on_their_queues(tmp_path: Path) -> None:
    with kafka_server(tmp_path / "kafka") as server, opened(server, "t", patience_s=3.0) as place:
        assert place.add([message(1)]) == 1
        server.stop()
        with pytest.raises(Exception, match="give the command again: nothing is lost or doubled"):
            place.add([message(2)])
        server.start()
        with opened(server, "t") as again:
            assert again.add([message(2)]) == 1
        assert [m.seq for m in captured(server, "t")] == [1, 2]


@needs_kafka
def test_a_message_that_is_too_long_for_the_topic_stays_on_its_queue(kafka: KafkaServer, topic: str) -> None:
    with opened(kafka, topic) as place, pytest.raises(Exception, match="too large"):
        place.add([message(1, size=2_000_000)])


@needs_kafka
def test_a_topic_of_something_else_is_refused(kafka: KafkaServer, topic: str) -> None:
    with opened(kafka, topic, "QM2") as other:
        other.add([message(1, "QM2")])
    with pytest.raises(
        ConfigError, match="has messages of QM2, not of QM1: give each queue manager a topic of its own"
    ):
        opened(kafka, topic)
    KafkaNative(kafka.servers).produce(topic, None, json.dumps({"price": 1}).encode())
    with pytest.raises(ConfigError, match="record 1 of partition 0 is not a captured message"):
        opened(kafka, topic, "QM2")


@needs_kafka
def test_a_compacted_topic_is_refused(kafka: KafkaServer, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    made = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.create_topics([made])[topic].result()
    with pytest.raises(ConfigError, match="is compacted, and would keep one message"):
        until(lambda: opened(kafka, topic) and False, "the refusal")


@needs_kafka
def test_numbers_of_records_that_are_gone_are_not_given_again(kafka: KafkaServer, topic: str) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    with opened(kafka, topic) as place:
        place.add([message(n) for n in range(1, 4)])
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for answer in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        answer.result()
    with opened(kafka, topic) as place:
        assert not place.is_new
        place.add([message(4)])
    assert [m.seq for m in captured(kafka, topic)] == [4]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--to", "kafka://h"), "the topic is missing: kafka://h/TOPIC"),
        (("--to", "kafka://h:9092/"), "the topic is missing: kafka://h:9092/TOPIC"),
        (("--to", "mqtt://h/t"), "a directory, or kafka://host:9092/TOPIC"),
        (("--to", "kafka://h/t", "--format", "parquet"), "--format and --per-file are for files"),
    ],
)
def test_what_cannot_be_the_place(arguments: tuple[str, ...], why: str) -> None:
    done = CliRunner().invoke(main, ["capture", "--queues", URL, *arguments, "S"])
    assert (done.exit_code, why in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("url", "address", "topic"),
    [
        ("kafka://h/t", "kafka://h:9092", "t"),
        ("kafkas://u@h:1/a.b", "kafkas://h:1", "a.b"),
        ("kafka://a:1,b:2/t", "kafka://a:1", "t"),
    ],
)
def test_the_url_of_a_topic(url: str, address: str, topic: str) -> None:
    found = parse_topic_address(url, "--to")
    assert (str(found[0]), found[1]) == (address, topic)
    assert found[0].more == (("b:2",) if "," in url else ())
