"""``qpubsub decode``: what is in captured messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from commands.explain.equivalents.records import MessageView, record_json, record_view
from commands.explain.selection import MessageSelection
from commands.options.captures import STDIN, Captures, capture_files, selection_options
from commands.options.verb import FILE, verb
from commands.terminal.console import Console, ExitCode, harmless_data, harmless_json
from commands.terminal.counted import counted
from commands.terminal.workers import cores, worked
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.errors import QPubSubError
from rfh2.explain.annotate import TextRole, plain
from rfh2.explain.form import Problem

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
_SHOWN_BYTES: Final = 256
_MOST_JOBS: Final = 64
_FIRST: Final = 2_000
"""So many messages are decoded before other processes are started, which then have what these loaded."""
_BATCH_MESSAGES: Final = 250
_BATCH_BYTES: Final = 2_000_000
_FIELDS: Final = tuple(CapturedMessage.model_fields)


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
    type=FILE,
    metavar="SCRIPT",
    help="With --explain: run this MQSC first, to define streams and subscription points.",
)
@click.option("--all-bytes", is_flag=True, help="Print all bytes of the data, not only the first 256.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, _MOST_JOBS),
    metavar="N",
    help="Decode in N processes. The default for files is one for each processor; the output is the same.",
)
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
    jobs: int | None,
    selection: MessageSelection,
    form: str,
    files: tuple[Path, ...],
) -> ExitCode:
    """Explain the captured messages in each FILE, or on standard input.

    For each message, decode prints every field of the descriptor and the headers: offset, bytes, name, value, and the
    meaning of the value. It reads the folders, says in one sentence what the command does, and lists every problem
    with a code. docs/problems.md explains the codes. Offsets count from the first byte after the MQMD.

    If a message is damaged, decode prints the part that it can decode, and then the remaining bytes.

    With --json, the object of a message holds the whole message. "qpubsub encode" makes the same captured message from
    it, byte for byte, or with your changes. Whole numbers beyond 2^53 are strings, because many programs round them.
    """
    if setup is not None and not explain:
        raise click.UsageError("--setup needs --explain")
    script = None if not explain else "" if setup is None else setup.read_text(encoding="utf-8")
    decoding = _Decoding(as_json, brief, None if all_bytes else _SHOWN_BYTES, console.coloured, script)
    tally = _Tally()
    captures = Captures(console, files, form, selection=selection)
    waits = _is_waited_for(console, files)

    def decodable() -> Iterator[CaptureRecord]:
        for record in captures.records():
            if record.message is None and selection.has_conditions:
                # Nothing is true of it, but it must not be missed either.
                tally.not_selected += 1
                console.warn(f"not selected, because it cannot be read: {record.problem}")
            else:
                yield record

    # On a terminal the messages themselves show how far it is.
    with (
        nullcontext(_unseen)
        if console.stdout.isatty()
        else console.progress("messages decoded", captures.rows(), captures.share) as advance
    ):
        first = _FIRST if jobs is None else 0
        for decoded in _decoded(
            decoding, decodable(), jobs or (1 if waits else min(cores(), _MOST_JOBS)), first, waits
        ):
            if tally.messages and decoded.messages and not as_json:
                console.data("")
            console.harmless(decoded.data)
            tally.add(decoded)
            advance(decoded.messages)
    console.say(tally.text())
    return ExitCode.PROBLEMS if tally.errors or tally.not_selected else ExitCode.DONE


def _unseen(_more: int) -> None:
    """No progress is shown."""


# Several processes

_Packed = CaptureRecord | tuple[str, int, int, tuple[Any, ...]]


def _is_waited_for(console: Console, files: tuple[Path, ...]) -> bool:
    """Whether somebody waits for each message: it is shown as soon as it is read."""
    return console.stdout.isatty() or not files or STDIN in files or any(file.is_fifo() for file in files)


def _decoded(
    decoding: _Decoding, records: Iterator[CaptureRecord], jobs: int, first: int, waits: bool
) -> Iterator[_Decoded]:
    """What is printed of *records*. first: so many are decoded here, before several processes begin."""
    here = records if jobs == 1 else islice(records, first)
    for batch in ([record] for record in here) if waits else _batches(here):
        yield decoding.decoded(batch)
    if jobs > 1:
        yield from worked(decoding.unpacked, map(_packed, _batches(records)), jobs)


def _batches(records: Iterable[CaptureRecord]) -> Iterator[list[CaptureRecord]]:
    """*records* in batches that are bounded in number and in bytes; where *records* fail, what came before is given."""
    batch: list[CaptureRecord] = []
    size = 0
    try:
        for record in records:
            batch.append(record)
            size += 0 if record.message is None else len(record.message.body_hex)
            if len(batch) >= _BATCH_MESSAGES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except QPubSubError:
        yield batch
        raise
    if batch:
        yield batch


def _packed(batch: Sequence[CaptureRecord]) -> list[_Packed]:
    """*batch* for another process: of a pydantic model the pickle is slow, and larger than the message."""
    packed: list[_Packed] = []
    for record in batch:
        message = record.message
        if message is None:
            packed.append(record)
        else:
            fields = tuple([getattr(message, name) for name in _FIELDS])
            packed.append((record.source, record.index, record.position, fields))
    return packed


@dataclass(frozen=True, slots=True)
class _Decoded:
    """What is printed of some messages, and how many problems they have."""

    data: bytes
    messages: int
    errors: int
    warnings: int


@dataclass(frozen=True, slots=True)
class _Decoding:
    """How messages are shown. script: what --explain runs first; None without --explain. It can be pickled."""

    as_json: bool
    brief: bool
    body_limit: int | None
    coloured: bool
    script: str | None

    def unpacked(self, batch: Sequence[_Packed]) -> _Decoded:
        """``decoded``, in another process."""
        return self.decoded([_unpacked(packed) for packed in batch])

    def decoded(self, records: Sequence[CaptureRecord]) -> _Decoded:
        """What is printed of *records*."""
        tally = _Tally()
        parts: list[bytes] = []
        if self.as_json:
            for record in records:
                shown = record_json(record, self.script)
                tally.count(shown.problems)
                parts.append(harmless_json(b'{"format": 1, ' + shown.line[1:]))
        else:
            how = MessageView(_coloured if self.coloured else plain, self.body_limit, self.brief)
            for record in records:
                before = [""] if parts else []
                view = record_view(record, how, self.script)
                tally.count(view.problems)
                parts.append(harmless_data([*before, *view.lines], coloured=self.coloured))
        return _Decoded(b"".join(parts), tally.messages, tally.errors, tally.warnings)


def _unpacked(packed: _Packed) -> CaptureRecord:
    if isinstance(packed, CaptureRecord):
        return packed
    source, index, position, fields = packed
    # They are those of a message that was checked.
    message = CapturedMessage.model_construct(**dict(zip(_FIELDS, fields, strict=True)))
    return CaptureRecord(source, index, message, None, position)


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

    def add(self, decoded: _Decoded) -> None:
        self.messages += decoded.messages
        self.errors += decoded.errors
        self.warnings += decoded.warnings

    def text(self) -> str:
        # A message counts once, with the worst of its problems.
        counts = f"{self.errors:,} with errors, {self.warnings:,} with warnings"
        return f"{counted(self.messages, 'message')}, {counts}"


def _coloured(role: TextRole, text: str) -> str:
    return click.style(text, **_COLOURS[role]) if text.strip() else text
