"""What is wrong with a message on the wire, with stable codes (docs/problems.md)."""

from __future__ import annotations

from collections.abc import Iterator

from rfh2.errors import DecodeError
from rfh2.explain.form import Problem, Severity
from rfh2.explain.reading import PartialMessage
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


def wire_problems(partial: PartialMessage) -> list[Problem]:
    """Everything wrong with the bytes of a message, part by part; what a command means is not looked at."""
    return list(_problems(partial))


def of_error(error: DecodeError, severity: Severity = "error") -> Problem:
    """The problem that a decoding error is."""
    return Problem(
        code=error.code,
        severity=severity,
        offset=error.offset,
        message=f"{error.header}: {error.why}",
        part="mqmd" if error.header == "MQMD" else "body",
        reason=error.reason,
    )


def _problems(partial: PartialMessage) -> Iterator[Problem]:
    if partial.mqmd_fault is not None:
        yield of_error(partial.mqmd_fault)
    for located in partial.headers:
        header = located.header
        if isinstance(header, Rfh2):
            for folder in header.folders:
                try:
                    folder.values()
                except DecodeError as error:
                    yield of_error(error, "error" if folder.name in ("psc", "pscr", "") else "warning")
        elif isinstance(header, Rfh1):
            try:
                header.pairs()
            except DecodeError as error:
                yield of_error(error)
    if partial.fault is not None:
        yield of_error(partial.fault)
