"""``qpubsub translate``: queued commands as modern operations."""

from __future__ import annotations

from pathlib import Path

import click

from commands.broker.context import SEMANTICS
from commands.explain.equivalents.render import DIALECTS, render, render_unreadable
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.explain.selection import Choosing, MessageSelection
from commands.headers.response import Completion
from commands.options.captures import capture_files, records, selection_options
from commands.options.verb import verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captured import CapturedMessage


@verb(
    "qpubsub translate capture.jsonl -o subscriptions.mqsc",
    "qpubsub translate --to mqi capture.jsonl",
    "qpubsub translate --json --setup streams.mqsc capture.jsonl | jq -c '.operations[]'",
    prints=True,
    exit_codes={1: "a message could not be read, or its command failed"},
)
@click.option("--to", type=click.Choice(DIALECTS), default="mqsc", show_default=True, help="The dialect.")
@click.option("--json", "to", flag_value="json", help="The same as --to json.")
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="Run this MQSC first, to define streams.",
)
@click.option(
    "--semantics",
    type=click.Choice(SEMANTICS),
    default="v7",
    show_default=True,
    help="The version.",
)
@selection_options("Show only")
@capture_files
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    to: str,
    setup: Path | None,
    semantics: str,
    selection: MessageSelection,
    form: str,
    files: tuple[Path, ...],
) -> ExitCode:
    """Show what replaces the queued commands in each FILE, or on standard input (section 7.2 of IBM's guide).

    The commands run in order on a queue manager in memory. So a second RegSub alters the subscription of the first
    one, and a DeregSub deletes it. mqsc prints commands for runmqsc, pcf prints messages for a command server with
    their bytes, mqi prints the calls of a rewritten program, json prints the operations with all their attributes.
    If a dialect cannot express an operation, a comment says so: a line that begins with an asterisk. All commands run;
    --where and the like choose whose operations are shown.
    """
    tracers: dict[str, TraceBroker] = {}
    script = "" if setup is None else setup.read_text(encoding="utf-8")
    messages = problems = 0
    choosing = Choosing(selection)
    for record in records(console, files, form):
        if choosing.is_over:
            break
        if record.message is not None and not choosing.chooses(record.message):
            _tracer(tracers, record.message, script, semantics).trace(record.message)
            continue
        messages += 1
        if record.message is None:
            problems += 1
            console.warn(str(record.problem))
            console.data(render_unreadable(str(record.problem), to, record.source, record.index))
            continue
        traced = _tracer(tracers, record.message, script, semantics).trace(record.message)
        problems += traced.outcome.completion is Completion.ERROR
        for line in render(traced, to, record.source, record.index):
            console.data(line)
    console.say(f"{counted(messages, 'message')}, {problems:,} refused or not readable")
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


def _tracer(tracers: dict[str, TraceBroker], message: CapturedMessage, script: str, semantics: str) -> TraceBroker:
    """The broker of the message's queue manager."""
    qmgr = message.qmgr or "QM1"
    if qmgr not in tracers:
        tracers[qmgr] = TraceBroker(qmgr, script, semantics)
    return tracers[qmgr]
