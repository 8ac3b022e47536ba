"""Explains a capture in this process: message after message, in the order of ``seq``, for each queue manager."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from commands.explain.selection import EVERYTHING, Choosing, MessageSelection
from commands.explain.why import Asked, Explainer, Reason, Verdict
from commands.explain.why.answers import unread_sentence
from commands.mqsc.broker import Broker
from commands.replay.arrivals import DEFAULT_QMGR, Arrivals
from commands.replay.local import ExitOf
from rfh2.captured import CapturedMessage

HELD_ANSWERS: Final = 2_000
"""So many answers are held back: a dead letter among the next messages may show that one of them is wrong."""


class LocalWhy:
    """Explains captured messages.

    setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``. selection: the messages that the
    question is about; the others are processed too. exit_of: the publish exit of a queue manager.
    """

    def __init__(
        self,
        setup: str = "",
        semantics: str = "v7",
        asked: Asked | None = None,
        selection: MessageSelection = EVERYTHING,
        exit_of: ExitOf | None = None,
    ) -> None:
        self._setup, self._semantics, self._exit_of = setup, semantics, exit_of
        self._asked = Asked() if asked is None else asked
        self._is_whole, self._choosing = selection.is_all, Choosing(selection)
        self._explainers: dict[str, Explainer] = {}
        self._held: deque[Verdict] = deque()
        # Those of them that are asked for.
        self._asked_held = 0
        self._arrivals = Arrivals()
        self._answered = False
        self._unread = 0

    @property
    def unread(self) -> int:
        """How many records of the capture could not be read, as far as is known: what is absent may be in them."""
        return self._unread

    @unread.setter
    def unread(self, number: int) -> None:
        if number != self._unread:
            self._unread = number
            for explainer in self._explainers.values():
                explainer.doubts.unread = number

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
        qmgr, arrival = self._arrivals.of(message)
        is_selected = self._is_whole or self._choosing.chooses(message)
        return self._final(self._explainer(qmgr).take(arrival, is_selected=is_selected), HELD_ANSWERS)

    def end(self) -> Iterator[Verdict]:
        """The answers that are left when all messages were taken."""
        if not self._explainers:
            self._explainer(DEFAULT_QMGR)
        for explainer in self._explainers.values():
            yield from self._final(explainer.end(), HELD_ANSWERS)
        yield from self._final([], 0)
        if not self._answered and not (self._asked.is_all and self._is_whole):
            yield self._nothing_found()

    def _explainer(self, qmgr: str) -> Explainer:
        known = self._explainers.get(qmgr)
        if known is None:
            publish_exit = None if self._exit_of is None else self._exit_of(qmgr)
            broker = Broker.of_capture(qmgr, self._setup, self._semantics, publish_exit)
            known = self._explainers[qmgr] = Explainer(broker, self._asked, is_whole=self._is_whole)
            known.doubts.unread = self._unread
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
        asked, explainers = self._asked, list(self._explainers.values())
        selected = "" if self._is_whole else " by the messages that are selected"
        is_narrow = asked.names_publication or not self._is_whole
        if is_narrow and not any(explainer.published for explainer in explainers):
            what = "" if asked.topic is None else f" on {asked.topic!r}"
            what += "" if asked.seq is None else f" by message {asked.seq}"
            why = f"nothing was published{what}{selected or ' in the capture'}"
        elif self._choosing.is_over or (not self._is_whole and any(each.knows_subscriber for each in explainers)):
            why = f"no subscription{asked.subscriber_words} selects a topic on which something was published{selected}"
        else:
            queues = {queue for explainer in explainers for queue in explainer.queues}
            where = asked.subscriber_words
            why = f"no subscription was registered in the capture{where}{asked.similar_queues(queues)}"
        reason = Reason.NO_MATCH
        if self._unread or any(explainer.doubts for explainer in explainers):
            reason, why = Reason.UNKNOWN, f"{why}; {self._unsaid(explainers)}"
        return Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, reason, why)

    def _unsaid(self, explainers: list[Explainer]) -> str:
        """What the capture does not say."""
        if self._unread:
            return unread_sentence(self._unread)
        return "the queues of commands without an MQMD are unknown"
