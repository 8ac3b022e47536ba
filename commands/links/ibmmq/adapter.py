"""IBM MQ's topic tree (``Adapter``).

A filter is a topic string with its wildcard scheme: IBM MQ has both. The adapter connects when it needs to. If the
queues are IBM MQ's too, it gets and publishes outgoing publications in one unit of work, and handles incoming ones in
the same way: no publication is lost or comes twice. If they are embedded, either may come twice after a crash.

IBM MQ does not report that a retained publication was cleared. So the adapter looks up the retained publications each
time that a subscriber registers or asks (ReqUpdate), and does not keep the result.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from commands.config.settings import TopicsConfig
from commands.links.engine.adapter import Engine, FilterAnswer, Subscribed, TreeRefusedError
from commands.links.engine.inbound_writer import CommandPutter
from commands.links.engine.retained import TreeRetained
from commands.links.engine.spool import Spool
from commands.links.engine.unconnected import Unconnected
from commands.links.ibmmq.capabilities import CAPABILITIES
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.reasons import ConnectionLostError, MqError
from commands.links.ibmmq.receiver import MqReceiver
from commands.links.ibmmq.sender import MqSender
from commands.links.ibmmq.spool import MqSpool
from commands.links.ibmmq.tree import Selection, Tree
from rfh2.constants import MQRC_NOT_AUTHORIZED
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme

_log = logging.getLogger("qpubsub.mq")


class MqAdapter(Unconnected):
    """The topic tree of one queue manager.

    messages: makes a connection to it. together: whether the queues are on the same queue manager, so that one
    unit of work has both. bridge: the queue manager whose bridge this is; its name may be another one.
    """

    kind = "IBM MQ"
    name = "IBM MQ"
    log = _log
    # Each filter needs its own calls, and an error with one must not make others wait.
    filters_at_once = 1
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(
        self,
        messages: Callable[[], MqMessages],
        config: TopicsConfig,
        putter: CommandPutter,
        together: bool,
        bridge: str,
    ) -> None:
        self._messages, self._config, self._putter, self._together = messages, config, putter, together
        self._bridge = bridge
        self._held: set[Selection] = set()

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> Selection:
        parse_pattern(topic_string, wildcard)
        return Selection(topic_string, wildcard)

    def pattern_of(self, topic_filter: Selection) -> tuple[str, WildcardScheme]:
        return topic_filter.topic_string, topic_filter.wildcard

    def matcher(self, filters: Sequence[Selection]) -> Callable[[str], Sequence[Selection]]:
        patterns = [(each, parse_pattern(each.topic_string, each.wildcard)) for each in filters]
        return lambda topic_string: [each for each, pattern in patterns if pattern.matches(topic_string)]

    def why_stays(self, topic_string: str) -> str | None:
        """None: IBM MQ can have all topic strings."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """None: IBM MQ can have all topic strings."""

    # Its life

    def attach(self, engine: Engine[Selection]) -> None:
        self._engine = engine

    # Filters

    def remembered(self) -> Collection[Selection]:
        return ()

    def held(self) -> Collection[Selection]:
        return self._held

    def synced(self, filters: Iterable[Selection]) -> None:
        """Write nothing: the adapter finds durable subscriptions again by their names."""

    def save(self) -> None:
        """Write nothing."""

    # Calls

    def client(self) -> MqCalls:
        return MqCalls(Tree(self._messages(), self._config, self._bridge), self._engine, self._held)

    def receiver(self) -> MqReceiver:
        return MqReceiver(self._messages(), self._config, self._putter, self._together, self._bridge)

    def sender(self, spool: Spool, stop: threading.Event) -> MqSender:
        del stop  # no call waits for longer than the client library does
        tree = Tree(self._messages(), self._config, self._bridge)
        if self._together and isinstance(spool, MqSpool):
            return MqSender(spool.messages, False, tree)
        return MqSender(self._messages(), True, tree)


class MqCalls:
    """The calls of one thread to the tree (``TreeClient``). held: all filters that the tree may have."""

    def __init__(self, tree: Tree, engine: Engine[Selection], held: set[Selection]) -> None:
        self._tree, self._engine, self._held = tree, engine, held
        self._looked = False

    def prepare(self) -> None:
        """End the subscriptions that an earlier run has left and that are not needed now.

        Raises SharedQueueError where the incoming queue is another bridge's too.
        """
        if self._looked:
            return
        try:
            names = self._tree.existing()
        except MqError as error:
            if isinstance(error, ConnectionLostError):
                raise
            _log.warning("subscriptions of earlier runs cannot be listed: %s", error)
            names = []
        with self._engine.lock:
            wanted = {selection.name(self._tree.bridge) for selection in self._engine.wanted()}
            for name in names:
                if name not in wanted:
                    self._tree.unsubscribe(name)
                    _log.info("subscription %s of an earlier run is ended", name)
        self._looked = True

    def subscribe(self, filters: Sequence[Selection], urgent: bool) -> Iterator[Subscribed[Selection]]:
        del urgent  # one is as fast as another
        for selection in filters:
            with self._engine.lock:
                self._held.add(selection)
            try:
                self._tree.subscribe(selection)
            except ConnectionLostError:
                raise
            except MqError as error:
                answer = FilterAnswer.REJECTED if error.reason == MQRC_NOT_AUTHORIZED else FilterAnswer.LATER
                yield Subscribed(selection, answer, str(error))
            else:
                yield Subscribed(selection)

    def unsubscribe(self, topic_filter: Selection) -> None:
        self._tree.unsubscribe(topic_filter.name(self._tree.bridge))
        self._held.discard(topic_filter)

    def retained(self, filters: Sequence[Selection]) -> TreeRetained:
        found = TreeRetained()
        for selection in filters:
            try:
                there = self._tree.retained(selection)
            except ConnectionLostError:
                raise
            except MqError as error:
                raise TreeRefusedError(str(error), lasting=error.reason == MQRC_NOT_AUTHORIZED) from error
            found = TreeRetained(found.natives + there.natives, found.topics | there.topics)
        return found

    def answers(self) -> bool:
        self._tree.call()
        return True

    def close(self) -> None:
        self._tree.close()
