"""``decoded``: headers and commands of captured messages, flat, and what is wrong with them.

Batches of Arrow go to the workers and come back. Columns that do not change are passed through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from commands.replay.decoded_columns import decoded_batch
from commands.replay.spark.schemas import CAPTURED, DECODED, check_columns


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
