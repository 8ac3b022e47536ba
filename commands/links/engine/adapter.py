"""The interface of a kind of topic tree: the engine (``commands.links.engine.link``) links queue managers by it.

The engine has the threads, the order of commits, the tries and pauses, and the record of filters. It decides what to
look up, what to publish and which message becomes a dead letter. An adapter makes the calls:

    Adapter      what the tree is and can do, and its names for topics; makes the three below
    TreeClient   calls that somebody waits for: subscribe, unsubscribe, look up what is retained      one a thread
    Receiver     what the tree has sent: take, then accept or undo                                    thread inward
    Sender       what goes to the tree: prepare, then send, and what became of each                   thread outward

F is a filter: whatever the tree subscribes by, an MQTT filter or a topic string with its wildcard scheme. P is a
publication as the tree's client library takes it.

The capabilities of a tree decide how the engine works (docs/live-brokers.md shows the table):

    Feature.RETAIN         done or emulated    the engine looks up what the tree retains; else it never asks
    Feature.REQUEST        done                it looks it up again for each ReqUpdate: the tree reports no clearing
                           emulated            the tree sends each change, so the copy kept here is current
    Feature.CLEAR          done or emulated    DeletePub goes to the tree
    Feature.UNIT_OF_WORK   done                publications count as sent after their commit; a clear is in no
                                               unit of work, so the engine first commits what it published before
                           else                each one counts as sent when the tree has answered for it

An adapter raises ``TreeUnreachableError`` (or any other StoreError) where the engine may try the call again.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from commands.config.settings import ConfigError, TopicsConfig
from commands.links.engine.filters import Positions
from commands.links.engine.inbound_writer import NativePublication, TreeRetained, Unreadable
from commands.links.engine.properties import ForTree
from commands.links.engine.spool import Spool, message_key
from commands.qmgr.link_port import Capability, Feature, How
from commands.qmgr.store.port import Queues, StoredMessage
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q
from rfh2.errors import QPubSubError, StoreError, system_words
from streams.subscriptions import WildcardScheme

F = TypeVar("F", bound=Hashable)
P = TypeVar("P")


class TreeUnreachableError(StoreError):
    """The tree cannot be reached now, or does not answer; the engine may try the call again."""


class UnansweredError(TreeUnreachableError):
    """The tree has not answered for some publications, while it answers for others.

    keys: of the messages (``message_key``) for which it has said nothing at all, not even to try again later.
    """

    def __init__(self, why: str, keys: Collection[bytes]) -> None:
        super().__init__(why, keys)
        self.why, self.keys = why, keys

    def __str__(self) -> str:
        return self.why


class TreeRefusedError(StoreError):
    """The tree refuses to look up what it retains. lasting: it will refuse soon again, so do not ask it again now."""

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


def too_large(topic: str, size: int, most: int, taker: str) -> NotCarriedError:
    """The error for a publication of *size* bytes, of which *taker* takes *most*."""
    return NotCarriedError(MQRC_MSG_TOO_BIG_FOR_Q, f"topic {topic:.200}: {size} bytes, {taker} takes {most}")


class FilterAnswer(Enum):
    """The answer of the tree to a subscription. LATER: none yet; the engine asks again when it has a reason."""

    ACCEPTED = "accepted"
    LATER = "later"
    REJECTED = "rejected"
    BANNED = "never to be asked for again: the tree ends the connection over it"


@dataclass(frozen=True, slots=True)
class Subscribed(Generic[F]):
    """The answer of the tree to a subscription by *filter*. why: a text for the log, "" for none."""

    filter: F
    answer: FilterAnswer = FilterAnswer.ACCEPTED
    why: str = ""


@dataclass(frozen=True, slots=True)
class TreeArrivals:
    """Publications that the tree has sent. count: how many came in all. publications: the new ones, in order.

    unit: the unit of work in which they were got, if it has the queue manager's queues too; then the commands are put
    in it. Else None. position: behind them, for a tree that does not remember it; kept in the unit of work of the
    commands (``Engine.position``), also where there are none. None for what needs none.
    """

    publications: Sequence[NativePublication | Unreadable] = ()
    count: int = 0
    unit: Queues | None = None
    position: Positions | None = None


class Prepared(NamedTuple, Generic[P]):
    """A publication for the tree's client library. lost: the parts that the tree has no field for, in words."""

    item: P
    lost: tuple[str, ...] = ()


