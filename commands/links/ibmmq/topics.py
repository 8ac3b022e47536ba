"""The link between a queue manager's topic space and IBM MQ's topic tree (``TopicLink``).

The threads are those of the link to an MQTT broker (``commands.links.mqtt.link``): inward, outward, keeper. Where the
queues are IBM MQ's too, what goes out is got and published in one unit of work, and so is what comes in: nothing is
lost and nothing comes twice. Where they are embedded, either may come twice after a crash.

IBM MQ tells nobody that a retained publication was cleared. So what is retained there is looked up when a subscriber
registers or asks (ReqUpdate), and not believed for longer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from commands.broker.puts import Outgoing
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import TopicsConfig
from commands.links.engine.filter_registry import Interest
from commands.links.engine.inbound_writer import Intake, Putter
from commands.links.engine.link_stores import Edge
from commands.links.engine.message_for_tree import clearing, publishing
from commands.links.engine.questions import Questions
from commands.links.engine.quiescence import PARDON_S, Looks, settled
from commands.links.engine.retained import differences, usable
from commands.links.engine.threads import LinkState, Threads
from commands.links.ibmmq.abilities import CAPABILITIES
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.outbound_pump import MqOutflow
from commands.links.ibmmq.publications import native_of
from commands.links.ibmmq.reasons import MQRC_NOT_AUTHORIZED, ConnectionLostError, MqError
from commands.links.ibmmq.tree import Retained, Selection, Tree
from commands.links.ibmmq.unit import MqUnit
from commands.qmgr.link_port import Capability
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import CommandError, DecodeError, StoreError
from rfh2.mqmd import Mqmd
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Effect,
    Operation,
    PublishToTopic,
    RequestRetained,
    RetainedCleared,
    Subscribe,
)
from streams.patterns import parse_pattern
from streams.port import TopicSpaceView
from streams.subscriptions import Subscription

_log = logging.getLogger("qpubsub.mq")

_IDLE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Question:
    """What the tree retains under a selection; subscribe: and to have it send what is published there from now on."""

    selection: Selection
    subscribe: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """retained: what the tree retains, None where it did not say. has: whether it has the selection."""

    retained: Retained | None = None
    has: bool = False


class MqTopicLink:
    """The link; start it, use it from the processor's thread, stop it.

    messages: makes a connection to the tree. putter: puts native publications, and what is none, into a unit of work.
    together: whether the queues are the same queue manager's, and so one unit of work does for both.
    """

    def __init__(
        self,
        messages: Callable[[], MqMessages],
        config: TopicsConfig,
        qmgr: str,
        edge: Edge,
        putter: Putter,
        together: bool,
    ) -> None:
        self._config, self._qmgr, self._edge, self._messages = config, qmgr, edge, messages
        self._putter, self._together = putter, together
        self._interest: Interest[Selection] = Interest(self._selection)
        self._mine = Tree(messages(), config)
        self._had: set[Selection] = set()
        self._looked = False
        self._work, self._stop = threading.Event(), threading.Event()
        self._threads = Threads(_log)
        self._questions: Questions[_Question, _Answer] = Questions(self._asked, self._unused)
        # When IBM MQ may be asked again after it did not answer; what is not known by then the keeper finds out.
        self._silent_until = 0.0
        self._looks, self._keeper_looks = Looks(), Looks()
        self._busy = False
        self._outflow = MqOutflow(messages, config, edge.spool, together, self._stop)

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
        selection = question.selection
        if question.subscribe and not self._questions.has(question) and not self._interest.needs(selection):
            return ()
        answer = self._questions.answer(question)
        if question.subscribe:
            self._interest.answered(selection, answer.has)
        if answer.retained is None:
            return ()
        known = space.retained(selection.topic_string, selection.wildcard, now)
        news = differences(answer.retained.natives, set(answer.retained.topics), known)
        return [told for _, told in usable(news, self._config.native_user, now)]

    def foresee(self, operation: Operation) -> None:
        question = self._question(operation)
        if question is not None and (not question.subscribe or self._interest.needs(question.selection)):
            self._questions.note(question)

    def ask(self) -> bool:
        return self._questions.ask()

    def after(self, operation: Operation, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        self._interest.note(effects)
        keep = self._config.local == "keep"
        if isinstance(operation, PublishToTopic):
            if operation.retain:
                self._questions.forget()
            if operation.publication.local and keep:
                return ()
            return (publishing(operation, self._qmgr, self.outgoing_queue),)
        if isinstance(operation, ClearRetained) and not (operation.local and keep):
            topics = [effect.topic_string for effect in effects if isinstance(effect, RetainedCleared)]
            if not _is_wild(operation):
                literal = parse_pattern(operation.topic_string, operation.wildcard).literal
                topics = list(dict.fromkeys((*topics, literal)))
            return tuple(clearing(topic, self._qmgr, self.outgoing_queue, operation.local) for topic in topics)
        return ()

    def noticed(self, effects: Sequence[Effect]) -> None:
        self._interest.note(effects)

    def committed(self) -> None:
        self._questions.committed()
        _, changed = self._interest.committed()
        if changed:
            self._work.set()

    def follow(self, subscriptions: Iterable[Subscription]) -> None:
        self._interest.follow(subscriptions)
        self._work.set()

    # Its life

    def start(self, ended: Callable[[], None] = lambda: None) -> None:
        """Begin to carry publications. ended: called when that cannot go on; ``fault`` says why."""
        self._threads.start(ended, inward=self._inward, outward=self._outflow.run, keeper=self._keeper)

    def stop(self) -> None:
        """Finish what is at hand, and disconnect; the subscriptions stay."""
        self._stop.set()
        self._work.set()
        self._threads.join(self._config.patience_s + 5)
        self._mine.close()

    def wait_up(self, timeout_s: float) -> bool:
        """Connections are made when they are needed."""
        del timeout_s
        return True

    def settle(self, stop: threading.Event) -> bool:
        """Wait until both sides have all that there was for them; False where *stop* or an unreachable tree ends it.

        Raises nothing: what is left waits where it is safe.
        """
        return settled((self._looks, self._outflow.looks), lambda: self.is_idle, self._config.patience_s, stop)

    @property
    def trouble(self) -> str:
        """What went wrong last in one of the threads; nothing where it was done since."""
        return self._looks.trouble or self._outflow.looks.trouble or self._keeper_looks.trouble

    @property
    def fault(self) -> str:
        """Why the link has ended by itself; nothing where it has not."""
        return self._threads.fault

    @property
    def state(self) -> LinkState:
        """What ``status`` shows of it."""
        return LinkState(not self.trouble, self.trouble)

    @property
    def refused(self) -> int:
        """How many publications the tree would not have; they are dead letters."""
        return self._outflow.looks.refused

    @property
    def is_idle(self) -> bool:
        """Whether no selection waits to be settled."""
        return not self._busy and not self._work.is_set() and not self._interest.behind()

    # Subscriptions

    def _selection(self, subscription: Subscription) -> Selection | None:
        if subscription.options.local and self._config.local == "keep":
            return None
        try:
            parse_pattern(subscription.topic_string, subscription.wildcard)
        except CommandError:
            return None  # the topic space will say so
        return Selection.of(subscription)

    def _question(self, operation: Operation) -> _Question | None:
        if isinstance(operation, Subscribe | AlterSubscription | RequestRetained):
            selection = self._selection(operation.subscription)
            return None if selection is None else _Question(selection, not isinstance(operation, RequestRetained))
        if isinstance(operation, ClearRetained) and _is_wild(operation):
            return _Question(Selection(operation.topic_string, operation.wildcard), subscribe=False)
        return None

    def _asked(self, questions: Sequence[_Question]) -> dict[_Question, _Answer]:
        return {question: self._answer(question) for question in questions}

    def _answer(self, question: _Question) -> _Answer:
        selection = question.selection
        if question.subscribe and not self._interest.ask(selection):
            return _Answer()
        if time.monotonic() < self._silent_until:
            return _Answer()
        try:
            if question.subscribe:
                with self._interest.lock:
                    self._had.add(selection)
                self._mine.subscribe(selection)
            return _Answer(self._mine.retained(selection), has=True)
        except StoreError as error:
            if not isinstance(error, MqError) or isinstance(error, ConnectionLostError):
                self._silent_until = time.monotonic() + self._config.patience_s
            if question.subscribe:
                self._failed(selection, error)
            else:
                _log.warning("what IBM MQ retains under %s is not known: %s", selection.topic_string, error)
        return _Answer()

    def _unused(self, question: _Question) -> None:
        if question.subscribe:
            self._interest.answered(question.selection, False)

    def _failed(self, selection: Selection, error: StoreError) -> None:
        if isinstance(error, MqError) and error.reason == MQRC_NOT_AUTHORIZED:
            self._interest.refuse(selection)
            _log.error("%s: native publications will not reach its subscribers", error)
        else:
            about = (error, selection.topic_string)
            _log.warning("%s; native publications under %s will come once it can be reached", *about)

    # The other threads

    def _keeper(self) -> None:
        tree = Tree(self._messages(), self._config)
        pause_s = 0.2
        pardon_at = time.monotonic() + PARDON_S
        while not self._stop.is_set():
            self._work.wait(1.0)
            if time.monotonic() >= pardon_at:
                pardon_at += PARDON_S
                if self._interest.pardon():
                    self._work.set()
            if not self._work.is_set() or self._stop.is_set() or not self._interest.is_known:
                self._stop.wait(0.05)
                continue
            self._busy = True
            self._work.clear()
            try:
                self._tidy(tree)
                self._keeper_looks.found(1)
                pause_s = 0.2
            except StoreError as error:
                self._keeper_looks.failed(error)
                _log.warning("subscriptions in IBM MQ wait: %s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, 30.0)
                self._work.set()
            finally:
                self._busy = False
        tree.close()

    def _tidy(self, tree: Tree) -> None:
        if not self._looked:
            self._find_again(tree)
        for selection in self._interest.drop_unwanted(self._had):
            # Under the lock, and only while nobody asks for it again: what is asked for is never taken back.
            with self._interest.lock:
                if not self._interest.is_wanted(selection):
                    tree.unsubscribe(selection.name(self._qmgr))
                    self._had.discard(selection)
        for selection in self._interest.behind():
            if self._stop.is_set():
                return
            self._catch_up(tree, selection)

    def _find_again(self, tree: Tree) -> None:
        """End the subscriptions that an earlier run has left and that nobody wants any more."""
        try:
            names = tree.existing()
        except MqError as error:
            if isinstance(error, ConnectionLostError):
                raise
            _log.warning("subscriptions of earlier runs cannot be listed: %s", error)
            names = []
        with self._interest.lock:
            wanted = {selection.name(self._qmgr) for selection in self._interest.wanted()}
            for name in names:
                if name not in wanted:
                    tree.unsubscribe(name)
                    _log.info("subscription %s of an earlier run is ended", name)
        self._looked = True

    def _catch_up(self, tree: Tree, selection: Selection) -> None:
        try:
            with self._interest.lock:
                self._had.add(selection)
            tree.subscribe(selection)
        except MqError as error:
            if isinstance(error, ConnectionLostError):
                raise
            self._failed(selection, error)
            return
        there = tree.retained(selection)
        pattern = parse_pattern(selection.topic_string, selection.wildcard)
        with self._edge.retained() as kept:
            here = [known for known in kept if pattern.matches(known.topic_string)]
            news = differences(there.natives, set(there.topics), here)
        told = usable(news, self._config.native_user, datetime.now(UTC))
        if told:
            intake = self._edge.intake()
            try:
                intake.put([native for native, _ in told])
            finally:
                intake.close()
        self._interest.settle(selection)

    def _inward(self) -> None:
        messages = self._messages()
        intake: Intake | None = None
        pause_s = 0.1
        while not self._stop.is_set():
            try:
                if not self._together and intake is None:
                    intake = self._edge.intake()
                count = self._one_batch(messages, intake)
                self._looks.found(count)
                if not count:
                    messages.wait_for_message(self._config.in_queue, _IDLE_S)
                pause_s = 0.1
            except StoreError as error:
                self._looks.failed(error)
                _log.error("native publications wait: %s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, 30.0)
        if intake is not None:
            intake.close()
        messages.close()

    def _one_batch(self, messages: MqMessages, intake: Intake | None) -> int:
        with messages.unit_of_work() as unit:
            natives: list[NativePublication] = []
            count = 0
            while count < self._config.batch and (message := unit.get(self._config.in_queue)) is not None:
                count += 1
                native = self._native(unit, message)
                if native is None:
                    continue
                natives.append(native)
                if intake is None:
                    self._putter.put(unit, native)
            if intake is not None and natives:
                # Committed here first: what MQ has not heard of as gone comes again.
                intake.put(natives)
            return count

    def _native(self, unit: MqUnit, message: StoredMessage) -> NativePublication | None:
        try:
            native, bridge = native_of(message.md, message.body, self._config.default_format)
        except Exception as error:
            # A fault of ours, unless it is a DecodeError: it must not keep what is behind it waiting.
            expected = isinstance(error, DecodeError)
            text = "a message on %s is no publication, and is put on the dead-letter queue: %s"
            _log.error(text, message.queue, error, exc_info=None if expected else error)
            reason = error.reason if isinstance(error, DecodeError) else MQRCCF_COMMAND_FAILED
            self._putter.set_aside(unit, Mqmd.decode(message.md), message.body, reason, message.queue)
            return None
        return None if bridge == self._qmgr else native


def _is_wild(operation: ClearRetained) -> bool:
    return parse_pattern(operation.topic_string, operation.wildcard).is_wild
