"""Says which queues refused messages that then went to the dead-letter queue: at once, and then a sum a minute.

A queue may refuse thousands of messages a second. A line for each would fill the log, and no line would leave an
operator to find the dead letters by chance.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from commands.broker.puts import PutKind
from commands.qmgr.event_numbers import DEAD_LETTER, RESPONSE_FAILED

_log = logging.getLogger("qpubsub.processor")
_EVERY: Final = timedelta(minutes=1)
# Queues are named by messages: their number must not fill the memory.
_MOST_KNOWN: Final = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that is a dead letter instead. queue: which refused it; reason: why."""

    kind: PutKind
    queue: str
    reason: int | None


@dataclass(slots=True)
class _Known:
    due: datetime
    count: int = 0


class RefusalLog:
    """For one processor."""

    def __init__(self) -> None:
        self._known: dict[Refusal, _Known] = {}

    def committed(self, refusals: Mapping[Refusal, int], now: datetime) -> None:
        """Note the refusals of a unit of work that is committed."""
        for refusal, count in refusals.items():
            known = self._known.get(refusal)
            if known is None:
                if len(self._known) >= _MOST_KNOWN:
                    self.end()
                known = self._known[refusal] = _Known(now)
            known.count += count
        self.flush(now)

    def flush(self, now: datetime) -> None:
        """Log what is due."""
        for refusal, known in list(self._known.items()):
            # The clock may have been set back.
            if known.count and (now >= known.due or known.due - now > _EVERY):
                self._say(refusal, known.count)
                known.due, known.count = now + _EVERY, 0
            elif not known.count and now >= known.due:
                del self._known[refusal]

    def end(self) -> None:
        """Log all that was not logged: the processor ends."""
        for refusal, known in self._known.items():
            if known.count:
                self._say(refusal, known.count)
        self._known.clear()

    @staticmethod
    def _say(refusal: Refusal, count: int) -> None:
        is_response = refusal.kind is PutKind.RESPONSE
        numbers = (RESPONSE_FAILED, DEAD_LETTER) if is_response else (DEAD_LETTER,)
        what = f"{refusal.kind.value}{'' if count == 1 else 's'}"
        about = {"queue": refusal.queue, "reason": refusal.reason, "count": count, "numbers": numbers}
        text = "queue %s refused %d %s with reason %s: put on the dead-letter queue"
        _log.warning(text, refusal.queue, count, what, refusal.reason, extra=about)
