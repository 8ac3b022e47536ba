"""The answer for one publication and one subscription: delivered, or the rule that kept it back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from itertools import groupby
from typing import Final

from commands.broker.objects import Objects
from commands.broker.puts import Exited, ExitFate
from rfh2.captured import iso
from rfh2.constants import feedback_text
from rfh2.errors import QPubSubError
from streams.operations import PassedOver, Published, Rule
from streams.patterns import TopicPattern, parse_topic_pattern
from streams.selectors import Value, message_properties, registered_selector
from streams.subscriptions import PublicationFormat, Subscription
from streams.topic_objects import BASE_TOPIC, TopicObjects
from streams.topic_strings import SEPARATOR


class Reason(StrEnum):
    """Why a subscriber did or did not get a publication. The values are fixed: programs read them."""

    DELIVERED = "delivered"
    """The broker puts it to the subscriber's queue."""
    NO_MATCH = "no-match"
    """The subscription selects another topic."""
    WILDCARD_SCHEME = "wildcard-scheme"
    """It would select the topic with the wildcards of the other scheme (guide 2.5.1.1)."""
    CASE = "case"
    """Its topic differs in capitals and small letters only."""
    BLANK = "blank"
    """Its topic differs in blanks only."""
    SLASH = "slash"
    """Its topic differs in empty levels only: a slash at the beginning, at the end, or doubled."""
    STREAM = "stream"
    """The publication is on another stream, or on a queue that no broker reads."""
    SUB_POINT = "sub-point"
    """The publication is on another subscription point."""
    FILTER = "filter"
    """The Filter of the subscription is not true."""
    SCOPE = "scope"
    """One of the two is Local and the other is not; version 6 only."""
    BLOCKED = "blocked"
    """WILDCARD(BLOCK) on a topic object (guide 2.5.4)."""
    PUBLISH_DISABLED = "publish-disabled"
    """PUB(DISABLED) on a topic object."""
    OWN_PUBLICATION = "own-publication"
    """The publisher asked for OtherSubsOnly."""
    REQUEST_ONLY = "request-only"
    """PubOnReqOnly: publications go to it after ReqUpdate only."""
    NEW_ONLY = "new-only"
    """NewPubsOnly: what was retained before does not go to it."""
    EXPIRED_SUBSCRIPTION = "expired-subscription"
    """The subscription had expired."""
    EXPIRED_PUBLICATION = "expired-publication"
    """The retained publication had expired when the subscriber came."""
    DEREGISTERED = "deregistered"
    """The subscription had been deregistered, or changed to another topic."""
    REFUSED = "refused"
    """The RegSub, or the Publish, was refused."""
    LEVEL = "level"
    """A subscription of another SUBLEVEL takes it."""
    GROUP = "group"
    """Another subscription of its group is closer to the topic."""
    AUTHORITY = "authority"
    """The publisher may not publish, or the subscriber may not subscribe, on the topic."""
    QUEUE_FULL = "queue-full"
    """The subscriber's queue is full."""
    QUEUE_GONE = "queue-gone"
    """The subscriber's queue does not exist."""
    DEAD_LETTER = "dead-letter"
    """The publication became a dead letter."""
    TRANSMISSION = "transmission"
    """It was put for another queue manager: it is on a transmission queue here."""
    UNKNOWN = "unknown"
    """The capture lacks what decides it: an MQMD, or a record that could not be read."""


OF_RULE = {rule: Reason(rule.value) for rule in Rule}
"""The reason for each rule of the topic space."""


PLACES = frozenset({Reason.STREAM, Reason.SUB_POINT})
"""The reasons that are no fault where a subscription gets publications of its own stream or subscription point."""

