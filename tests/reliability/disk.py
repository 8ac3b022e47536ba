"""A disk that is full: a file system of a few megabytes in memory, which grows by a little each time that it is full.

It takes root to mount one; elsewhere the attack is passed over, and says so. ``tests/commands/qmgr/test_crash.py`` has
a database that may not grow, which anybody can run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore, StoreFullError
from tests.reliability.figures import Table
from tests.reliability.workload import clock, create, drain, everything, unlogged, waiting

COLUMNS = ("attack", "times full", "commands", "at the end")
_STEP_KB = 256


def disk(seed: int, scale: float = 1.0) -> Table:
    """The processor on a disk that is full again and again. scale: 1 is about half a minute."""
    commands = max(300, int(6_000 * scale))
    with tempfile.TemporaryDirectory() as directory, small_disk(Path(directory, "small")) as small:
        if small is None:
            return Table("Full disk", COLUMNS, [("passed over: mounting takes root", "", "", "")])
        with unlogged():
            return _full(Path(directory, "whole"), small, commands, seed)


def _full(whole: Path, small: Path, commands: int, seed: int) -> Table:
    for home in (whole, small):
        create(home, commands, seed)
    drain(whole)
    size_kb = shutil.disk_usage(small).used // 1024 + _STEP_KB
    full = 0
    while waiting(small):
        resized(small, size_kb)
        try:
            with QueueManagerStore.open(small, "QM1") as store:
                Processor(store, clock, settings=ProcessorSettings(batch=50)).drain()
        except StoreFullError:
            full += 1
        size_kb += _STEP_KB
    expected, found = everything(whole), everything(small)
    broken = [f"{place} differs" for place in sorted({*expected, *found}) if expected.get(place) != found.get(place)]
    if not full:
        broken.append("the disk was never full")
    row = ("the processor, commits of 50", f"{full:,}", f"{commands:,}", "differs" if broken else "equal")
    return Table("Full disk", COLUMNS, [row], broken)


@contextlib.contextmanager
def small_disk(place: Path, size_mb: int = 64) -> Iterator[Path | None]:
    """A file system in memory at *place*; None where it cannot be mounted."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def resized(place: Path, size_kb: int) -> None:
    """Let the file system at *place* hold so much from now on."""
    subprocess.run(["mount", "-o", f"remount,size={size_kb}k", str(place)], check=True, capture_output=True)
