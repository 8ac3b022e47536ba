"""The files of a migration in one directory: the report in its three forms, the scripts, the runbook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from commands.queues.permissions import make_directory, private
from migrate.plan import Plan
from migrate.report.facts import facts
from migrate.report.html import page
from migrate.report.text import text
from migrate.target import Target
from migrate.targets.files import scripts


def write_outputs(plan: Plan, target: Target, directory: Path, runbooks: Mapping[str, str]) -> None:
    """Write everything, for the caller's eyes; a file of an earlier run with the same name is replaced.

    runbooks: name to text.
    """
    make_directory(directory)
    found = facts(plan, target)
    contents: dict[str, str | bytes] = {
        "report.json": json.dumps(found, ensure_ascii=False, indent=1) + "\n",
        "report.txt": "\n".join(text(found, None)) + "\n",
        "report.html": page(found),
    }
    contents |= scripts(plan, target)
    contents |= runbooks
    for name, content in contents.items():
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        with open(directory / name, "wb", opener=private) as file:
            file.write(data)
