"""The comparison of a capture on Spark, file to file: what ``qpubsub differences --engine spark`` does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from commands.replay.differences.report import DifferenceReport
from commands.replay.spark.differing import Compared, differing
from commands.replay.spark.staging import Landed, landed


def compare(
    spark: SparkSession, source: Path, form: str, setup: str, output: Path | None
) -> tuple[DifferenceReport, Landed]:
    """The report on the capture at *source*, and what could not be read of it.

    output: where every difference goes, a directory named .jsonl or .parquet that takes the place of what is there; or
    None. What is in between is in a directory beside it, or in the temporary one, that goes in the end.
    """
    work = Path(tempfile.mkdtemp(prefix=".qpubsub-", dir=None if output is None else output.parent))
    try:
        capture = landed(spark, source, form, work)
        kept = work / "kept"
        differing(capture.messages, setup).kept.write.parquet(str(kept))
        compared = Compared(spark.read.parquet(str(kept)))
        report = compared.report()
        if output is not None:
            whole = work / "whole"
            rows = compared.differences().orderBy("seq")
            if output.suffix == ".jsonl":
                rows.write.option("ignoreNullFields", "false").json(str(whole))
            else:
                rows.write.parquet(str(whole))
            if output.is_dir():
                shutil.rmtree(output)
            else:
                output.unlink(missing_ok=True)
            whole.rename(output)
        return report, capture
    finally:
        shutil.rmtree(work)
