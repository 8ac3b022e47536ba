"""The topics that a ClearRetained is about: administrators and programs clear one topic at a time."""

from __future__ import annotations

from typing import Final

from commands.explain.equivalents.traced_operations import OperationContext
from streams.char_wildcards import has_char_wildcards
from streams.operations import ClearRetained
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_wildcards import has_topic_wildcards

BLANK_TOPIC: Final = "a topic string that begins with a blank counts as none (guide 2.5.2)"


def wildcards_note(operation: ClearRetained, topics: tuple[str, ...]) -> str:
    """What is said where wildcards stood for *topics*."""
    count = "one topic" if len(topics) == 1 else f"{len(topics) or 'no'} topics"
    return f"wildcards cannot be given; '{operation.topic_string}' stood for {count} with something retained"


def topics_cleared(operation: ClearRetained, context: OperationContext) -> tuple[tuple[str, ...], bool]:
    """The topic strings to clear, and whether they come from wildcards.

    Wildcards stand for the topics that had a retained publication when the command came.
    """
    topic = operation.topic_string
    wild = has_topic_wildcards(topic) if operation.wildcard is WildcardScheme.TOPIC else has_char_wildcards(topic)
    if wild:
        return context.cleared, True
    return (parse_pattern(topic, operation.wildcard).literal_topic,), False
