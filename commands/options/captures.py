"""Options of captures: ``--format``, ``CAPTURE [QUEUE...]`` and ``[FILE|-]...``, their records, and which messages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

import click

from commands.explain.selection import (
    EVERYTHING,
    MessageSelection,
    SelectionError,
    SeqRanges,
    Where,
    compile_where,
    moment,
)
from commands.options.verb import PATH_OR_DASH
from commands.terminal.console import Console
from rfh2.captures import FORMATS, CaptureRecord, Numbering, read_captures
from rfh2.captures.reading import DefaultQueue
from rfh2.errors import CaptureError, system_words

F = TypeVar("F", bound=Callable[..., Any])

STDIN: Final = Path("-")
_SPOOLED_IN_MEMORY: Final = 8 * 1024 * 1024


def capture_files(function: F) -> F:
    """``--format`` and files: the verb gets *form* (str) and *files* (tuple of Path)."""
    return format_option(files_argument(function))


def files_argument(function: F) -> F:
    """``[FILE|-]...``: the verb gets *files* (tuple of Path); none stands for stdin."""
    files = click.argument("files", nargs=-1, type=PATH_OR_DASH, metavar="[FILE|-]...")
    return files(function)


def format_option(function: F) -> F:
    """``--format``: the verb gets *form* (str), ``auto`` unless given."""
    option = click.option(
        "--format",
        "form",
        default="auto",
        show_default=True,
        metavar="FORMAT",
        type=click.Choice(["auto", *FORMATS]),
        help=f"Format of the captures: auto, {', '.join(FORMATS)}.",
    )
    return option(function)


def say_that_stdin_is_read(console: Console, what: str = "captured messages") -> None:
    """Say on a terminal that the verb waits for a person to type, or to remember the file."""
    if console.stdin.isatty():
        console.say(f"reading {what} from standard input; Ctrl-D ends it, FILE as an argument reads a file")


class Captures:
    """The records of capture files, once or several times, and the share that has been read.

    files: none is stdin. default_queue: of messages that name none. numbering: gives ``seq`` to the messages of all
    files together. selection: which messages are given. Raises CaptureError for a file that is missing.
    """

    def __init__(
        self,
        console: Console,
        files: tuple[Path, ...],
        form: str,
        *,
        default_queue: DefaultQueue = "",
        numbered_together: bool = False,
        selection: MessageSelection = EVERYTHING,
    ) -> None:
        for file in files:
            if file != STDIN and not file.exists():
                raise CaptureError(str(file), None, "no such file or directory")
            if file != STDIN and file.is_dir() and not _size(file):
                console.warn(f"{file}: there is no capture in this directory")
        self._console, self._files, self._form = console, files or (STDIN,), form
        self._default_queue, self._together = default_queue, numbered_together
        self._selection = selection
        self._spool: BinaryIO | None = None
        self._total: int | None = None
        self._before = 0
        self._reading: tuple[str, int] | None = None
        self._stream: BinaryIO | None = None
        self._said: set[tuple[str, str]] = set()

    @property
    def label(self) -> str:
        """What the captures are called in a report."""
        return ", ".join("stdin" if file == STDIN else str(file) for file in self._files)

    def records(self, *, again: bool = False) -> Iterator[CaptureRecord]:
        """The records in order, of those messages that are selected; a record that cannot be read is always given.

        again: what stdin gave is kept, so that it can be read another time.
        """
        found = self._all(again=again)
        return found if self._selection.is_all else self._selection.of_records(found)

    def _all(self, *, again: bool) -> Iterator[CaptureRecord]:
        self._before, self._reading = 0, None
        numbering = Numbering() if self._together else None
        for file in self._files:
            self._stream = None
            yield from self._say_what_is_read(self._of_file(file, numbering, again))
        self._stream = None

    def _say_what_is_read(self, records: Iterator[CaptureRecord]) -> Iterator[CaptureRecord]:
        """Pass records on; of a format that searches for messages, say what each run of records was taken for."""
        said = ("", "")
        for record in records:
            if record.taken_for and (record.source, record.taken_for) != said:
                said = record.source, record.taken_for
                if said not in self._said:
                    self._said.add(said)
                    self._console.say(f"{record.source}, line {record.position}: read as {record.taken_for}")
            yield record

    def _of_file(self, file: Path, numbering: Numbering | None, again: bool) -> Iterator[CaptureRecord]:
        options: dict[str, Any] = {"default_queue": self._default_queue, "numbering": numbering}
        if file == STDIN:
            stream = self._stdin(again)
            yield from read_captures(stream, self._form, name="stdin", **options)
        elif file.is_dir() or not self._console.watched:
            yield from self._with_sizes(read_captures(file, self._form, **options))
        else:
            try:
                opened = file.open("rb")
            except OSError as error:
                raise CaptureError(str(file), None, system_words(error)) from error
            with opened as stream:
                self._stream = stream
                yield from read_captures(stream, self._form, name=str(file), **options)
                self._stream = None
                self._before += file.stat().st_size

    def _with_sizes(self, found: Iterator[CaptureRecord]) -> Iterator[CaptureRecord]:
        for record in found:
            if self._reading is None or record.source != self._reading[0]:
                self._before += 0 if self._reading is None else self._reading[1]
                self._reading = (record.source, _size(Path(record.source)) if self._console.watched else 0)
            yield record

    def _stdin(self, again: bool) -> BinaryIO:
        if self._spool is None:
            say_that_stdin_is_read(self._console)
        if not again:
            return self._console.stdin
        if self._spool is None:
            self._spool = cast(BinaryIO, tempfile.SpooledTemporaryFile(_SPOOLED_IN_MEMORY))  # noqa: SIM115 - read again
            shutil.copyfileobj(self._console.stdin, self._spool)
        self._spool.seek(0)
        return self._spool

    def size(self) -> int:
        """Bytes of all files; 0 where one is stdin or a pipe, so that nobody knows."""
        if any(file == STDIN or not (file.is_file() or file.is_dir()) for file in self._files):
            return 0
        return sum(map(_size, self._files))

    def share(self) -> float | None:
        """How much of the files has been read, from 0 to 1, by bytes; None where stdin is among them."""
        if self._total is None:
            known = STDIN not in self._files and not any(file.suffix == ".parquet" for file in self._files)
            self._total = sum(map(_size, self._files)) if known else 0
        if not self._total:
            return None
        now = 0
        if self._stream is not None:
            with suppress(OSError, ValueError):
                now = self._stream.tell()
        return (self._before + now) / self._total

    def rows(self) -> int | None:
        """How many rows there are in all, where each file is Parquet, which says so; else None."""
        if not all(file.suffix == ".parquet" and file.is_file() for file in self._files):
            return None
        with suppress(Exception):  # whoever reads the file says what is wrong with it, or that pyarrow is missing
            from rfh2.captures.parquet import open_parquet  # noqa: PLC0415 - pyarrow is an extra, and slow to load

            return sum(int(open_parquet(file).metadata.num_rows) for file in self._files)
        return None


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a directory that reading it does not leave out."""
    if not path.is_dir():
        with suppress(OSError):
            return path.stat().st_size
        return 0
    total = 0
    for directory, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith((".", "_"))]
        total += sum(_size(Path(directory, name)) for name in names if not name.startswith((".", "_")))
    return total


