"""The commands that pages print.

A fenced or indented block is a block of commands where a line of it begins, behind ``$`` or not, with a program. With
``$`` before the commands the other lines are what they print, and a line ``...`` stands for any lines. A comment in the
line above the block says what differs:

    <!-- not run: REASON -->       nothing of it is run
    <!-- exits 1: REASON -->       the last command that does not end in 0 ends in 1
    <!-- output: REASON -->        what is printed there is not compared
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROGRAMS = (
    *("qpubsub", "pip", "pip3", "python", "python3", "bash", "mkdir", "chmod", "chgrp", "cat", "export", "cd", "man"),
    *("mosquitto", "mosquitto_sub", "mosquitto_pub", "setmqaut", "runmqsc", "docker", "kubectl", "systemctl"),
    *("sqlite3", "xz", "gcc", "javac"),
)
_COMMAND = re.compile(rf"(?:\$ )?(?:[\w.~/-]*/)?(?:{'|'.join(_PROGRAMS)})(?: |$)|(?:\$ )?echo .*\| qpubsub|\$ |\.ci/")
_MARK = re.compile(r"<!-- (not run|exits (\d+)|output): (.+?) -->")
_SHELLS = ("", "sh", "bash", "shell", "console")


@dataclass(frozen=True, slots=True)
class Block:
    """What can be run together: lines of a shell, or a Python program.

    commands: each with what it is said to print, or None. exits: the code that one of them may end in besides 0.
    """

    page: str
    line: int
    language: str
    commands: tuple[tuple[str, str | None], ...]
    not_run: str | None = None
    exits: int = 0


def blocks(page: Path, name: str) -> Iterator[Block]:
    """The blocks of commands and Python programs of a page, in order."""
    for at, info, lines, above in _code(page.read_text(encoding="utf-8").split("\n")):
        mark = _MARK.fullmatch(above.strip())
        kind, exits, reason = mark.groups() if mark else ("", None, None)
        not_run = reason if kind == "not run" else None
        language = "python" if info == "python" else "sh"
        if language == "python":
            commands: tuple[tuple[str, str | None], ...] = (("\n".join(lines), None),)
        elif info in _SHELLS and "──" not in lines[0] and any(_COMMAND.match(line) for line in lines):
            commands = tuple(_split(lines, compared=kind != "output"))
        else:
            continue
        yield Block(name, at, language, commands, not_run, int(exits or 0))


def joined(lines: list[str]) -> Iterator[str]:
    """Lines of a shell, with those that a backslash continues in one; no empty ones."""
    whole = ""
    for line in lines:
        whole += line
        if line.endswith("\\"):
            whole = whole[:-1].rstrip() + " "
        elif whole.strip():
            yield whole
            whole = ""
        else:
            whole = ""


def _split(lines: list[str], *, compared: bool) -> Iterator[tuple[str, str | None]]:
    if not any(line.startswith("$ ") for line in lines):
        yield from ((line, None) for line in joined(lines) if not line.startswith("#"))
        return
    command, output = None, list[str]()
    for line in joined_commands(lines):
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(output) if output and compared else None
            command, output = line[2:], []
        elif command is not None:
            output.append(line)
    if command is not None:
        yield command, "\n".join(output) if output and compared else None


def joined_commands(lines: list[str]) -> Iterator[str]:
    """The lines, with commands that a backslash continues in one."""
    whole: str | None = None
    for line in lines:
        if whole is None and not (line.startswith("$ ") and line.endswith("\\")):
            yield line
            continue
        whole = line if whole is None else whole[:-1].rstrip() + " " + line.strip()
        if not whole.endswith("\\"):
            yield whole
            whole = None


def _code(lines: list[str]) -> Iterator[tuple[int, str, list[str], str]]:
    """Blocks of code: the number of the first line, the language, the lines, and the line above the block."""
    at = 0
    while at < len(lines):
        line, above = lines[at], lines[at - 1] if at else ""
        if fence := re.match(r"(```+|~~~+)\s*(\S*)", line):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith(fence[1]))
            yield at + 2, fence[2].strip("{}"), lines[at + 1 : end], above
            at = end + 1
        elif line.startswith("    ") and (not above.strip() or _MARK.fullmatch(above.strip())):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            mark = above if above.strip() else next((one for one in lines[at - 2 : at - 1]), "")
            yield at + 1, "", [one[4:] for one in lines[at:end]], mark
            at = end
        else:
            at += 1
