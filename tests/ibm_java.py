"""IBM's MQ classes for Java, as they come from Maven Central: what CI fetches, and programs compiled with them.

They are not part of the project. Where they or Java cannot be had, tests with them are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[1] / ".venv" / "peers"
JARS = sorted((PEERS / "java").glob("*.jar"))
OLD_JARS = sorted((PEERS / "java-9.0.4").glob("*.jar"))
"""The oldest client that Maven Central has: programs are compiled with ``JARS``, and run with these too."""
_CLIENT = any(jar.name.startswith("com.ibm.mq.allclient") for jar in JARS)
_MISSING = next(
    (what for what, there in (("javac", shutil.which("javac")), ("IBM's client", _CLIENT)) if not there), None
)

needs_ibm_java = pytest.mark.skipif(_MISSING is not None, reason=f"{_MISSING} is not here: .ci/run fetches it")
needs_old_ibm_java = pytest.mark.skipif(not OLD_JARS, reason="IBM's client 9.0.4 is not here: .ci/run fetches it")


def compiled(programs: Path, made: Path) -> str:
    """The class path of the programs in the folder *programs*, compiled into *made*, with IBM's classes."""
    path = ":".join(map(str, (made, *JARS)))
    subprocess.run(["javac", "-cp", path, "-d", str(made), *map(str, programs.glob("*.java"))], check=True, timeout=300)
    return path
