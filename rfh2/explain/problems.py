"""The problems of a message on the wire: all that can be found without knowing what a command means."""

from __future__ import annotations

from collections.abc import Iterator

from rfh2.errors import CaptureError, DecodeError
from rfh2.explain.body_problems import body_problems
from rfh2.explain.codes import CODES, Part, problem
from rfh2.explain.field_problems import descriptor_problems, header_problems
from rfh2.explain.folder_problems import folder_problems, string_problems
from rfh2.explain.form import Problem
from rfh2.explain.reading import PartialMessage
from rfh2.explain.salvage import Salvaged, salvage
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


def wire_problems(partial: PartialMessage) -> list[Problem]:
    """Everything wrong with the bytes of a message: descriptor, headers in their order, body."""
    return list(_problems(partial))


def of_error(error: DecodeError) -> Problem:
    """The problem for a decoding error."""
    code = error.code if error.code in CODES else "malformed-header"
    part: Part = "mqmd" if error.header == "MQMD" else "body"
    return problem(code, error.offset, f"{error.header}: {error.why}", part, error.reason)


def of_record(position: int, error: CaptureError) -> Problem:
    """The problem for a record of a capture that cannot become a message; position: where the record begins."""
    return problem("unreadable-record", position, str(error))


def _problems(partial: PartialMessage) -> Iterator[Problem]:
    if partial.mqmd_fault is not None:
        yield of_error(partial.mqmd_fault)
    else:
        yield from descriptor_problems(partial)
    for located in partial.headers:
        yield from header_problems(located, partial)
        if isinstance(located.header, Rfh2):
            yield from folder_problems(located.header)
        elif isinstance(located.header, Rfh1):
            yield from string_problems(located.header)
    if partial.fault is not None:
        # Offsets of an MQMD that is embedded in a header count with the rest.
        found = of_error(partial.fault)
        yield found.model_copy(update={"part": "body"})
        yield from _behind_the_fault(partial)
    else:
        yield from body_problems(partial)


def _behind_the_fault(partial: PartialMessage) -> Iterator[Problem]:
    """The problems of what can be read all the same."""
    first = True
    for part in salvage(partial).parts:
        if isinstance(part, Salvaged):
            if not first:
                yield of_error(part.fault).model_copy(update={"part": "body"})
            first = False
            if part.rfh2 is not None:
                yield from folder_problems(part.rfh2)
        elif isinstance(part.header, Rfh2):
            yield from folder_problems(part.header)
        elif isinstance(part.header, Rfh1):
            yield from string_problems(part.header)
