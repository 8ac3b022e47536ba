"""The view of one message for a person: where it is from, what it asks for, its chain, its fields, its problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from commands.explain.reading import readable_command
from commands.explain.sentence import dead_letter_sentence, jms_sentence, response_sentence, sentence
from commands.model import Command
from rfh2.captured import CapturedMessage, iso
from rfh2.explain.annotate import Paint, TextRole, annotate, chain, layout_lines
from rfh2.explain.form import Problem
from rfh2.explain.reading import PartialMessage
from rfh2.explain.salvage import salvage
from rfh2.terminal_escape import visible


@dataclass(frozen=True, slots=True)
class MessageView:
    """How a message is shown. body_limit: bytes of the body, None for all. brief: a summary without the fields."""

    paint: Paint
    body_limit: int | None = 256
    brief: bool = False


def view(
    partial: PartialMessage, title: str, command: Command | None, problems: list[Problem], how: MessageView
) -> Iterator[str]:
    """The lines of the view of one message."""
    paint = how.paint
    yield paint(TextRole.TITLE, f"== {visible(title)} ==")
    if where := origin(partial.captured):
        yield visible(where)
    if (letter := dead_letter_sentence(partial.message)) is not None:
        yield paint(TextRole.VALUE, visible(letter))
    if command is not None:
        yield paint(TextRole.VALUE, visible(sentence(command, partial.message)))
    elif (readable := readable_command(partial)) is not None:
        whole = sentence(readable, salvage(partial).message or partial.message)
        how_far = "Without what is refused" if partial.fault is None else "As far as it can be read"
        yield paint(TextRole.VALUE, visible(f"{how_far}: {whole}"))
    elif (said := response_sentence(partial.message)) is not None:
        yield paint(TextRole.VALUE, visible(said))
    elif (record := jms_sentence(partial)) is not None:
        yield paint(TextRole.VALUE, visible(record))
    yield visible(chain(partial))
    if not how.brief:
        yield from layout_lines(annotate(partial, how.body_limit), paint)
    if problems:
        yield ""
        yield from problem_lines(problems, paint)


def origin(captured: CapturedMessage) -> str:
    """Where and when a message was captured; empty where the capture does not say."""
    where = [f"on {captured.queue}"] if captured.queue else []
    where += [f"queue manager {captured.qmgr}"] if captured.qmgr else []
    where += [iso(captured.time)] if captured.time is not None else []
    where += [f"user {captured.user}"] if captured.user else []
    return ", ".join(where)


def problem_lines(problems: list[Problem], paint: Paint) -> Iterator[str]:
    """One line a problem."""
    for problem in problems:
        role = TextRole.ERROR if problem.severity == "error" else TextRole.WARNING
        where = f" at MQMD byte {problem.offset}" if problem.part == "mqmd" else f" at byte {problem.offset}"
        if problem.code == "unreadable-record":
            where = ""  # the message says where: not every capture counts in bytes
        yield f"{paint(role, problem.severity)} {problem.code}{where}: {visible(problem.message)}"
