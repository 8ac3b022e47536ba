"""A broker that MQSC sets up, for captured messages: what embedding programs and replays use."""

from __future__ import annotations

from commands.broker.authority import Authority
from commands.broker.core import EPOCH, Arrival, BrokerCore, Outcome
from commands.broker.objects import Objects, QueueManager
from commands.broker.puts import Put
from commands.broker.selection import Selection
from commands.mqsc.session import run_setup
from rfh2.captured import CapturedMessage
from streams.subscriptions import WildcardScheme
from streams.topic_space import TopicSpace


class Broker(BrokerCore):
    """A queue manager's queued publish/subscribe interface, in memory, with no queue store.

    setup: MQSC text, run first; what it defines begins to run out when the first message comes. semantics: ``v7``, or
    ``v6`` where the old broker behaved otherwise (guide 7.5, 8.5). objects, space, authority: given by whoever keeps
    them elsewhere. rfh2_wildcards: the scheme of MQRFH2 commands; WebSphere MQ version 6's own broker had CHAR for all
    (guide 2.5.1.1). Raises QPubSubError where *setup* fails.
    """

    def __init__(
        self,
        qmgr: str,
        setup: str = "",
        semantics: str = "v7",
        *,
        objects: Objects | None = None,
        space: TopicSpace | None = None,
        authority: Authority | None = None,
        rfh2_wildcards: WildcardScheme = WildcardScheme.TOPIC,
    ) -> None:
        objects = objects if objects is not None else Objects(QueueManager(qmgr))
        space = space if space is not None else TopicSpace(objects.topics, Selection(), semantics)
        if setup:
            run_setup(setup, objects, space, EPOCH)
        super().__init__(objects, space, semantics, authority, rfh2_wildcards=rfh2_wildcards)
        self._last_time = EPOCH

    def handle(self, message: CapturedMessage) -> list[Put]:
        """Process one captured message and return its puts; a message without a time comes when the last one came.

        The identifiers of puts are made from ``seq``. A message with a ``seq`` that was handled before is processed
        like any other; its puts then repeat identifiers.
        """
        return self.replay(message)[1]

    def replay(self, message: CapturedMessage) -> tuple[Outcome, list[Put]]:
        """The same, with what the message came to."""
        if message.time is not None:
            self._last_time = message.time
        arrival = Arrival(message.seq, self._last_time, message.queue, message.md, message.body, message.user)
        outcome = self.process(arrival)
        return outcome, [Put.of(message.seq, n, put) for n, put in enumerate(outcome.puts)]
