"""The two directions of a link: publications from the tree become commands, the outgoing queue goes into the tree.

``InboundPump`` takes publications, puts them as commands, and accepts them after that. It takes others again.

If the unit of work in which the publications were got has the queue manager's queues too, the commands are put in it:
no publication is lost or comes twice. Otherwise they are committed here first: after a crash they may come twice,
unless the position behind them is committed with them (``commands.links.engine.inbound_writer``).

``OutboundPump`` sends the outgoing queue to the tree, in order and at least once; the tree's answer removes a message.

The pump takes an interrupted batch again. It skips the messages that the tree has answered, and sends the others
again; after a restart of the process it sends all of them again. If the tree has units of work, it always sends all
of them again, because the tree backed them out. Messages that the tree refuses or can never take go on the
dead-letter queue.

A message for which the tree does not answer must not keep those behind it waiting for ever. The pump takes more
behind those that are answered. A message that had no answer in three rounds, while in each of them the tree
answered for one behind it that asks for the same (to publish, to retain, to clear), goes on the dead-letter queue.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Generic, NamedTuple

from commands.links.engine import adapter as trees
from commands.links.engine.inbound_writer import InboundWriter, NewerTopics
from commands.links.engine.properties import for_tree, is_clearing
from commands.links.engine.spool import LinkStores, Refused, Spool, message_key
from commands.links.engine.threads import Backoff, IdleCounter
from commands.qmgr.link_port import Feature, How
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRC_FORMAT_ERROR, MQRCCF_COMMAND_FAILED
from rfh2.errors import DecodeError, StoreError

IDLE_S = 0.5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0


class InboundPump:
    """A thread's work, until *stop* is set.

    batch: the most publications in one unit of work. newer: told of what comes, for the keeper.
    """

    def __init__(
        self,
        receiver: trees.Receiver,
        stores: LinkStores,
        batch: int,
        log: logging.Logger,
        stop: threading.Event,
        newer: NewerTopics,
    ) -> None:
        self._receiver, self._stores, self._batch, self._log, self._stop = receiver, stores, batch, log, stop
        self._newer = newer
        self._writer: InboundWriter | None = None
        self.counter = IdleCounter()

    def run(self) -> None:
        """The thread's work."""
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stop.is_set():
            try:
                self.counter.found(self._one_batch())
                backoff.reset()
            except StoreError as error:
                self.counter.failed(error)
                self._receiver.undo()
                pause_s = backoff.next()
                self._log.error("native publications wait: %s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
        if self._writer is not None:
            self._writer.close()
        self._receiver.close()

    def _one_batch(self) -> int:
        arrivals = self._receiver.take(self._batch, IDLE_S)
        if not arrivals.count and arrivals.position is None:
            return 0
        with self._newer.turn:
            self._newer.note(arrivals.publications)
            if arrivals.unit is not None:
                self._stores.putter.put_all(arrivals.unit, arrivals.publications)
            elif arrivals.publications or arrivals.position is not None:
                if self._writer is None:
                    self._writer = self._stores.writer()
                self._writer.put(arrivals.publications, arrivals.position)
            self._receiver.accept()
        return arrivals.count


# How often a message has no answer while one behind it has, until it is set aside: once may be an accident.
_ROUNDS: Final = 3
# Batches in memory, while one message keeps those behind it on the outgoing queue.
_MOST_BATCHES: Final = 3


class _Asked(NamedTuple):
    """What a message on its way asks of the tree."""

    topic: str
    clear: bool
    retain: bool


class OutboundPump(Generic[trees.F, trees.P]):
    """A thread's work, until *stop* is set. batch: the most publications to take together."""

    def __init__(
        self, adapter: trees.Adapter[trees.F, trees.P], stores: LinkStores, batch: int, stop: threading.Event
    ) -> None:
        self._adapter, self._stores, self._batch, self._stop = adapter, stores, batch, stop
        self._log = adapter.log
        self._in_unit_of_work = trees.how(adapter.capabilities, Feature.UNIT_OF_WORK) is How.DOES
        # For each answered message still on the outgoing queue, by its key: why the tree refused it, None if it has it.
        self._answers: dict[bytes, int | None] = {}
        # For each message that had no answer while one behind it had: in how many rounds.
        self._unanswered: dict[bytes, int] = {}
        self.counter = IdleCounter()

    def run(self) -> None:
        """The thread's work."""
        spool: Spool | None = None
        sender: trees.Sender[trees.P] | None = None
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stop.is_set():
            try:
                if not self._adapter.wait_up(IDLE_S):
                    continue
                if spool is None:
                    spool = self._stores.spool()
                if sender is None:
                    sender = self._adapter.sender(spool, self._stop)
                if self.one_batch(spool, sender) == 0:
                    spool.wait(IDLE_S)
                backoff.reset()
            except StoreError as error:
                if spool is not None:
                    spool.undo()
                if isinstance(error, trees.TreeUnreachableError) and self._adapter.is_up is not None:
                    # The adapter logs this itself, with the time of the next try.
                    self._stop.wait(FIRST_PAUSE_S)
                    continue
                self.counter.failed(error)
                pause_s = backoff.next()
                text = "publications wait for %s: %s; the next try is in %.1f seconds"
                self._log.error(text, self._adapter.name, error, pause_s)
                self._stop.wait(pause_s)
        if spool is not None:
            spool.close()
        if sender is not None:
            sender.close()

    def one_batch(self, spool: Spool, sender: trees.Sender[trees.P]) -> int:
        """Send some waiting messages; returns how many. Raises StoreError: then the caller must undo the take."""
        messages = self._taken(spool)
        if messages:
            if self._in_unit_of_work:
                self._answers.clear()
            waiting: dict[bytes, _Asked] = {}
            try:
                for sent in sender.send(self._waiting(messages, sender, waiting)):
                    if sent.reason is not None:
                        self._log.error("%s: it is put on the dead-letter queue", sent.why)
                    self._answers[message_key(sent.message)] = sent.reason
            except trees.UnansweredError as error:
                self._set_aside(messages, waiting, error.keys)
                raise
            refused = self._refused(messages)
            spool.done(refused)
            self.counter.refused += len(refused)
            self._answers.clear()
            self._unanswered.clear()
            sender.done()
        self.counter.found(len(messages))
        return len(messages)

    def _taken(self, spool: Spool) -> list[StoredMessage]:
        if not self._in_unit_of_work:
            return spool.take(min(self._batch + len(self._answers), _MOST_BATCHES * self._batch))
        messages = spool.take(self._batch)
        until = next((at for at, each in enumerate(messages) if is_clearing(each.md, each.body)), None)
        if until is None:
            return messages
        # A clear is in no unit of work: so send the messages before the first clear alone, or the clear alone.
        spool.undo()
        return spool.take(max(until, 1))

    def _waiting(
        self, messages: Sequence[StoredMessage], sender: trees.Sender[trees.P], waiting: dict[bytes, _Asked]
    ) -> Iterator[trees.Waiting[trees.P]]:
        """Those of *messages* that must be sent; one after the other, because together they may be large.

        waiting: gets what each of them asks for.
        """
        for message in messages:
            key = message_key(message)
            if key in self._answers:
                continue
            try:
                wanted = for_tree(message.md, message.body)
                prepared = sender.prepare(wanted)
            except trees.NotCarriedError as error:
                self._log.error("%s: it is put on the dead-letter queue", error)
                self._answers[key] = error.reason
                continue
            except Exception as error:
                # A fault of ours, unless it is a DecodeError: it must not block the messages behind it.
                expected = isinstance(error, DecodeError)
                text = "message %d on %s is put on the dead-letter queue: %s"
                about = (message.seq, message.queue, error)
                self._log.error(text, *about, exc_info=None if expected else error)
                self._answers[key] = MQRC_FORMAT_ERROR if expected else MQRCCF_COMMAND_FAILED
                continue
            if prepared is None:
                continue
            if prepared.lost:
                lost = ", ".join(prepared.lost)
                self._log.warning("topic %s: to %s without %s", wanted.topic, self._adapter.name, lost)
            waiting[key] = _Asked(wanted.topic, wanted.clear, wanted.retain)
            yield trees.Waiting(message, wanted, prepared.item)

    def _set_aside(
        self, messages: Sequence[StoredMessage], waiting: dict[bytes, _Asked], unanswered: Collection[bytes]
    ) -> None:
        """Note which of *messages* had no answer while one behind it had; make a dead letter of what never has one."""
        answered: set[tuple[bool, bool]] = set()
        for message in reversed(messages):
            key = message_key(message)
            asked = waiting.get(key)
            if asked is None:
                continue
            kind = (asked.clear, asked.retain)
            if key in self._answers:
                answered.add(kind)
            elif key in unanswered and kind in answered:
                self._unanswered[key] = self._unanswered.get(key, 0) + 1
                if self._unanswered[key] == _ROUNDS:
                    text = "topic %.200s: %s answers for publications after this one, and not for this one"
                    self._log.error(f"{text}: it is put on the dead-letter queue", asked.topic, self._adapter.name)
                    self._answers[key] = MQRCCF_COMMAND_FAILED

    def _refused(self, messages: Sequence[StoredMessage]) -> list[Refused]:
        answered = ((message, self._answers.get(message_key(message))) for message in messages)
        return [Refused(message, reason) for message, reason in answered if reason is not None]
