"""``qpubsub config``: whether the file of ``run --config`` is valid, before ``run`` is started with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from commands.config.settings import Config, ConfigError, config_of, exposed_secrets
from commands.console.access import console_options
from commands.options.queue_manager import default_home
from commands.options.verb import FILE_THAT_IS, verb_group
from commands.qmgr.store.opening import is_there
from commands.running.bridge import openings
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.errors import StoreError

_ERROR, _WARNING = "error", "warning"
_UNNAMED: Final = "QM1"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong. severity: error or warning. key: dotted; line: in the file, None where it is not known."""

    severity: str
    key: str
    text: str
    line: int | None = None


@verb_group
def command() -> None:
    """Check the TOML file that run, capture, console and others take as --config."""


@command.verb(
    "qpubsub config check bridge.toml",
    "qpubsub config check bridge.toml --json | jq .valid",
    prints=True,
    exit_codes={0: "valid", 1: "there are errors; all of them are named"},
)
@click.argument("file", type=FILE_THAT_IS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def check(console: Console, file: Path, as_json: bool) -> ExitCode:
    """Check the file of run --config: its keys and values, the files and variables that it names, and its addresses.

    It connects to nothing and changes nothing; qpubsub check tries the connections.
    """
    found = list(findings(file))
    errors = sum(finding.severity == _ERROR for finding in found)
    if as_json:
        about = {"file": str(file), "valid": not errors, "findings": [asdict(finding) for finding in found]}
        console.json(about)
    else:
        for finding in found:
            where = f"{file}:{finding.line}" if finding.line else str(file)
            console.data(": ".join(part for part in (where, finding.severity, finding.key, finding.text) if part))
        warnings = len(found) - errors
        console.say(f"{file}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return ExitCode.PROBLEMS if errors else ExitCode.DONE


def findings(path: Path) -> Iterator[Finding]:
    """All that is wrong with the file at *path*."""
    config, faults = config_of(path)
    for fault in faults:
        yield Finding(_ERROR, fault.key, fault.why, fault.line)
    if config is None:
        return
    for key, attempt in _attempts(config):
        try:
            attempt()
        except ConfigError as error:
            yield Finding(_ERROR, key or error.where, error.why)
    yield from _missing_files(config)
    for text in exposed_secrets(config):
        yield Finding(_WARNING, "", text)
    yield from _queue_manager(config)


def _attempts(config: Config) -> Iterator[tuple[str, Callable[[], object]]]:
    """The key, "" if the error names it, and what ``run`` does with it before it connects to anything."""
    home, qmgr = config.home or default_home(), config.run.qmgr or _UNNAMED
    for name, secret in (("queues", config.queues), ("topics", config.topics), ("admin", config.admin)):
        yield f"{name}.password", secret.password
    yield from openings(home, qmgr, config)
    if config.run.console is not None:
        yield "", partial(console_options, config.console, config.run.console, "[run] console")


def _missing_files(config: Config) -> Iterator[Finding]:
    """Files that must be there, and directories for files that ``run`` makes."""
    named = [
        ("topics.ca_file", config.topics.ca_file),
        ("topics.cert_file", config.topics.cert_file),
        ("topics.key_file", config.topics.key_file),
        ("admin.ca_file", config.admin.ca_file),
        ("admin.cert_file", config.admin.cert_file),
        ("admin.key_file", config.admin.key_file),
        ("listener.users_file", config.listener.users_file),
        ("publish_exit.path", config.publish_exit.path),
    ]
    for key, path in named:
        if path is not None and not path.is_file():
            yield Finding(_ERROR, key, f"{path}: there is no such file")
    directories = [("mqsc.directory", config.mqsc.directory)]
    for key, path in (("run.log", config.run.log), ("run.record", config.run.record)):
        directories.append((key, None if path is None else path.parent))
    for key, directory in directories:
        if directory is not None and not directory.is_dir():
            yield Finding(_ERROR, key, f"{directory}: there is no such directory")


def _queue_manager(config: Config) -> Iterator[Finding]:
    if config.run.qmgr is None:
        return
    home = config.home or default_home()
    try:
        found = is_there(home, config.run.qmgr)
    except StoreError as error:
        yield Finding(_ERROR, "store.home" if config.run.home is None else "run.home", str(error))
        return
    if not found:
        how = f"qpubsub create {config.run.qmgr} --home {home}"
        yield Finding(_WARNING, "run.qmgr", f"there is no such queue manager in {home}; make it with: {how}")
