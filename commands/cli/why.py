"""``qpubsub why``: for each publication and each subscriber, delivered or the rule that kept it back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from commands.cli.options.captures import format_option
from commands.cli.options.replays import CaptureReader, ReplayOptions
from commands.cli.options.verb import verb
from commands.explain.why import Asked, Verdict
from commands.replay.why import LocalWhy, Summary, lines_of
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage

_IN_MEMORY: Final = 8 * 1024 * 1024


@verb(
    "qpubsub why --input captures/ --setup streams.mqsc",
    "qpubsub why --input capture.jsonl BOARD --topic Sport/Soccer",
    "qpubsub why --input capture.jsonl --seq 12 --json",
    prints=True,
    exit_codes={0: "everything is delivered or explained", 1: "some records could not be read"},
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE|-",
    help="A capture, or a directory of captures; - is standard input.",
)
@format_option
@click.option(
    "--semantics",
    type=click.Choice(["v7", "v6"]),
    default="v7",
    show_default=True,
    help="The version whose behaviour to use where versions 6 and 7 differ.",
)
@click.option(
    "--setup",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCRIPT",
    help="Run this MQSC first on every queue manager.",
)
@click.option("--topic", metavar="TOPIC", help="Only publications on TOPIC, which may have the wildcards # and +.")
@click.option("--seq", type=int, metavar="N", help="Only the message with this seq.")
@click.option("--sub", metavar="NAME", help="Only the subscription with this name.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each answer.")
@click.argument("queue", required=False)
@click.pass_obj
def command(
    console: Console,
    inputs: tuple[Path, ...],
    form: str,
    semantics: str,
    setup: Path | None,
    topic: str | None,
    seq: int | None,
    sub: str | None,
    as_json: bool,
    queue: str | None,
) -> ExitCode:
    """Explain for each subscriber QUEUE, or for this one, which publications it got, and which rule kept others back.

    why replays the capture. It prints an answer for each publication that a subscriber got or might have expected, also
    if the topics differ in spelling, wildcard scheme or stream only, or if the subscription had ended or was refused.
    Without --json it adds the answers up by queue and reason. docs/why.md explains the reasons.
    """
    asked = Asked(queue, topic, sub, seq)
    script = setup.read_text(encoding="utf-8") if setup is not None else ""
    reader = CaptureReader(console, ReplayOptions(inputs, form, "local", None, semantics, script))

    def explained(messages: Iterable[CapturedMessage]) -> None:
        why = LocalWhy(script, semantics, asked)
        answers = _Lines() if as_json else _Sums()
        with reader.progress("messages explained") as advance:
            for message in messages:
                for verdict in why.take(message):
                    answers.add(verdict)
                advance(1)
        for verdict in why.end():
            answers.add(verdict)
        answers.show(console)

    reader.in_order(explained)
    return ExitCode.PROBLEMS if reader.problems else ExitCode.DONE


class _Sums:
    def __init__(self) -> None:
        self._summary = Summary()

    def add(self, verdict: Verdict) -> None:
        self._summary.add(verdict)

    def show(self, console: Console) -> None:
        for line in lines_of(self._summary):
            console.data(line)


class _Lines:
    """Answers as JSON Lines. They wait until the whole capture has proved to be in order, on disk if they are many."""

    def __init__(self) -> None:
        self._file = cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - closed when shown

    def add(self, verdict: Verdict) -> None:
        self._file.write(json.dumps(verdict.form(), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")

    def show(self, console: Console) -> None:
        with self._file as file:
            file.seek(0)
            for line in file:
                console.line(line.rstrip(b"\n"))
