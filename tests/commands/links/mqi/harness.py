"""Builds the stand-in library, starts and kills its server, and tells it what to do wrong."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S, until

HERE = Path(__file__).parent
GCC = shutil.which("gcc") or shutil.which("cc")
THERE = GCC is not None and importlib.util.find_spec("ibmmq") is not None and sys.platform == "linux"
needs_mqi = pytest.mark.skipif(not THERE, reason="a C compiler and the package ibmmq are needed")

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD, RECORD = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.QPUBSUB.RECORD"
OWED = "SYSTEM.QPUBSUB.OWED"
OUTGOING, INCOMING = "SYSTEM.QPUBSUB.OUTGOING", "SYSTEM.QPUBSUB.INCOMING"
ADMIN = "SYSTEM.BROKER.ADMIN.STREAM"
# With OpenTelemetry installed, IBM's package puts properties into messages; the stand-in has no message handles.
WITHOUT_TRACING = {"MQIPY_NOOTEL": "1"}
SYSTEM_QUEUES = (CONTROL, STREAM, ADMIN, DEAD, RECORD, OWED, OUTGOING, INCOMING)


@cache
def library() -> Path:
    """The stand-in for libmqm_r.so, built once for all."""
    directory = Path(tempfile.gettempdir()) / f"qpubsub-mqi-{os.getuid()}-{int((HERE / 'mqi.c').stat().st_mtime)}"
    target = directory / "libmqm_r.so"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = directory / f"partial-{os.getpid()}"
        command = [str(GCC), "-O1", "-fPIC", "-shared", "-Wl,-soname,libmqm_r.so", "-o", str(partial)]
        subprocess.run([*command, str(HERE / "mqi.c"), "-lpthread"], check=True)
        partial.rename(target)
    return target


@cache
def load() -> None:
    """Have the package ibmmq find the stand-in in this process, whatever was imported in its place before."""
    ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)
    os.environ.update(WITHOUT_TRACING)
    package = importlib.util.find_spec("ibmmq")
    assert package is not None
    assert package.submodule_search_locations is not None
    (directory,) = package.submodule_search_locations
    own = {path.stem.split(".")[0] for path in Path(directory).iterdir()}
    for name in list(sys.modules):
        if name.partition(".")[0] == "ibmmq" or name in own - {"__init__", "__pycache__"}:
            del sys.modules[name]


class StandIn:
    """One queue manager, with the queues that the bridge needs and *queues* more (name and attributes)."""

    url = "ibmmq://127.0.0.1:1414/QM1?channel=C"

    def __init__(self, directory: Path, queues: dict[str, dict[str, Any]] | None = None, **definitions: Any) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = directory / "mqi.socket"
        every: dict[str, dict[str, Any]] = {name: {} for name in SYSTEM_QUEUES} | (queues or {})
        (directory / "definitions.json").write_text(json.dumps({"queues": every, **definitions}))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find it."""
        return {"MQI_SOCKET": str(self.socket), "LD_LIBRARY_PATH": str(library().parent), **WITHOUT_TRACING}

    def start(self) -> None:
        command = [sys.executable, str(HERE / "server.py"), "--socket", str(self.socket)]
        command += ["--journal", str(self.directory / "journal")]
        command += ["--definitions", str(self.directory / "definitions.json")]
        log = (self.directory / "log").open("ab")
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        until(self._answers, "the stand-in to answer")

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self.kill()

    def tell(self, **wanted: Any) -> dict[str, Any]:
        """Tell it something; it shows its state."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(self.socket))
            text = json.dumps(wanted).encode()
            payload = b"F" + struct.pack("<i", len(text)) + text
            client.sendall(struct.pack("<I", len(payload)) + payload)
            size = struct.unpack("<I", _exactly(client, 4))[0]
            shown: dict[str, Any] = json.loads(_exactly(client, size)[12:])
            return shown

    def fault(self, op: str, reason: int | None = None, **how: Any) -> None:
        """The next call *op* ends with *reason*; without one the connection breaks (when: before or after), or all
        ends (end)."""
        self.tell(fault={"op": op, **({} if reason is None else {"reason": reason}), **how})

    @property
    def is_dead(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def depth(self, queue: str) -> int:
        return int(self.tell()["depths"].get(queue, 0))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()
        try:
            self.tell()
        except OSError:
            return False
        return True


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError("the stand-in hung up")
        data += more
    return data


@contextmanager
def stand_in(directory: Path, queues: dict[str, dict[str, Any]] | None = None, **definitions: Any) -> Iterator[StandIn]:
    """A running queue manager, which the package ibmmq finds in this process."""
    load()
    running = StandIn(directory, queues, **definitions)
    running.start()
    before = os.environ.get("MQI_SOCKET")
    os.environ["MQI_SOCKET"] = str(running.socket)
    try:
        yield running
    finally:
        running.stop()
        if before is None:
            del os.environ["MQI_SOCKET"]
        else:
            os.environ["MQI_SOCKET"] = before