Detail = str | Callable[[], str]
"""A sentence, or what makes it: most sentences are never read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the answer.

    seq: of the message in question: the Publish, or the RegSub or ReqUpdate that asks for what is retained; None for an
    answer about no message. topic: the resolved topic string, None where it is not known. queue: the subscriber's;
    empty where no subscriber is known. delivered: whether the broker puts the publication. say: the detail, or what
    makes it. qmgr: the subscriber's queue manager, empty for this one. amends: a dead letter shows that an earlier put
    to the queue failed; this answer replaces that one. is_asked: False for an answer that nobody asked for; a dead
    letter may be about it.
    """

    seq: int | None
    topic: str | None
    queue: str
    sub_name: str | None
    delivered: bool
    reason: Reason
    say: Detail = field(default="", compare=False, repr=False)
    qmgr: str = ""
    amends: bool = False
    is_asked: bool = True

    @property
    def detail(self) -> str:
        """One sentence with the values that matter; empty where there is nothing to add."""
        return self.say if isinstance(self.say, str) else self.say()

    def json_line(self) -> str:
        """The same as text, without escapes for other characters than JSON demands."""
        return json.dumps({"format": 1, **self.form()}, ensure_ascii=False)

    def form(self) -> dict[str, object]:
        """The answer as a JSON object."""
        return {
            "seq": self.seq,
            "topic": self.topic,
            "queue": self.queue,
            "sub_name": self.sub_name,
            "delivered": self.delivered,
            "reason": self.reason.value,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. None asks for all.

    queue: the subscriber's. topic: a topic string, which may have the wildcards # and +; without the prefix of a stream
    too. sub: a subscription name. seq: of the message. Raises CommandError 3072 where *topic* is not a topic string.
    """

    queue: str | None = None
    topic: str | None = None
    sub: str | None = None
    seq: int | None = None
    _pattern: TopicPattern | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.topic is not None:
            object.__setattr__(self, "_pattern", parse_topic_pattern(self.topic))

    @property
    def names_subscriber(self) -> bool:
        """Whether the question is about one queue or one subscription."""
        return self.queue is not None or self.sub is not None

    @property
    def names_publication(self) -> bool:
        """Whether the question is about one message or one topic."""
        return self.topic is not None or self.seq is not None

    @property
    def subscriber_words(self) -> str:
        """The queue and the name that the question names, to follow "subscription"; empty where it names none."""
        queue = "" if self.queue is None else f" for queue {self.queue}"
        return queue if self.sub is None else f"{queue} with the name {self.sub}"

    def similar_queues(self, queues: Collection[str]) -> str:
        """Which of *queues* may be meant, to end a sentence; empty where the queue is one, or none is like it."""
        near = [] if self.queue is None or self.queue in queues else get_close_matches(self.queue, sorted(queues), n=3)
        return f"; similar queues: {', '.join(near)}" if near else ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not (self.names_subscriber or self.names_publication)

    def is_about(self, queue: str, name: str | None) -> bool:
        """Whether the question is about a subscription with this queue and name."""
        return (self.queue is None or self.queue == queue) and (self.sub is None or self.sub == name)

    def is_about_subscription(self, subscription: Subscription) -> bool:
        """The same for a subscription."""
        return self.is_about(subscription.dest_queue, subscription.name)

    def is_about_topic(self, topic: str | None) -> bool:
        """Whether the question is about this topic, with the prefix of its stream or without."""
        pattern = self._pattern
        if pattern is None:
            return True
        return topic is not None and (pattern.matches(topic) or topic.endswith(f"{SEPARATOR}{self.topic}"))

    def is_about_publication(self, seq: int | None, topic: str | None) -> bool:
        """Whether the question is about this message and topic."""
        return (self.seq is None or self.seq == seq) and self.is_about_topic(topic)

    def has(self, verdict: Verdict) -> bool:
        """Whether *verdict* answers the question."""
        return self.is_about(verdict.queue, verdict.sub_name) and self.is_about_publication(verdict.seq, verdict.topic)


# Answers for a terminal: counted by subscriber queue and reason, with an example of each, and what it means.

_MOST_SEQS: Final = 3


@dataclass(slots=True)
class ReasonSum:
    """The answers about one queue with one reason. seqs: of the first ones. example: the first one."""

    example: Verdict
    detail: str
    count: int = 0
    seqs: list[int] = field(default_factory=list)


class Summary:
    """Answers, added up. queues: by queue manager and queue, in the order of their first answers."""

    def __init__(self) -> None:
        self.queues: dict[tuple[str, str], dict[Reason, ReasonSum]] = {}
        self.reasons: Counter[Reason] = Counter()

    def add(self, verdict: Verdict) -> None:
        """Add one answer."""
        of_queue = self.queues.setdefault((verdict.qmgr, verdict.queue), {})
        total = of_queue.get(verdict.reason)
        if total is None:
            total = of_queue[verdict.reason] = ReasonSum(verdict, verdict.detail)
        total.count += 1
        self.reasons[verdict.reason] += 1
        if verdict.seq is not None and len(total.seqs) < _MOST_SEQS:
            total.seqs.append(verdict.seq)

    @property
    def silent(self) -> list[tuple[str, str]]:
        """The queues that nothing was delivered to."""
        return [queue for queue, sums in self.queues.items() if queue[1] and not is_served(sums)]


def is_served(sums: dict[Reason, ReasonSum]) -> bool:
    """Whether anything was delivered to a queue of this queue manager."""
    return Reason.DELIVERED in sums


_MANY_QUEUES: Final = 10
_ORDER: Final = {reason: at for at, reason in enumerate(Reason)}
_UNKNOWN: Final = "(subscribers not known)"
_NOBODY: Final = "(no subscriber)"


def lines_of(summary: Summary) -> Iterator[str]:
    """The answers, line by line; the totals first where there are many queues. Queues that got nothing come first."""
    if not summary.queues:
        yield "nothing was published, and no program subscribed"
        return
    queues = [queue for queue in summary.queues if queue[1]]
    if queues:
        yield f"{_counted(len(queues), 'subscriber queue')}, {len(summary.silent):,} of them without a publication"
    if len(queues) > _MANY_QUEUES:
        yield from _sums(summary.reasons)
    order = sorted(summary.queues, key=lambda queue: (is_served(summary.queues[queue]), queue[1] == "", queue))
    for queue in order:
        if queues:
            yield ""
        of_queue = summary.queues[queue]
        yield _name(*queue, of_queue)
        width = max(map(len, of_queue))
        digits = max(len(_count(total)) for total in of_queue.values())
        for reason in sorted(of_queue, key=_ORDER.__getitem__):
            total = of_queue[reason]
            yield f"  {reason.value:<{width}}  {_count(total):>{digits}}  {_what(total)}".rstrip()


def lines_of_each(verdicts: Iterable[Verdict], *, publication: bool) -> Iterator[str]:
    """A line for each answer, by queue; queues that get nothing come first.

    publication: whether the answers are about one; otherwise they are about subscriptions, whatever is published.
    """
    found = list(verdicts)
    there = [verdict for verdict in found if verdict.queue]
    if len(there) > 1:
        reached = sum(verdict.delivered for verdict in there)
        can = "can receive publications" if not publication else "gets it" if reached == 1 else "get it"
        yield f"{_counted(len(there), 'subscription')}, {f'{reached:,}' if reached else 'none'} of them {can}"
    served = {_queue_of(verdict) for verdict in found if verdict.delivered}
    order = sorted(found, key=lambda verdict: (_queue_of(verdict) in served, _queue_of(verdict)))
    for queue, answers in groupby(order, _queue_of):
        if len(there) > 1:
            yield ""
        yield _name(*queue)
        of_queue = list(answers)
        width = max(len(verdict.reason) for verdict in of_queue)
        for verdict in of_queue:
            whose = subscription_words(verdict, named_by_topic=not publication)
            what = ": ".join(filter(None, (whose, verdict.detail)))
            yield f"  {verdict.reason.value:<{width}}  {what}".rstrip()


def subscription_words(verdict: Verdict, *, named_by_topic: bool = False) -> str:
    """The subscription of an answer, by its name. named_by_topic: by its topic string if it has no name."""
    if verdict.sub_name is not None:
        return f"subscription {verdict.sub_name}"
    return f"subscription to {verdict.topic!r}" if named_by_topic and verdict.queue and verdict.topic else ""


def _queue_of(verdict: Verdict) -> tuple[str, str]:
    return verdict.qmgr, verdict.queue


def _sums(reasons: Mapping[Reason, int]) -> Iterator[str]:
    width = max(map(len, reasons))
    digits = max(len(f"{count:,}") for count in reasons.values())
    for reason in sorted(reasons, key=_ORDER.__getitem__):
        yield f"  {reason.value:<{width}}  {reasons[reason]:>{digits},}"


def _what(total: ReasonSum) -> str:
    where = ""
    if total.seqs:
        more = ", ..." if total.count > len(total.seqs) else ""
        where = f"seq {', '.join(map(str, total.seqs))}{more}"
    head = "; ".join(filter(None, (where, subscription_words(total.example))))
    return ": ".join(filter(None, (head, total.detail)))


def _count(total: ReasonSum) -> str:
    return f"{total.count:,}"


def _name(qmgr: str, queue: str, reasons: Container[Reason] = (Reason.NO_MATCH,)) -> str:
    if not queue:
        return _NOBODY if Reason.NO_MATCH in reasons else _UNKNOWN
    return f"{queue} at queue manager {qmgr}" if qmgr else queue


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# What kept a publication back, in words with the values: a rule, the publish exit, or the state of a queue.
#
# The reasons are fixed, and none of them is the exit's own (guide 4.6.2): what it discards is ``blocked``, for it
# stands between topic and subscription as a WILDCARD(BLOCK) does; what it has put on the dead-letter queue is
# ``dead-letter``.

_MOST_VALUES: Final = 8
_MOST_TEXT: Final = 60
_PROPERTIES: Final = "usr."


def rule_sentence(passed: PassedOver, topics: TopicObjects) -> str:
    """Why *passed* was passed over."""
    subscription, publication = passed.subscription, passed.publication
    match passed.rule:
        case Rule.BLOCKED:
            return block_sentence(passed.topic_string, topics)
        case Rule.REQUEST_ONLY:
            return "it is registered with PubOnReqOnly: it gets retained publications after ReqUpdate, and no others"
        case Rule.SCOPE:
            ours, theirs = _scope(subscription.options.local), _scope(publication.local)
            return f"the publication is {theirs}, the subscription is {ours}: for version 6 both must be the same"
        case Rule.STREAM | Rule.SUB_POINT:
            return place_sentence(subscription, publication.stream, publication.sub_point)
        case Rule.FILTER:
            return filter_sentence(subscription, publication)
        case Rule.LEVEL:
            level = subscription.sub_level
            return f"it has SUBLEVEL({level}); the subscriptions of another level take the publication first"
        case Rule.GROUP:
            return "another subscription of its group, with the same queue and CorrelId, is closer to the topic"
        case Rule.OWN_PUBLICATION:
            return "the publisher asked for OtherSubsOnly, and this queue is the publisher's own"
        case Rule.NEW_ONLY:
            at = iso(publication.published_at)
            return f"it is registered with NewPubsOnly, and the publication was retained before, at {at}"


def place_sentence(subscription: Subscription, stream: str | None, sub_point: str | None) -> str:
    """How the stream, or else the subscription point, of a publication and of a subscription differ."""
    if subscription.stream != stream:
        ours, theirs = _stream(subscription.stream), _stream(stream)
        header = " in an MQRFH" if subscription.format is PublicationFormat.RFH2 else ""  # MQRFH2 has no StreamName
        register = "without StreamName" if stream is None else f"with StreamName {stream}{header}"
    else:
        ours, theirs = _point(subscription.sub_point), _point(sub_point)
        register = f"with SubPoint {sub_point}" if sub_point else "without SubPoint"
    return f"the publication is on {theirs}, the subscription is to {ours}: register {register}"


def expired_sentence(at: datetime) -> str:
    """When a subscription expired."""
    return f"the subscription expired at {iso(at)}"


def block_sentence(topic: str, topics: TopicObjects) -> str:
    """Which topic object blocks wildcards at *topic*."""
    depth = topics.blocks().depth(topic)
    at = SEPARATOR.join(topic.split(SEPARATOR)[:depth])
    found = topics.at(at) if depth else None
    if found is None:
        return "WILDCARD(BLOCK) of a topic object keeps it from subscriptions with wildcards above it"
    return f"topic object {found.name} has WILDCARD(BLOCK): only subscriptions that name {at!r} itself reach it"


def disabled_sentence(topic: str, topics: TopicObjects) -> str:
    """Which topic object has PUB(DISABLED) for *topic*."""
    found = topics.resolve(topic).object_name
    for name in topics.covering(topic):
        holder = topics.get(name)
        if holder is not None and holder.pub is not None:
            found = name
            break
    where = "" if found == BASE_TOPIC else f" at {topics.require(found).topic_string!r}"
    return f"topic object {found}{where} has PUB(DISABLED): ALTER TOPIC({found}) PUB(ENABLED)"


def filter_sentence(subscription: Subscription, publication: Published) -> str:
    """The Filter of a subscription with the values that the publication has for it."""
    selector = subscription.selector or ""
    try:
        names = sorted(registered_selector(selector).names)
        lookup = message_properties(publication.message)
    except QPubSubError as error:
        return f"the filter {selector} cannot be read: {error}"
    values = ", ".join(_value(name, lookup(name)) for name in names[:_MOST_VALUES])
    more = "" if len(names) <= _MOST_VALUES else f", and {len(names) - _MOST_VALUES} more"
    return f"the filter {selector} is not true: {values}{more}"


def _value(name: str, value: Value | None) -> str:
    name = name.removeprefix(_PROPERTIES)
    if value is None:
        return f"{name} is not set"
    if isinstance(value, str):
        text = value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}..."
        return f"{name} is the string {text!r}"
    if isinstance(value, bool):
        return f"{name} is {str(value).upper()}"
    return f"{name} is {value.hex() if isinstance(value, bytes) else value}"


def _scope(local: bool) -> str:
    return "Local" if local else "not Local"


def _stream(stream: str | None) -> str:
    return "the default stream" if stream is None else f"stream {stream}"


def _point(sub_point: str | None) -> str:
    return f"subscription point {sub_point!r}" if sub_point else "the default subscription point"


def exit_reason(exited: Exited) -> Reason:
    """The reason of the answer about *exited*; one that was sent elsewhere is delivered."""
    if exited.fate is ExitFate.DISCARDED:
        return Reason.BLOCKED
    return Reason.DEAD_LETTER if exited.fate is ExitFate.DEAD_LETTER else Reason.DELIVERED


def exit_sentence(exited: Exited, here: str) -> str:
    """What the exit did. here: the queue manager."""
    if exited.fate is ExitFate.DIVERTED:
        there = "" if exited.qmgr == here else f" of queue manager {exited.qmgr}"
        return f"the publish exit sent it to queue {exited.queue}{there}"
    text = feedback_text(exited.feedback)
    because = f"Feedback {exited.feedback}{text and f', {text}'}"
    if exited.fate is ExitFate.DISCARDED:
        return f"the publish exit suppressed it, and Report says MQRO_DISCARD_MSG ({because})"
    return f"the publish exit suppressed it: it is on {exited.queue} ({because})"


QueueState = Callable[[str, str], tuple[Reason, str] | None]
"""What keeps a publication from a queue, by queue manager and queue, and the sentence; None where nothing does."""


def by_definition(objects: Objects) -> QueueState:
    """What the definitions of a queue manager say, without its messages."""

    def state(qmgr: str, queue: str) -> tuple[Reason, str] | None:
        if qmgr != objects.qmgr.name:
            return Reason.TRANSMISSION, transmission_sentence(objects, qmgr)
        found = objects.queue(queue)
        if found is None:
            if objects.qmgr.strict:
                return Reason.QUEUE_GONE, f"queue {queue} is not defined: DEFINE QLOCAL({queue})"
            return None
        if not found.put_enabled:
            why = f"queue {queue} has PUT(DISABLED), so the publication becomes a dead letter (2051)"
            return Reason.DEAD_LETTER, f"{why}: ALTER QLOCAL({queue}) PUT(ENABLED)"
        if not found.max_depth:
            return Reason.QUEUE_FULL, f"queue {queue} has MAXDEPTH(0): it takes no message"
        return None

    return state


def transmission_sentence(objects: Objects, qmgr: str) -> str:
    """What happens to a publication for another queue manager."""
    queue = objects.queues.get(qmgr)
    goes = f"the subscriber's queue is at queue manager {qmgr}: the publication goes to transmission queue {qmgr} here"
    if queue is None or not queue.transmission:
        return f"{goes}, which is not defined as one; check QMgrName and ReplyToQMgr of the RegSub"
    return f"{goes}, and a channel has to take it"
