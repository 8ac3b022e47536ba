"""What comes into the broker, and what it makes of it: an arrival in, an outcome out; its trace if it is asked for.

``copies`` says how many messages one publication makes for one subscriber (guide 7.5, 8.5: publication to multiple
topics). Version 7 sends a copy for each topic and each subscription that match. Version 6 sends a subscriber one
message, even if several of its subscriptions match, unless it registered with DupsOK. If the publication has several
topics, the message names all that the subscriber gets. A subscriber is its traditional identity there.

The trace has the operations of one arrival, the subscriptions that each reached or passed over, and the puts. Its
readers need more than the puts: the control plane on Spark, the analysis, the comparison of versions, the equivalents
in other dialects, and the link to another topic tree. No reader repeats a decision of the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from commands.broker.context import Semantics
from commands.broker.forward import MadePuts
from commands.broker.puts import Copies, Exited, Outgoing
from commands.headers.response import Completion
from commands.model import Command
from streams import operations as op
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace


@dataclass(frozen=True, slots=True)
class RetainedLook:
    """A look-up of retained publications. found: topics with one that *pattern* selects, blocked or not."""

    pattern: str
    scheme: WildcardScheme
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracedOperation:
    """One operation that was carried out.

    before: the earlier state of its subscription; None where there was none, and for operations on topics. effects: its
    effects in order, with deliveries. look: its look-up of retained publications, if it made one. passed_over: the
    subscriptions or publications that its topic selects but that it did not reach, if the trace explains.
    """

    operation: op.Operation
    before: Subscription | None
    effects: tuple[op.Effect, ...]
    look: RetainedLook | None = None
    passed_over: tuple[op.PassedOver, ...] = ()

    @property
    def deliveries(self) -> tuple[op.Delivery, ...]:
        """Which publications went to which subscriptions."""
        return tuple(effect for effect in self.effects if isinstance(effect, op.Delivery))

    @property
    def cleared(self) -> tuple[str, ...]:
        """The topics whose retained publications it deleted."""
        return tuple(effect.topic_string for effect in self.effects if isinstance(effect, op.RetainedCleared))


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of one arrival, step by step.

    reached: whether it reached the topic space; a message that was passed over or could not be read did not. expired:
    what expired before it. operations: in order, also those of a command that was refused later. refused: the
    operations of a Publish that were not carried out because a topic was refused, if the trace explains.
    """

    reached: bool = False
    expired: tuple[op.Effect, ...] = ()
    operations: tuple[TracedOperation, ...] = ()
    refused: tuple[op.PublishToTopic, ...] = ()

    @property
    def deliveries(self) -> tuple[op.Delivery, ...]:
        """Those of all operations; the operations of a refused command reached no subscriber."""
        return tuple(delivery for traced in self.operations for delivery in traced.deliveries)


@dataclass(slots=True)
class Tracer:
    """Records a trace.

    explains: whether it also says whom and what operations passed over, which takes some time. forwards: whether
    messages are made for subscribers. made: what another broker made of the same arrival.
    """

    explains: bool = False
    forwards: bool = True
    made: MadePuts | None = None
    expired: tuple[op.Effect, ...] = ()
    reached: bool = False
    operations: list[TracedOperation] = field(default_factory=list)
    refused: tuple[op.PublishToTopic, ...] = ()

    def apply(self, space: TopicSpace, operation: op.Operation, now: datetime) -> list[op.Effect]:
        """``space.apply``, traced; an operation that raises is not in the trace."""
        about = subject(operation)
        before = space.subscription(about.sub_id) if about is not None else None
        look = _look(space, operation, before, now)
        passed: tuple[op.PassedOver, ...] = ()
        effects = space.apply(operation, now)
        if self.explains and isinstance(operation, op.PublishToTopic):
            delivered = sum(isinstance(effect, op.Delivery) for effect in effects)
            passed = tuple(space.passed_over(operation, now, delivered))
        if self.explains and isinstance(operation, op.Subscribe | op.AlterSubscription | op.RequestRetained):
            asked = isinstance(operation, op.RequestRetained)
            passed = tuple(space.passed_over_retained(operation.subscription, now, asked=asked))
        self.operations.append(TracedOperation(operation, before, tuple(effects), look, passed))
        return effects

    def taken_back(self) -> None:
        """What the operations of the command changed was taken back: they reached nobody."""
        self.operations.clear()

    def trace(self) -> Trace:
        """What was traced."""
        return Trace(self.reached, self.expired, tuple(self.operations), self.refused)


