"""Connects a topic space with the link to a topic tree elsewhere (``commands.qmgr.link_port``).

Before an operation, the link gives the tree's retained publications that the topic space does not know. After a
command, it reads the trace and gives the messages for the tree; they are put in the unit of work of the command.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.broker.trace import Trace
from commands.headers.response import Completion
from commands.model import Publish
from commands.qmgr.link_port import TopicLink, TreeNotAskedError
from commands.templates.parts import Parts, ShapeKey, bodies_of, parts_of
from rfh2.errors import CommandError
from rfh2.rfh2 import FIXED_LENGTH
from streams.operations import Delivery, Effect, Operation, PublishToTopic
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.live")


class LinkedTree:
    """The link of one topic space. may_wait: whether it may wait for the tree inside the unit of work.

    forms: how the tree gets publications like one before.
    """

    def __init__(self, space: TopicSpace, link: TopicLink, may_wait: bool) -> None:
        self._space, self._link, self._may_wait = space, link, may_wait
        self.forms = TreeForms()

    def before(self, operation: Operation, now: datetime) -> Sequence[Effect]:
        """Store in the topic space the retained publications of the tree that *operation* needs.

        Returns the effects. Raises TreeNotAskedError before anything is changed.
        """
        effects: list[Effect] = []
        for learnt in self._learnt(operation, now):
            try:
                done = self._space.apply(learnt, now)
            except CommandError as error:
                # The tree decides about these: a topic object here may forbid what native programs retain there.
                _log.warning("a native retained publication is passed over: %s", error)
                continue
            # These are not delivered now: subscribers got them, or will get them, when they were published.
            effects += [effect for effect in done if not isinstance(effect, Delivery)]
        return effects

    def _learnt(self, operation: Operation, now: datetime) -> Sequence[Operation]:
        while True:
            try:
                return self._link.before(operation, self._space, now)
            except TreeNotAskedError:
                if not self._may_wait:
                    raise
                self._link.fetch()

    def prefetch(self, operation: Operation) -> None:
        """Announce *operation*, so that the link can ask the tree about it together with others."""
        self._link.prefetch(operation)

    def after(self, trace: Trace, *, is_native: bool) -> tuple[Outgoing, ...]:
        """The messages for the tree that one arrival causes. is_native: whether it came from there.

        A publication that came from the tree never goes back.
        """
        self._link.expired(trace.expired)
        outgoing: list[Outgoing] = []
        for traced in trace.operations:
            operation = traced.operation
            if not is_native:
                outgoing += self._link.after(operation, traced.effects)
            elif isinstance(operation, PublishToTopic):
                self._link.published(operation.retain)
            else:
                self._link.after(operation, traced.effects)
        return tuple(outgoing)

    def repeated(self, *, retain: bool) -> None:
        """Note a publication that a template answered."""
        self._link.published(retain)

    def ended(self, effects: Sequence[Effect]) -> None:
        """Note subscriptions that ended without a command, with their queues."""
        self._link.expired(effects)


# Forms of the messages for a linked topic tree: how the tree gets publications like one before.
#
# The link makes its message from the broker's outcome (``commands.qmgr.link_port``). Like puts for subscribers, it has
# parts that are the same for all publications of one shape on one topic, and the rest, which passes as it is
# (``commands.templates.parts``):
#
#     descriptor │ MQRFH2, fixed part │ folders of the link, in place of psc │ other folders, data
#
# A form is learned from one such message, and kept only if it makes that message again, byte for byte. There is none
# for publications with a PubTime or a SeqNum, which the link writes in a folder of its own, for those that expire,
# and where another folder has a name that the link uses.

_FIXED: Final = slice(12, FIXED_LENGTH)
_OF_LINKS: Final = (b"<qps", b"<mqps")
_MOST_FORMS: Final = 4_096
"""A form has some 2,000 bytes, and its key a few hundred."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of the messages for publications of one shape on one topic.

    begun: fixed part and folders of the link. The rest is that of the put.
    """

    begun: tuple[bytes, bytes]
    qmgr: str
    queue: str
    topic: str | None
    md: bytes


class TreeForms:
    """The forms of one link, for one state of the definitions."""

    def __init__(self) -> None:
        self._forms: dict[tuple[ShapeKey, bytes], _Form | None] = {}  # None: the tree gets nothing

    def answer(self, arrival: Arrival, parts: Parts | None) -> tuple[Outgoing, ...] | None:
        """The messages for the tree, if *arrival* is published; None where no form is known."""
        if parts is None or (parts.key, parts.topic) not in self._forms:
            return None
        form = self._forms[parts.key, parts.topic]
        if form is None:
            return ()
        if _has_folder_of_links(arrival.body, parts):
            return None
        (body,) = bodies_of(arrival.body, parts, [form.begun])
        return (Outgoing(PutKind.PUBLICATION, form.qmgr, form.queue, form.md, body, form.topic),)

    def learn(self, arrival: Arrival, outcome: Outcome, outgoing: Sequence[Outgoing]) -> None:
        """Learn from what the link made of *outcome*, where that is a publication on one topic."""
        if outcome.completion is not Completion.OK or not isinstance(outcome.command, Publish) or len(outgoing) > 1:
            return
        parts = parts_of(arrival)
        if parts is None or len(parts.texts) > 1 or _has_folder_of_links(arrival.body, parts):
            return
        if len(outcome.operations) != 1 or not isinstance(outcome.operations[0], PublishToTopic):
            return
        form = None
        for put in outgoing:
            tail = len(arrival.body) - parts.behind + len(parts.before)
            begun = put.body[_FIXED], put.body[FIXED_LENGTH : len(put.body) - tail]
            if put.expires_at is not None or bodies_of(arrival.body, parts, [begun]) != [put.body]:
                return
            form = _Form(begun, put.qmgr, put.queue, put.topic, put.md)
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
        self._forms[parts.key, parts.topic] = form


def _has_folder_of_links(body: bytes, parts: Parts) -> bool:
    others = parts.before + body[parts.behind : parts.length]
    return any(name in others for name in _OF_LINKS)
