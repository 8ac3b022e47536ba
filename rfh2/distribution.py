"""What this program is called where packages are installed, its version, and how to get its optional parts."""

from __future__ import annotations

import sys
from typing import Final

NAME: Final = "mq-qpubsub"
"""The distribution. The index has a ``qpubsub`` that is somebody else's: no message may lead there."""

VERSION: Final = "0.1.0"


def how_to_install(extra: str) -> str:
    """What a message says where a library is missing. extra: a name in pyproject.toml's optional dependencies."""
    # Not by name: until the distribution is published, anybody could publish another one under it.
    return f"install it with: {sys.executable} -m pip install '.[{extra}]', in the source directory of {NAME}"
