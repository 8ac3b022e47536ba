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
from typing import Final

from commands.client.errors import ConnectionLostError, MqError
from commands.config.settings import TopicsConfig
from commands.links.engine import adapter as trees
from commands.links.engine.inbound_writer import CommandPutter, NativePublication, TreeRetained
from commands.links.engine.properties import ForTree
from commands.links.engine.spool import Spool
from commands.links.ibmmq.manager import MqMessages, MqSpool
from commands.links.ibmmq.tree import Selection, Tree, native_of, put_for
from commands.links.ibmmq.unit import REFUSED, MqUnit
from commands.qmgr.link_port import Capability, Feature, How
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED
from rfh2.errors import DecodeError, StoreError
from rfh2.mqmd import Mqmd
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme

CAPABILITIES: Final[tuple[Capability, ...]] = (
    Capability(Feature.SUBSCRIBE, How.DOES),
    Capability(Feature.ALTER, How.EMULATED),
    Capability(Feature.PUBLISH, How.DOES),
    Capability(Feature.RETAIN, How.DOES),
    Capability(Feature.RETAIN_EMPTY, How.DOES),
    Capability(Feature.REQUEST, How.DOES),
    Capability(Feature.CLEAR, How.DOES),
    Capability(Feature.CHAR_WILDCARDS, How.DOES),
    Capability(Feature.INNER_HASH, How.DOES),
    Capability(Feature.ODD_TOPICS, How.DOES),
    Capability(Feature.DOLLAR_TOPICS, How.DOES),
    Capability(Feature.EXPIRY, How.DOES),
    Capability(Feature.PERSISTENCE, How.DOES),
    Capability(Feature.PRIORITY, How.DOES),
    Capability(Feature.PROPERTIES, How.DOES),
    Capability(Feature.HEADERS, How.NOT_CARRIED),
    Capability(Feature.SELECTORS, How.EMULATED),
    Capability(Feature.SCOPE, How.DOES),
    Capability(Feature.OTHER_SUBS_ONLY, How.DOES),
    Capability(Feature.ORDER, How.DOES),
    Capability(Feature.IDENTITY, How.EMULATED),
    Capability(Feature.UNIT_OF_WORK, How.DOES),
)


_log = logging.getLogger("qpubsub.mq")


class MqAdapter(trees.Unconnected):
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

    def attach(self, engine: trees.Engine[Selection]) -> None:
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

    def __init__(self, tree: Tree, engine: trees.Engine[Selection], held: set[Selection]) -> None:
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

    def subscribe(self, filters: Sequence[Selection], urgent: bool) -> Iterator[trees.Subscribed[Selection]]:
        del urgent  # one is as fast as another
        for selection in filters:
            with self._engine.lock:
                self._held.add(selection)
            try:
                self._tree.subscribe(selection)
            except ConnectionLostError:
                raise
            except MqError as error:
                answer = (
                    trees.FilterAnswer.REJECTED if error.reason == MQRC_NOT_AUTHORIZED else trees.FilterAnswer.LATER
                )
                yield trees.Subscribed(selection, answer, str(error))
            else:
                yield trees.Subscribed(selection)

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
                raise trees.TreeRefusedError(str(error), lasting=error.reason == MQRC_NOT_AUTHORIZED) from error
            found = TreeRetained(found.natives + there.natives, found.topics | there.topics)
        return found

    def answers(self) -> bool:
        self._tree.call()
        return True

    def close(self) -> None:
        self._tree.close()


# Publications that IBM MQ has put on the incoming queue, got in a unit of work (``Receiver``).


