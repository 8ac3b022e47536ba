"""What a kind of topic tree has to say for the engine (``commands.links.engine.link``) to link queue managers to it.

The engine has the threads, the order of commits, the tries and pauses, and the bookkeeping of filters; it decides what
is looked up, what is published and what is a dead letter. An adapter makes calls:

    Adapter      what the tree is and can do, and its names for topics; makes the three below
    TreeClient   calls that somebody waits for: subscribe, unsubscribe, look up what is retained      one a thread
    Receiver     what the tree has sent: take, then accept or undo                                    thread inward
    Sender       what goes to the tree: prepare, then send, and what became of each                   thread outward

F is a filter: whatever the tree subscribes by, an MQTT filter or a topic string with its wildcard scheme. P is a
publication as the tree's client library takes it.

Which of several ways the engine goes is in the table of capabilities that docs/live-brokers.md shows:

    Feature.RETAIN         done or emulated    what the tree retains is looked up; else the tree is never asked for it
    Feature.REQUEST        done                looked up again for each ReqUpdate, for nobody says that it was cleared
                           emulated            what is kept here is what the tree retains: it sends each change
    Feature.CLEAR          done or emulated    DeletePub goes to the tree
    Feature.UNIT_OF_WORK   done                what is sent counts once all of it is committed; a clear is in no unit
                                               of work, so what was published before is committed first
                           else                each publication counts once it is answered for, and is not sent again

An adapter raises ``TreeUnreachableError`` (or any other StoreError) where a call may be tried again: the engine does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.inbound_writer import Unreadable
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.retained import TreeRetained
from commands.links.engine.spool import Spool, message_key
from commands.qmgr.link_port import Capability, Feature, How
from commands.qmgr.store.port import Queues, StoredMessage
from rfh2.errors import QPubSubError, StoreError
from streams.subscriptions import WildcardScheme

F = TypeVar("F", bound=Hashable)
P = TypeVar("P")


class TreeUnreachableError(StoreError):
    """The tree cannot be reached now, or does not answer; what was asked may be tried again."""


class TreeRefusedError(StoreError):
    """The tree answers, and will not look up what it retains. lasting: nor soon, so that it is not asked again now."""

    def __init__(self, why: str, lasting: bool = False) -> None:
        super().__init__(why, lasting)
        self.why, self.lasting = why, lasting

    def __str__(self) -> str:
        return self.why


class NotCarriedError(QPubSubError):
    """A publication that the tree can never take. reason: MQRC_* or MQRCCF_*, for its dead letter."""

    def __init__(self, reason: int, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why

    def __str__(self) -> str:
        return self.why


class FilterAnswer(Enum):
    """What the tree says to a subscription. LATER: nothing yet; the engine asks again when there is a reason to."""

    ACCEPTED = "accepted"
    LATER = "later"
    REJECTED = "rejected"
    BANNED = "never to be asked for again: the tree ends the connection over it"


@dataclass(frozen=True, slots=True)
class Subscribed(Generic[F]):
    """What the tree says to a subscription by *filter*. why: for the log, "" where there is nothing to say."""

    filter: F
    answer: FilterAnswer = FilterAnswer.ACCEPTED
    why: str = ""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What the tree has sent. count: of all that came, also what is no news. publications: what is news, in order.

    unit: the unit of work in which they were got, where the queue manager's queues are in it too, so that they are put
    there; None where they are not.
    """

    publications: Sequence[NativePublication | Unreadable] = ()
    count: int = 0
    unit: Queues | None = None


