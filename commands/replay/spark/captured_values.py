"""``captured_values``: captured messages out of the records of Kafka, or of any column with JSON texts.

The texts are lines of a JSON Lines capture, as ``qpubsub capture --to kafka://`` writes them. Spark takes them apart
itself: no record goes through Python for this.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from commands.replay.spark.schemas import READ, SchemaError

_TEXTS: Final = ("time", "qmgr", "queue", "user", "md_hex", "body_hex")
_LINE: Final = StructType([StructField("seq", LongType()), *(StructField(name, StringType()) for name in _TEXTS)])
# What a record of Kafka is called in messages to people, where the columns are there.
_PLACE: Final = ("topic", "partition", "offset")


def captured_values(frame: DataFrame, value: str = "value") -> DataFrame:
    """The captured messages in column *value* of *frame*: the columns of READ.

    frame: any DataFrame, a streaming one too; say, records of Kafka. value: the name of the column with the lines,
    binary (UTF-8) or text. A row that is no captured message has ``problem``, and no message. source: topic, partition
    and offset, where *frame* has them. Raises SchemaError for a column that is missing or of another type.
    """
    if value not in frame.columns:
        raise SchemaError(f"the DataFrame has no column {value}")
    kind = frame.schema[value].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise SchemaError(f"column {value} is {kind.simpleString()}; it must be binary or string")
    has_place = all(name in frame.columns for name in _PLACE)
    place = F.concat_ws("/", *(F.col(name).cast("string") for name in _PLACE)) if has_place else F.lit("")
    line = F.from_json(F.col(value).cast("string"), _LINE)
    rows = frame.select(place.alias("source"), line.alias("line"))
    body, md, time = F.unhex("line.body_hex"), F.unhex("line.md_hex"), F.try_to_timestamp(F.col("line.time"))
    is_message = (
        F.col("line.seq").isNotNull()
        & (F.col("line.seq") >= 0)
        & F.col("line.queue").isNotNull()
        & body.isNotNull()
        # What is there, and cannot be read, is not left out in silence.
        & (F.col("line.md_hex").isNull() | md.isNotNull())
        & (F.col("line.time").isNull() | time.isNotNull())
    )
    columns = {
        "seq": F.col("line.seq"),
        "time": time,
        **{name: F.col(f"line.{name}") for name in ("qmgr", "queue", "user")},
        "md": md,
        "body": body,
    }
    record = F.concat(F.lit("record "), F.col("source")) if has_place else F.lit("a record")
    problem = F.when(~is_message, F.concat(record, F.lit(": no captured message")))
    return rows.select(
        *(F.when(is_message, column).alias(name) for name, column in columns.items()),
        F.col("source"),
        problem.alias("problem"),
    ).select(*READ.names)
