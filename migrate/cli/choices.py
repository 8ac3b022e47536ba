"""Options and functions that both migration verbs share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from migrate.plan import MigrationPlan
from migrate.racf import FILE_NAME, HIGH_LEVEL_QUALIFIER, racf_commands
from migrate.readers import KINDS
from migrate.readers.text import decoded
from rfh2.errors import MigrationError

F = TypeVar("F", bound=Callable[..., Any])

TARGETS: Final = ("embedded", "files")


def sources(function: F) -> F:
    """Files as arguments, and ``--source``: the verb gets *source* and *more*, which together are the sources."""
    option = click.option(
        "--source",
        multiple=True,
        metavar="[KIND=]PATH...",
        help="The same as FILE: a file or a directory with legacy state, or - for standard input. Give KIND if the "
        f"content does not show it: {', '.join(KINDS)}.",
    )
    return option(click.argument("more", nargs=-1, metavar="[[KIND=]FILE|-]...")(function))


def outputs(function: F) -> F:
    """``--target``, ``--existing``, ``--out``, ``--racf``, ``--json``."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object."),
        click.option(
            "--racf",
            metavar="HLQ",
            help="With --out: write RACF commands for a queue manager on z/OS. HLQ is its name, or that of its "
            "queue-sharing group.",
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIRECTORY",
            help="Write scripts, messages, checklist, runbook and report here.",
        ),
        click.option(
            "--existing",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            metavar="SCRIPT",
            help="With --target files: the objects that the queue manager has, as dmpmqcfg or saveqmgr writes them.",
        ),
        click.option(
            "--target",
            type=click.Choice(TARGETS),
            default="embedded",
            show_default=True,
            help="The embedded queue manager, or only files for a queue manager of IBM MQ.",
        ),
    ):
        function = option(function)
    return function


def check_existing(existing: Path | None, target: str) -> None:
    """Raises UsageError if --existing is given for an embedded queue manager, whose objects are known."""
    if existing is not None and target != "files":
        raise click.UsageError("--existing goes with --target files: an embedded queue manager knows its own objects")


def racf_files(plan: MigrationPlan, hlq: str | None) -> dict[str, str]:
    """The file of --racf, by name."""
    return {} if hlq is None else {FILE_NAME: "".join(f"{line}\n" for line in racf_commands(plan, hlq))}


def check_racf(hlq: str | None, out: Path | None) -> None:
    """Raises UsageError if --racf has no --out to write to, or is no high-level qualifier."""
    if hlq is None:
        return
    if out is None:
        raise click.UsageError("--racf needs --out DIRECTORY")
    if HIGH_LEVEL_QUALIFIER.fullmatch(hlq) is None:
        raise click.UsageError(f"--racf {hlq}: a queue manager on z/OS has a name of 1 to 4 capitals and digits")


def script(existing: Path | None) -> str:
    """The text of --existing; "" without it. Raises MigrationError if it cannot be read."""
    if existing is None:
        return ""
    try:
        return decoded(existing.read_bytes())
    except OSError as error:
        raise MigrationError(f"--existing {existing}: {error.strerror or error}; nothing was changed") from error


def trust(function: F) -> F:
    """``--accept-unread``, ``--from-qmgr``: the verb gets *accept_unread* and *from_qmgr*."""
    for option in (
        click.option(
            "--from-qmgr",
            metavar="QMGR",
            help="The queue manager whose state is migrated, if the sources are not those of -m, or hold several.",
        ),
        click.option(
            "--accept-unread",
            is_flag=True,
            help="Migrate even if parts of the sources cannot be read; these parts are lost.",
        ),
    ):
        function = option(function)
    return function


def trust_shown(accept_unread: bool, from_qmgr: str | None) -> list[str]:
    """The two options as the log lists them."""
    return ["--accept-unread"] * accept_unread + ([f"--from-qmgr {from_qmgr}"] if from_qmgr is not None else [])


def cluster(function: F) -> F:
    """``--cluster NAME``: the verb gets *cluster*, a name or None."""
    option = click.option(
        "--cluster", metavar="NAME", help="With --out: write the runbook for moving the topology to this cluster."
    )
    return option(function)


def pairs(option: str, given: tuple[str, ...], form: str) -> dict[str, str]:
    """``NAME=VALUE`` options. Raises UsageError."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{option} {one}: it has the form {form}")
        found[name] = value
    return found


def utc_now() -> datetime:
    """The moment of the migration."""
    return datetime.now(UTC)


def set_aside(path: Path) -> None:
    """Append a number to the name of a file, if it exists, so that a new file does not replace it."""
    if not path.exists():
        return
    number = 1
    while (old := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    path.rename(old)
