"""What the dialects cannot say of a command, as notes for a person: options without an equivalent, refusals."""

from __future__ import annotations

from collections.abc import Iterator

from commands.explain.equivalents.guide_tables import OPTIONS, equivalent_reason
from commands.explain.equivalents.traced_operations import TracedMessage
from commands.headers.response import Completion
from commands.model import Command
from rfh2.explain.reasons import reason_text


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
