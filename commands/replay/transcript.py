"""A replay in words: each command, its result, and who received what."""

from __future__ import annotations

from collections.abc import Sequence

from commands.broker.outcome import Outcome
from commands.broker.puts import Put, PutKind
from commands.headers.response import Completion
from rfh2.captured import CapturedMessage
from rfh2.constants import REASON_NAMES
from rfh2.errors import QPubSubError
from rfh2.message import Message, decode
from rfh2.terminal_escape import visible

_MOST_TEXT = 48


def transcript_lines(message: CapturedMessage, outcome: Outcome, puts: Sequence[Put]) -> list[str]:
    """The lines about one message: the command, then an indented line for each put."""
    if outcome.completion is None:
        return []
    lines = [f"{message.seq:>4}  {_command(message, outcome)}", *(f"      -> {_put(put)}" for put in puts)]
    lines += [f"      left out for {what}" for what in outcome.lost]
    return [visible(line) for line in lines]


def _command(message: CapturedMessage, outcome: Outcome) -> str:
    command = outcome.command
    if command is None:
        what = "a message without a command" if outcome.undecodable else "a command with a fault"
        return f"{message.user or 'somebody'}: {what}: {outcome.why}"
    user = message.user or "somebody"
    topics = f" {', '.join(command.topics)}" if command.topics else ""
    options = [option.value for option in getattr(command, "options", None) or ()]
    words = f"{user}: {command.word}{topics}" + (f" [{' '.join(options)}]" if options else "")
    if outcome.completion is Completion.OK:
        return words
    reason = outcome.reason or 0
    return f"{words}: {outcome.completion} {reason} {REASON_NAMES.get(reason, '')}".rstrip()


def _put(put: Put) -> str:
    where = put.queue
    if put.kind is PutKind.PUBLICATION:
        return f"{where} receives {put.topic}{_data(put)}"
    if put.kind is PutKind.RESPONSE:
        return f"{where} is answered {put.completion}" + (f" {put.reason}" if put.reason else "")
    reason = put.reason or 0
    return f"{where}: dead letter, {reason} {REASON_NAMES.get(reason, '')}".rstrip()


def _data(put: Put) -> str:
    try:
        message: Message = decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))
    except QPubSubError:
        return ""
    text = message.body_text
    if not message.body:
        return ""
    if text is None or not text.isprintable():
        return f": {len(message.body)} bytes"
    return f": {text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + '...'}"
