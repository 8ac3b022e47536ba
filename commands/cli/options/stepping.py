"""What ``inspect`` and ``replay --step`` share: the index of a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from commands.cli.options.captures import STDIN
from commands.cli.options.replays import CaptureReader, ReplayOptions
from commands.replay.step import Block, Timeline, blocks_of
from commands.replay.step.index_file import IndexFile, mark_of
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage

F = Callable[..., Any]


def index_option(function: F) -> F:
    """``--index FILE``: the verb gets *index* (Path or None)."""
    option = click.option(
        "--index",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Keep checkpoints in FILE, so that the capture opens in seconds the next time.",
    )
    return option(function)


@contextmanager
def timeline(console: Console, reader: CaptureReader, options: ReplayOptions, index: Path | None) -> Iterator[Timeline]:
    """The timeline of a capture. index: where it is kept; None for this time only.

    Raises UsageError, StoreError where *index* cannot be used, SnapshotError.
    """

    def made(messages: Iterable[CapturedMessage]) -> Iterator[Block]:
        with reader.progress("messages replayed") as advance:
            for block in blocks_of(messages, options.setup, options.semantics):
                advance(block.head.count)
                yield block

    if index is None:
        opened = reader.in_order(lambda messages: IndexFile.temporary(made(messages)))
    else:
        if not options.files or STDIN in options.files:
            raise click.UsageError("--index is for captures in files, not for standard input")
        mark = mark_of(options.files, options.form, options.setup, options.semantics)
        opened = reader.in_order(lambda messages: IndexFile.of(index, mark, lambda: made(messages), console.say))
    with opened as store:
        yield Timeline(store, options.setup, options.semantics)