def records(console: Console, files: tuple[Path, ...], form: str) -> Iterator[CaptureRecord]:
    """The records of *files*, in order; of stdin where there are none.

    Raises CaptureError for a file that is missing, before any record is given.
    """
    return Captures(console, files, form).records()


# Which messages a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``.

_Verb = Callable[..., Any]


class _WhereType(click.ParamType[Where]):
    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Where:
        if isinstance(value, Where):
            return value
        try:
            return compile_where(value)
        except SelectionError as error:
            self.fail(error.pointed, param, ctx)


class MomentType(click.ParamType[datetime]):
    """A time, UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return moment(value)
        except ValueError:
            self.fail(f"{value!r} is not a time: write 2009-01-28 or 2009-01-28T11:43:54, in UTC", param, ctx)


class _SeqType(click.ParamType[SeqRanges]):
    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SeqRanges:
        if isinstance(value, SeqRanges):
            return value
        try:
            return SeqRanges.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


WHERE: Final = _WhereType()
SEQ_RANGES: Final = _SeqType()


def _selection_options(what: str, limit: str) -> tuple[Callable[[_Verb], _Verb], ...]:
    return (
        click.option(
            "--where",
            type=WHERE,
            metavar="CONDITION",
            help=f"{what} messages of which this selection string is true: \"command = 'RegSub' and topic like "
            "'Sport/%' and size > 1000\". docs/selection.md has the names.",
        ),
        click.option(
            "--since",
            type=MomentType(),
            metavar="TIME",
            help=f"{what} messages of this time or later, UTC: 2009-01-28T11:43.",
        ),
        click.option("--until", type=MomentType(), metavar="TIME", help=f"{what} messages earlier than this time."),
        click.option(
            "--limit",
            "-C",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"{what} the first N messages that are selected{limit}.",
        ),
    )


def selection_options(what: str = "Only", *, with_seq: bool = True, limit: str = "") -> Callable[[_Verb], _Verb]:
    """The options: the verb gets *selection* (MessageSelection).

    what: the first words of the help. limit: what more ``--limit`` means. with_seq: False where the verb has a
    ``--seq`` of its own, which must have the type SEQ_RANGES; it gets that too.
    """
    seq = click.option(
        "--seq", type=SEQ_RANGES, metavar="N|N-M", help=f"{what} messages with these numbers: 7, or 3,10-20,500-."
    )

    def decorated(function: _Verb) -> _Verb:
        @wraps(function)
        def selecting(
            *args: Any,
            where: Where | None,
            since: datetime | None,
            until: datetime | None,
            limit: int | None,
            seq: SeqRanges | None = None,
            **own: Any,
        ) -> Any:
            if since is not None and until is not None and until <= since:
                raise click.UsageError("--until must be later than --since")
            own["selection"] = MessageSelection(where, since, until, seq, limit)
            if not with_seq:
                own["seq"] = seq
            return function(*args, **own)

        verb: _Verb = selecting
        for option in reversed((*_selection_options(what, limit), *((seq,) if with_seq else ()))):
            verb = option(verb)
        return verb

    return decorated
