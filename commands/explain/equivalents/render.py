"""A captured message in a dialect: a heading, its notes, its operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from commands.broker.puts import Completion
from commands.explain.equivalents.json_form import to_json
from commands.explain.equivalents.mqi import command_calls, shown, to_mqi
from commands.explain.equivalents.mqsc import to_mqsc
from commands.explain.equivalents.mqsc_text import comment
from commands.explain.equivalents.notes import option_notes, outcome_notes
from commands.explain.equivalents.pcf import to_pcf
from commands.explain.equivalents.traced_operations import Occasion, Scene
from commands.explain.reading import command_json
from commands.explain.sentence import sentence
from streams.operations import Operation
from streams.topic_strings import add_prefix

Dialect = Callable[[Operation, Scene], list[str]]

TEXT: Final[dict[str, Dialect]] = {"mqsc": to_mqsc, "pcf": to_pcf, "mqi": to_mqi}
DIALECTS: Final = (*TEXT, "json")


def render(occasion: Occasion, dialect: str, source: str, index: int) -> Iterator[str]:
    """The lines of one captured message in *dialect*, one of ``DIALECTS``."""
    if dialect == "json":
        yield json.dumps(as_object(occasion, source, index), ensure_ascii=False)
        return
    heading = f"{source}, message {index + 1}"
    if occasion.command is not None:
        heading += f": {sentence(occasion.command, occasion.message)}"
    yield comment(heading)
    for note in notes(occasion, dialect):
        yield comment(note)
    for step in occasion.steps:
        yield from TEXT[dialect](step.operation, step.scene)
    yield from _without_operations(occasion, dialect)


def render_unreadable(why: str, dialect: str, source: str, index: int) -> str:
    """The line for a record of a capture that could not be read."""
    if dialect == "json":
        return json.dumps({"source": source, "index": index, "operations": [], "notes": [why]}, ensure_ascii=False)
    return comment(f"{source}, message {index + 1}: {why}")


def notes(occasion: Occasion, dialect: str) -> list[str]:
    """What is to be said of a message beside its operations."""
    found = list(outcome_notes(occasion))
    if occasion.command is not None and occasion.outcome.completion is not Completion.ERROR:
        found += option_notes(occasion.command, dialect in ("mqi", "json"))
    return found


def as_object(occasion: Occasion, source: str, index: int) -> dict[str, Any]:
    """The JSON form of one captured message: its command, its operations, its notes."""
    outcome = occasion.outcome
    return {
        "source": source,
        "index": index,
        "seq": occasion.captured.seq,
        "command": command_json(occasion.command),
        "completion": None if outcome.completion is None else outcome.completion.value,
        "reason": outcome.reason,
        "operations": [to_json(step.operation) for step in occasion.steps],
        "notes": notes(occasion, "json"),
    }


def _without_operations(occasion: Occasion, dialect: str) -> Iterator[str]:
    """What a command that was carried out without an operation comes to: nothing, or calls of the MQI alone."""
    command = occasion.command
    if command is None or occasion.steps or occasion.outcome.completion in (None, Completion.ERROR):
        return
    found = command_calls(command, [add_prefix(command.stream_name or "", topic) for topic in command.topics])
    if found and dialect == "mqi":
        for call in found:
            yield from shown(call)
    elif found:
        yield comment(f"publishers are not registered: nothing to {'define' if command.word == 'RegPub' else 'delete'}")
    else:
        yield comment("nothing changes")
