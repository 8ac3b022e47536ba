"""``qpubsub translate``: queued commands as modern operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.context import SEMANTICS
from commands.explain.equivalents.guide_tables import OPTIONS, equivalent_reason
from commands.explain.equivalents.mqi import command_calls, shown, to_mqi
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import TraceBroker, TracedMessage, to_json
from commands.explain.problems import command_json
from commands.explain.selection import Choosing, MessageSelection
from commands.explain.sentence import sentence
from commands.headers.response import Completion
from commands.model import Command
from commands.mqsc.equivalents import OperationContext, to_mqsc
from commands.mqsc.script import comment
from commands.options.captures import capture_files, records, selection_options
from commands.options.verb import FILE, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captured import CapturedMessage
from rfh2.constants import reason_text
from streams.operations import Operation
from streams.topic_strings import add_prefix

# A captured message in a dialect: a heading, its notes, its operations.
#
# Notes say for a person what the dialects cannot say of a command: options without an equivalent, refusals.

Dialect = Callable[[Operation, OperationContext], list[str]]

TEXT: Final[dict[str, Dialect]] = {"mqsc": to_mqsc, "pcf": to_pcf, "mqi": to_mqi}
DIALECTS: Final = (*TEXT, "json")


def render(traced: TracedMessage, dialect: str, source: str, index: int) -> Iterator[str]:
    """The lines of one captured message in *dialect*, one of ``DIALECTS``."""
    if dialect == "json":
        yield json.dumps(as_object(traced, source, index), ensure_ascii=False)
        return
    heading = f"{source}, message {index + 1}"
    if traced.command is not None:
        heading += f": {sentence(traced.command, traced.message)}"
    yield comment(heading)
    for note in notes(traced, dialect):
        yield comment(note)
    for one in traced.operations:
        yield from TEXT[dialect](one.operation, one.context)
    yield from _without_operations(traced, dialect)


def render_unreadable(why: str, dialect: str, source: str, index: int) -> str:
    """The line for a record of a capture that could not be read."""
    if dialect == "json":
        return json.dumps({"source": source, "index": index, "operations": [], "notes": [why]}, ensure_ascii=False)
    return comment(f"{source}, message {index + 1}: {why}")


def as_object(traced: TracedMessage, source: str, index: int) -> dict[str, Any]:
    """The JSON form of one captured message: its command, its operations, its notes."""
    outcome = traced.outcome
    return {
        "source": source,
        "index": index,
        "seq": traced.captured.seq,
        "command": command_json(traced.command),
        "completion": None if outcome.completion is None else outcome.completion.value,
        "reason": outcome.reason,
        "operations": [to_json(step.operation) for step in traced.operations],
        "notes": notes(traced, "json"),
    }


def _without_operations(traced: TracedMessage, dialect: str) -> Iterator[str]:
    """The equivalent of a command that needs no operation: nothing, or only MQI calls."""
    command = traced.command
    if command is None or traced.operations or traced.outcome.completion in (None, Completion.ERROR):
        return
    calls = command_calls(command, [add_prefix(command.stream_name or "", topic) for topic in command.topics])
    if calls and dialect == "mqi":
        for call in calls:
            yield from shown(call)
    elif calls:
        yield comment(f"publishers are not registered: nothing to {'define' if command.word == 'RegPub' else 'delete'}")
    else:
        yield comment("nothing changes")


def notes(traced: TracedMessage, dialect: str) -> list[str]:
    """The notes on a message, beside its operations."""
    lines = list(_outcome_notes(traced))
    if traced.command is not None and traced.outcome.completion is not Completion.ERROR:
        lines += _option_notes(traced.command, dialect in ("mqi", "json"))
    return lines


def _option_notes(command: Command, of_mqi: bool) -> Iterator[str]:
    """One note for each option that the command gives and that nothing replaces.

    of_mqi: one too for each that a program gets in another way than by an option of the same meaning.
    """
    table = OPTIONS[command.word]
    for option in command.options or ():
        equivalent = table.get(option.value)
        if equivalent is None or (equivalent.mqi is not None and not (of_mqi and equivalent.note)):
            continue
        instead = "no equivalent" if equivalent.mqi is None else equivalent.mqi
        yield f"{option.value}: {instead}; {equivalent.note}" if equivalent.note else f"{option.value}: {instead}"


def _outcome_notes(traced: TracedMessage) -> Iterator[str]:
    """Why nothing was done, or not all of it, with the reason that a modern program gets in its place."""
    outcome = traced.outcome
    if outcome.completion is None:
        yield "no command for this queue manager"
    elif outcome.completion is not Completion.OK and outcome.reason is not None:
        word = traced.command.word if traced.command is not None else ""
        yield f"{outcome.completion}: {outcome.reason} {reason_text(outcome.reason)}".rstrip()
        if outcome.why:
            yield outcome.why
        instead = equivalent_reason(word, outcome.reason)
        if instead is not None:
            yield f"a program that uses the MQI gets {instead}"


@verb(
    "qpubsub translate capture.jsonl -o subscriptions.mqsc",
    "qpubsub translate --to mqi capture.jsonl",
    "qpubsub translate --json --setup streams.mqsc capture.jsonl | jq -c '.operations[]'",
    prints=True,
    exit_codes={1: "a message could not be read, or its command failed"},
)
@click.option("--to", type=click.Choice(DIALECTS), default="mqsc", show_default=True, help="The dialect.")
@click.option("--json", "to", flag_value="json", help="The same as --to json.")
@click.option("--setup", type=FILE, metavar="SCRIPT", help="Run this MQSC first, to define streams.")
@click.option(
    "--semantics",
    type=click.Choice(SEMANTICS),
    default="v7",
    show_default=True,
    help="The version.",
)
@selection_options("Show only")
@capture_files
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    to: str,
    setup: Path | None,
    semantics: str,
    selection: MessageSelection,
    form: str,
    files: tuple[Path, ...],
) -> ExitCode:
    """Show what replaces the queued commands in each FILE, or on standard input (section 7.2 of IBM's guide).

    The commands run in order on a queue manager in memory. So a second RegSub alters the subscription of the first
    one, and a DeregSub deletes it. mqsc prints commands for runmqsc, pcf prints messages for a command server with
    their bytes, mqi prints the calls of a rewritten program, json prints the operations with all their attributes.
    If a dialect cannot express an operation, a comment says so: a line that begins with an asterisk. All commands run;
    --where and the like choose whose operations are shown.
    """
    tracers: dict[str, TraceBroker] = {}
    script = "" if setup is None else setup.read_text(encoding="utf-8")
    messages = problems = 0
    choosing = Choosing(selection)
    for record in records(console, files, form):
        if choosing.is_over:
            break
        if record.message is not None and not choosing.chooses(record.message):
            _tracer(tracers, record.message, script, semantics).trace(record.message)
            continue
        messages += 1
        if record.message is None:
            problems += 1
            console.warn(str(record.problem))
            console.data(render_unreadable(str(record.problem), to, record.source, record.index))
            continue
        traced = _tracer(tracers, record.message, script, semantics).trace(record.message)
        problems += traced.outcome.completion is Completion.ERROR
        for line in render(traced, to, record.source, record.index):
            console.data(line)
    console.say(f"{counted(messages, 'message')}, {problems:,} refused or not readable")
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


def _tracer(tracers: dict[str, TraceBroker], message: CapturedMessage, script: str, semantics: str) -> TraceBroker:
    """The broker of the message's queue manager."""
    qmgr = message.qmgr or "QM1"
    if qmgr not in tracers:
        tracers[qmgr] = TraceBroker(qmgr, script, semantics)
    return tracers[qmgr]
