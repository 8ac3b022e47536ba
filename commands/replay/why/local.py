"""Explains a capture in this process: message after message, in the order of ``seq``, for each queue manager."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from commands.broker.core import EPOCH, Arrival
from commands.explain.selection import EVERYTHING, Choosing, MessageSelection
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
    """Explains captured messages.

    setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``. selection: the messages that the
    question is about; the others are processed too.
    """

    def __init__(
        self,
        setup: str = "",
        semantics: str = "v7",
        asked: Asked | None = None,
        selection: MessageSelection = EVERYTHING,
    ) -> None:
        self._setup, self._semantics = setup, semantics
        self._asked = Asked() if asked is None else asked
        self._is_whole, self._choosing = selection.is_all, Choosing(selection)
        self._qmgrs: dict[str, _QueueManager] = {}
        self._held: deque[Verdict] = deque()
        # Those of them that are asked for.
        self._asked_held = 0
        self._last = -1
        self._answered = False

    @property
    def is_over(self) -> bool:
        """Whether no later message changes an answer: the limit is reached, and no answer is held back."""
        return self._choosing.is_over and not self._asked_held

    def answers(self, messages: Iterable[CapturedMessage]) -> Iterator[Verdict]:
        """All answers about *messages*, which are in the order of ``seq``. Raises what ``take`` does."""
        for message in messages:
            yield from self.take(message)
            if self.is_over:
                break
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
        is_selected = self._is_whole or self._choosing.chooses(message)
        return self._final(known.explainer.take(arrival, is_selected=is_selected), HELD_ANSWERS)

    def end(self) -> Iterator[Verdict]:
        """The answers that are left when all messages were taken."""
        if not self._qmgrs:
            self._queue_manager(DEFAULT_QMGR)
        for known in self._qmgrs.values():
            yield from self._final(known.explainer.end(), HELD_ANSWERS)
        yield from self._final([], 0)
        if not self._answered and not (self._asked.is_all and self._is_whole):
            yield self._nothing_found()

    def _queue_manager(self, qmgr: str) -> _QueueManager:
        known = self._qmgrs.get(qmgr)
        if known is None:
            broker = Broker.of_capture(qmgr, self._setup, self._semantics)
            known = self._qmgrs[qmgr] = _QueueManager(Explainer(broker, self._asked, is_whole=self._is_whole))
        return known

    def _final(self, verdicts: Iterable[Verdict], held: int) -> Iterator[Verdict]:
        waiting = self._held
        for verdict in verdicts:
            if not (verdict.amends and self._amend(verdict)):
                waiting.append(verdict)
                self._asked_held += verdict.is_asked
        final = []
        while len(waiting) > held:
            verdict = waiting.popleft()
            if verdict.is_asked:
                final.append(verdict)
        self._asked_held -= len(final)
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
        asked, explainers = self._asked, [known.explainer for known in self._qmgrs.values()]
        selected = "" if self._is_whole else " by the messages that are selected"
        is_narrow = asked.names_publication or not self._is_whole
        if is_narrow and not any(explainer.published for explainer in explainers):
            what = "" if asked.topic is None else f" on {asked.topic!r}"
            what += "" if asked.seq is None else f" by message {asked.seq}"
            why = f"nothing was published{what}{selected}"
        elif self._choosing.is_over or (not self._is_whole and any(each.knows_subscriber for each in explainers)):
            why = f"no subscription{asked.subscriber_words} selects a topic on which something was published{selected}"
        else:
            queues = {queue for explainer in explainers for queue in explainer.queues}
            why = f"no subscription was registered{asked.subscriber_words}{asked.similar_queues(queues)}"
        return Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, Reason.NO_MATCH, why)
