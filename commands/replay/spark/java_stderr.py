"""What Java says on stderr, without the lines that tell nobody anything.

Spark's launcher and Spark's own Python workers announce themselves at every start, in words that look like trouble and
are none. Whatever else comes is passed on, as far as it drives no terminal: errors repeat what
is in messages.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from rfh2.terminal_escape import harmless

_IDLE: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to ",
    b"To adjust logging level use sc.setLogLevel",
    b"Setting Spark log level to ",
    b"Starting Streaming TransformWithStateInPandas Python worker.",
    b"Streaming TransformWithStateInPandas Python worker ",
)
_STDERR: Final = 2


def launched(conf: SparkConf) -> Any:
    """A Java for *conf*, as SparkContext takes it for its gateway; its stderr is passed on to this process's own."""
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), name="qpubsub-java-talk", daemon=True).start()
    try:
        return launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        # Java has its own; when it ends, so does the thread.
        os.close(writing)


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "rb") as talk:
        was_idle = False
        for line in talk:
            # Some of these lines have an empty one behind them.
            is_idle = line.startswith(_IDLE) or (was_idle and not line.strip())
            if not is_idle:
                shown = harmless(line.rstrip(b"\n").decode("utf-8", "backslashreplace"))
                os.write(_STDERR, shown.encode("utf-8") + b"\n")
            was_idle = is_idle
