"""The content of a response, independent of its header."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rfh2.constants import MQRC_NONE, REASON_NAMES

Tags = tuple[tuple[str, str], ...]
"""Names of properties with their values, as a response repeats them."""


class Completion(StrEnum):
    """How a command ended (guide 6.7.6)."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Warned:
    """One topic for which a command was not carried out; for the others it was (guide 6.7.6)."""

    reason: int
    tags: Tags = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """One response (guide 6.7.6; wire formats 2.6).

    answers: one for an error, one for each warning, none for ok. attributes: of the subscription, where FullResp asks
    for them.
    """

    completion: Completion
    answers: tuple[Warned, ...] = ()
    attributes: Tags = ()

    @property
    def groups(self) -> tuple[Warned, ...]:
        """The answers of the older headers, which also report success; the first has the attributes for FullResp."""
        first, *others = self.answers or (Warned(MQRC_NONE),)
        attributes = tuple(tag for tag in self.attributes if tag not in first.tags)
        return (Warned(first.reason, (*first.tags, *attributes)), *others)

    @property
    def comp_code(self) -> int:
        """MQCC_OK, MQCC_WARNING or MQCC_FAILED."""
        return _COMP_CODES[self.completion]


_COMP_CODES: Final = {Completion.OK: 0, Completion.WARNING: 1, Completion.ERROR: 2}


def reason_text(reason: int) -> str:
    """MQPSReasonText: the name of the reason's constant (wire formats 2.3)."""
    return REASON_NAMES.get(reason, f"MQRC_{reason}")
