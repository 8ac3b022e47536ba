"""Captured messages in a topic of a real Kafka, replayed as they come: the puts of the local replay, each once.

Spark needs its connector for Kafka, which ``.ci/run`` puts in .venv/peers/spark-kafka.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from commands.config.settings import TopicsConfig
from commands.config.urls import parse_topic_address
from commands.replay import LocalReplay
from commands.replay.spark.source import ConnectorMissingError, TopicSource
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.running.capture_files import CaptureTopic
from rfh2.captured import CapturedMessage
from rfh2.errors import CaptureError
from tests.commands.cli_runs import run
from tests.commands.links.kafka_server import KafkaServer, kafka_server, needs_kafka
from tests.waiting import until

JARS = sorted((Path(__file__).parents[4] / ".venv" / "peers" / "spark-kafka").glob("*.jar"))
needs_connector = pytest.mark.skipif(not JARS, reason="Spark's connector for Kafka is missing; see .ci/run")
KNOBS = WorkloadOptions(messages=600, control=0.1, subscribers=20, topics=20, qmgrs=1, retained=0.5, per_second=20)
SETUP = setup_script(KNOBS)


def capture() -> list[CapturedMessage]:
    """In the order of seq, from 1, as a capture numbers them."""
    messages = Workload(KNOBS).messages()
    return [each.model_copy(update={"seq": n, "qmgr": "QM1"}) for n, each in enumerate(messages, 1)]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    with kafka_server(tmp_path / "kafka") as running:
        yield running


def test_without_the_connector_it_is_said_what_is_missing(spark: SparkSession) -> None:
    with pytest.raises(
        ConnectorMissingError, match=r"kafka://h:9092/t: Spark has no connector for Kafka; docs/continuous"
    ):
        TopicSource("h:9092", "t").stream(spark)


def test_what_else_spark_refuses_is_not_called_a_missing_connector() -> None:
    class _Refusing:
        def __getattr__(self, name: str) -> _Refusing:
            return self

        def __call__(self, *_: object, **options: object) -> _Refusing:
            return self

        def load(self) -> None:
            raise AnalysisException("[UNSUPPORTED_KAFKA_OPTION] no such option")

    with pytest.raises(CaptureError, match=r"kafka://h:9092/t: \[UNSUPPORTED_KAFKA_OPTION\] no such option"):
        TopicSource("h:9092", "t").stream(_Refusing())  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [("--engine", "spark"), ()])
def test_a_topic_is_read_continuously_only(words: tuple[str, ...]) -> None:
    done = run("replay", "kafka://h:9092/t", *words, "--output", "puts.jsonl")
    assert (done.code, "kafka://h:9092/t: a topic needs --engine spark and --checkpoint" in done.talk) == (2, True)


@needs_kafka
@needs_connector
@pytest.mark.slow
@pytest.mark.faults
def test_each_put_is_there_once_whatever_the_batches_and_kills(tmp_path: Path, kafka: KafkaServer) -> None:
    messages, target = capture(), tmp_path / "puts.jsonl"
    (tmp_path / "setup.mqsc").write_text(SETUP)

    def replay(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "commands.cli", "replay", "--engine", "spark", f"{kafka.url}/captured"]
        command += ["--checkpoint", str(tmp_path / "place"), "--output", str(target)]
        command += ["--setup", str(tmp_path / "setup.mqsc"), "--master", "local[2]", *words]
        jars = f"--jars {','.join(map(str, JARS))} pyspark-shell"
        environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": jars}
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)

    def written() -> list[str]:
        return [line for path in sorted(target.glob("batch=*/puts.jsonl")) for line in path.read_text().splitlines()]

    with CaptureTopic(*parse_topic_address(f"{kafka.url}/captured", "--to"), TopicsConfig(), "QM1") as place:
        place.add(messages[:200])
        first = replay("--follow")
        try:
            until(lambda: first.poll() is not None or bool(written()), "the first batch", 120)
            place.add(messages[200:400])
        finally:
            os.killpg(first.pid, signal.SIGKILL)
            first.communicate()
        place.add(messages[400:])
    last = replay()
    _, talk = last.communicate(timeout=200)
    assert last.returncode in (0, 1), talk
    assert written() == [put.model_dump_json() for put in LocalReplay(SETUP).puts(messages)], talk
