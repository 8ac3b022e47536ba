"""A continuous replay as a program of its own, for tests that kill it: IN OUT CHECKPOINT SETUP."""

from __future__ import annotations

import sys
from pathlib import Path

from commands.replay.spark import session
from commands.replay.spark.following import Following
from tests.commands.replay.spark.quick_session import QUICK_SESSION


def main(source: str, target: str, checkpoint: str, setup: str) -> None:
    """Work through what is in *source*, a file in each batch, then end."""
    spark = session("local[2]", spark__sql__shuffle__partitions="1", **QUICK_SESSION)
    following = Following(Path(source), "jsonl", Path(target), Path(checkpoint), setup, batch_bytes=1)
    with following.running(spark, lambda _batch: None, once=True) as query:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
