"""Explains a capture in this process: message after message, in the order of ``seq``, for each queue manager."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from commands.broker.core import EPOCH, Arrival
from commands.explain.why import Asked, Explainer, Reason, Verdict
from commands.mqsc.broker import Broker
from commands.replay.local import DEFAULT_QMGR, OutOfOrderError
from rfh2.captured import CapturedMessage

HELD_ANSWERS: Final = 2_000
"""So many answers are held back: a dead letter among the next messages may show that one of them is wrong."""


@dataclass(slots=True)
class _QueueManager:
    explainer: Explainer
    now: datetime = EPOCH


class LocalWhy:
    """Explains captured messages. setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    def __init__(self, setup: str = "", semantics: str = "v7", asked: Asked | None = None) -> None:
        self._setup, self._semantics = setup, semantics
        self._asked = Asked() if asked is None else asked
        self._qmgrs: dict[str, _QueueManager] = {}
        self._held: deque[Verdict] = deque()
        self._last = -1
        self._answered = False

    def answers(self, messages: Iterable[CapturedMessage]) -> Iterator[Verdict]:
        """All answers about *messages*, which are in the order of ``seq``. Raises what ``take`` does."""
        for message in messages:
            yield from self.take(message)
        yield from self.end()

    def take(self, message: CapturedMessage) -> Iterator[Verdict]:
        """Take in one message; the answers that are final now.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        if message.seq < self._last:
            raise OutOfOrderError(f"seq {message.seq} comes after seq {self._last}")
        self._last = message.seq
        known = self._queue_manager(message.qmgr or DEFAULT_QMGR)
        # A message without a time comes when the last one came.
        known.now = message.time if message.time is not None else known.now
        arrival = Arrival(message.seq, known.now, message.queue, message.md, message.body, message.user)
        return self._final(known.explainer.take(arrival), HELD_ANSWERS)

    def end(self) -> Iterator[Verdict]:
        """The answers that are left when all messages were taken."""
        if not self._qmgrs:
            self._queue_manager(DEFAULT_QMGR)
        for known in self._qmgrs.values():
            yield from self._final(known.explainer.end(), HELD_ANSWERS)
        yield from self._final([], 0)
        if not self._answered and not self._asked.is_all:
            yield self._nothing_found()

    def _queue_manager(self, qmgr: str) -> _QueueManager:
        known = self._qmgrs.get(qmgr)
        if known is None:
            broker = Broker.of_capture(qmgr, self._setup, self._semantics)
            known = self._qmgrs[qmgr] = _QueueManager(Explainer(broker, self._asked))
        return known

    def _final(self, verdicts: Iterable[Verdict], held: int) -> Iterator[Verdict]:
        waiting = self._held
        for verdict in verdicts:
            if not (verdict.amends and self._amend(verdict)):
                waiting.append(verdict)
        final = []
        while len(waiting) > held:
            final.append(waiting.popleft())
        self._answered = self._answered or bool(final)
        return iter(final)

    def _amend(self, verdict: Verdict) -> bool:
        """Correct the last answer that said of the same queue and topic that it was delivered; whether there is one."""
        for at in range(len(self._held) - 1, -1, -1):
            one = self._held[at]
            if one.delivered and (one.queue, one.topic) == (verdict.queue, verdict.topic):
                self._held[at] = replace(one, delivered=False, reason=verdict.reason, say=verdict.say)
                return True
        return False

    def _nothing_found(self) -> Verdict:
        """The answer to a question that no message of the capture is about."""
        asked = self._asked
        queues = sorted({queue for known in self._qmgrs.values() for queue in known.explainer.queues})
        published = any(known.explainer.published for known in self._qmgrs.values())
        if asked.names_publication and not published:
            what = f"on {asked.topic!r}" if asked.topic is not None else f"by message {asked.seq}"
            why = f"nothing was published {what}"
        else:
            why = "no subscription was registered" + ("" if asked.queue is None else f" for queue {asked.queue}")
            why += "" if asked.sub is None else f" with the name {asked.sub}"
            near = [] if asked.queue is None else get_close_matches(asked.queue, queues, n=3)
            why += f"; similar queues: {', '.join(near)}" if near and asked.queue not in near else ""
        return Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, Reason.NO_MATCH, why)
