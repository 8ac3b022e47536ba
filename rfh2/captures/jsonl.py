"""JSON Lines: one captured message a line, the form that every other format is turned into."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from pydantic import ValidationError

from rfh2.captured import CapturedMessage
from rfh2.captures.record import Item, ReadingPosition, Refusal, numbered_lines

# A line written by hand may leave out what the other formats have no place for either.
_OPTIONAL = frozenset({("seq",), ("queue",)})


def read_jsonl(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each line's message; unknown keys are ignored, empty lines skipped, a missing ``seq`` or ``queue`` filled in."""
    for number, line in numbered_lines(stream):
        if line is None:
            yield number, reading.problem(number, "the line is longer than any message can be", "line")
        elif line and not line.isspace():
            try:
                message = CapturedMessage.model_validate_json(line)
            except ValidationError as error:
                completed = _completed(line, error, reading)
                if completed is None:
                    yield number, reading.problem(number, clause(error), "line")
                    continue
                message = completed
            reading.numbering.saw(message.seq)
            yield number, message


def write_jsonl(messages: Iterable[CapturedMessage], target: BinaryIO, _refused: Refusal) -> int:
    """Write one line a message; returns how many."""
    count = 0
    for message in messages:
        target.write(message.model_dump_json().encode("utf-8") + b"\n")
        count += 1
    return count


def _completed(line: bytes, error: ValidationError, reading: ReadingPosition) -> CapturedMessage | None:
    if not all(e["type"] == "missing" and e["loc"] in _OPTIONAL for e in error.errors(include_url=False)):
        return None
    given = json.loads(line)
    given.setdefault("queue", "")
    if "seq" not in given:
        given["seq"] = reading.numbering.take()
    return CapturedMessage.model_validate(given)


def clause(error: ValidationError) -> str:
    """What *error* says in one line, without the data: a message's bytes have no business in a log."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(": ".join((*(str(part) for part in e["loc"]), _message(e["msg"]))) for e in found)


def _message(text: str) -> str:
    return text[:1].lower() + text[1:]
