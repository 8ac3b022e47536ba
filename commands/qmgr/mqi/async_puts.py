"""What became of puts whose programs do not wait for the answer: MQSTAT tells it (IBM's description of MQSTS)."""

from __future__ import annotations

from dataclasses import dataclass

from rfh2.mqi_constants import MQCC_FAILED


@dataclass(slots=True)
class AsyncPuts:
    """Those of one program since it last asked. comp_code, reason, object_type, name: of the first that failed."""

    done: int = 0
    failed: int = 0
    comp_code: int = 0
    reason: int = 0
    object_type: int = 0
    name: str = ""

    def fail(self, reason: int, object_type: int, name: str) -> None:
        """A put to the object of that type and name has failed."""
        self.failed += 1
        if not self.reason:
            self.comp_code, self.reason = MQCC_FAILED, reason
            self.object_type, self.name = object_type, name
