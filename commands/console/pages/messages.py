"""Messages as ``decode`` shows them, in HTML: the roles of its texts become elements that the style colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from markupsafe import Markup, escape

from commands.explain.equivalents.records import record_view
from commands.explain.reading import explained
from commands.explain.sentence import dead_letter_sentence, response_sentence, sentence
from commands.explain.view import MessageView
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
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
