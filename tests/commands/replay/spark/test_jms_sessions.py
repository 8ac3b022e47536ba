"""JMS programs in migration mode, replayed on Spark: the golden puts of the local replay, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from commands import PutKind
from commands.replay.spark.engine import Order, run

FIXTURES = Path(__file__).parents[4] / "fixtures" / "jms"
pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_golden_puts(spark: SparkSession, tmp_path: Path, version: str) -> None:
    target = tmp_path / "puts.jsonl"
    run(spark, Order(FIXTURES / f"{version}.jsonl", "auto", target, "", ranges=4), lambda _: None, lambda _: None)
    got = b"".join(path.read_bytes() for path in sorted(target.iterdir()))
    assert got == (FIXTURES / f"{version}-puts.jsonl").read_bytes()


def test_strict_tags_hold_on_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "puts.jsonl"
    setup = "ALTER QMGR CUSTOM('PSCTAGS(STRICT)')"
    order = Order(FIXTURES / "v2.jsonl", "auto", target, setup, ranges=4)
    done = run(spark, order, lambda _: None, lambda _: None)
    assert (done.counts.puts[PutKind.PUBLICATION], done.counts.puts[PutKind.DEADLETTER]) == (0, 10)
