"""The files of a migration in one directory: the report in its three forms, the scripts, the runbook.

They are written whole, beside their places, before anything is changed, and moved to their places afterwards: a disk
that is full or read-only is found while there is nothing to lose. The last one to be moved is SHA256SUMS, which is the
first one to be removed when a later run replaces the files: where it is, the files are those of one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrate.contents import Content, content_bytes, encoded_lines
from migrate.plan import MigrationPlan
from migrate.report.html import page
from migrate.report.items import items_csv
from migrate.report.json_text import json_lines
from migrate.report.staging import StagedFiles
from migrate.report.text import text
from migrate.target import Target
from migrate.targets.files import PlanFiles, plan_files

TEXT_ITEMS = 500
"""How many items of each result report.txt lists, so that it stays below 1 MB; items.csv has every item."""


def report_contents(facts: dict[str, Any]) -> dict[str, Content]:
    """The report in its three forms, and a table of all items, by file name."""
    return {
        "report.json": lambda: encoded_lines(json_lines(facts)),
        "report.txt": lambda: encoded_lines(f"{line}\n" for line in text(facts, TEXT_ITEMS)),
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


__all__ = ["StagedFiles", "encoded", "output_files", "report_contents", "report_files"]
