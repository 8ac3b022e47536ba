"""Functions of SQL that say what is in a message: ``register`` makes them known to a session.

Each takes the data and the MQMD, both binary, as ``mq_command(body, md)``; the MQMD may be null.

| function | gives |
|---|---|
| ``mq_decode`` | a struct with the columns of ``with_decoded`` |
| ``mq_command`` | the command: Publish, RegSub ... |
| ``mq_topics`` | its topics |
| ``mq_properties`` | the properties of the folder usr |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)

from commands.replay.decoded_columns import message_arrays
from commands.replay.spark.schemas import MESSAGE

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
