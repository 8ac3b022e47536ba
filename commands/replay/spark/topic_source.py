"""A topic of Kafka with captured messages, as a stream of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from commands.replay.spark.captured_values import captured_values
from rfh2.errors import QPubSubError

_BATCH_RECORDS: Final = 50_000


class ConnectorMissingError(QPubSubError):
    """Spark cannot read Kafka. source: what it was to read."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source

    def __str__(self) -> str:
        where = "docs/continuous-replay.md says how Spark gets it"
        return f"{self.source}: Spark has no connector for Kafka; {where}"


@dataclass(frozen=True)
class TopicSource:
    """A topic of Kafka with captured messages (``captured_values``). servers: host:port, with commas between several.

    secure: by TLS.
    """

    servers: str
    topic: str
    secure: bool = False

    def __str__(self) -> str:
        return f"kafka{'s' if self.secure else ''}://{self.servers}/{self.topic}"

    def stream(self, spark: SparkSession) -> DataFrame:
        """All that the topic has, and then what comes. Raises ConnectorMissingError."""
        options = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.security.protocol": "SSL" if self.secure else "PLAINTEXT",
            "kafka.isolation.level": "read_committed",
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(_BATCH_RECORDS),
        }
        try:
            return captured_values(spark.readStream.format("kafka").options(**options).load())
        except AnalysisException as error:
            raise ConnectorMissingError(str(self)) from error
