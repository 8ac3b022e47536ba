"""A captured message in a dialect: a heading, its notes, its operations.

Notes say for a person what the dialects cannot say of a command: options without an equivalent, refusals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from commands.explain.equivalents.guide_tables import OPTIONS, equivalent_reason
from commands.explain.equivalents.mqi import command_calls, shown, to_mqi
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import TracedMessage, to_json
from commands.explain.reading import command_json
from commands.explain.sentence import sentence
from commands.headers.response import Completion
from commands.model import Command
from commands.mqsc.equivalents import OperationContext, to_mqsc
from commands.mqsc.script import comment
from rfh2.reasons import reason_text
from streams.operations import Operation
from streams.topic_strings import add_prefix

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
