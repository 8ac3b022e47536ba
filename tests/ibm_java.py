"""IBM's MQ classes for Java, as they come from Maven Central: what CI fetches, and programs compiled with them.

They are no part of the project. Where they or Java cannot be had, tests with them are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

JARS = sorted((Path(__file__).parents[1] / ".venv" / "peers" / "java").glob("*.jar"))
_CLIENT = any(jar.name.startswith("com.ibm.mq.allclient") for jar in JARS)
_MISSING = next(
    (what for what, there in (("javac", shutil.which("javac")), ("IBM's client", _CLIENT)) if not there), None
)

needs_ibm_java = pytest.mark.skipif(_MISSING is not None, reason=f"{_MISSING} is not here: .ci/run fetches it")


def compiled(programs: Path, made: Path) -> str:
    """The class path of the programs in the folder *programs*, compiled into *made*, with IBM's classes."""
    path = ":".join(map(str, (made, *JARS)))
    subprocess.run(["javac", "-cp", path, "-d", str(made), *map(str, programs.glob("*.java"))], check=True, timeout=300)
    return path
