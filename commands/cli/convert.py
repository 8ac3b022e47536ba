"""``qpubsub convert``: one capture format into another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from commands.disk.files import to_disk
from commands.explain.selection import MessageSelection
from commands.options.captures import Captures, capture_files, selection_options
from commands.options.verb import FILE_OR_DASH, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.output_file import OutputFile
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, CaptureRecord, put_time, write_captures
from rfh2.errors import CaptureError, DecodeError
from rfh2.mqmd import Mqmd, name_of

_WRITTEN: Final = tuple(entry.name for entry in FORMATS.values() if entry.writer is not None)


@verb(
    "qpubsub convert browse.txt -o messages.jsonl",
    "qpubsub convert --to parquet -o messages.parquet captures/",
    "qpubsub convert --where \"time >= '2009-01-28T09:00' and queue = 'SPORT'\" captures/ -o morning.jsonl",
    "qpubsub convert --to qload --queue SYSTEM.BROKER.CONTROL.QUEUE regsub.dat -o regsub.qload",
    exit_codes={1: "some messages could not be read or written (each is reported)"},
)
@click.option(
    "--to",
    "target_format",
    type=click.Choice(_WRITTEN),
    default="jsonl",
    show_default=True,
    metavar="FORMAT",
    help=f"Format to write: {', '.join(_WRITTEN)}.",
)
@click.option("--json", "target_format", flag_value="jsonl", help="The same as --to jsonl.")
@click.option(
    "-o",
    "--output",
    type=FILE_OR_DASH,
    metavar="FILE|-",
    help="Write to FILE, not to stdout. FILE appears when it is complete.",
)
@click.option("--queue", default="", metavar="QUEUE", help="The queue of messages whose format does not name one.")
@selection_options()
@capture_files
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    target_format: str,
    output: Path | None,
    queue: str,
    selection: MessageSelection,
    form: str,
    files: tuple[Path, ...],
) -> ExitCode:
    """Convert the captured messages in each FILE, or on standard input, to another format.

    If FILE is a directory, convert reads all files in it. It reads and writes one message at a time, so that captures
    of any size fit in memory. It reports the fields that the other format cannot hold.
    """
    if output is not None and str(output) == "-":
        output = None
    captures = Captures(console, files, form, default_queue=queue, numbered_together=True, selection=selection)
    conversion = _Conversion(console, target_format)
    with console.progress("messages converted", captures.rows(), captures.share) as advance:
        messages = conversion.messages(captures.records())
        count = _write(console, _counted(messages, advance), target_format, output, conversion)
    conversion.report_losses()
    console.say(f"{counted(count, 'message')} converted to {target_format}" + (f", {output}" if output else ""))
    return ExitCode.PROBLEMS if conversion.problems else ExitCode.DONE


class _Conversion:
    """One run of the verb: reports what cannot be read or written, and counts what the target has no place for."""

    def __init__(self, console: Console, target_format: str) -> None:
        self._console, self._format = console, target_format
        self._keeps = FORMATS[target_format].keeps
        self._lost: Counter[str] = Counter()
        self.problems = 0

    def messages(self, records: Iterator[CaptureRecord]) -> Iterator[CapturedMessage]:
        """The messages of *records*; a problem is reported and passed over."""
        for record in records:
            if record.message is None:
                self._report(str(record.problem))
            else:
                self._lost.update(field for field in _present(record.message) if field not in self._keeps)
                yield record.message

    def refused(self, _message: CapturedMessage, error: CaptureError) -> None:
        """Report a message that the target cannot hold."""
        self._report(str(error))

    def report_losses(self) -> None:
        """Say which fields the target has no place for."""
        if self._lost:
            lost = ", ".join(f"{field} of {counted(count, 'message')}" for field, count in sorted(self._lost.items()))
            self._console.say(f"{self._format} cannot hold: {lost}")

    def _report(self, text: str) -> None:
        self.problems += 1
        self._console.warn(text)


def _present(message: CapturedMessage) -> Iterator[str]:
    """The fields of *message* that say something which its descriptor does not."""
    if message.queue:
        yield "queue"
    if message.qmgr is not None:
        yield "qmgr"
    if message.user is not None and (message.md is None or _user_of(message.md) != message.user):
        yield "user"
    if message.time is not None and (message.md is None or put_time(message.md) != message.time):
        yield "time"
    if message.md is not None:
        yield "md"


def _user_of(md: bytes) -> str | None:
    try:
        return name_of(Mqmd.decode(md).user_identifier)
    except DecodeError:
        return None


def _counted(messages: Iterator[CapturedMessage], advance: Callable[[int], None]) -> Iterator[CapturedMessage]:
    for message in messages:
        advance(1)
        yield message


def _write(
    console: Console, messages: Iterator[CapturedMessage], form: str, output: Path | None, conversion: _Conversion
) -> int:
    if output is None:
        count = write_captures(messages, console.binary, form, refused=conversion.refused)
        console.flush()
        return count
    # A name that reading a directory passes over, for the output may be in the directory that is read.
    file = OutputFile(output)
    try:
        with file.open() as target:
            count = write_captures(messages, target, form, refused=conversion.refused)
            to_disk(target)
        file.finish()
    except BaseException:
        file.discard()
        raise
    return count