class Waiting(NamedTuple, Generic[P]):
    """A message from the outgoing queue, its request, and the form of it for the tree's client library."""

    message: StoredMessage
    wanted: ForTree
    item: P

    @property
    def key(self) -> bytes:
        """Which message it is, also when it is taken again."""
        return message_key(self.message)


class Sent(NamedTuple):
    """The result for *message*. reason: None if the tree has it; else MQRC_*, and *why* says what happened."""

    message: StoredMessage
    reason: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Engine(Generic[F]):
    """What an adapter may use of its engine.

    lock: the adapter holds it while it changes its filters; the engine holds it when it unsubscribes. Reentrant.
    wanted: the filters that a subscription needs, or will need. connected: an adapter that keeps a connection calls it
    for each new one, and says whether the tree remembers its filters; the engine subscribes again to forgotten ones.
    position: that of the last ``TreeArrivals`` committed, by this process or an earlier one; raises StoreError.
    """

    lock: threading.RLock
    wanted: Callable[[], Collection[F]]
    connected: Callable[[bool], None]
    position: Callable[[], Positions | None]


class TreeClient(Protocol[F]):
    """Calls to the tree from one thread, which waits for the answers. Each raises StoreError if no answer comes."""

    def prepare(self) -> None:
        """The keeper calls this before it changes anything: connect, end unwanted subscriptions of earlier runs."""

    def subscribe(self, filters: Sequence[F], urgent: bool) -> Iterator[Subscribed[F]]:
        """Subscribe to *filters* at the tree, and return its answer to each.

        A filter that the tree already has is accepted.

        urgent: a command waits for the answer. If a filter may take long, the answer is LATER and the keeper does it.
        May raise TreeUnreachableError after some answers; those answers are valid.
        """

    def unsubscribe(self, topic_filter: F) -> None:
        """Unsubscribe from the filter; do nothing if the tree has no such filter."""

    def retained(self, filters: Sequence[F]) -> TreeRetained:
        """What the tree retains now on the topics that any of *filters* selects. Raises TreeRefusedError too."""

    def answers(self) -> bool:
        """Make a round trip: whether the tree has answered, after it sent all that it had to send before."""

    def close(self) -> None:
        """Release the resources of the calls."""


class Receiver(Protocol):
    """The publications that the tree has sent to the queue manager."""

    @property
    def is_waiting(self) -> bool:
        """Whether publications have come that ``take`` has not returned yet, as far as is known without a call."""

    def take(self, limit: int, timeout_s: float) -> TreeArrivals:
        """Take at most the first *limit*; wait up to timeout_s if there is none. Raises StoreError.

        The caller has accepted or undone what it took before.
        """

    def accept(self) -> None:
        """The publications taken are safe here: the tree may forget them. If it raises StoreError, they come again."""

    def undo(self) -> None:
        """The publications taken are not safe here: ``take`` returns them again. Raises nothing."""

    def close(self) -> None:
        """Give back what it needs."""


class Sender(Protocol[P]):
    """Sends publications to the tree, in the order of the outgoing queue."""

    def prepare(self, wanted: ForTree) -> Prepared[P] | None:
        """*wanted* in the form of the client library; None if there is nothing to send. Raises NotCarriedError.

        It does not call the tree: any other exception is a fault of the bridge, and this one becomes a dead letter.
        """

    def send(self, batch: Iterable[Waiting[P]]) -> Iterator[Sent]:
        """Send each of *batch*, in order, and give the result of each when it is known. Raises StoreError.

        After an exception the engine calls again with those that have no result; with all of them if
        Feature.UNIT_OF_WORK is done. A sender that does not wait for one answer before it sends the next one raises
        UnansweredError where answers are missing: the engine then sets aside what the tree never answers for.
        """

    def done(self) -> None:
        """The whole batch has left the outgoing queue."""

    def close(self) -> None:
        """Give back what it needs."""