def subject(operation: op.Operation) -> Subscription | None:
    """The subscription that an operation is about; None for one about a topic."""
    if isinstance(operation, op.Subscribe | op.AlterSubscription | op.Unsubscribe | op.RequestRetained):
        return operation.subscription
    return None


def _look(
    space: TopicSpace, operation: op.Operation, before: Subscription | None, now: datetime
) -> RetainedLook | None:
    match operation:
        case op.Subscribe(subscription, True) | op.AlterSubscription(subscription, True):
            pattern, scheme = subscription.topic_string, subscription.wildcard
        case op.RequestRetained(subscription):
            current = before or subscription
            pattern, scheme = current.topic_string, current.wildcard
        case op.ClearRetained(topic_string, wildcard):
            pattern, scheme = topic_string, wildcard
        case _:
            return None
    found = space.retained(pattern, scheme, now, heed_blocks=False)
    return RetainedLook(pattern, scheme, tuple(each.topic_string for each in found))


_Key = tuple[int, bool, tuple[str, str, bytes]]


def copies(deliveries: Sequence[op.Delivery], semantics: Semantics) -> list[Copies]:
    """*deliveries* in groups, one for each message to put; the first of a group decides its descriptor."""
    if semantics is Semantics.V7:
        return [(delivery,) for delivery in deliveries]
    groups: list[dict[str, op.Delivery]] = []  # by topic
    of_subscriber: dict[_Key, dict[str, op.Delivery]] = {}
    for delivery in deliveries:
        subscription = delivery.subscription
        if subscription.options.dups_ok:
            groups.append({delivery.topic_string: delivery})
            continue
        key = (id(delivery.publication), delivery.from_retained, subscription.traditional_identity)
        group = of_subscriber.get(key)
        if group is None:
            group = of_subscriber[key] = {}
            groups.append(group)
        group.setdefault(delivery.topic_string, delivery)
    return [tuple(group.values()) for group in groups]


# Not frozen: there is one for each message, and a frozen one takes four times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class Arrival:
    """A message that was put to a queue.

    seq: arrival number, unique in the queue manager. md: the bytes of its MQMD, or None for the defaults. user: who put
    it, or None for the MQMD's UserIdentifier. now: UTC.
    """

    seq: int
    now: datetime
    queue: str
    md: bytes | None
    body: bytes
    user: str | None = None


@dataclass(slots=True, unsafe_hash=True)  # as above
class Outcome:
    """The result of one arrival; one by a template (``commands.templates``) has no command, operations and copies."""

    puts: tuple[Outgoing, ...] = ()  # in order
    effects: tuple[op.Effect, ...] = ()  # in order
    command: Command | None = None  # None where the message could not be read as a command
    completion: Completion | None = None  # None where the message was not a command and was passed over
    reason: int | None = None  # the first reason code
    why: str = ""
    undecodable: bool = False  # the message could not be read
    lost: tuple[str, ...] = ()  # what the format of a subscriber cannot hold, after the name of its queue (guide 8.7)
    operations: tuple[op.Operation, ...] = ()  # those of a command that was carried out
    topics: tuple[str, ...] = ()  # on which it was published
    # The deliveries that each publication among the puts, or the publish exit's dead letter for it, stands for.
    copies: tuple[Copies, ...] = ()
    exited: tuple[Exited, ...] = ()  # what the publish exit suppressed or sent elsewhere
    filtered: tuple[Subscription, ...] = ()  # the subscriptions whose selection string excluded a publication
    # The deliveries to proxy subscriptions, which the network takes from here; no put stands for them.
    carried: tuple[op.Delivery, ...] = ()
    trace: Trace | None = None  # how the result was reached, where the caller asked for it
