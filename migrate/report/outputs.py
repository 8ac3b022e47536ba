"""The files of a migration in one directory: the report in its three forms, the scripts, the runbook.

They are written whole, beside their places, before anything is changed, and moved to their places afterwards: a disk
that is full or read-only is found while there is nothing to lose.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commands.qmgr.store.permissions import make_directory, private
from migrate.contents import Content, content_bytes, encoded_lines, write_content
from migrate.plan import MigrationPlan
from migrate.report.html import page
from migrate.report.items import items_csv
from migrate.report.json_text import json_lines
from migrate.report.text import text
from migrate.target import Target
from migrate.targets.files import PlanFiles, plan_files
from rfh2.errors import MigrationError


def report_contents(facts: dict[str, Any]) -> dict[str, Content]:
    """The report in its three forms, and a table of all items, by file name."""
    return {
        "report.json": lambda: encoded_lines(json_lines(facts)),
        "report.txt": lambda: encoded_lines(f"{line}\n" for line in text(facts, None)),
        "report.html": page(facts).encode(),
        "items.csv": lambda: encoded_lines(items_csv(facts), errors="backslashreplace"),
    }


def report_files(facts: dict[str, Any]) -> dict[str, bytes]:
    """The same, all in memory."""
    return {name: content_bytes(content) for name, content in report_contents(facts).items()}


def output_files(plan: MigrationPlan, target: Target, runbooks: Mapping[str, str]) -> dict[str, bytes]:
    """Scripts, messages, checklist and *runbooks*, by file name. target: the queue manager as it was before."""
    contents = encoded(plan_files(plan, target), runbooks)
    return {name: content_bytes(content) for name, content in contents.items()}


def encoded(files: PlanFiles, runbooks: Mapping[str, str]) -> dict[str, Content]:
    """The contents of *files* and *runbooks*, by file name."""
    contents: dict[str, str | Content] = {**files.contents, **runbooks}
    return {name: each.encode() if isinstance(each, str) else each for name, each in contents.items()}


class StagedFiles:
    """Files that are on the disk of *directory* already, and not yet in their places.

    Raises MigrationError where they cannot be written; nothing is left of them then.
    """

    def __init__(self, directory: Path, contents: Mapping[str, Content]) -> None:
        self._directory, self._names = directory, tuple(contents)
        self._staged: Path | None = None
        try:
            make_directory(directory)
            self._staged = Path(tempfile.mkdtemp(prefix=".writing-", dir=directory))
            for name, content in contents.items():
                if (directory / name).is_dir():
                    raise IsADirectoryError(0, f"{name} is a directory")
                with open(self._staged / name, "wb", opener=private) as file:
                    write_content(content, file)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            self.discard()
            raise MigrationError(f"{directory}: {error.strerror or error}; nothing was changed") from error
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        """Move them to their places; a file of an earlier run with the same name is replaced. Raises OSError."""
        if self._staged is None:
            return
        for name in self._names:
            (self._staged / name).replace(self._directory / name)
        self.discard()

    def discard(self) -> None:
        """Leave nothing of what has not been moved."""
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None
