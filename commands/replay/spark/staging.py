"""A capture of any format as Parquet in the order of ``seq``, because it is read several times, and in parts.

Parquet files that are in order already (``in_order``) are taken as they are. Anything else is written out once; where
files overlap, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from commands.replay.spark.in_order import FilesInOrder, in_order
from commands.replay.spark.piece_reader import NATURAL
from commands.replay.spark.pieces import files_of
from commands.replay.spark.schemas import CAPTURED
from commands.replay.spark.source import FORMAT

_MOST_TEXTS = 100
_GROUP_BYTES = 32 << 20


@dataclass(frozen=True)
class StagedCapture:
    """files: where the capture is, in order. messages: the same. problems: how many records could not be read.

    problem_texts: the first hundred of them, in words.
    """

    files: FilesInOrder
    messages: DataFrame
    problems: int
    problem_texts: tuple[str, ...]


def staged(spark: SparkSession, source: Path, form: str, directory: Path) -> StagedCapture:
    """The capture at *source*, in *directory* where it has to be written out; what is there already is used again.

    Raises CaptureError for a path that is missing.
    """
    # Executors have working directories of their own.
    source, directory = source.absolute(), directory.absolute()
    given = files_of([str(source)])
    if given and form in ("auto", "parquet") and (files := in_order(given)) is not None:
        return StagedCapture(files, _messages(spark, given), 0, ())
    whole = directory / "captured"
    if not _is_whole(whole):
        read = spark.read.format(FORMAT).option("format", form).option("defaultQueue", NATURAL).load(str(source))
        _write(read, whole)
    read = spark.read.parquet(str(whole))
    bad = read.where("problem is not null").select("problem")
    problems = bad.count()
    problem_texts = tuple(row["problem"] for row in bad.limit(_MOST_TEXTS).collect()) if problems else ()
    written = files_of([str(whole)])
    files = None if problems else in_order(written, checked=True)
    if files is None:
        ordered = directory / "in-order"
        if not _is_whole(ordered):
            good = read.where("problem is null").select(*CAPTURED.names)
            _write(good.repartitionByRange("seq").sortWithinPartitions("seq", "qmgr"), ordered)
        written = files_of([str(ordered)])
        files = in_order(written, checked=True)
        assert files is not None
    return StagedCapture(files, _messages(spark, written), problems, problem_texts)


def _messages(spark: SparkSession, files: list[Path]) -> DataFrame:
    return spark.read.schema(CAPTURED).parquet(*map(str, files)) if files else spark.createDataFrame([], CAPTURED)


def _write(frame: DataFrame, directory: Path) -> None:
    frame.write.mode("overwrite").option("parquet.block.size", str(_GROUP_BYTES)).parquet(str(directory))


def _is_whole(directory: Path) -> bool:
    return (directory / "_SUCCESS").exists()
