"""A captured message, decoded as far as it goes, with the command in it and everything wrong with either."""

from __future__ import annotations

from typing import Any

from commands.model import Command
from commands.parse import parse
from rfh2.captures import CaptureRecord
from rfh2.errors import QPubSubError
from rfh2.explain.describe import describe, describe_unreadable
from rfh2.explain.form import DecodedMessage
from rfh2.explain.problems import wire_problems
from rfh2.explain.reading import PartialMessage, read_message


def decoded(record: CaptureRecord) -> DecodedMessage:
    """The JSON form of one record of a capture."""
    if record.message is None:
        assert record.problem is not None
        return describe_unreadable(record.source, record.index, record.position, record.problem)
    partial = read_message(record.message)
    command = command_of(partial)
    return describe(partial, record.source, record.index, command_json(command), wire_problems(partial))


def command_of(partial: PartialMessage) -> Command | None:
    """The command that a message carries; None where there is none that can be parsed."""
    try:
        return parse(partial.message)
    except QPubSubError:
        return None


def command_json(command: Command | None) -> dict[str, Any] | None:
    """A command as JSON: its word, and what the program asked for."""
    return None if command is None else {"word": command.word, **command.model_dump(mode="json")}
