"""``qpubsub demo``: what the program does, shown on captures that come with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree
from typing import Final

import click

from commands.options.verb import DIRECTORY, verb
from commands.terminal.console import Console, ExitCode

SHOWN: Final = (
    ("decode", "capture.dat"),
    ("replay", "capture.jsonl", "--output", "puts.jsonl", "--transcript"),
)
"""The commands that the demo runs, without ``qpubsub``."""


@verb(
    "qpubsub demo",
    "qpubsub demo --copy first-hour",
    exit_codes={2: "the directory exists and is not empty, or it cannot be written"},
)
@click.option(
    "--copy",
    "directory",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="Run nothing. Copy the captures, scripts and legacy states of the help pages' examples to DIRECTORY.",
)
@click.pass_context
def command(ctx: click.Context, directory: Path | None) -> ExitCode:
    """Decode a real message, then replay the football results service of IBM's samples.

    The captures come with the program. The demo needs no queue manager and writes only to a temporary directory, which
    it removes.
    """
    console = ctx.ensure_object(Console)
    if directory is not None:
        _copy(directory)
        console.say(f"The files of the examples are in {directory}; README.md there lists them.")
        return ExitCode.DONE
    verbs = ctx.parent.command if ctx.parent is not None else None
    assert isinstance(verbs, click.Group)
    with demo_files() as shipped, tempfile.TemporaryDirectory() as scratch:
        work = copytree(shipped, Path(scratch) / "demo")
        with chdir(work):
            for name, *arguments in SHOWN:
                console.data(f"$ qpubsub {' '.join((name, *arguments))}")
                shown = verbs.get_command(ctx, name)
                assert shown is not None
                shown.main(arguments, f"qpubsub {name}", standalone_mode=False, obj=console, parent=ctx)
                console.data("")
    console.say(
        "Two commands fail, as on a queue manager: 3, because no score has been published yet, and 26, because the "
        "scoreboard subscribed to '.../#' and deregisters '.../*', which it never registered."
    )
    console.say("Next: qpubsub demo --copy DIRECTORY writes these captures and more; every VERB --help has examples.")
    return ExitCode.DONE


@contextmanager
def demo_files() -> Iterator[Path]:
    """The directory of the files that come with the program, on disk for as long as this is entered."""
    with as_file(files("commands.cli") / "demo_files") as directory:
        yield directory


def _copy(directory: Path) -> None:
    if directory.is_dir() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} exists and is not empty: name a directory that does not exist yet")
    with demo_files() as shipped:
        copytree(shipped, directory, dirs_exist_ok=True)
