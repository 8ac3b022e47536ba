"""``qpubsub generate``: captures of a made-up workload, for benchmarks and for trying things out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import click
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, write_captures
from rfh2.captures.jsonl import clause
from rfh2.errors import CaptureError

_WRITTEN: Final = tuple(entry.name for entry in FORMATS.values() if entry.writer is not None)
_HELP: Final = {
    "seed": "Another seed, another workload.",
    "messages": "How many messages in all.",
    "start": "Time of the first message, ISO 8601.",
    "per_second": "Messages a second of captured time.",
    "qmgrs": "Queue managers.",
    "streams": "Streams, the default one included.",
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


def _workload_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, field in reversed(WorkloadOptions.model_fields.items()):
        function = _option(name, field)(function)
    return function


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind = {int: int, float: float}.get(cast(type, field.annotation), str)
    default = field.default if kind is not str else field.default.isoformat()
    flag = f"--{name.replace('_', '-')}"
    return click.option(flag, name, type=kind, default=default, show_default=True, help=_HELP[name])


@click.command(
    epilog="\b\nExample:\n  qpubsub generate --messages 100000 --output capture.parquet --setup streams.mqsc\n"
    "  qpubsub replay --input capture.parquet --setup streams.mqsc --output puts.jsonl"
)
@click.option(
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    help="The capture; its ending is the format. With --files a directory.",
)
@click.option("--to", "form", type=click.Choice(_WRITTEN), metavar="FORMAT", help=f"{', '.join(_WRITTEN)}.")
@click.option("--files", type=click.IntRange(min=1), help="Write so many files of equal size into a directory.")
@click.option("--setup", type=click.Path(path_type=Path, dir_okay=False), help="Write the MQSC that replay needs.")
@_workload_options
@click.pass_obj
def command(
    console: Console, /, *, target: Path, form: str | None, files: int | None, setup: Path | None, **options: Any
) -> ExitCode:
    """Write a capture of a made-up workload: the same one for the same options, whatever the machine.

    Subscribers register, come and go, ask for what is retained; publications follow, popular topics more often. Shares
    are numbers from 0 to 1.
    """
    try:
        workload = Workload(WorkloadOptions(**options))
    except ValidationError as error:
        raise click.UsageError(clause(error)) from error
    chosen = form or _by_name(target)
    if setup is not None:
        setup.write_text(setup_script(workload.options), encoding="utf-8")
    count = workload.options.messages
    written = 0
    with console.progress("messages written", count) as advance:
        for path, start, end in _pieces(target, chosen, files, count):
            written += _write(workload, path, chosen, start, end, advance)
    console.say(f"{written} messages written to {target}")
    return ExitCode.DONE if written == count else ExitCode.PROBLEMS


def _by_name(target: Path) -> str:
    form = target.suffix.removeprefix(".")
    if form not in _WRITTEN:
        raise click.UsageError(f"--output {target}: its ending is no format; use --to")
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
    messages = _counted(cast(Iterable[CapturedMessage], rows), advance)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            written = write_captures(messages, file, form, refused=_left_out)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return written


def _left_out(_message: CapturedMessage, _error: CaptureError) -> None:
    """What the format cannot hold is missing from the count, which is reported."""


def _counted(messages: Iterable[CapturedMessage], advance: Callable[[int], None]) -> Iterator[CapturedMessage]:
    for message in messages:
        advance(1)
        yield message
