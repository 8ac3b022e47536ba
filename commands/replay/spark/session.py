"""A Spark session for a program that has none: local by default, with little memory and few messages."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from commands.replay.spark.java import launched, provide_java
from commands.replay.spark.package_archive import ship
from commands.replay.spark.private_files import private_directory
from commands.replay.spark.source import CaptureDataSource

LOCAL: Final = "local[*]"
_APP: Final = "qpubsub"
_ARROW_ROWS: Final = 2000

_LOGGING: Final = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def session(master: str = LOCAL, memory: str = "1g", **settings: str) -> SparkSession:
    """A session, the running one if there is one, that knows the format ``qpubsub``.

    To a cluster, which is any master but a local one, the package goes along (``package_archive``). master: as
    spark-submit takes it. memory: of the driver, which in local mode does all the work of Java. settings: more of
    Spark's own, with ``__`` for a dot. Raises JavaMissingError.
    """
    provide_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_logging_file()}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", master)
    if local is not None:
        cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
        # The name of a laptop may not resolve, and Spark's default number of partitions is for clusters.
        here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        chosen = {**here, "spark.sql.shuffle.partitions": str(2 * cores), **chosen}
    conf = SparkConf().setAppName(_APP).setMaster(master).setAll(list(chosen.items()))
    if SparkContext._active_spark_context is None and SparkContext._gateway is None and not _is_submitted():
        SparkContext(conf=conf, gateway=launched(conf))
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if local is None:
        ship(spark)
    register(spark)
    return spark


def _is_submitted() -> bool:
    """Whether spark-submit has started this program, and has a Java for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def register(spark: SparkSession) -> None:
    """Make the format ``qpubsub`` known to a session."""
    spark.dataSource.register(CaptureDataSource)


def _logging_file() -> Path:
    path = private_directory() / "log4j2.properties"
    path.write_text(_LOGGING)
    return path
