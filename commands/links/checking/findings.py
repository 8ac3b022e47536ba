"""The results of a check: one finding for each test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one test.

    subject: what was tested. ok: whether the test succeeded. what: the result, one clause. mend: the lines that correct
    it: MQSC, setmqaut, a configuration or an ACL line; none where only a person can decide.
    """

    subject: str
    ok: bool
    what: str
    mend: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