@dataclass(frozen=True, slots=True)
class Prepared(Generic[P]):
    """A publication for the tree's client library. lost: what of it the tree has no room for, in words."""

    item: P
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting(Generic[P]):
    """A message off the outgoing queue, what it asks for, and that for the tree's client library."""

    message: StoredMessage
    wanted: ForTree
    item: P

    @property
    def key(self) -> bytes:
        """Which message it is, also when it is taken again."""
        return message_key(self.message)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of *message*. reason: None where the tree has it; else MQRC_*, *why* says what happened."""

    message: StoredMessage
    reason: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Engine(Generic[F]):
    """What an adapter may ask of its engine.

    lock: held while it changes which filters there are; the engine holds it when it unsubscribes. Reentrant. wanted:
    the filters that some subscription needs, or is about to. connected: to be called for each new connection of an
    adapter that keeps one, with whether the tree remembers its filters; what it has forgotten is subscribed to again.
    """

    lock: threading.RLock
    wanted: Callable[[], Collection[F]]
    connected: Callable[[bool], None]


class TreeClient(Protocol[F]):
    """Calls of the tree for one thread, which waits for the answers. Each raises StoreError where none comes."""

    def prepare(self) -> None:
        """Called by the keeper before it changes anything: connect, end what an earlier run has left unwanted."""

    def subscribe(self, filters: Sequence[F], urgent: bool) -> Iterator[Subscribed[F]]:
        """Have the tree send what *filters* select, and say of each what it answered.

        One that the tree has already is accepted.

        urgent: a command waits for it; what may take long is answered with LATER and left to the keeper. May raise
        TreeUnreachableError after some answers, which hold.
        """

    def unsubscribe(self, topic_filter: F) -> None:
        """Have the tree send it no more; nothing where it has no such filter."""

    def retained(self, filters: Sequence[F]) -> TreeRetained:
        """What the tree retains now on topics that any of *filters* selects. Raises TreeRefusedError too."""

    def answers(self) -> bool:
        """Whether the tree has answered, and sent what it had to send before: a round trip."""

    def close(self) -> None:
        """Give back what the calls need."""


class Receiver(Protocol):
    """What the tree has sent for the queue manager."""

    @property
    def is_waiting(self) -> bool:
        """Whether something has come that nobody has taken yet, as far as is known without a call."""

    def take(self, limit: int, timeout_s: float) -> Arrivals:
        """The first *limit* at most; waits up to timeout_s where there is nothing. Raises StoreError.

        What was taken before must have been accepted or undone.
        """

    def accept(self) -> None:
        """What was taken is safe here: the tree may forget it. Raises StoreError; then it comes again."""

    def undo(self) -> None:
        """What was taken is not safe here: it is taken again. Raises nothing."""

    def close(self) -> None:
        """Give back what it needs."""


class Sender(Protocol[P]):
    """What goes to the tree, in the order of the outgoing queue."""

    def prepare(self, wanted: ForTree) -> Prepared[P] | None:
        """*wanted* for the client library; None where there is nothing to send. Raises NotCarriedError.

        No call of the tree: what else goes wrong here is a fault of the bridge, and makes this one a dead letter.
        """

    def send(self, batch: Iterable[Waiting[P]]) -> Iterator[Sent]:
        """Send each of *batch*, in order, and say what became of it once that is known. Raises StoreError.

        After an exception the engine calls again with what nobody has answered for; where Feature.UNIT_OF_WORK is done,
        with all of it.
        """

    def done(self) -> None:
        """The whole batch has left the outgoing queue."""

    def close(self) -> None:
        """Give back what it needs."""


class Adapter(Protocol[F, P]):
    """A kind of topic tree.

    kind: "MQTT", for messages: no MQTT topic. name: "the MQTT broker", for messages: it refuses this and that. log:
    where all about such trees is logged. filters_at_once: how many are subscribed to and looked up together; what goes
    wrong with one may go wrong with all of them.
    """

    kind: str
    name: str
    log: logging.Logger
    filters_at_once: int
    capabilities: tuple[Capability, ...]

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> F | None:
        """The filter that selects all that this pattern does, or more; None where nothing there can be selected by it.

        Raises CommandError where it is no pattern.
        """

    def pattern_of(self, topic_filter: F) -> tuple[str, WildcardScheme]:
        """The pattern, in topic strings of the queue manager, of what *topic_filter* selects."""

    def matcher(self, filters: Sequence[F]) -> Callable[[str], Sequence[F]]:
        """A function that says which of *filters* select a topic string; there may be thousands of both."""

    def why_stays(self, topic_string: str) -> str | None:
        """Why publications on it concern nobody in the tree, None where they do."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """Why the tree can have nothing on it, None where it can; at least ``why_stays``."""

    # Its life

    def attach(self, engine: Engine[F]) -> None:
        """The engine that uses it; called once, before anything that follows."""

    def start(self) -> None:
        """Begin to connect, where a connection is kept."""

    def stop(self) -> None:
        """Disconnect; what the tree keeps for the bridge stays. The threads of the engine have ended."""

    @property
    def is_up(self) -> bool | None:
        """Whether there is a connection now; None where none is kept: it is made when it is needed."""

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one. True at once where none is kept."""

    @property
    def trouble(self) -> str:
        """Why there is no connection, "" where there is one or none is kept."""

    @property
    def next_try_s(self) -> float | None:
        """The pause before the next try to connect, in seconds; None where there is none."""

    # Filters

    def remembered(self) -> Collection[F]:
        """Filters that the tree is known to have since an earlier run, with all it retained there known here."""

    def held(self) -> Collection[F]:
        """Filters that the tree has, or may have."""

    def synced(self, filters: Iterable[F]) -> None:
        """The tree has these, and what it retained there is committed here: ``remembered`` after a restart."""

    def save(self) -> None:
        """Write down what has to outlive the process, where it has changed. Raises StoreError."""

    # Calls

    def client(self) -> TreeClient[F]:
        """Calls for one thread."""

    def receiver(self) -> Receiver:
        """What comes; asked for once."""

    def sender(self, spool: Spool, stop: threading.Event) -> Sender[P]:
        """What goes, off *spool*, which may be the tree's own and one unit of work with it. stop: ends every wait."""


def how(capabilities: Iterable[Capability], feature: Feature) -> How:
    """How an adapter says that *feature* is done; LOST where it says nothing."""
    return next((each.how for each in capabilities if each.feature is feature), How.LOST)


def carries(capabilities: Iterable[Capability], feature: Feature) -> bool:
    """Whether it is done, by the tree or by the bridge."""
    return how(capabilities, feature) in (How.DOES, How.EMULATED)
