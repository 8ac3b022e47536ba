"""Messages of a capture, numbered, and each of them once: also those that come again because a commit is in doubt.

Messages are kept before they leave their queues. Where nobody knows whether the queue manager let them go, they may
come again: then they are known, and not kept twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rfh2.captured import CapturedMessage
from rfh2.layouts import MQMD1

MOST_IN_DOUBT: Final = 500
"""So many messages are committed at once at most."""

_BACKOUT_COUNT: Final = 2 * MQMD1.offset("BackoutCount")
"""Where it begins in the hexadecimal MQMD."""


class CapturedOnce:
    """What a capture has kept. seq: of the last message.

    unsure: how many were in doubt, and nobody has looked for since. Call ``new``, keep what it gives, then ``kept``.
    """

    def __init__(self) -> None:
        self.seq = self.unsure = 0
        # Messages that may come again, and how often.
        self._in_doubt: Counter[bytes] = Counter()
        self._last: list[bytes] = []
        self._known: Counter[bytes] = Counter()
        self._next_seq = 0

    def may_come_again(self, messages: Iterable[CapturedMessage]) -> None:
        """An earlier process kept these, and nobody knows whether they left their queues."""
        self._in_doubt.update(map(_mark, messages))

    def new(self, messages: Sequence[CapturedMessage]) -> list[CapturedMessage]:
        """Those of *messages* that are not kept yet, numbered."""
        self._last = [_mark(message) for message in messages]
        self._known = Counter(self._last) & self._in_doubt
        left, self._next_seq, found = self._known.copy(), self.seq, []
        for mark, message in zip(self._last, messages, strict=True):
            if left[mark]:
                left[mark] -= 1
                continue
            self._next_seq += 1
            found.append(message.model_copy(update={"seq": self._next_seq}))
        return found

    def kept(self) -> None:
        """What ``new`` gave is kept."""
        self._in_doubt -= self._known
        self.seq = self._next_seq

    def doubt(self) -> None:
        """Nobody knows whether what was kept last has left its queues: it may come again."""
        self._in_doubt.update(self._last)
        self.unsure = len(self._last)

    def knows(self, messages: Sequence[CapturedMessage]) -> bool:
        """Whether one of *messages* has come again."""
        return any(_mark(message) in self._in_doubt for message in messages)


def _mark(message: CapturedMessage) -> bytes:
    """The same for a message that was backed out and is got again, and for no other one."""
    md = message.md_hex or ""
    parts = (message.queue, md[:_BACKOUT_COUNT], md[_BACKOUT_COUNT + 8 :], message.body_hex)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).digest()
