"""Time travel through a capture: the broker before and after each message, as ``qpubsub inspect`` prints it."""

from __future__ import annotations

from typing import Any, Final

from commands.console.pages.messages import shown_message
from commands.console.pages.query import NotThereError, Query
from commands.console.reading.source import State
from commands.explain.selection import compile_where
from commands.replay.step import Timeline
from commands.replay.step.views import change_lines, state_lines, step_lines
from rfh2.errors import QPubSubError

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
    return (at, "No such message in that direction.") if stop is None else (stop, "")
