"""IBM's MQ classes for Java, as they come from Maven Central: what CI fetches, and programs compiled with them.

    python -m tests.ibm_java            # what the gate needs: a folder below .venv/peers and an artifact a line
    python -m tests.ibm_java --all      # what a night needs

They are not part of the project. Where they or Java cannot be had, tests with them are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.quick_java import JAVAC

PEERS: Final = Path(__file__).parents[1] / ".venv" / "peers"
_JSON: Final = "org.json:json:20240303"


class Client(NamedTuple):
    """One of IBM's clients. in_gate: how many conversations a connection has there; None where it is of the night."""

    version: str
    folder: str
    in_gate: int | None = None
    is_jakarta: bool = False

    @property
    def artifacts(self) -> tuple[str, ...]:
        """What it needs, as Maven names it, itself first."""
        if self.is_jakarta:
            return f"com.ibm.mq:com.ibm.mq.jakarta.client:{self.version}", "jakarta.jms:jakarta.jms-api:3.1.0", _JSON
        return f"com.ibm.mq:com.ibm.mq.allclient:{self.version}", "javax.jms:javax.jms-api:2.0.1", _JSON

    @property
    def jars(self) -> tuple[Path, ...]:
        """Where it is; nothing where it is missing."""
        names = (f"{name}-{version}.jar" for _, name, version in (each.split(":") for each in self.artifacts))
        paths = tuple(PEERS / self.folder / name for name in names)
        return paths if all(path.exists() for path in paths) else ()


NEWEST: Final = Client("9.4.5.0", "java", in_gate=10)
CLIENTS: Final = (
    Client("9.0.4.0", "java-9.0.4", in_gate=1),
    *(Client(version, f"java-{version}") for version in ("9.1.0.0", "9.1.5.0", "9.2.5.0", "9.3.5.1")),
    NEWEST,
    *(Client(version, f"jakarta-{version}", is_jakarta=True) for version in ("9.4.5.1", "10.0.0.0")),
)
"""The oldest that Maven Central has, the last of each release, the first of 9.1, which differs, and the newest."""
JARS: Final = NEWEST.jars
_MISSING = next((what for what, there in (("javac", shutil.which("javac")), ("IBM's client", JARS)) if not there), None)

needs_ibm_java = pytest.mark.skipif(_MISSING is not None, reason=f"{_MISSING} is not here: .ci/run fetches it")
# In Jakarta's client, packages and one constant have other names.
_JAKARTA: Final = (
    ("javax.jms", "jakarta.jms"),
    ("com.ibm.mq.jms", "com.ibm.mq.jakarta.jms"),
    ("com.ibm.msg.client.", "com.ibm.msg.client.jakarta."),
    ("WMQConstants.WMQ_PROVIDER)", "WMQConstants.JAKARTA_WMQ_PROVIDER)"),
)


def every_client(sharing: int, *more: object) -> Iterator[object]:
    """``CLIENTS`` as parameters of a test, with *sharing* conversations on a connection, and *more*.

    Those that are missing are skipped, and those that the gate does not try so are marked.
    """
    for each in CLIENTS:
        missing = pytest.mark.skipif(not each.jars, reason=f"client {each.version} is not here: .ci/peers fetches it")
        marks = [missing] if each.in_gate == sharing else [missing, pytest.mark.nightly]
        yield pytest.param(each, sharing, *more, marks=marks, id=f"{each.version}-{sharing}")


def class_path(made: Path, client: Client = NEWEST) -> str:
    """The class path of what was compiled into *made*, with *client*."""
    return ":".join(map(str, (made, *client.jars)))


def compiled(programs: Path, made: Path, client: Client = NEWEST) -> str:
    """The class path of the programs in the folder *programs*, compiled into *made*, with IBM's classes."""
    sources: Iterable[Path] = programs.glob("*.java")
    if client.is_jakarta:
        sources = [_for_jakarta(each, made) for each in sources]
    path = class_path(made, client)
    subprocess.run([*JAVAC, "-cp", path, "-d", str(made), *map(str, sources)], check=True, timeout=300)
    return path


def _for_jakarta(source: Path, made: Path) -> Path:
    text = source.read_text(encoding="utf-8")
    for old, new in _JAKARTA:
        text = text.replace(old, new)
    written = made / source.name
    written.write_text(text, encoding="utf-8")
    return written


def main(arguments: list[str]) -> int:
    """Print what there is to fetch."""
    for client in CLIENTS:
        if "--all" in arguments or client.in_gate is not None:
            for artifact in client.artifacts:
                print(client.folder, artifact)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
