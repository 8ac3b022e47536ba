"""The capture files that a verb reads: ``--format`` and ``[FILE|-]...``, and their records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from rfh2.captures import FORMATS, CaptureRecord, read_captures
from rfh2.errors import CaptureError

F = TypeVar("F", bound=Callable[..., Any])

STDIN: Final = Path("-")


def capture_files(function: F) -> F:
    """``--format`` and files: the verb gets *form* (str) and *files* (tuple of Path)."""
    files = click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True), metavar="[FILE|-]...")
    return format_option(files(function))


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


def records(files: tuple[Path, ...], form: str) -> Iterator[CaptureRecord]:
    """The records of *files*, in order; of stdin where there are none.

    Raises CaptureError for a file that is missing, before any record is given.
    """
    for file in files:
        if file != STDIN and not file.exists():
            raise CaptureError(str(file), None, "no such file or directory")
    return _records(files or (STDIN,), form)


def _records(files: tuple[Path, ...], form: str) -> Iterator[CaptureRecord]:
    for file in files:
        if file == STDIN:
            yield from read_captures(sys.stdin.buffer, form, name="stdin")
        else:
            yield from read_captures(file, form)
