"""The package as a zip archive, which Spark sends to every executor of a cluster.

The dependencies of the extra ``spark`` must be installed for the executors' Python. The executors use the driver's
version of the package itself, even if another one is installed there.
"""

from __future__ import annotations

import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from commands.replay.spark.private_files import private_directory

_PACKAGES: Final = ("rfh2", "streams", "commands", "migrate")
_KINDS: Final = (".py", ".pyi", ".lark")
# Archives are the same for the same files: no date of the day is in them.
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


def packed(path: Path) -> Path:
    """Write the package as a zip archive that Python imports from; *path* ends in ``.zip``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _PACKAGES:
            _pack(archive, files(name), name)
    return path


def _pack(archive: zipfile.ZipFile, directory: Traversable, name: str) -> None:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        inside = f"{name}/{entry.name}"
        if entry.is_dir():
            _pack(archive, entry, inside)
        elif entry.name.endswith(_KINDS):
            archive.writestr(zipfile.ZipInfo(inside, _LONG_AGO), entry.read_bytes(), zipfile.ZIP_DEFLATED)


def ship(spark: SparkSession) -> None:
    """Send the package to the executors of a session, including those that start later."""
    # The driver gives it to every executor that starts, however late.
    spark.sparkContext.addPyFile(str(packed(private_directory() / "qpubsub.zip")))
