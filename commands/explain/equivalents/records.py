"""Records of a capture as ``decode`` shows them: for a person, and as JSON; what cannot be read is said."""

from __future__ import annotations

from dataclasses import dataclass

from commands.explain.reading import Explained, explained
from commands.explain.view import MessageView, problem_lines, view
from rfh2.captures import CaptureRecord
from rfh2.explain.annotate import TextRole
from rfh2.explain.describe import describe_unreadable
from rfh2.explain.form import Json, Problem, json_line
from rfh2.explain.problems import of_record
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
            return RecordView(list(shown), problems)
        heading = how.paint(TextRole.TITLE, visible(f"== {title} =="))
        return RecordView([heading, *problem_lines(problems, how.paint)], problems)
    message = explained(record.message)
    lines = list(view(message.partial, title, message.command, message.problems, how))
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
