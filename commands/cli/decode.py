"""``qpubsub decode``: what is in captured messages."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.console import Console, ExitCode
from commands.cli.inputs import capture_files, records
from commands.explain.reading import decoded


@click.command(epilog="\b\nExample:\n  qpubsub decode --json capture.jsonl | jq .problems")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message.")
@capture_files
@click.pass_obj
def command(console: Console, as_json: bool, form: str, files: tuple[Path, ...]) -> ExitCode:
    """Explain the captured messages in FILEs, or on stdin."""
    messages = errors = warnings = 0
    for record in records(files, form):
        found = decoded(record)
        messages += 1
        errors += sum(problem.severity == "error" for problem in found.problems)
        warnings += sum(problem.severity == "warning" for problem in found.problems)
        console.data(found.json_line())
    console.say(f"{messages} messages, {errors} errors, {warnings} warnings")
    return ExitCode.PROBLEMS if errors else ExitCode.DONE
