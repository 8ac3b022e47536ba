"""``qpubsub generate``: captures of a made-up workload, for benchmarks and for trying things out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import click
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from commands.disk.files import to_disk
from commands.options.captures import STDIN
from commands.options.verb import FILE, PATH_OR_DASH, verb
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.output_file import OutputFile
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, write_captures
from rfh2.captures.jsonl import clause
from rfh2.errors import CaptureError

_WRITTEN: Final = tuple(entry.name for entry in FORMATS.values() if entry.writer is not None)
_HELP: Final = {
    "seed": "The seed. Another seed gives another workload.",
    "messages": "How many messages in all.",
    "start": "Time of the first message, ISO 8601.",
    "per_second": "Messages a second of captured time.",
    "qmgrs": "Queue managers.",
    "streams": "Streams, including the default stream.",
    "topics": "Topics, in all streams together.",
    "zipf": "Exponent of the topics' popularity; 0 is even.",
    "subscribers": "Subscribers; they register first.",
    "control": "Share of RegSub, DeregSub, ReqUpdate and DeletePub once all subscribers are registered.",
    "wildcards": "Share of subscribers with wildcards.",
    "named": "Share of subscribers with a SubName.",
    "filters": "Share of subscribers with a Filter.",
    "rfh1": "Share of subscribers, and of publications, with MQRFH.",
    "retained": "Share of topics on which everything is retained.",
    "expiring": "Share of subscribers, and of retained topics, with an Expiry.",
    "properties": "Share of publications with a usr folder.",
    "several": "Share of publications to two topics.",
    "persistent": "Share of publications that are persistent.",
    "errors": "Share of messages that are wrong.",
    "strays": "Share of messages on queues that no broker reads.",
    "body_bytes": "Data in a publication, in bytes.",
}
# Where the name is an option of another meaning elsewhere.
_FLAGS: Final = {"topics": "--topic-strings", "persistent": "--persistent-share", "rfh1": "--rfh1-share"}


def _workload_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, field in reversed(WorkloadOptions.model_fields.items()):
        function = _option(name, field)(function)
    return function


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind = {int: int, float: float}.get(cast(type, field.annotation), str)
    default = field.default if kind is not str else field.default.isoformat()
    flag = _FLAGS.get(name) or f"--{name.replace('_', '-')}"
    metavar = {int: "N", float: "SHARE" if _HELP[name].startswith("Share") else "X"}.get(kind, "TIME")
    return click.option(flag, name, type=kind, default=default, show_default=True, metavar=metavar, help=_HELP[name])


@verb(
    "qpubsub generate --messages 10000 --output workload.jsonl --write-setup workload.mqsc",
    "qpubsub generate --messages 10 --errors 0 --to jsonl | qpubsub decode --brief",
    former={"--setup": "--write-setup", **{f"--{name}": flag for name, flag in _FLAGS.items()}},
    exit_codes={1: "the format cannot hold some of the messages"},
)
@click.option(
    "-o",
    "--output",
    "target",
    type=PATH_OR_DASH,
    default="-",
    show_default="stdout",
    metavar="FILE|-",
    help="The capture. The end of its name is the format; with --files it is a directory.",
)
@click.option("--to", "form", type=click.Choice(_WRITTEN), metavar="FORMAT", help=f"The format: {', '.join(_WRITTEN)}.")
@click.option(
    "--files", type=click.IntRange(min=1), metavar="N", help="Write this number of files to the directory of --output."
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object; needs --output FILE.")
@click.option(
    "--write-setup",
    type=FILE,
    metavar="FILE",
    help="Write the MQSC that replay needs as --setup. An existing file is not replaced.",
)
@_workload_options
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    target: Path,
    form: str | None,
    files: int | None,
    write_setup: Path | None,
    as_json: bool,
    **options: Any,
) -> ExitCode:
    """Generate a capture of an artificial workload. The same options give the same capture on every machine.

    Subscribers register, deregister and request retained publications; programs publish, on popular topics more
    often. Shares are numbers from 0 to 1. By default some messages are wrong on purpose; --errors 0 makes none.
    """
    to_stdout = target == STDIN
    if to_stdout and (files is not None or as_json):
        raise click.UsageError("--files and --json need --output FILE")
    try:
        workload = Workload(WorkloadOptions(**options))
    except ValidationError as error:
        raise click.UsageError(f"--{clause(error)}") from error
    chosen = form or ("jsonl" if to_stdout else _by_name(target))
    if write_setup is not None:
        _write_setup(write_setup, setup_script(workload.options))
    count = workload.options.messages
    written = 0
    if to_stdout:
        written = write_captures(workload.messages(0, count), console.binary, chosen, refused=_left_out)
        console.say(f"{counted(written, 'message')} written")
        return ExitCode.DONE if written == count else ExitCode.PROBLEMS
    with console.progress("messages written", count) as advance:
        for path, start, end in _pieces(target, chosen, files, count):
            written += _write(workload, path, chosen, start, end, advance)
    console.say(f"{counted(written, 'message')} written to {target}")
    if as_json:
        console.json({"messages": written, "output": str(target)})
    return ExitCode.DONE if written == count else ExitCode.PROBLEMS


def _write_setup(path: Path, script: str) -> None:
    """Write the script; one that is there already and says the same is left. Raises UsageError for another one."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(script)
    except FileExistsError as error:
        if path.read_text(encoding="utf-8", errors="replace") != script:
            raise click.UsageError(f"--write-setup {path}: the file exists and is not replaced") from error


def _by_name(target: Path) -> str:
    form = target.suffix.removeprefix(".")
    if form not in _WRITTEN:
        raise click.UsageError(f"--output {target}: the end of the name is not a format; give the format with --to")
    return form


def _pieces(target: Path, form: str, files: int | None, count: int) -> Iterator[tuple[Path, int, int]]:
    if files is None:
        yield target, 0, count
        return
    target.mkdir(parents=True, exist_ok=True)
    for at in range(files):
        yield target / f"part-{at:05}.{form}", count * at // files, count * (at + 1) // files


def _write(workload: Workload, path: Path, form: str, start: int, end: int, advance: Callable[[int], None]) -> int:
    # The Parquet writer wants the columns only, and a model for each would take most of the time.
    rows = workload.rows(start, end) if form == "parquet" else workload.messages(start, end)
    messages = _advanced(cast(Iterable[CapturedMessage], rows), advance)
    output = OutputFile(path)
    try:
        with output.open() as file:
            written = write_captures(messages, file, form, refused=_left_out)
            to_disk(file)
        output.finish()
    except BaseException:
        output.discard()
        raise
    return written


def _left_out(_message: CapturedMessage, _error: CaptureError) -> None:
    """What the format cannot hold is missing from the count, which is reported."""


def _advanced(messages: Iterable[CapturedMessage], advance: Callable[[int], None]) -> Iterator[CapturedMessage]:
    for message in messages:
        advance(1)
        yield message