class MqReceiver:
    """For one thread. messages: for this receiver alone. putter: sets aside what is no publication.

    together: whether the unit of work has the queue manager's queues too, so that commands are put in it. bridge: the
    queue manager whose bridge it is.
    """

    def __init__(
        self, messages: MqMessages, config: TopicsConfig, putter: CommandPutter, together: bool, bridge: str
    ) -> None:
        self._messages, self._config, self._putter, self._together = messages, config, putter, together
        self._bridge = bridge
        self._unit: MqUnit | None = None

    @property
    def is_waiting(self) -> bool:
        """What waits on the queue is found by the next ``take``."""
        return False

    def take(self, limit: int, timeout_s: float) -> trees.TreeArrivals:
        arrivals = self._taken(limit)
        if arrivals.count:
            return arrivals
        self.accept()
        if self._messages.wait_for_message(self._config.in_queue, timeout_s):
            arrivals = self._taken(limit)
            if not arrivals.count:
                self.accept()
        return arrivals

    def accept(self) -> None:
        unit, self._unit = self._unit, None
        if unit is not None:
            unit.commit()

    def undo(self) -> None:
        unit, self._unit = self._unit, None
        if unit is not None:
            unit.backout()

    def close(self) -> None:
        self.undo()
        self._messages.close()

    def _taken(self, limit: int) -> trees.TreeArrivals:
        unit = self._unit = self._messages.unit_of_work()
        natives: list[NativePublication] = []
        count = 0
        while count < limit and (message := unit.get(self._config.in_queue)) is not None:
            count += 1
            native = self._native(unit, message)
            if native is not None:
                natives.append(native)
        return trees.TreeArrivals(natives, count, unit if self._together else None)

    def _native(self, unit: MqUnit, message: StoredMessage) -> NativePublication | None:
        """The publication; None for what this bridge had sent itself, and for what is no publication."""
        try:
            native, bridge = native_of(message.md, message.body, self._config.default_format)
        except Exception as error:
            # A fault of ours, unless it is a DecodeError: it must not keep what is behind it waiting.
            expected = isinstance(error, DecodeError)
            text = "a message on %s is not a publication, and is put on the dead-letter queue: %s"
            _log.error(text, message.queue, error, exc_info=None if expected else error)
            reason = error.reason if isinstance(error, DecodeError) else MQRCCF_COMMAND_FAILED
            self._putter.set_aside(unit, Mqmd.decode(message.md), message.body, reason, message.queue)
            return None
        return None if bridge == self._bridge else native


# Publications to IBM MQ's topic tree (``Sender``).
#
# If the outgoing queue is IBM MQ's too, the sender puts them in the unit of work in which it got them.
#
# PCF commands are in no unit of work: if the unit of work with its get is backed out, the sender does the clear
# again.


# Beside what a queue may say: the topic is inhibited (2051), not valid (2425), or nobody's (2502).
_TOPIC_REFUSED: Final = frozenset({2425, 2085, 2502, 2503, 2494})
# The properties are too large (2465, 2469, 2478, 2513), have a name that MQ does not allow (2442), or were malformed.
_PROPERTIES_REFUSED: Final = frozenset({2228, 2334, 2335, 2336, 2421, 2442, 2465, 2469, 2472, 2473, 2478, 2513, 2527})
_OF_THE_PUBLICATION: Final = frozenset(REFUSED) | _TOPIC_REFUSED | _PROPERTIES_REFUSED

MqPut = tuple[bytes, bytes, int]
"""The MQMD, the body and the MQPMO_* of an MQPUT to a topic; nothing of each for a clear."""


class MqSender:
    """For one thread. messages: the connection that publishes; own: for this sender alone, so that it commits there.

    tree: for PCF, which has a connection of its own: ibmmq 2.1.2 may mistake buffers where a queue that was read is
    closed while another one stays open.
    """

    def __init__(self, messages: MqMessages, own: bool, tree: Tree) -> None:
        self._messages, self._own, self._tree = messages, own, tree

    def prepare(self, wanted: ForTree) -> trees.Prepared[MqPut]:
        if wanted.clear:
            return trees.Prepared((b"", b"", 0))
        return trees.Prepared(put_for(wanted, self._tree.bridge), wanted.other)

    def send(self, batch: Iterable[trees.Waiting[MqPut]]) -> Iterator[trees.Sent]:
        if not self._own:
            yield from map(self._sent, batch)
            return
        with self._messages.unit_of_work():
            yield from map(self._sent, batch)

    def done(self) -> None:
        """Nothing is remembered of a batch."""

    def close(self) -> None:
        self._tree.close()
        if self._own:
            self._messages.close()

    def _sent(self, waiting: trees.Waiting[MqPut]) -> trees.Sent:
        topic, message = waiting.wanted.topic, waiting.message
        try:
            if waiting.wanted.clear:
                self._tree.clear(topic, waiting.wanted.local)
            else:
                self._messages.connection.publish(topic, *waiting.item)
        except ConnectionLostError:
            raise
        except MqError as error:
            if error.reason not in _OF_THE_PUBLICATION:
                raise
            return trees.Sent(message, error.reason, f"IBM MQ refuses what is to be done on topic {topic}: {error}")
        except StoreError:
            raise
        except Exception as error:
            # A fault of ours: it must not keep what is behind it waiting.
            _log.error("topic %s: a publication cannot be published", topic, exc_info=error)
            why = f"message {message.seq} on {message.queue}: it cannot be published"
            return trees.Sent(message, MQRCCF_COMMAND_FAILED, why)
        return trees.Sent(message)
