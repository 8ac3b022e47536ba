"""``decoded``: headers and commands of captured messages, flat, and what is wrong with them.

``with_decoded``: the same beside the columns of any DataFrame with a binary column, a stream too.

Batches of Arrow go to the workers and come back. Columns that do not change are passed through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from commands.replay.decoded_columns import decoded_batch, message_arrays
from commands.replay.spark.schemas import CAPTURED, DECODED, MESSAGE, SchemaError, check_columns


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
