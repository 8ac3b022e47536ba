"""``qpubsub translate``: queued commands as modern operations."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from commands.cli.options.captures import capture_files, records
from commands.explain.equivalents.render import DIALECTS, render, render_unreadable
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.headers.response import Completion
from commands.terminal.console import Console, ExitCode

_EPILOG: Final = """\b
Examples:
  qpubsub translate capture.jsonl >subscriptions.mqsc
  qpubsub translate --to mqi capture.jsonl
  qpubsub translate --to json --setup streams.mqsc capture.jsonl | jq -c '.operations[]'

\b
Exit codes: 0 done, 1 a message could not be read or its command was refused, 2 usage or a file is missing.
"""


@click.command(epilog=_EPILOG)
@click.option("--to", type=click.Choice(DIALECTS), default="mqsc", show_default=True, help="The dialect.")
@click.option(
    "--setup", type=click.Path(path_type=Path, dir_okay=False), metavar="SCRIPT", help="MQSC to run first: streams, ..."
)
@click.option("--semantics", type=click.Choice(["v7", "v6"]), default="v7", show_default=True, help="Whose behaviour.")
@capture_files
@click.pass_obj
def command(
    console: Console, /, *, to: str, setup: Path | None, semantics: str, form: str, files: tuple[Path, ...]
) -> ExitCode:
    """Show what replaces the queued commands in FILEs, or on stdin: section 7.2 of IBM's guide, done.

    The commands run in order on a queue manager in memory, so that each is shown as what it comes to: a second RegSub
    alters the subscription of the first, a DeregSub deletes it. mqsc gives commands for runmqsc, pcf the messages for a
    command server with their bytes, mqi the calls of a rewritten program, json the operations with all that they hold.
    What a dialect has no words for is said in a comment, a line that begins with an asterisk.
    """
    tracers: dict[str, TraceBroker] = {}
    script = "" if setup is None else setup.read_text(encoding="utf-8")
    messages = problems = 0
    for record in records(files, form):
        messages += 1
        if record.message is None:
            problems += 1
            console.warn(str(record.problem))
            console.data(render_unreadable(str(record.problem), to, record.source, record.index))
            continue
        qmgr = record.message.qmgr or "QM1"
        if qmgr not in tracers:
            tracers[qmgr] = TraceBroker(qmgr, script, semantics)
        traced = tracers[qmgr].trace(record.message)
        problems += traced.outcome.completion is Completion.ERROR
        for line in render(traced, to, record.source, record.index):
            console.data(line)
    console.say(f"{messages} message{'' if messages == 1 else 's'}, {problems} refused or not readable")
    return ExitCode.PROBLEMS if problems else ExitCode.DONE
