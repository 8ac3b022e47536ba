"""The port to a topic tree elsewhere: what the processor asks of the link between it and the queue manager's topics.

The rules stay in the queue manager: who is subscribed, under which identity, with which options, and what a subscriber
gets, is decided by the embedded topic space whether or not there is a link. The link carries publications across, in
both directions, and keeps the two sides' retained publications alike:

    legacy publisher ─> processor ─┬─> subscriber queues                     in one unit of work
                                   └─> the outgoing queue ─> the tree ─> native subscribers
    native publisher ─> the tree ─> a Publish command on the default stream's queue ─> processor ─> subscriber queues

An outgoing publication waits on a queue. The unit of work of its command puts it there, and the link removes it when
the tree has it. An incoming publication is a command like any other; the link puts it before it acknowledges it to the
tree. So nothing is lost if either side, or the bridge, ends in between. An incoming publication never goes out again,
because it has a mark (``NATIVE_MARK``).

The processor never waits for the tree inside a unit of work, because all other programs would wait too. If a command
needs something from the tree first, it stays on its queue, and the link asks the tree after the unit of work. Then the
processor processes the command with the answer, or knows that there is none:

    before() raises TreeNotAskedError ── the command is backed out, the rest commits ── fetch() ── the command again

Each link says with ``Capability`` what it does itself, what the bridge does instead, and what it does not carry.

The port to the servers of administration commands (``commands.mqsc.pcf``) and of MQSUB (``commands.qmgr.mqi``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from commands.broker.core import BrokerCore
from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing
from commands.headers.response import Completion
from commands.qmgr.store.port import UnitOfWork
from rfh2.errors import QPubSubError
from rfh2.layouts import MQMD1
from streams.operations import Effect, Operation, Published, RetainedPublication, UnreadPublication
from streams.subscribers import Identity
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObjects

# ApplOriginData of commands that stand for native publications: the one field of a descriptor that is the putter's own
# and that no subscriber is shown (guide 6.7.9).
NATIVE_MARK: Final = "TREE"
_ORIGIN_DATA: Final = MQMD1.slices()["ApplOriginData"]


def is_native(md: bytes) -> bool:
    """Whether the command with this descriptor stands for a publication that came from the tree."""
    return md[_ORIGIN_DATA] == NATIVE_MARK.encode()


def came_from_tree(publication: Published) -> bool:
    """Whether a publication in the topic space came from the tree; also after a restart."""
    if isinstance(publication, UnreadPublication):
        return is_native(publication.md)
    return publication.message.mqmd.appl_origin_data == NATIVE_MARK


class Feature(StrEnum):
    """A feature that the queued interface needs from a topic tree; each link says how it provides it."""

    SUBSCRIBE = "subscribe, unsubscribe"
    ALTER = "alter a subscription"
    PUBLISH = "publish"
    RETAIN = "retained publications"
    RETAIN_EMPTY = "a retained publication without data"
    REQUEST = "request retained (ReqUpdate)"
    CLEAR = "clear retained (DeletePub)"
    CHAR_WILDCARDS = "character wildcards (* ? %)"
    INNER_HASH = "# before the end of a topic string"
    ODD_TOPICS = "topics with + or # inside a level"
    DOLLAR_TOPICS = "topics that begin with $"
    EXPIRY = "message expiry"
    PERSISTENCE = "persistence"
    PRIORITY = "priority"
    PROPERTIES = "user properties"
    HEADERS = "other folders and headers"
    SELECTORS = "filters"
    SCOPE = "scope: Local, PUBSCOPE, SUBSCOPE"
    OTHER_SUBS_ONLY = "OtherSubsOnly"
    ORDER = "order of publications"
    IDENTITY = "names, identity sets, expiry of subscriptions"
    UNIT_OF_WORK = "publications in a unit of work"


class How(StrEnum):
    """How a link does it."""

    DOES = "does"
    EMULATED = "emulated by the bridge"
    REFUSED = "answered with an error"
    NOT_CARRIED = "not carried; logged"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Capability:
    """One cell of the table in docs/live-brokers.md."""

    feature: Feature
    how: How


class TreeNotAskedError(QPubSubError):
    """The tree has to be asked before the command can be processed (``TopicLink.fetch``)."""


class TopicLink(Protocol):
    """A topic tree elsewhere. The processor calls it from its own thread, between a command's get and its commit."""

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What it can do, one row a feature."""

    @property
    def outgoing_queue(self) -> str:
        """Where messages for the tree wait."""

    @property
    def keeps_scope(self) -> bool:
        """Whether what came from the tree is not for subscriptions of scope QMGR (guide 3.3.2)."""

    def before(self, operation: Operation, space: TopicSpaceView, now: datetime) -> Sequence[Operation]:
        """The retained publications of the tree that the topic space does not know and needs for *operation*.

        When this returns, the tree already sends what a Subscribe selects, so that nothing published after the response
        is missed. If the tree cannot be reached, the command continues, and the tree sends later. Does not wait for the
        tree: raises TreeNotAskedError where the tree must be asked first.
        """

    def prefetch(self, operation: Operation) -> None:
        """Announce *operation*, so that the next ``fetch`` also gets what ``before`` will need for it."""

    def fetch(self) -> bool:
        """Ask the tree for what ``before`` needed, outside any unit of work; whether there was anything to ask.

        The answers are valid for the next unit of work. Raises nothing: that the tree did not answer is also a result.
        """

    def after(self, operation: Operation, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        """The messages for the outgoing queue that *operation*, which had these effects, causes for the tree."""

    def published(self, retain: bool) -> None:
        """Note a publication for which ``after`` was not called: it is like an earlier one, or came from the tree."""

    def expired(self, effects: Sequence[Effect]) -> None:
        """Note effects that have no operation: items that expired."""

    def committed(self) -> None:
        """Note that all operations and effects since the last commit are committed."""

    def load(self, subscriptions: Iterable[Subscription], topic_objects: TopicObjects) -> None:
        """Replace all subscriptions that the link knows by these: the state was loaded again.

        topic_objects: their PUBSCOPE and SUBSCOPE hold from now on.
        """


@dataclass(frozen=True, slots=True)
class LinkState:
    """The status of a link. trouble: why it cannot continue, "" where it can. next_try_s: seconds, None if unknown."""

    connected: bool
    trouble: str = ""
    next_try_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``status --json``."""
        return asdict(self)


