"""A directory of this process alone, for files that Java or Spark are pointed to.

What they run or obey must be nobody else's: a name in the temporary directory that can be known beforehand is anybody's
who was there first, and who owns it may change it at any moment. So it is a new one for each process, of mode 0700.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


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