class Adapter(Protocol[F, P]):
    """A kind of topic tree.

    kind: "MQTT", for messages: no MQTT topic. name: "the MQTT broker", for messages: it refuses this and that. log:
    the logger for such trees. filters_at_once: how many filters to subscribe to and look up together; if one fails, all
    of them may fail. forgets_filters: whether a tree that still has the bridge's filters may have forgotten some.
    """

    kind: str
    name: str
    log: logging.Logger
    filters_at_once: int
    forgets_filters: bool
    capabilities: tuple[Capability, ...]

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> F | None:
        """The filter that selects at least what this pattern selects; None if it can select nothing in the tree.

        Raises CommandError if it is not a pattern.
        """

    def pattern_of(self, topic_filter: F) -> tuple[str, WildcardScheme]:
        """The pattern, in topic strings of the queue manager, of what *topic_filter* selects."""

    def matcher(self, filters: Sequence[F]) -> Callable[[str], Sequence[F]]:
        """A function that says which of *filters* select a topic string; there may be thousands of both."""

    def why_stays(self, topic_string: str) -> str | None:
        """Why publications on it do not go to the tree; None if they go there."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """Why the tree can have no publication on it, None if it can; includes the reasons of ``why_stays``."""

    # Its life

    def attach(self, engine: Engine[F]) -> None:
        """The engine that uses it; called once, before anything that follows."""

    def start(self) -> None:
        """Begin to connect, if the adapter keeps a connection."""

    def stop(self) -> None:
        """Disconnect; the tree keeps what it holds for the bridge. The threads of the engine have ended."""

    @property
    def is_up(self) -> bool | None:
        """Whether there is a connection now; None if the adapter keeps none and connects when it needs to."""

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one. True at once if the adapter keeps none."""

    @property
    def trouble(self) -> str:
        """Why there is no connection; "" if there is one, or if the adapter keeps none."""

    @property
    def next_try_s(self) -> float | None:
        """The pause before the next try to connect, in seconds; None where there is none."""

    # Filters

    def remembered(self) -> Collection[F]:
        """Filters that the tree has since an earlier run, and whose retained publications are known here."""

    def held(self) -> Collection[F]:
        """Filters that the tree has, or may have."""

    def synced(self, filters: Iterable[F]) -> None:
        """The tree has these, and its retained publications are committed here: ``remembered`` after a restart."""

    def save(self) -> None:
        """Write what the next process needs to a file, if it has changed. Raises StoreError."""

    # Calls

    def client(self) -> TreeClient[F]:
        """Calls for one thread."""

    def receiver(self) -> Receiver:
        """The receiver; the engine asks for it once."""

    def sender(self, spool: Spool, stop: threading.Event) -> Sender[P]:
        """The sender of what is on *spool*, which may be in one unit of work with the tree. stop: ends every wait."""


def how(capabilities: Iterable[Capability], feature: Feature) -> How:
    """How an adapter does *feature*; LOST if it says nothing."""
    return next((each.how for each in capabilities if each.feature is feature), How.LOST)


def carries(capabilities: Iterable[Capability], feature: Feature) -> bool:
    """Whether the tree or the bridge does it."""
    return how(capabilities, feature) in (How.DOES, How.EMULATED)


class Unconnected:
    """No connection to start, to stop, or to wait for."""

    def start(self) -> None:
        """Do nothing: the adapter keeps no connection."""

    def stop(self) -> None:
        """Do nothing: each thread has released what it needs."""

    @property
    def is_up(self) -> bool | None:
        return None

    def wait_up(self, timeout_s: float) -> bool:
        del timeout_s
        return True

    @property
    def trouble(self) -> str:
        return ""

    @property
    def next_try_s(self) -> float | None:
        return None


def client_context(config: TopicsConfig) -> ssl.SSLContext:
    """Which certificates are trusted, and the bridge's own. Raises ConfigError where a file is no good."""
    try:
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
    except OSError as error:
        files = ", ".join(str(path) for path in (config.ca_file, config.cert_file, config.key_file) if path)
        raise ConfigError("ca_file, cert_file, key_file", f"{files}: {system_words(error)}") from error
    return context


def why_unreachable(error: Exception, is_secure: bool, plain: str) -> str:
    """Why there is no connection. plain: the scheme without TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); see ca_file"
    why = system_words(error)
    if is_secure and isinstance(error, ssl.SSLError | ConnectionResetError):
        return f"the server there does not use TLS ({why}); try {plain}://"
    return why
