"""A directory of this process alone, for files that Java or Spark are pointed to.

No other user may control what they run or read. If a name in the temporary directory can be predicted, another user can
create it first, and the owner can change it at any time. Each process therefore makes a new directory of mode 0700.
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
