"""``qpubsub passwd``: the passwords of programs that connect to ``run --listen``."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

import click

from commands.config.access import changed_users, password_hash, valid_user
from commands.disk.files import to_disk
from commands.options.verb import FILE, json_option, verb
from commands.terminal.console import Console
from commands.terminal.output_file import OutputFile

_MOST_BYTES: Final = 256
_OWNER_ONLY: Final = 0o600


@verb("qpubsub passwd --users users alice", "pass show mq/alice | qpubsub passwd --users users alice", prints=True)
@click.argument("user")
@click.option(
    "--users",
    type=FILE,
    metavar="FILE",
    help="Change the user's line in this file, or add it, instead of printing it. A new file can be read by you only.",
)
@click.option("--delete", is_flag=True, help="Remove the user from the file. No password is asked for.")
@json_option
@click.pass_obj
def command(console: Console, user: str, users: Path | None, delete: bool, as_json: bool) -> None:
    """Make the line of a users file for USER: the name, and a hash of the password.

    passwd asks for the password twice, and does not show it. If standard input is not a terminal, its first line is the
    password. A
    listener compares the passwords of programs with the file that users_file in the table [listener] of its
    configuration names. It notices a change at once.
    """
    try:
        name = valid_user(user)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="USER") from error
    if delete and users is None:
        raise click.UsageError("--delete needs --users FILE")
    if users is not None and not users.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(users.parent))
    stored = None if delete else password_hash(_password(console, name))
    if users is not None:
        there = _rewrite(users, name, stored)
        if delete and not there:
            raise click.BadParameter(f"{name} is not in {users}", param_hint="USER")
        console.say(f"{users}: {name} {'removed' if delete else 'changed' if there else 'added'}")
    if as_json:
        console.json({"user": name, "hash": stored, "users_file": None if users is None else str(users)})
    elif users is None:
        console.data(f"{name}:{stored}")


def _password(console: Console, user: str) -> str:
    if console.stdin.isatty():
        password: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = console.stdin.readline().decode("utf-8", "replace").rstrip("\r\n")
    if not 0 < len(password.encode()) <= _MOST_BYTES or "\0" in password or "�" in password:
        raise click.UsageError(f"the password must be 1 to {_MOST_BYTES} bytes of UTF-8 text: give it on stdin")
    return password


def _rewrite(path: Path, user: str, stored: str | None) -> bool:
    """Put the user's line into the file, or take it away; whether it was there. Raises OSError."""
    mode, lines = _OWNER_ONLY, []
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding="utf-8").splitlines()
    changed = changed_users(lines, user, stored)
    there = changed_users(lines, user, None) != lines
    if changed != lines:
        output = OutputFile(path)
        with output.open() as file:
            if output.working != path:  # it is a file
                output.working.chmod(mode)
            file.write("".join(f"{line}\n" for line in changed).encode())
            to_disk(file)
        output.finish()
    return there
