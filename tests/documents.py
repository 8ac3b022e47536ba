"""The pages of docs that somebody has written. Those in docs/generated come and go while the site is built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1] / "docs"


def written_pages(*suffixes: str) -> list[Path]:
    """All of them with one of *suffixes*, in order."""
    found: list[Path] = []
    for where, directories, names in os.walk(DOCS):
        if "generated" in directories:
            directories.remove("generated")
        found += [Path(where, name) for name in names if name.endswith(suffixes)]
    return sorted(found)
