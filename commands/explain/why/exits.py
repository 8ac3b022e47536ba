"""What the publish exit did with a message that did not go to the queue of its subscriber, in words (guide 4.6.2).

The reasons are fixed, and none of them is the exit's own: what it discards is ``blocked``, for it stands between topic
and subscription as a WILDCARD(BLOCK) does; what it has put on the dead-letter queue is ``dead-letter``.
"""

from __future__ import annotations

from commands.broker.exit_calls import Exited, ExitFate
from commands.explain.why.verdict import Reason
from rfh2.explain.reasons import feedback_text


def exit_reason(exited: Exited) -> Reason:
    """The reason of the answer about *exited*; one that was sent elsewhere is delivered."""
    if exited.fate is ExitFate.DISCARDED:
        return Reason.BLOCKED
    return Reason.DEAD_LETTER if exited.fate is ExitFate.DEAD_LETTER else Reason.DELIVERED


def exit_sentence(exited: Exited, here: str) -> str:
    """What the exit did. here: the queue manager."""
    if exited.fate is ExitFate.DIVERTED:
        there = "" if exited.qmgr == here else f" of queue manager {exited.qmgr}"
        return f"the publish exit sent it to queue {exited.queue}{there}"
    text = feedback_text(exited.feedback)
    because = f"Feedback {exited.feedback}{text and f', {text}'}"
    if exited.fate is ExitFate.DISCARDED:
        return f"the publish exit suppressed it, and Report says MQRO_DISCARD_MSG ({because})"
    return f"the publish exit suppressed it: it is on {exited.queue} ({because})"
