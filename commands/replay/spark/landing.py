"""A capture of any format as Parquet in the order of ``seq``: what is read several times, and in slices, should be.

Parquet files that have every column, name every queue and do not overlap in ``seq`` are taken as they are. Anything
else is written out once; where files overlap, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from commands.replay.spark.piece_reader import NATURAL
from commands.replay.spark.pieces import files_of, pieces_of
from commands.replay.spark.schemas import CAPTURED, SchemaError, check_columns
from commands.replay.spark.source import FORMAT

_MOST_TOLD = 100
_GROUP_BYTES = 32 << 20


@dataclass(frozen=True)
class Landed:
    """messages: the capture. problems: how many records could not be read. told: the first hundred, in words."""

    messages: DataFrame
    problems: int
    told: tuple[str, ...]


def landed(spark: SparkSession, source: Path, form: str, directory: Path) -> Landed:
    """The capture at *source*, in *directory* where it has to be written out; what is there already is used again.

    Raises CaptureError for a path that is missing.
    """
    files = files_of([str(source)])
    as_it_is = _as_it_is(spark, files, form)
    if as_it_is is not None:
        return Landed(as_it_is, 0, ())
    whole = directory / "captured"
    if not _is_whole(whole):
        read = spark.read.format(FORMAT).option("format", form).option("defaultQueue", NATURAL).load(str(source))
        _write(read, whole)
    read = spark.read.parquet(str(whole))
    bad = read.where("problem is not null").select("problem")
    problems = bad.count()
    told = tuple(row["problem"] for row in bad.limit(_MOST_TOLD).collect()) if problems else ()
    if not _in_order(files_of([str(whole)])):
        in_order = directory / "in-order"
        if not _is_whole(in_order):
            good = read.where("problem is null").select(*CAPTURED.names)
            _write(good.repartitionByRange("seq").sortWithinPartitions("seq"), in_order)
        read = spark.read.parquet(str(in_order))
    return Landed(read.select(*CAPTURED.names), problems, told)


def _write(frame: DataFrame, directory: Path) -> None:
    frame.write.mode("overwrite").option("parquet.block.size", str(_GROUP_BYTES)).parquet(str(directory))


def _is_whole(directory: Path) -> bool:
    return (directory / "_SUCCESS").exists()


def _as_it_is(spark: SparkSession, files: list[Path], form: str) -> DataFrame | None:
    if not files or any(piece.form != "parquet" or piece.end is None for piece in pieces_of(files[:1], form)):
        return None
    if not _in_order(files):
        return None
    frame = spark.read.parquet(*map(str, files))
    try:
        check_columns(frame.schema, CAPTURED, "the capture")
    except SchemaError:
        return None
    nameless = frame.where("queue is null or queue = '' or seq is null or seq < 0 or body is null").limit(1).count()
    return None if nameless else frame.select(*CAPTURED.names)


def _in_order(files: list[Path]) -> bool:
    """Whether the row groups of *files* do not overlap in seq, so that a slice is found without reading the rest."""
    spans: list[tuple[int, int]] = []
    for path in files:
        try:
            file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError):
            return False
        names = file.schema_arrow.names
        if "seq" not in names:
            return False
        for number in range(file.num_row_groups):
            numbers = file.metadata.row_group(number).column(names.index("seq")).statistics
            if numbers is None or not numbers.has_min_max:
                return False
            spans.append((numbers.min, numbers.max))
    return all(before[1] < after[0] for before, after in pairwise(sorted(spans)))
