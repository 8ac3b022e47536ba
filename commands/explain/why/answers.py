"""The answers about one message after another, as far as they are asked for."""

from __future__ import annotations

from collections import Counter
from typing import Final

from commands.explain.why.doubts import Doubts
from commands.explain.why.question import Asked
from commands.explain.why.verdict import Detail, Reason, Verdict
from streams.subscriptions import Subscription

MOST_LINES: Final = 100
"""So many near misses of one subscription are answers for each reason, and as many of a former subscription.

There is no limit for a subscription that the question names, by its queue or by its own name.
"""


class Answers:
    """Collects answers. qmgr: the queue manager; subscribers elsewhere are shown with theirs. doubts: they come first.

    mentioned: the sub_ids that an answer was about, asked for or not. is_selected: whether the question is about what
    is being explained.
    """

    def __init__(self, asked: Asked, qmgr: str, doubts: Doubts) -> None:
        self._doubts = doubts
        self.asked, self._asks_all, self._qmgr = asked, asked.is_all, qmgr
        self.is_selected = True
        self.mentioned: set[bytes] = set()
        self._limits: Counter[tuple[bytes, Reason]] = Counter()
        self._taken: list[Verdict] = []

    def take(self) -> list[Verdict]:
        """The answers since the last time."""
        taken, self._taken = self._taken, []
        return taken

    def about(self, topic: str) -> set[tuple[str, str | None]]:
        """The queue and the name of each subscription that an answer about *topic* was about since ``take``."""
        return {(verdict.queue, verdict.sub_name) for verdict in self._taken if verdict.topic == topic}

    def add(
        self,
        seq: int | None,
        topic: str,
        subscription: Subscription,
        reason: Reason,
        say: Detail = "",
        *,
        delivered: bool = False,
        amends: bool = False,
    ) -> bool:
        """An answer about *subscription*, if it is asked for; whether it is.

        A dead letter is about the last publication for its queue, asked for or not. So both are taken where the
        question is about the subscription.
        """
        self.mentioned.add(subscription.sub_id)
        asked, queue, name = self.asked, subscription.dest_queue, subscription.name
        is_asked = self.is_selected
        if not self._asks_all:
            if not asked.is_about(queue, name):
                return False
            is_asked = is_asked and asked.is_about_publication(seq, topic)
        if not (is_asked or delivered or amends):
            return False
        if self._doubts:
            if why := self._doubts.doubt(subscription, reason):
                delivered, reason, say = False, Reason.UNKNOWN, why
            say = self._doubts.note(subscription, say)
        qmgr = "" if subscription.dest_qmgr == self._qmgr else subscription.dest_qmgr
        self._taken.append(Verdict(seq, topic, queue, name, delivered, reason, say, qmgr, amends, is_asked))
        return is_asked

    def is_about(self, seq: int, topic: str | None) -> bool:
        """Whether the question is about this topic of the message that is being explained."""
        return self.is_selected and self.asked.is_about_publication(seq, topic)

    def add_unknown(self, seq: int, reason: Reason, say: Detail) -> None:
        """An answer about a publication whose subscribers cannot be known."""
        if not self.asked.names_subscriber and self.is_about(seq, None):
            self._taken.append(Verdict(seq, None, "", None, False, reason, say))

    def is_last(self, subscription: Subscription, reason: Reason) -> bool:
        """Whether no more than this answer is to be given about *subscription* for this reason."""
        if self.asked.names_subscriber:
            return False
        key = (subscription.sub_id, reason)
        self._limits[key] += 1
        if self._limits[key] < MOST_LINES:
            return False
        del self._limits[key]
        return True
