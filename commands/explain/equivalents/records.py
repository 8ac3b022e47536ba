"""Records of a capture as ``decode`` shows them: for a person, and as JSON; what cannot be read is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from commands.explain.problems import Explained, explained, readable_command
from commands.explain.sentence import dead_letter_sentence, jms_sentence, response_sentence, sentence
from commands.model import Command
from rfh2.captured import CapturedMessage, iso
from rfh2.captures import CaptureRecord
from rfh2.explain.annotate import Paint, TextRole, annotate, chain, layout_lines
from rfh2.explain.describe import describe_unreadable
from rfh2.explain.form import Json, Problem, json_line
from rfh2.explain.problems import of_record
from rfh2.explain.reading import PartialMessage, salvage
from rfh2.terminal_escape import visible


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record for a person. problems: those that count."""

    lines: list[str]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class RecordJson:
    """A record as one line of JSON in UTF-8, without the line's end. problems: those that count."""

    line: bytes
    problems: list[Problem]


def record_json(record: CaptureRecord, script: str | None) -> RecordJson:
    """A record as JSON. script: MQSC that ``--explain`` runs first; None for no consequences.

    Raises QPubSubError where the script fails.
    """
    if record.message is None:
        problem = _unreadable(record)
        return RecordJson(json_line(_unreadable_form(record, problem)), [problem])
    message = explained(record.message)
    form = message.form(record.source, record.index)
    if script is not None:
        from commands.explain.equivalents.consequences import consequence_json, consequences  # noqa: PLC0415 - slow

        form["explain"] = consequence_json(consequences(record.message, script))
    return RecordJson(json_line(form), message.problems)


def record_view(record: CaptureRecord, how: MessageView, script: str | None) -> RecordView:
    """A record in lines. script: as ``record_json`` says. Raises QPubSubError where the script fails."""
    title = f"{record.source}, message {record.index + 1}"
    if record.message is None:
        problems = [_unreadable(record)]
        if record.partial is not None:
            # Its own problems come from what is missing, for the most part: they are shown, and not counted.
            part = explained(record.partial)
            shown = view(part.partial, f"{title}, incomplete", part.command, [*problems, *part.problems], how)
            return RecordView(shown, problems)
        heading = how.paint(TextRole.TITLE, visible(f"== {title} =="))
        return RecordView([heading, *problem_lines(problems, how.paint)], problems)
    message = explained(record.message)
    lines = view(message.partial, title, message.command, message.problems, how)
    if script is not None:
        from commands.explain.equivalents.consequences import consequence_lines, consequences  # noqa: PLC0415 - slow

        lines += ["", *consequence_lines(consequences(record.message, script), set_up=bool(script))]
    return RecordView(lines, message.problems)


def _unreadable_form(record: CaptureRecord, problem: Problem) -> Json:
    if record.partial is None:
        return describe_unreadable(record.source, record.index, problem)
    part = explained(record.partial)
    shown = Explained(part.partial, part.command, [problem, *part.problems])
    return {**shown.form(record.source, record.index), "incomplete": True}


def _unreadable(record: CaptureRecord) -> Problem:
    assert record.problem is not None
    return of_record(record.position, record.problem)


# The view of one message for a person: where it is from, what it asks for, its chain, its fields, its problems.


@dataclass(frozen=True, slots=True)
class MessageView:
    """How a message is shown. body_limit: bytes of the body, None for all. brief: a summary without the fields."""

    paint: Paint
    body_limit: int | None = 256
    brief: bool = False


def view(
    partial: PartialMessage, title: str, command: Command | None, problems: list[Problem], how: MessageView
) -> list[str]:
    """The lines of the view of one message."""
    paint = how.paint
    lines = [paint(TextRole.TITLE, f"== {visible(title)} ==")]
    if where := origin(partial.captured):
        lines.append(visible(where))
    if (letter := dead_letter_sentence(partial.message)) is not None:
        lines.append(paint(TextRole.VALUE, visible(letter)))
    if command is not None:
        lines.append(paint(TextRole.VALUE, visible(sentence(command, partial.message))))
    elif (readable := readable_command(partial)) is not None:
        whole = sentence(readable, salvage(partial).message or partial.message)
        how_far = "Without what is refused" if partial.fault is None else "As far as it can be read"
        lines.append(paint(TextRole.VALUE, visible(f"{how_far}: {whole}")))
    elif (said := response_sentence(partial.message)) is not None:
        lines.append(paint(TextRole.VALUE, visible(said)))
    elif (record := jms_sentence(partial)) is not None:
        lines.append(paint(TextRole.VALUE, visible(record)))
    lines.append(visible(chain(partial)))
    if not how.brief:
        lines += layout_lines(annotate(partial, how.body_limit), paint)
    if problems:
        lines += ["", *problem_lines(problems, paint)]
    return lines


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
