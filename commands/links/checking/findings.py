"""What a check found, one thing at a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was tried.

    subject: what. ok: whether it is as it should be. what: one clause. mend: the lines that mend it, MQSC, setmqaut, a
    configuration or an ACL line; none where only a person can tell.
    """

    subject: str
    ok: bool
    what: str
    mend: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
