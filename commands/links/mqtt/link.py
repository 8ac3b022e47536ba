"""The link between a queue manager's topic space and an MQTT 5 broker (``TopicLink``).

Three threads beside the processor's, and paho's own:

    inward    publications that have come ─> Intake, then acknowledged
    outward   the outgoing queue ─> the broker; taken off once it has answered for them
    keeper    after a connection is made, or a subscription changed: has the broker send what is selected now, fetches
              what it retains there, and unsubscribes from what nobody selects any more

A filter is *settled* when the broker has it and what it retained under it is known here, and that is committed. A
RegSub settles its filter itself, before its response (``before``, ``ask``); all else is the keeper's work.

The broker's session is believed: after a restart of either side only the difference is subscribed and unsubscribed, and
nothing at all until it is known which subscriptions there are (``follow``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commands.broker.puts import Outgoing
from commands.links.engine.backoff import Backoff
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import TopicsConfig
from commands.links.engine.filter_registry import Interest
from commands.links.engine.inbound_writer import Intake, Unreadable
from commands.links.engine.link_stores import Edge
from commands.links.engine.message_for_tree import clearing, publishing
from commands.links.engine.questions import Questions
from commands.links.engine.quiescence import PARDON_S, Looks, settled
from commands.links.engine.retained import differences, usable
from commands.links.engine.threads import LinkState, Threads
from commands.links.engine.urls import Address
from commands.links.mqtt.abilities import CAPABILITIES
from commands.links.mqtt.answers import Granted, Received, RefusedError, TreeUnreachableError
from commands.links.mqtt.client import MqttClient
from commands.links.mqtt.filters import Filters, FilterTree
from commands.links.mqtt.outbound_pump import Outflow
from commands.links.mqtt.packets import MqttPublication, native_of
from commands.links.mqtt.snapshots import Snapshots
from commands.links.mqtt.subscribing import Subscribing
from commands.links.mqtt.topics import filter_of, why_not_shared, why_not_topic
from commands.qmgr.link_port import Capability
from rfh2.errors import CommandError, StoreError
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Effect,
    Operation,
    PublishToTopic,
    RetainedCleared,
    RetainedPublication,
    Subscribe,
)
from streams.patterns import parse_pattern
from streams.port import TopicSpaceView
from streams.subscriptions import Subscription, WildcardScheme

_log = logging.getLogger("qpubsub.mqtt")

# Publications of QoS 0 that may wait here for the queue manager; those of QoS 1 are bounded by Receive Maximum.
_WAITING_QOS0: Final = 20_000
_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Question:
    """What the broker retains under a filter; subscribe: and to have it send what is published there from now on."""

    topic_filter: str
    subscribe: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """retained: what the broker retains, None where it did not say. has: whether it has the filter."""

    retained: Sequence[MqttPublication] | None = None
    has: bool = False


class MqttLink:
    """The link; start it, use it from the processor's thread, stop it. Raises ConfigError.

    state: the directory for what the bridge remembers of its session.
    """

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path, edge: Edge) -> None:
        self.client_id = config.client_id or f"qpubsub-{qmgr}"
        self._config, self._qmgr, self._edge = config, qmgr, edge
        self._filters = Filters(state / "mqtt.json")
        self._interest: Interest[str] = Interest(self._filter_of, self._filters.acknowledged)
        self._client = MqttClient(address, config, self.client_id, self._received, self._connected)
        self._snapshots = Snapshots(address, config, self.client_id)
        self._lock = self._interest.lock
        self._odd: set[str] = set()
        self._came: deque[Received] = deque()
        self._looks = Looks()
        self._arrived = threading.Condition()
        self._work = threading.Event()
        self._stop = threading.Event()
        self._busy = False
        self._threads = Threads(_log)
        self._subscribing = Subscribing(self._client, self._filters, self._interest, config.patience_s)
        self._questions: Questions[_Question, _Answer] = Questions(self._asked, self._unused)
        # The broker did not answer a question, and is not asked another one until it has answered the keeper.
        self._silent = threading.Event()
        self._outflow = Outflow(self._client, config, edge.spool, self._stop)

    # The port

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        return CAPABILITIES

    @property
    def outgoing_queue(self) -> str:
        return self._config.outgoing_queue

    def before(self, operation: Operation, space: TopicSpaceView, now: datetime) -> Sequence[Operation]:
        question = self._question(operation)
        if question is None:
            return ()
        if question.subscribe and not self._questions.has(question) and not self._interest.needs(question.topic_filter):
            return ()
        answer = self._questions.answer(question)
        if question.subscribe:
            self._interest.answered(question.topic_filter, answer.has)
        if answer.retained is None:
            return ()
        known = space.retained(question.topic_filter.removeprefix(self._config.prefix), WildcardScheme.TOPIC, now)
        news = self._differences(answer.retained, known)
        return [told for _, told in usable(news, self._config.native_user, now)]

    def foresee(self, operation: Operation) -> None:
        question = self._question(operation)
        if question is not None and (not question.subscribe or self._interest.needs(question.topic_filter)):
            self._questions.note(question)

    def ask(self) -> bool:
        return self._questions.ask()

    def after(self, operation: Operation, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        self._interest.note(effects)
        if isinstance(operation, PublishToTopic):
            if operation.retain:
                self._questions.forget()
            return self._publishing(operation)
        if isinstance(operation, ClearRetained):
            return self._clearing(operation, effects)
        return ()

    def noticed(self, effects: Sequence[Effect]) -> None:
        self._interest.note(effects)

    def committed(self) -> None:
        self._questions.committed()
        with self._lock:
            settled, changed = self._interest.committed()
            for topic_filter in settled:
                self._filters.acknowledge(topic_filter)
        if changed:
            self._work.set()

    def follow(self, subscriptions: Iterable[Subscription]) -> None:
        self._interest.follow(subscriptions)
        self._work.set()

    # Its life

    def start(self, ended: Callable[[], None] = lambda: None) -> None:
        """Connect, and begin to carry publications. ended: called when that cannot go on; ``fault`` says why."""
        self._client.start()
        self._threads.start(ended, inward=self._inward, outward=self._outflow.run, keeper=self._keeper)

    def stop(self) -> None:
        """Finish what is at hand, and disconnect; the broker keeps the session."""
        self._stop.set()
        self._work.set()
        with self._arrived:
            self._arrived.notify_all()
        self._threads.join(self._config.patience_s + 5)
        self._client.stop()
        self._snapshots.stop()
        with self._lock:
            self._filters.save()

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one."""
        return self._client.wait_up(timeout_s)

    def settle(self, stop: threading.Event) -> bool:
        """Wait until both sides have all that there was for them; False where *stop* or an unreachable broker ends it.

        Raises nothing: what is left waits where it is safe.
        """
        looks = (self._looks, self._outflow.looks)
        # One thing may take several answers, each of which is waited for.
        patience_s = self._config.patience_s * (4 if self._client.is_up else 1)
        while settled(looks, lambda: self.is_idle, patience_s, stop):
            heard = self._looks.done
            with suppress(TreeUnreachableError):
                if self._client.round_trip(self._config.patience_s) and self.is_idle and heard == self._looks.done:
                    return True
        return False

    @property
    def trouble(self) -> str:
        """Why there is no connection, or what went wrong last in one of the threads; nothing where all is well."""
        return self._client.trouble or self._looks.trouble or self._outflow.looks.trouble

    @property
    def fault(self) -> str:
        """Why the link has ended by itself; nothing where it has not."""
        return self._threads.fault

    @property
    def state(self) -> LinkState:
        """What ``status`` shows of it."""
        return LinkState(self._client.is_up, self.trouble, self._client.next_try_s)

    @property
    def refused(self) -> int:
        """How many publications the tree would not have; they are dead letters."""
        return self._outflow.looks.refused

    @property
    def is_idle(self) -> bool:
        """Whether nothing that has come waits here, and no filter waits to be settled."""
        with self._arrived:
            waiting = bool(self._came)
        busy = waiting or self._busy or self._work.is_set()
        return self._client.is_up and not busy and not self._interest.behind()

    # Publications to the tree

    def _publishing(self, operation: PublishToTopic) -> Sequence[Outgoing]:
        if operation.publication.local and self._config.local == "keep":
            return ()
        why = why_not_shared(self._config.prefix + operation.topic_string)
        if why is not None:
            self._say_odd(operation.topic_string, f"publications on it stay here: {why}")
            return ()
        return (publishing(operation, self._qmgr, self.outgoing_queue),)

    def _clearing(self, operation: ClearRetained, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        if operation.local and self._config.local == "keep":
            return ()
        topics = [effect.topic_string for effect in effects if isinstance(effect, RetainedCleared)]
        pattern = parse_pattern(operation.topic_string, operation.wildcard)
        if not pattern.is_wild and pattern.literal not in topics:
            topics.append(pattern.literal)
        carried = [topic for topic in topics if why_not_topic(self._config.prefix + topic) is None]
        return tuple(clearing(topic, self._qmgr, self.outgoing_queue, operation.local) for topic in carried)

    # Subscriptions

    def _filter_of(self, subscription: Subscription) -> str | None:
        if subscription.options.local and self._config.local == "keep":
            return None
        try:
            found = filter_of(subscription.topic_string, subscription.wildcard)
        except CommandError:
            return None  # the topic space will say so
        if found is None:
            self._say_odd(subscription.topic_string, "no MQTT topic can be selected by it")
            return None
        return self._config.prefix + found

    def _say_odd(self, topic_string: str, what: str) -> None:
        if topic_string not in self._odd and len(self._odd) < 10_000:
            self._odd.add(topic_string)
            _log.warning("topic %s: %s", topic_string, what)

    def _question(self, operation: Operation) -> _Question | None:
        if isinstance(operation, Subscribe | AlterSubscription):
            topic_filter = self._filter_of(operation.subscription)
            return None if topic_filter is None else _Question(topic_filter, subscribe=True)
        if isinstance(operation, ClearRetained):
            # What a wildcard is to clear may be more than is known here.
            found = filter_of(operation.topic_string, operation.wildcard)
            if found is not None and parse_pattern(operation.topic_string, operation.wildcard).is_wild:
                return _Question(self._config.prefix + found, subscribe=False)
        return None

    def _asked(self, questions: Sequence[_Question]) -> dict[_Question, _Answer]:
        answers = dict.fromkeys(questions, _Answer())
        ask = [each for each in questions if not each.subscribe or self._interest.ask(each.topic_filter)]
        try:
            if self._silent.is_set():
                raise TreeUnreachableError(self._client.trouble or "the MQTT broker does not answer")
            accepted = set(self._subscribing.new([each.topic_filter for each in ask if each.subscribe]))
            ask = [each for each in ask if not each.subscribe or each.topic_filter in accepted]
            filters = list(dict.fromkeys(each.topic_filter for each in ask))
            for topic_filter, packets in self._retained(filters).items():
                answers |= {each: _Answer(packets, True) for each in ask if each.topic_filter == topic_filter}
        except RefusedError as error:
            _log.error("%s: what natives retain there is not known", error)
        except TreeUnreachableError as error:
            if not self._silent.is_set():
                about = (error, questions[0].topic_filter, len(questions) - 1)
                _log.warning(
                    "%s; native publications under %.200s and %d more will come once it can be reached", *about
                )
            self._silent.set()
            self._work.set()
        return answers

    def _retained(self, filters: list[str]) -> dict[str, list[MqttPublication]]:
        """What the broker retains under each of *filters*."""
        found: dict[str, list[MqttPublication]] = {topic_filter: [] for topic_filter in filters}
        tree = FilterTree()
        for number, topic_filter in enumerate(filters):
            tree.add(topic_filter, number)
        for packet in self._snapshots.take(*filters) if filters else ():
            for number in tree.match(packet.topic):
                found[filters[number]].append(packet)
        return found

    def _unused(self, question: _Question) -> None:
        if question.subscribe:
            self._interest.answered(question.topic_filter, False)

    def _differences(
        self, found: Sequence[MqttPublication], known: Iterable[RetainedPublication]
    ) -> list[NativePublication]:
        """What the broker retains and is not known here."""
        natives = [native for native in map(self._read, found) if isinstance(native, NativePublication)]
        topics = {packet.topic.removeprefix(self._config.prefix) for packet in found}
        return differences(natives, topics, known)

    def _read(self, packet: MqttPublication) -> NativePublication | Unreadable | None:
        """What came in *packet*; None for what this bridge had sent itself."""
        config = self._config
        try:
            return native_of(packet, config.prefix, self.client_id, config.default_format)
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep what is behind it waiting.
            _log.error("a native publication on topic %.200s cannot be read", packet.topic, exc_info=error)
            return Unreadable(packet.payload)

    # paho's thread

    def _connected(self, granted: Granted) -> None:
        with self._lock:
            if self._interest.connected(granted.session_present):
                _log.warning(
                    "the MQTT broker knows of no session of this bridge: what natives published meanwhile is lost"
                )
            if not granted.session_present:
                self._filters.forgotten()
        self._silent.clear()
        if granted.session_present:
            with self._arrived:
                # What came by the last connection and was not acknowledged comes again.
                kept = [received for received in self._came if not received.packet.qos]
                self._came.clear()
                self._came.extend(kept)
        if not granted.max_qos:
            _log.warning("the MQTT broker takes nothing at QoS 1: publications may be lost")
        _log.info("connected to the MQTT broker as %s", self.client_id)
        self._work.set()

    def _received(self, received: Received) -> None:
        with self._lock:
            takes = self._filters.takes(received.packet.topic, received.identifiers)
        if not takes:
            self._client.acknowledge(received)
            return
        with self._arrived:
            if not received.packet.qos and len(self._came) >= _WAITING_QOS0:
                _log.warning("a publication of QoS 0 on %s is dropped: too many wait", received.packet.topic)
                return
            self._came.append(received)
            self._arrived.notify()

    # The other threads

    def _inward(self) -> None:
        intake: Intake | None = None
        pause_s = 0.1
        while not self._stop.is_set():
            batch = self._next_arrivals()
            if not batch:
                self._looks.found(0)
                continue
            try:
                if intake is None:
                    intake = self._edge.intake()
                natives = [self._read(received.packet) for received in batch]
                intake.put([native for native in natives if native is not None])
            except StoreError as error:
                self._looks.failed(error)
                self._put_back(batch)
                _log.error("native publications wait: %s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, 30.0)
                continue
            pause_s = 0.1
            for received in batch:
                self._client.acknowledge(received)
            self._client.proved()
            self._looks.found(len(batch))
        if intake is not None:
            intake.close()

    def _next_arrivals(self) -> list[Received]:
        with self._arrived:
            if not self._came:
                self._arrived.wait(0.5)
            return [self._came.popleft() for _ in range(min(len(self._came), self._config.batch))]

    def _put_back(self, batch: list[Received]) -> None:
        with self._arrived:
            still = [r for r in batch if not r.packet.qos or r.connection == self._client.connection]
            self._came.extendleft(reversed(still))

    def _keeper(self) -> None:
        backoff = Backoff(0.2, 30.0)
        pardon_at = time.monotonic() + PARDON_S
        while not self._stop.is_set():
            self._work.wait(1.0)
            if time.monotonic() >= pardon_at:
                pardon_at += PARDON_S
                self._interest.pardon()
            if not self._client.is_up or not self._interest.is_known:
                self._stop.wait(0.05)
                continue
            self._busy = True
            self._work.clear()
            try:
                self._snapshots.prepare()
                self._tidy()
                if self._silent.is_set() and self._client.round_trip(self._config.patience_s):
                    self._silent.clear()
                with self._lock:
                    self._filters.save(only_changes=True)
                backoff.reset()
            except StoreError as error:
                pause_s = backoff.next()
                if self._client.is_up:
                    _log.warning("%s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
                self._work.set()
            finally:
                self._busy = False

    def _tidy(self) -> None:
        with self._lock:
            for topic_filter in self._interest.drop_unwanted(self._filters.all()):
                self._filters.remove(topic_filter)
                self._client.unsubscribe(topic_filter)
        behind = self._interest.behind()
        for at in range(0, len(behind), _AT_ONCE):
            if self._stop.is_set():
                return
            self._catch_up(behind[at : at + _AT_ONCE])

    def _catch_up(self, behind: list[str]) -> None:
        accepted = self._subscribing.all(behind)
        # There may be as many filters as there are retained publications: neither is looked at for each of the other.
        wanted = FilterTree()
        for number, topic_filter in enumerate(accepted):
            wanted.add(topic_filter.removeprefix(self._config.prefix), number)
        found = self._snapshots.take(*accepted) if accepted else []
        with self._edge.retained() as kept:
            here = [retained for retained in kept if wanted.match(retained.topic_string)]
            news = self._differences(found, here) if accepted else []
        told = usable(news, self._config.native_user, datetime.now(UTC))
        if told:
            intake = self._edge.intake()
            try:
                intake.put([native for native, _ in told])
            finally:
                intake.close()
        with self._lock:
            for topic_filter in accepted:
                if self._interest.settle(topic_filter):
                    self._filters.acknowledge(topic_filter)