class ManagedLink(TopicLink, Protocol):
    """A link that can be started and stopped, for the caller that runs a processor with it."""

    def start(self, ended: Callable[[], None] = lambda: None) -> None:
        """Connect, and begin to carry publications. ended: called when the link must end; ``fault`` says why."""

    def stop(self) -> None:
        """Finish the work in progress, and disconnect; the tree keeps what it holds for the bridge."""

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one. True at once if the link connects only when needed."""

    def settle(self, stop: threading.Event) -> bool:
        """Wait until both sides have all publications for them; False if *stop* or an unreachable tree ends the wait.

        Raises nothing: the rest stays on the outgoing queue or in the tree.
        """

    @property
    def trouble(self) -> str:
        """Why there is no connection, or the last error in one of the threads; "" where there is none."""

    @property
    def fault(self) -> str:
        """Why the link has ended by itself; "" where it has not."""

    @property
    def state(self) -> LinkState:
        """What ``status`` shows of it."""

    @property
    def received(self) -> int:
        """How many publications came from the tree."""

    @property
    def sent(self) -> int:
        """How many publications the tree has answered for."""

    @property
    def refused(self) -> int:
        """How many publications the tree refused; they are dead letters."""


# The view of a topic space for code that makes decisions, wherever its topic tree is.
#
# ``streams.topic_space.TopicSpace`` is the embedded one. ``commands.qmgr.loaded`` has the one that is linked to
# another topic tree, of an MQTT broker or of IBM MQ. Both decide in the same way, by what ``TopicSpaceView`` shows. An
# operation either completes or raises with nothing changed.
#
#     operation          embedded                    linked: besides, elsewhere
#     Subscribe          adds a subscription         the tree sends what the subscription selects
#     AlterSubscription  another value               the same, for what it selects now
#     Unsubscribe        removes a subscription      the tree stops, where no other subscription selects it
#     PublishToTopic     deliveries, retained        the publication goes into the tree
#     ClearRetained      retained publications go    in the tree too
#     RequestRetained    retained are delivered      nothing: what the tree retains is known already


class TopicSpaceView(Protocol):
    """A read-only view of a topic space, for code that makes decisions. No method changes anything."""

    def subscription(self, sub_id: bytes) -> Subscription | None:
        """The subscription of this sub_id, if there is one."""

    def by_name(self, name: str, stream: str | None = None) -> Subscription | None:
        """The subscription of this name, if there is one."""

    def by_identity(self, identity: Identity, topic: str | None = None) -> tuple[Subscription, ...]:
        """The subscriptions of a traditional identity (guide 6.7.2); topic: those to it alone, as it was written."""

    def users_of(self, identity: Identity) -> frozenset[str]:
        """The users that registered the subscriptions of a traditional identity."""

    def subscriptions(self) -> tuple[Subscription, ...]:
        """All subscriptions, in ascending order of sub_id."""

    def match(self, topic_string: str, now: datetime) -> tuple[Subscription, ...]:
        """The subscriptions whose topic string selects this topic, in order of sub_id."""

    def retained(self, topic_string: str, wildcard: WildcardScheme, now: datetime) -> tuple[RetainedPublication, ...]:
        """The retained publications that a subscription made now would select. Raises CommandError 3072."""

    def retained_publications(self) -> tuple[RetainedPublication, ...]:
        """All retained publications, in order of topic string."""


@dataclass(frozen=True, slots=True)
class Administered:
    """The result of an administration command, whose changes are in memory and saved.

    puts: the responses, or a dead letter; the iterator makes each one when it is needed, and all must be put before
    anything else changes. redefined: whether definitions have changed. resubscribed: whether subscriptions have
    changed. reason, why: of a command that failed.
    """

    puts: Iterator[Outgoing]
    completion: Completion = Completion.OK
    redefined: bool = False
    resubscribed: bool = False
    reason: int | None = None
    why: str = ""


class CommandServer(Protocol):
    """Carries out administration commands in the unit of work that got them."""

    @property
    def queue(self) -> str:
        """The queue that holds the commands."""

    @property
    def kind(self) -> str:
        """What the commands are: the name under which an observer counts them."""

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Carry out the command. Raises StoreError where the store cannot keep the changes, and UndeliverableError."""
