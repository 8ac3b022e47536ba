"""``captured_values``: captured messages out of the records of Kafka, or of any column with JSON texts.

The texts are lines of a JSON Lines capture, as ``qpubsub capture --to kafka://`` writes them, and are read by the model
that reads those lines: a text means the same in a topic and in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pydantic import ValidationError
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, StringType

from commands.replay.spark.piece_reader import batches_of
from commands.replay.spark.rows import columns
from commands.replay.spark.schemas import READ, SchemaError
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.captures.jsonl import clause
from rfh2.errors import CaptureError

# What a record of Kafka is called in messages to people, where the columns are there.
_PLACE: Final = ("topic", "partition", "offset")


def captured_values(frame: DataFrame, value: str = "value") -> DataFrame:
    """The captured messages in column *value* of *frame*: the columns of READ.

    frame: any DataFrame, a streaming one too; say, records of Kafka. value: the name of the column with the lines,
    binary (UTF-8) or text. A row that is no captured message, or one without a seq or a queue, has ``problem``, and no
    message. source: topic, partition and offset, where *frame* has them. Raises SchemaError for a column that is
    missing or of another type.
    """
    if value not in frame.columns:
        raise SchemaError(f"the DataFrame has no column {value}")
    kind = frame.schema[value].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise SchemaError(f"column {value} is {kind.simpleString()}; it must be binary or string")
    has_place = all(name in frame.columns for name in _PLACE)
    place = F.concat_ws("/", *(F.col(name).cast("string") for name in _PLACE)) if has_place else F.lit("")
    texts = frame.select(place.alias("source"), F.col(value).cast("binary").alias("value"))
    return texts.mapInArrow(captured_of, READ)


def captured_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does: batches with ``source`` and ``value`` in, batches of READ out."""
    return batches_of(_record(*row) for batch in batches for row in columns(batch, "source", "value"))


def _record(source: str, value: bytes | None) -> CaptureRecord:
    try:
        return CaptureRecord(source, 0, CapturedMessage.model_validate_json(value or b""), None, 0)
    except ValidationError as error:
        name = f"record {source}" if source else "a record"
        return CaptureRecord(source, 0, None, CaptureError(name, None, clause(error)), 0)
