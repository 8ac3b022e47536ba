"""What a crash leaves on the disk: the database and its write-ahead log, cut at each commit.

SQLite appends what a transaction changes to the log, and the last frame of a commit says so. A process that is killed
leaves a prefix of that log. So the prefixes are all that can be found after a kill, whenever it falls: for each
commit the log that ends with it, the one that lacks its last frame, and the one in which that frame is torn.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

_LOG_HEADER, _FRAME_HEADER = 32, 24


def disk_states(home: Path, work: Callable[[Path], None], scratch: Path) -> Iterator[tuple[str, Path]]:
    """Do *work* on queue manager QM1 of *home*; each state in which a crash may leave it, in a home below *scratch*.

    A state is named for its commit. The home of one is gone when the next one is asked for.
    """
    before, database = scratch / "before", Path("QM1", "qmgr.sqlite3")
    shutil.copytree(home, before)
    # As long as somebody has it open, who closes does not write the log back into the database.
    reader = sqlite3.connect(home / database)
    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    work(home)
    log = (home / database).with_name("qmgr.sqlite3-wal").read_bytes()
    reader.close()
    for name, length in _prefixes(log):
        state = scratch / "state"
        shutil.copytree(before, state)
        (state / database).with_name("qmgr.sqlite3-wal").write_bytes(log[:length])
        yield name, state
        shutil.rmtree(state)


def _prefixes(log: bytes) -> Iterator[tuple[str, int]]:
    (page,) = struct.unpack(">I", log[8:12])
    frame = _FRAME_HEADER + page
    commits = 0
    for start in range(_LOG_HEADER, len(log), frame):
        (pages_after_commit,) = struct.unpack(">I", log[start + 4 : start + 8])
        if pages_after_commit:
            commits += 1
            yield f"commit {commits} lacks its last frame", start
            yield f"commit {commits} is torn", start + frame // 2
            yield f"commit {commits} is whole", start + frame
