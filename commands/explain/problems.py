"""What is wrong with a message as a command."""

from __future__ import annotations

from rfh2.explain.form import Problem
from rfh2.explain.reading import PartialMessage


def command_problems(partial: PartialMessage) -> list[Problem]:
    """Everything for which a queue manager would refuse the command, or wonder about it."""
    return []
