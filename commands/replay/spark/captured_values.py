"""``captured_values``: captured messages out of the records of Kafka, or of any column with JSON texts.

The texts are lines of a JSON Lines capture, as ``qpubsub capture --out kafka://`` writes them, and are read by the
model that reads those lines: a text means the same in a topic and in a file.

``decoded``: headers and commands of captured messages, flat, and what is wrong with them.

``with_decoded``: the same beside the columns of any DataFrame with a binary column, a stream too.

Batches of Arrow go to the workers and come back. Columns that do not change are passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
from pydantic import ValidationError
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from commands.replay.decoded_columns import decoded_batch, message_arrays
from commands.replay.spark.piece_reader import batches_of
from commands.replay.spark.schemas import CAPTURED, DECODED, MESSAGE, READ, SchemaError, check_columns, columns
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.captures.jsonl import clause
from rfh2.errors import CaptureError


def decoded(captured: DataFrame, *, thorough: bool = False) -> DataFrame:
    """One row of DECODED for each message of *captured*, in the same partitions and order.

    Rows without a body (problems of the capture) are left out. thorough: look for everything that ``qpubsub decode``
    warns of, too, at several times the price. Raises SchemaError.
    """
    check_columns(captured.schema, CAPTURED, "the capture")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield decoded_batch(batch, thorough)

    return captured.select(*CAPTURED.names).where("body is not null").mapInArrow(run, DECODED)


def with_decoded(
    frame: DataFrame, body: str = "value", md: str | None = None, *, prefix: str = "mq_", thorough: bool = False
) -> DataFrame:
    """*frame* with the columns of MESSAGE added: what the messages in one of its columns say.

    frame: any DataFrame, a streaming one too; say, records of Kafka. body: the name of the column with headers and
    data, binary. md: the name of the column with the MQMD, binary, where there is one; without it, or where it is null,
    the defaults are assumed, and the Format that the first header shows. prefix: of the names that are added. thorough:
    as for ``decoded``.

    Rows, partitions and order stay as they are. A message that cannot be decoded is a row with ``error``, and with what
    could be decoded of it; a row without a message has null in each column that is added. Raises SchemaError for a
    column that is missing or not binary, and where a name that would be added is there already.
    """
    wanted = [name for name in (body, md) if name is not None]
    if not all(isinstance(name, str) for name in wanted):
        raise SchemaError("body and md must be names of columns: give an expression a name with withColumn first")
    check_columns(frame.schema, StructType([StructField(name, BinaryType()) for name in wanted]), "the DataFrame")
    added = [StructField(prefix + field.name, field.dataType) for field in MESSAGE.fields]
    # Spark does not tell upper case from lower case in names.
    taken = {name.lower() for name in frame.columns}
    for field in added:
        if field.name.lower() in taken:
            raise SchemaError(f"the DataFrame has a column {field.name} already: give another prefix")
    names = [*frame.columns, *(field.name for field in added)]
    at, md_at = frame.columns.index(body), None if md is None else frame.columns.index(md)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            mds = None if md_at is None else batch.column(md_at).to_pylist()
            made = message_arrays(batch.column(at).to_pylist(), mds, thorough)
            yield pa.RecordBatch.from_arrays([*batch.columns, *made], names=names)

    return frame.mapInArrow(run, StructType([*frame.schema.fields, *added]))


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
    return batches_of(
        (_record(*row) for batch in batches for row in columns(batch, "source", "value")), positions=False
    )


def _record(source: str, value: bytes | None) -> CaptureRecord:
    try:
        return CaptureRecord(source, 0, CapturedMessage.model_validate_json(value or b""), None, 0)
    except ValidationError as error:
        name = f"record {source}" if source else "a record"
        return CaptureRecord(source, 0, None, CaptureError(name, None, clause(error)), 0)


# Functions of SQL that say what is in a message: ``register`` makes them known to a session.
#
# Each takes the data and the MQMD, both binary, as ``mq_command(body, md)``; the MQMD may be null.
#
# | function | gives |
# |---|---|
# | ``mq_decode`` | a struct with the columns of ``with_decoded`` |
# | ``mq_command`` | the command: Publish, RegSub ... |
# | ``mq_topics`` | its topics |
# | ``mq_properties`` | the properties of the folder usr |

_OF_COLUMN: Final = {"mq_command": "command", "mq_topics": "topics", "mq_properties": "properties"}


def register_functions(spark: SparkSession) -> None:
    """Make the functions known to *spark*."""

    def decoded(body: pa.Array, md: pa.Array) -> pa.Array:
        arrays = message_arrays(body.to_pylist(), md.to_pylist(), False)
        return pa.StructArray.from_arrays(arrays, names=MESSAGE.names)

    spark.udf.register("mq_decode", F.arrow_udf(decoded, MESSAGE))  # type: ignore[attr-defined]
    for name, column in _OF_COLUMN.items():
        spark.udf.register(name, F.arrow_udf(_one(column), MESSAGE[column].dataType))  # type: ignore[attr-defined]


def _one(column: str) -> Callable[[pa.Array, pa.Array], pa.Array]:
    at = MESSAGE.names.index(column)

    def of_column(body: pa.Array, md: pa.Array) -> pa.Array:
        return message_arrays(body.to_pylist(), md.to_pylist(), False)[at]

    return of_column
