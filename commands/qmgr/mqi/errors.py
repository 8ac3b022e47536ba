"""What a call that fails gives: a completion code and a reason, as IBM's interface does."""

from __future__ import annotations

from rfh2.errors import QPubSubError
from rfh2.mqi_constants import MQCC_FAILED


class MqiError(QPubSubError):
    """A call fails with *reason* (MQRC_*). why: one clause for people, for the log."""

    def __init__(self, reason: int, why: str, comp_code: int = MQCC_FAILED) -> None:
        super().__init__(reason, why, comp_code)
        self.reason, self.why, self.comp_code = reason, why, comp_code

    def __str__(self) -> str:
        return f"{self.why} (reason {self.reason})"
