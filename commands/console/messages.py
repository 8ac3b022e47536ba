"""Messages as ``decode`` shows them, in HTML: the roles of its texts become elements that the style colours."""

from __future__ import annotations

import io
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from markupsafe import Markup, escape

from commands.console.source import NotThereError, Query, State
from commands.explain.equivalents.records import MessageView, record_view
from commands.explain.problems import explained
from commands.explain.selection import compile_where
from commands.explain.sentence import dead_letter_sentence, response_sentence, sentence
from commands.replay.step.timeline import Timeline
from commands.replay.step.views import change_lines, state_lines, step_lines
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, CaptureRecord, read_captures
from rfh2.errors import QPubSubError
from rfh2.explain.annotate import TextRole

LONGEST_BODY: Final = 1 << 20
"""Bytes of a message that a page decodes. ``qpubsub browse`` shows longer ones."""

_SHOWN_BYTES: Final = 1_024
# The view makes each control character visible, so that these cannot stand in a text of a message.
_BEGIN, _MIDDLE, _END = "\x01", "\x02", "\x03"
_PAINTED: Final = Markup('<span class="t-{}">{}</span>')
_ROLES: Final = frozenset(str(role) for role in TextRole)


def marked(role: TextRole, text: str) -> str:
    """Paint (``rfh2.explain.annotate``) for ``as_html``."""
    return f"{_BEGIN}{role}{_MIDDLE}{text}{_END}" if text.strip() else text


HOW: Final = MessageView(marked, _SHOWN_BYTES)


def as_html(lines: Iterable[str]) -> Markup:
    """Lines painted by ``marked``, as HTML for a ``pre`` element. Nothing in them is markup."""
    return Markup("\n").join(map(_line, lines))


def _line(line: str) -> Markup:
    first, *painted = line.split(_BEGIN)
    out = [escape(first)]
    for part in painted:
        role, _, rest = part.partition(_MIDDLE)
        text, _, behind = rest.partition(_END)
        assert role in _ROLES
        out.append(_PAINTED.format(role, text) + behind)
    return Markup().join(out)


def shown_message(captured: CapturedMessage, title: str, script: str | None = None) -> dict[str, Any]:
    """One message, decoded. script: MQSC to run before its consequences are shown; None for none of these."""
    return shown_record(CaptureRecord(title, 0, captured, None, 0), script)


def shown_record(record: CaptureRecord, script: str | None) -> dict[str, Any]:
    """One record of a capture. Raises QPubSubError where the script fails."""
    view = record_view(record, HOW, script)
    errors = sum(problem.severity == "error" for problem in view.problems)
    return {
        "html": as_html(view.lines),
        "errors": errors,
        "warnings": len(view.problems) - errors,
        "seq": None if record.message is None else record.message.seq,
    }


def in_one_sentence(captured: CapturedMessage) -> str:
    """What a message is, for a list; "" where it is no command, no response and no dead letter."""
    found = explained(captured)
    letter = dead_letter_sentence(found.partial.message)
    if letter is not None:
        return letter
    if found.command is not None:
        return sentence(found.command, found.partial.message)
    return response_sentence(found.partial.message) or ""


# The box into which a message is pasted: decoded and explained as ``qpubsub decode --explain`` does.

LONGEST_PASTE: Final = 4_000_000
"""Characters that the box takes."""

_MOST_MESSAGES: Final = 20


def decoding(_state: State, query: Query) -> dict[str, Any]:
    """The form, and the messages in what was pasted."""
    text, form = query.text("text", LONGEST_PASTE), query.text("format")
    form = form if form in FORMATS else "auto"
    explain, setup = query.has("explain"), query.text("setup", 100_000)
    shown: list[dict[str, Any]] = []
    problem = ""
    if text.strip():
        script = setup if explain else None
        try:
            stream = io.BytesIO(text.encode("utf-8", "replace"))
            records = read_captures(stream, form, name="pasted")
            shown = [shown_record(record, script) for record in islice(records, _MOST_MESSAGES + 1)]
        except QPubSubError as error:
            problem = str(error)
        if not shown and not problem:
            problem = "No message was found in it. Paste a message in hexadecimal digits, or a part of a capture."
    return {
        "text": text,
        "format": form,
        "formats": ["auto", *FORMATS],
        "explain": explain or not text,
        "setup": setup,
        "messages": shown[:_MOST_MESSAGES],
        "more": len(shown) > _MOST_MESSAGES,
        "most": _MOST_MESSAGES,
        "problem": problem,
    }


# Time travel through a capture: the broker before and after each message, as ``qpubsub inspect`` prints it.

_AROUND: Final = 12
_MOST_LINES: Final = 200


def time_travel(state: State, query: Query) -> dict[str, Any]:
    """One message of the capture with the states around it, and the messages near it."""
    line = state.timeline
    if line is None or not len(line):
        return {"has_capture": line is not None, "of": 0}
    at, problem = _position(line, query)
    step = line.step(at)
    before = state_lines(line.before(at), _MOST_LINES)
    after = state_lines(line.after(at), _MOST_LINES)
    near = [line.facts(n) for n in range(max(0, at - _AROUND), min(len(line), at + _AROUND + 1))]
    return {
        "has_capture": True,
        "at": at,
        "of": len(line),
        "seqs": line.seqs,
        "step": step,
        "near": list(enumerate(near, max(0, at - _AROUND))),
        "lines": step_lines(at, len(line), step),
        "changes": change_lines(step.changes, _MOST_LINES),
        "before": before,
        "after": after,
        "where": query.text("where"),
        "problem": problem,
        "message": shown_message(step.message, f"seq {step.message.seq}"),
    }


def _position(line: Timeline, query: Query) -> tuple[int, str]:
    """The position that is asked for, and what is wrong with the question."""
    at = query.number("at", most=len(line) - 1)
    if query.text("seq"):
        found = line.position_of(query.number("seq", most=1 << 62))
        if found is None:
            raise NotThereError(f"No message of the capture has the number {query.text('seq', 20)}.")
        return found, ""
    if not (query.text("where") and query.has("go")):
        return at, ""
    try:
        where = [compile_where(query.text("where"))]
        stop = line.previous_stop(at, where) if query.text("go") == "back" else line.next_stop(at, where)
    except QPubSubError as error:
        return at, str(error)
    return (at, "There is no such message in that direction.") if stop is None else (stop, "")
