"""A captured message in a dialect: a heading, its notes, its operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from commands.explain.equivalents.json_form import to_json
from commands.explain.equivalents.mqi import command_calls, shown, to_mqi
from commands.explain.equivalents.notes import notes
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import TracedMessage
from commands.explain.reading import command_json
from commands.explain.sentence import sentence
from commands.headers.response import Completion
from commands.mqsc.equivalents import OperationContext, to_mqsc
from commands.mqsc.script import comment
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
