"""The port to a topic tree elsewhere: what the processor asks of the link between it and the queue manager's topics.

The rules stay in the queue manager: who is subscribed, under which identity, with which options, and what a subscriber
gets, is decided by the embedded topic space whether or not there is a link. The link carries publications across, in
both directions, and keeps the two sides' retained publications alike:

    legacy publisher ─> processor ─┬─> subscriber queues                     in one unit of work
                                   └─> the outgoing queue ─> the tree ─> native subscribers
    native publisher ─> the tree ─> a Publish command on the default stream's queue ─> processor ─> subscriber queues

What goes out waits on a queue, put there in the unit of work of the command that published it, and is taken off once
the tree has it. What comes in is a command like any other, put before it is acknowledged to the tree. So nothing
is lost when either side, or the bridge, dies in between. A publication that came in never goes out again: it bears a
mark (``NATIVE_MARK``).

The tree is never waited for inside a unit of work, which would keep all other programs waiting too. A command that
needs something of it first is left on its queue, the tree is asked once the unit of work is over, and then the command
is processed with the answer, or with the knowledge that there is none:

    before() raises TreeNotAskedError ── the command is backed out, the rest commits ── fetch() ── the command again

Each link says with ``Capability`` what it does, what the bridge does in its stead, and what is not carried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from commands.broker.puts import Outgoing
from rfh2.errors import QPubSubError
from rfh2.layouts import MQMD1
from streams.operations import Effect, Operation
from streams.port import TopicSpaceView
from streams.subscriptions import Subscription

# ApplOriginData of commands that stand for native publications: the one field of a descriptor that is the putter's own
# and that no subscriber is shown (guide 6.7.9).
NATIVE_MARK: Final = "TREE"
_ORIGIN_DATA: Final = next(slice(at, at + size) for name, at, size in MQMD1.spans() if name == "ApplOriginData")


def is_native(md: bytes) -> bool:
    """Whether the command with this descriptor stands for a publication that came from the tree."""
    return md[_ORIGIN_DATA] == NATIVE_MARK.encode()


class Feature(StrEnum):
    """What the queued interface can ask of a topic tree; each link says how it is done there."""

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
    SCOPE = "Local publications and subscriptions"
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
    """One row of the table in docs/live-brokers.md. note: one line, for people."""

    feature: Feature
    how: How
    note: str


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

    def before(self, operation: Operation, space: TopicSpaceView, now: datetime) -> Sequence[Operation]:
        """What the topic space has to learn first: retained publications of the tree that are not known here.

        When this returns the tree already sends what a Subscribe selects, so that nothing published after the response
        is missed; where the tree cannot be reached it will once it can, and the command goes on. Does not wait for the
        tree: raises TreeNotAskedError where it has to be asked before.
        """

    def prefetch(self, operation: Operation) -> None:
        """*operation* is about to come: what ``before`` will need for it is fetched along with the rest."""

    def fetch(self) -> bool:
        """Ask the tree what ``before`` wanted to know, outside of any unit of work; whether there was anything.

        The answers hold for the unit of work that comes next. Raises nothing: no answer is an answer.
        """

    def after(self, operation: Operation, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        """What *operation*, which had these effects, means for the tree: messages for the outgoing queue."""

    def expired(self, effects: Sequence[Effect]) -> None:
        """These happened too, by the passing of time."""

    def committed(self) -> None:
        """All operations and effects since the last commit hold."""

    def load(self, subscriptions: Iterable[Subscription]) -> None:
        """These are the subscriptions now, whatever came before: the state was loaded anew."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """What a link says of itself. trouble: why it cannot go on, "" where it does. next_try_s: seconds, None unknown."""

    connected: bool
    trouble: str = ""
    next_try_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``status --json``."""
        return asdict(self)


class ManagedLink(TopicLink, Protocol):
    """A link with its life, for whoever runs a processor with it."""

    def start(self, ended: Callable[[], None] = lambda: None) -> None:
        """Connect, and begin to carry publications. ended: called when that cannot go on; ``fault`` says why."""

    def stop(self) -> None:
        """Finish what is at hand, and disconnect; what the tree keeps for the bridge stays."""

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one. True at once where connections are made when they are needed."""

    def settle(self, stop: threading.Event) -> bool:
        """Wait until both sides have all that there was for them; False where *stop* or an unreachable tree ends it.

        Raises nothing: what is left waits where it is safe.
        """

    @property
    def trouble(self) -> str:
        """Why there is no connection, or what went wrong last in one of the threads; "" where all is well."""

    @property
    def fault(self) -> str:
        """Why the link has ended by itself; "" where it has not."""

    @property
    def state(self) -> LinkState:
        """What ``status`` shows of it."""

    @property
    def refused(self) -> int:
        """How many publications the tree refused; they are dead letters."""
