"""``qpubsub mqsc``: administer a queue manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

import click

from commands.broker.objects import is_object_name
from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.mqsc.answers import Answer
from commands.mqsc.execute import ScriptTally, echo
from commands.mqsc.script import Statement, lines_of, statements
from commands.options.queue_manager import only_queue_manager, queue_manager_or_none
from commands.options.remote import connected_to, run_mqsc
from commands.options.verb import FILE_OR_DASH, verb
from commands.qmgr.store import QueueManagerStore
from commands.running.mqsc_scripts import runner_of
from commands.terminal.console import Console, ExitCode
from commands.terminal.users import groups_of

_BATCH: Final = 100


@verb(
    "qpubsub mqsc -m QM1 streams.mqsc",
    'echo "DISPLAY TOPIC(*)" | qpubsub mqsc -m QM1 --json',
    prints=True,
    exit_codes={1: "a command failed"},
)
@queue_manager_or_none("for a script of DISPLAY commands ")
@click.argument("script", default="-", type=FILE_OR_DASH, metavar="[SCRIPT|-]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each command.")
@click.pass_obj
def command(console: Console, qmgr: str | None, home: Home, script: Path, as_json: bool) -> ExitCode:
    """Run the MQSC commands in SCRIPT, or on standard input, on queue manager QMGR.

    The output is that of runmqsc. After a command that fails, the next one runs; the last lines say how many failed.
    A change is committed before its answer is printed. You can omit -m if the home has only one queue manager
    and SCRIPT has only DISPLAY commands. With -m mq://..., the command server there runs them.
    """
    lines, batch = _lines(console, script)
    if qmgr is None:
        lines, only_shows = _shows_only(lines, batch)
        if not only_shows:
            raise click.UsageError("Missing option '--qmgr' / '-m'; only DISPLAY commands need none.")
        qmgr = only_queue_manager(click.get_current_context(), home)
    tally = ScriptTally()
    with ExitStack() as stack:
        run: Callable[[list[Statement]], Iterable[tuple[Statement, Answer]]]
        if is_mq_address(qmgr):
            elsewhere = stack.enter_context(connected_to(qmgr, "qpubsub mqsc"))
            name, run = elsewhere.name, partial(run_mqsc, elsewhere)
        else:
            store = stack.enter_context(QueueManagerStore.open(home, qmgr))
            name, run = store.name, runner_of(store, groups_of).run
        if not as_json:
            console.data(f"Starting MQSC for queue manager {name}.")
        script_statements = statements(lines)
        while some := list(islice(script_statements, batch)):
            for statement, answer in run(some):
                tally.count(answer)
                _show_answer(console, statement, answer, as_json)
            console.stdout.flush()
    for line in tally.lines:
        if as_json:
            console.say(line)
        else:
            console.data(line)
    return ExitCode.DONE if tally.ok else ExitCode.PROBLEMS


def _lines(console: Console, script: Path) -> tuple[Iterable[str], int]:
    """The script's lines, and how many commands to commit at a time: at a terminal each one is answered at once."""
    if str(script) == "-" and console.stdin.isatty():
        return (_text(line, "standard input") for line in console.stdin), 1
    try:
        data = console.stdin.read() if str(script) == "-" else script.read_bytes()
    except FileNotFoundError as error:
        if is_object_name(str(script)):
            error.add_note(f"a queue manager is named with -m, unlike with runmqsc: qpubsub mqsc -m {script}")
        raise
    return lines_of(_text(data, "standard input" if str(script) == "-" else str(script))), _BATCH


def _shows_only(lines: Iterable[str], batch: int) -> tuple[Iterable[str], bool]:
    """The lines once more, and whether all their commands are DISPLAY. At a terminal nobody knows that yet."""
    if batch == 1:
        return lines, False
    whole = list(lines)
    words = [statement.text.split(None, 1) for statement in statements(whole)]
    return whole, all(each and each[0].upper() in ("DISPLAY", "DIS") for each in words)


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{source}: it is not UTF-8 at byte {error.start}") from None


def _show_answer(console: Console, statement: Statement, answer: Answer, as_json: bool) -> None:
    if as_json:
        about = {"number": statement.number, "line": statement.line, "command": statement.text}
        console.json(about | answer.as_json())
        return
    for line in chain(echo(statement), answer.printed()):
        console.data(_visible(line))


def _visible(line: str) -> str:
    """A script is somebody's, and what it repeats goes to a terminal: nothing in it is a control sequence there."""
    if line.isprintable():
        return line
    return "".join(character if character.isprintable() or character == "\t" else "." for character in line)
