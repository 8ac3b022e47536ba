"""``qpubsub decode``: what is in captured messages."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click

from commands.cli.options.captures import Captures, capture_files
from commands.cli.options.selecting import selection_options
from commands.cli.options.verb import verb
from commands.explain.equivalents.consequences import consequence_json, consequence_lines, consequences
from commands.explain.reading import explained
from commands.explain.selection import MessageSelection
from commands.explain.view import MessageView, problem_lines, view
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captures import CaptureRecord
from rfh2.explain.annotate import Paint, TextRole
from rfh2.explain.describe import describe_unreadable
from rfh2.explain.form import Problem, json_line
from rfh2.explain.problems import of_record
from rfh2.terminal_escape import visible

_COLOURS: Final[dict[TextRole, dict[str, Any]]] = {
    TextRole.TITLE: {"bold": True},
    TextRole.OFFSET: {"fg": "bright_black"},
    TextRole.BYTES: {"fg": "bright_black"},
    TextRole.FIELD: {"fg": "cyan"},
    TextRole.VALUE: {"bold": True},
    TextRole.MEANING: {"fg": "green"},
    TextRole.ERROR: {"fg": "red", "bold": True},
    TextRole.WARNING: {"fg": "yellow"},
}


@verb(
    "qpubsub decode capture.dat",
    "qpubsub decode --json capture.jsonl | jq -r '.problems[].code'",
    "qpubsub decode --explain --setup streams.mqsc capture.jsonl",
    "qpubsub decode --brief --where \"command = 'RegSub' and topic like 'Sport/%'\" capture.jsonl",
    "qpubsub browse -m QM1 SUB.Q | qpubsub decode --brief",
    prints=True,
    exit_codes={0: "no message has an error", 1: "a message has an error (warnings do not count)"},
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each message.")
@click.option("--brief", is_flag=True, help="Print the command in one sentence, the headers and the problems.")
@click.option("--explain", is_flag=True, help="Print what each message would cause on an empty queue manager.")
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="With --explain: run this MQSC first, to define streams and subscription points.",
)
@click.option("--all-bytes", is_flag=True, help="Print all bytes of the data, not only the first 256.")
@selection_options()
@capture_files
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    as_json: bool,
    brief: bool,
    explain: bool,
    setup: Path | None,
    all_bytes: bool,
    selection: MessageSelection,
    form: str,
    files: tuple[Path, ...],
) -> ExitCode:
    """Explain the captured messages in each FILE, or on standard input.

    For each message, decode prints every field of the descriptor and the headers: offset, bytes, name, value, and the
    meaning of the value. It reads the folders, says in one sentence what the command does, and lists every problem
    with a code. docs/problems.md explains the codes. Offsets count from the first byte behind the MQMD.

    If a message is damaged, decode prints the part that it can decode, and then the remaining bytes.

    With --json, the object of a message holds the whole message. "qpubsub encode" makes the same captured message from
    it, byte for byte, or with your changes. Whole numbers beyond 2^53 are strings, because many programs round them.
    """
    if setup is not None and not explain:
        raise click.UsageError("--setup is for --explain")
    script = None if not explain else "" if setup is None else setup.read_text(encoding="utf-8")
    how = MessageView(_paint(console), None if all_bytes else 256, brief)
    tally = _Tally()
    captures = Captures(console, files, form, selection=selection)
    # On a terminal the messages themselves show how far it is.
    with (
        nullcontext(_unseen)
        if console.stdout.isatty()
        else console.progress("messages decoded", captures.rows(), captures.share) as advance
    ):
        for record in captures.records():
            if record.message is None and selection.has_conditions:
                # Nothing is true of it, but it must not be missed either.
                tally.not_selected += 1
                console.warn(f"not selected, because it cannot be read: {record.problem}")
            elif as_json:
                console.line(_json(record, tally, script))
            else:
                if tally.messages:
                    console.data("")
                for line in _view(record, how, tally, script):
                    console.data(line, coloured=console.coloured)
            advance(1)
    console.say(tally.text())
    return ExitCode.PROBLEMS if tally.errors or tally.not_selected else ExitCode.DONE


def _unseen(_more: int) -> None:
    """No progress is shown."""


class _Tally:
    """How many messages, errors and warnings there were. not_selected: records that cannot be read."""

    def __init__(self) -> None:
        self.messages = self.errors = self.warnings = self.not_selected = 0

    def count(self, problems: Iterable[Problem]) -> None:
        self.messages += 1
        for problem in problems:
            if problem.severity == "error":
                self.errors += 1
            else:
                self.warnings += 1

    def text(self) -> str:
        return ", ".join(
            counted(count, word)
            for count, word in ((self.messages, "message"), (self.errors, "error"), (self.warnings, "warning"))
        )


# script: what --explain runs first; None without --explain.
def _json(record: CaptureRecord, tally: _Tally, script: str | None) -> bytes:
    if record.message is None:
        problem = _unreadable(record)
        tally.count([problem])
        return json_line(describe_unreadable(record.source, record.index, problem))
    message = explained(record.message)
    tally.count(message.problems)
    form = message.form(record.source, record.index)
    if script is not None:
        form["explain"] = consequence_json(consequences(record.message, script))
    return json_line(form)


def _view(record: CaptureRecord, how: MessageView, tally: _Tally, script: str | None) -> Iterable[str]:
    title = f"{record.source}, message {record.index + 1}"
    if record.message is None:
        problems = [_unreadable(record)]
        tally.count(problems)
        return [how.paint(TextRole.TITLE, visible(f"== {title} ==")), *problem_lines(problems, how.paint)]
    message = explained(record.message)
    tally.count(message.problems)
    lines = list(view(message.partial, title, message.command, message.problems, how))
    if script is not None:
        lines += ["", *consequence_lines(consequences(record.message, script), set_up=bool(script))]
    return lines


def _unreadable(record: CaptureRecord) -> Problem:
    assert record.problem is not None
    return of_record(record.position, record.problem)


def _paint(console: Console) -> Paint:
    if not console.coloured:
        return lambda _role, text: text
    return lambda role, text: click.style(text, **_COLOURS[role]) if text.strip() else text
