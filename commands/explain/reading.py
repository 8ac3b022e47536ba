"""A captured message, decoded as far as possible, with its command and the problems of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commands.explain.command_text import command_text, is_response
from commands.explain.problems import accepted_part, command_problems
from commands.explain.sentence import jms_form
from commands.headers.registry import parse
from commands.model import Command, Publish, PubOpt
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.explain.describe import described
from rfh2.explain.form import Json, Problem
from rfh2.explain.problems import wire_problems
from rfh2.explain.reading import PartialMessage, read_message, salvage


@dataclass(frozen=True, slots=True)
class Explained:
    """One message, all that is known of it."""

    partial: PartialMessage
    command: Command | None
    problems: list[Problem]

    def form(self, source: str, index: int) -> Json:
        """The JSON form. source, index: the file and the record in it."""
        form = described(self.partial, source, index, command_json(self.command), self.problems)
        if self.partial.fault is not None:
            form["salvaged"]["command"] = command_json(readable_command(self.partial))
        entry = None if self.command is not None else jms_form(self.partial)
        return form if entry is None else {**form, "jms_subscription": entry}


def explained(captured: CapturedMessage) -> Explained:
    """All that is known of one captured message; bad bytes are problems, never an error."""
    partial = read_message(captured)
    parsed = _parsed(partial)
    problems = [*wire_problems(partial), *command_problems(partial, parsed)]
    return Explained(partial, parsed if parsed is not None else _marked(partial), problems)


def command_of(partial: PartialMessage) -> Command | None:
    """The command that a message carries; None where there is none that can be parsed.

    A response may carry the command that it answers, but is none. A publication from a queue manager may say that it
    was retained, which no program may: it is shown all the same.
    """
    parsed = _parsed(partial)
    return parsed if parsed is not None else _marked(partial)


def readable_command(partial: PartialMessage) -> Command | None:
    """The command in what can be read of a message that has a fault, for a person: a queue manager refuses it.

    Of a command with tags and options that are refused, the rest.
    """
    message = partial.message if partial.fault is None else salvage(partial).message
    if message is None or (message.rfh2 is None and message.rfh1 is None) or is_response(message):
        return None
    text = command_text(message)
    return None if text is None else accepted_part(text)


def _is_none(partial: PartialMessage) -> bool:
    return is_response(partial.message) or (partial.fault is not None and not partial.headers)


def _parsed(partial: PartialMessage) -> Command | None:
    """What the parser makes of the message, if it can."""
    if _is_none(partial):
        return None
    try:
        return parse(partial.message)
    except QPubSubError:
        return None


def _marked(partial: PartialMessage) -> Command | None:
    """The publication in a message that says that it was retained."""
    text = None if _is_none(partial) else command_text(partial.message)
    if text is None:
        return None
    marks = [pair for pair in text.pairs if (pair.tag, pair.text) == ("PubOpt", PubOpt.IS_RETAINED_PUB)]
    if not marks:
        return None
    try:
        command = parse(text.without(marks))
    except QPubSubError:
        return None
    assert isinstance(command, Publish)
    return command.model_copy(update={"options": (PubOpt.IS_RETAINED_PUB, *command.options)})


def command_json(command: Command | None) -> dict[str, Any] | None:
    """A command as JSON: its word, and what the program asked for."""
    if command is None:
        return None
    fields = command.model_dump(mode="json")
    if fields.get("put", "") is None:
        del fields["put"]  # only a program's MQPUT has it
    return {"word": command.word, **fields}
