"""The answers about one message after another, as far as they are asked for, and what the capture does not say.

A capture may lack MQMDs, and records that could not be read. Without its MQMD a command's CorrelId, its user, and its
queue where it names none, are unknown. A RegSub is carried out as if no other subscription had its identity
(``problems.assumed``). A DeregSub is not: which subscription it ended is unknown. Whichever may be the one is in doubt
from then on, and what would be said of it is unknown. So it is with an absence where records could not be read: they
may hold what is absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from commands.broker.context import prefix_of_sub_point, stream_prefix
from commands.broker.core import BrokerCore
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival, Outcome
from commands.explain.command_text import command_text
from commands.explain.problems import is_assumed_queue, with_descriptor
from commands.explain.why.near import place_prefix
from commands.explain.why.verdict import Asked, Detail, Reason, Verdict
from commands.headers.registry import parse
from commands.model import Command, DeregisterSubscriber, Publish, PubOpt, RegisterSubscriber, RegOpt
from rfh2 import constants as mq
from rfh2.dlh import Dlh
from rfh2.errors import CommandError, DecodeError
from rfh2.message import Message, decode
from rfh2.mqi_constants import MQCI_NONE, MQRC_Q_DELETED
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2
from streams.operations import Publication, PublishToTopic, SubscriptionAdded
from streams.patterns import add_pattern_prefix
from streams.selectors import compile_selector, registered_selector
from streams.selectors.properties import DERIVED, MQMD_PREFIX
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from streams.topic_strings import add_prefix

# What a program wanted with a command that was refused: the subscriptions of a RegSub, the topics of a Publish.
#
# The broker stops at the first fault of a command. For a subscriber who waits, the rest of it matters: where the
# publications were to go, and on which topics. So it is with a dead letter that was a publication.

_REFUSED: Final = b"\xff"
_BY_CODE: Final = {
    mq.MQRC_Q_FULL: Reason.QUEUE_FULL,
    mq.MQRC_UNKNOWN_OBJECT_NAME: Reason.QUEUE_GONE,
    MQRC_Q_DELETED: Reason.QUEUE_GONE,
    mq.MQRC_UNKNOWN_REMOTE_Q_MGR: Reason.TRANSMISSION,
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command as its text shows it, refused or not. word: ``RegSub``, ``Publish`` ..."""

    word: str
    topics: tuple[str, ...]
    queue: str
    qmgr: str
    stream: str | None
    sub_point: str | None
    name: str | None
    selector: str | None
    correl_id: bytes
    header: PublicationFormat
    message: Message


def attempt(arrival: Arrival, command: Command | None = None) -> Attempt | None:
    """What a message asks for; None where that cannot be read. command: what the parser made of it, if it could."""
    try:
        message = decode(arrival.body, arrival.md)
    except DecodeError:
        return None
    if command is None:
        with suppress(DecodeError, CommandError):
            command = parse(message)
    return _of_text(message) if command is None else _of_command(command, message)


def _of_command(command: Command, message: Message) -> Attempt:
    correl_id = MQCI_NONE
    name = selector = sub_point = None
    if isinstance(command, RegisterSubscriber):
        name, selector, sub_point = command.sub_name, command.filter, command.sub_point
        correl_id = message.mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE
    elif isinstance(command, Publish):
        sub_point = command.sub_point
    return Attempt(
        command.word,
        command.topics,
        name_of(command.q_name or "") or name_of(message.mqmd.reply_to_q),
        name_of(command.qmgr_name or "") or name_of(message.mqmd.reply_to_qmgr),
        command.stream_name,
        sub_point,
        name,
        selector,
        correl_id,
        command.header,
        message,
    )


def _of_text(message: Message) -> Attempt | None:
    text = command_text(message)
    if text is None:
        return None
    values = {pair.tag: pair.text for pair in text.pairs}
    if "Command" not in values:
        return None
    by_correl_id = any(p.tag == "RegOpt" and p.text == RegOpt.CORREL_AS_ID.value for p in text.pairs)
    return Attempt(
        values["Command"],
        tuple(pair.text for pair in text.pairs if pair.tag == "Topic"),
        name_of(values.get("QName", "")) or name_of(message.mqmd.reply_to_q),
        name_of(values.get("QMgrName", "")) or name_of(message.mqmd.reply_to_qmgr),
        values.get("StreamName"),
        values.get("SubPoint"),
        values.get("SubName"),
        values.get("Filter"),
        message.mqmd.correl_id if by_correl_id else MQCI_NONE,
        PublicationFormat.RFH2 if isinstance(text.holder, Rfh2) else PublicationFormat.RFH1,
        message,
    )


def subscriptions_of(wanted: Attempt, broker: BrokerCore, arrival: Arrival) -> Iterator[Subscription]:
    """The subscriptions that a RegSub would have made, with identifiers that no real subscription has."""
    stream = None if wanted.stream in (None, DEFAULT_STREAM) else wanted.stream
    if stream is None:
        prefix = prefix_of_sub_point(wanted.sub_point, broker.objects, broker.semantics)
        prefix = wanted.sub_point or "" if prefix is None else prefix
    else:
        prefix = stream_prefix(stream, broker.objects, broker.semantics)
    scheme = broker.rfh2_wildcards if wanted.header is PublicationFormat.RFH2 else WildcardScheme.CHAR
    for n, topic in enumerate(dict.fromkeys(wanted.topics)):
        yield Subscription(
            _REFUSED + arrival.seq.to_bytes(12, "big") + n.to_bytes(11, "big"),
            add_pattern_prefix(prefix, topic, scheme),
            wanted.queue,
            wanted.qmgr or broker.qmgr,
            arrival.now,
            name=wanted.name,
            wildcard=scheme,
            prefix=prefix,
            stream=stream,
            sub_point=wanted.sub_point,
            correl_id=wanted.correl_id,
            selector=_valid(wanted.selector),
            format=wanted.header,
        )


def publications_of(wanted: Attempt, broker: BrokerCore, arrival: Arrival) -> Iterator[tuple[str, PublishToTopic]]:
    """What a Publish would have published: each topic as it was written, and the operation."""
    stream = None if arrival.queue == DEFAULT_STREAM else arrival.queue
    prefix = place_prefix(stream, wanted.sub_point, broker)
    publication = Publication(wanted.message, arrival.now, None, False, stream, wanted.sub_point)
    for topic in wanted.topics:
        yield topic, PublishToTopic(add_prefix(prefix, topic), publication)


def _valid(selector: str | None) -> str | None:
    """The Filter, if it is one: what is wrong with it may be the reason of the refusal."""
    try:
        return selector if selector is None else compile_selector(selector).text
    except CommandError:
        return None


@dataclass(frozen=True, slots=True)
class DeadPublication:
    """A dead letter that was a publication for a subscriber's queue. topics: as the publication names them."""

    queue: str
    topics: tuple[str, ...]
    reason: Reason
    why: str


def dead_publication(arrival: Arrival) -> DeadPublication | None:
    """What a captured dead letter says about a subscriber's queue; None for another message."""
    if arrival.md is None:
        return None
    try:
        if Mqmd.decode(arrival.md).format != mq.MQFMT_DEAD_LETTER_HEADER:
            return None
        header = decode(arrival.body, arrival.md).headers[0]
    except (DecodeError, IndexError):
        return None
    wanted = attempt(arrival)
    if not isinstance(header, Dlh) or wanted is None or not wanted.topics:
        return None
    queue, code = name_of(header.dest_q_name), header.reason
    why = f"message {arrival.seq} on {arrival.queue} is the dead letter: {code} {mq.reason_text(code)}".rstrip()
    return DeadPublication(queue, wanted.topics, _BY_CODE.get(code, Reason.DEAD_LETTER), f"{why} (queue {queue})")


_BY_STATE: Final = {
    mq.MQRC_NOT_AUTHORIZED,
    mq.MQRC_SELECTOR_NOT_ALTERABLE,
    mq.MQRC_TOPIC_NOT_ALTERABLE,
    mq.MQRCCF_ALREADY_JOINED,
    mq.MQRCCF_DUPLICATE_IDENTITY,
    mq.MQRCCF_DUPLICATE_SUBSCRIPTION,
    mq.MQRCCF_NOT_AUTHORIZED,
    mq.MQRCCF_NOT_REGISTERED,
    mq.MQRCCF_SUB_IDENTITY_ERROR,
    mq.MQRCCF_SUBSCRIPTION_IN_USE,
    mq.MQRCCF_SUBSCRIPTION_LOCKED,
    mq.MQRCCF_WRONG_USER,
}
"""The refusals for what others have registered, and for who asks."""
_ABSENCES: Final = frozenset({Reason.NO_MATCH, Reason.DEREGISTERED, Reason.EXPIRED_SUBSCRIPTION})
_OUTCOMES: Final = frozenset({Reason.DELIVERED, Reason.TRANSMISSION, Reason.FILTER})
_WORDS: Final = (RegisterSubscriber.word, DeregisterSubscriber.word)


class Doubts:
    """Those of one queue manager. unread: how many records before, or anywhere, could not be read."""

    def __init__(self, broker: BrokerCore) -> None:
        self._broker = broker
        self.unread = 0
        # The subscriptions whose RegSub came without an MQMD, with its seq; and why one is in doubt, by sub_id.
        self._assumed: dict[bytes, tuple[Subscription, int]] = {}
        self._doubted: dict[bytes, str] = {}
        self._lacks_some = False
        # What is said of the deliveries of the message that is being explained.
        self._publisher = ""
        self._lacks = False

    def __bool__(self) -> bool:
        """Whether anything is in doubt."""
        return self._lacks_some or self.unread > 0

    def is_assumed(self, sub_id: bytes) -> bool:
        """Whether the RegSub of a subscription came without an MQMD."""
        return sub_id in self._assumed

    def arrival(self, arrival: Arrival) -> Arrival | None:
        """*arrival* with a descriptor, if it has none; None for a command that is not to be carried out."""
        self._publisher, self._lacks = "", arrival.md is None
        if arrival.md is not None:
            return arrival
        try:
            message = decode(arrival.body)
        except DecodeError:
            return arrival
        self._lacks_some = True
        user = arrival.user
        if user is None and self._broker.objects.authorities:
            user = "mqm"  # the user is unknown, and had the authority or had not
        if arrival.queue != CONTROL_QUEUE:
            return replace(arrival, md=with_descriptor(message, arrival.seq).mqmd.encode(), user=user)
        # What is known by its SubName stays where it is; nothing else is registered without a queue.
        unnamed = replace(arrival, md=with_descriptor(message, arrival.seq, queue=False).mqmd.encode(), user=user)
        if (wanted := attempt(unnamed)) is not None and wanted.word not in (RegisterSubscriber.word, Publish.word):
            if wanted.word == DeregisterSubscriber.word:
                self._touch(wanted, arrival, everything=True)
            return None
        if wanted is None or self._broker.foreseen(unnamed):
            return unnamed
        return replace(unnamed, md=with_descriptor(message, arrival.seq).mqmd.encode())

    def after(self, arrival: Arrival, outcome: Outcome) -> None:
        """A command was carried out, or refused."""
        command, lacks = outcome.command, self._lacks
        if isinstance(command, Publish):
            own = command.has(PubOpt.OTHER_SUBS_ONLY)
            if own and (lacks or self._assumed):
                whose = "its MQMD" if lacks else "the MQMD of a RegSub"
                why = f"{whose} is not in the capture: whether the subscriber is the publisher is unknown"
                self._publisher = f"Publish {arrival.seq} asks for OtherSubsOnly, and {why}"
            return
        if lacks and isinstance(command, RegisterSubscriber):
            for effect in outcome.effects:
                if isinstance(effect, SubscriptionAdded):
                    self._assumed[effect.subscription.sub_id] = effect.subscription, arrival.seq
        if (lacks or self._assumed) and isinstance(command, RegisterSubscriber | DeregisterSubscriber):
            wanted = attempt(arrival, command)
            if wanted is not None:
                self._touch(wanted, arrival, everything=lacks)

    def _touch(self, wanted: Attempt, arrival: Arrival, *, everything: bool) -> None:
        """Doubt each subscription that a RegSub or DeregSub may be about. everything: not only assumed ones."""
        if wanted.word not in _WORDS:
            return
        did = "ended" if wanted.word == DeregisterSubscriber.word else "changed"
        there = [subscription for subscription, _ in self._assumed.values()]
        if everything:
            there += self._broker.space.subscriptions()
        topics = {each.topic_string for each in subscriptions_of(wanted, self._broker, arrival)}
        for subscription in there:
            _, seq = self._assumed.get(subscription.sub_id, (None, -1))
            if seq == arrival.seq or not _may_be(wanted, topics, subscription):
                continue
            whose = "its MQMD" if everything else f"the MQMD of RegSub {seq}"
            why = f"{wanted.word} {arrival.seq} may have {did} it: {whose} is not in the capture"
            self._doubted.setdefault(subscription.sub_id, why)

    def refusal(self, code: int, reason: Reason) -> Reason:
        """The reason for a subscription that was refused with *code*."""
        return Reason.UNKNOWN if self and code in _BY_STATE else reason

    def doubt(self, subscription: Subscription, reason: Reason) -> str:
        """Why what is to be said of a subscription is unknown; empty if it is known."""
        if not self:
            return ""
        doubted = self._doubted.get(subscription.sub_id)
        if doubted is not None:
            return doubted
        if reason in _ABSENCES and self.unread:
            return unread_sentence(self.unread)
        if reason not in _OUTCOMES:
            return ""
        if self._lacks and _asks_for_descriptor(subscription):
            return f"the filter {subscription.selector} asks for the MQMD, which is not in the capture"
        is_there = reason is not Reason.FILTER and (self._lacks or self.is_assumed(subscription.sub_id))
        return self._publisher if is_there else ""

    def note(self, subscription: Subscription, say: Detail) -> Detail:
        """*say*, with what was assumed of the subscription."""
        found = self._assumed.get(subscription.sub_id)
        if found is None:
            return say
        note = f"RegSub {found[1]} has no MQMD in the capture: its CorrelId, user and expiry are unknown"

        def said() -> str:
            detail = say if isinstance(say, str) else say()
            return f"{detail}; {note}" if detail else note

        return said


def unread_sentence(number: int) -> str:
    """That records could not be read."""
    records = "1 record of the capture" if number == 1 else f"{number:,} records of the capture"
    return f"{records} could not be read, and may say otherwise"


def _asks_for_descriptor(subscription: Subscription) -> bool:
    names = registered_selector(subscription.selector).names if subscription.selector else ()
    return any(name.startswith(MQMD_PREFIX) or name in DERIVED for name in names)


def _may_be(wanted: Attempt, topics: set[str], subscription: Subscription) -> bool:
    """Whether a command may be about a subscription, as far as their identities are known."""
    if wanted.name is not None:
        return subscription.name == wanted.name
    if topics and subscription.topic_string not in topics:
        return False
    return (
        wanted.queue == subscription.dest_queue
        or not wanted.queue
        or is_assumed_queue(wanted.queue)
        or is_assumed_queue(subscription.dest_queue)
    )


MOST_LINES: Final = 100
"""So many near misses of one subscription are answers for each reason, and as many of a former subscription.

There is no limit for a subscription that the question names, by its queue or by its own name.
"""


class Answers:
    """Collects answers. qmgr: the queue manager; subscribers elsewhere are shown with theirs. doubts: they come first.

    mentioned: the sub_ids that an answer was about, asked for or not. is_selected: whether the question is about what
    is being explained.
    """

    def __init__(self, asked: Asked, qmgr: str, doubts: Doubts) -> None:
        self._doubts = doubts
        self.asked, self._asks_all, self._qmgr = asked, asked.is_all, qmgr
        self.is_selected = True
        self.mentioned: set[bytes] = set()
        self._limits: Counter[tuple[bytes, Reason]] = Counter()
        self._taken: list[Verdict] = []

    def take(self) -> list[Verdict]:
        """The answers since the last time."""
        taken, self._taken = self._taken, []
        return taken

    def about(self, topic: str) -> set[tuple[str, str | None]]:
        """The queue and the name of each subscription that an answer about *topic* was about since ``take``."""
        return {(verdict.queue, verdict.sub_name) for verdict in self._taken if verdict.topic == topic}

    def add(
        self,
        seq: int | None,
        topic: str,
        subscription: Subscription,
        reason: Reason,
        say: Detail = "",
        *,
        delivered: bool = False,
        amends: bool = False,
    ) -> bool:
        """An answer about *subscription*, if it is asked for; whether it is.

        A dead letter is about the last publication for its queue, asked for or not. So both are taken where the
        question is about the subscription.
        """
        self.mentioned.add(subscription.sub_id)
        asked, queue, name = self.asked, subscription.dest_queue, subscription.name
        is_asked = self.is_selected
        if not self._asks_all:
            if not asked.is_about(queue, name):
                return False
            is_asked = is_asked and asked.is_about_publication(seq, topic)
        if not (is_asked or delivered or amends):
            return False
        if self._doubts:
            if why := self._doubts.doubt(subscription, reason):
                delivered, reason, say = False, Reason.UNKNOWN, why
            say = self._doubts.note(subscription, say)
        qmgr = "" if subscription.dest_qmgr == self._qmgr else subscription.dest_qmgr
        self._taken.append(Verdict(seq, topic, queue, name, delivered, reason, say, qmgr, amends, is_asked))
        return is_asked

    def is_about(self, seq: int, topic: str | None) -> bool:
        """Whether the question is about this topic of the message that is being explained."""
        return self.is_selected and self.asked.is_about_publication(seq, topic)

    def add_unknown(self, seq: int, reason: Reason, say: Detail) -> None:
        """An answer about a publication whose subscribers cannot be known."""
        if not self.asked.names_subscriber and self.is_about(seq, None):
            self._taken.append(Verdict(seq, None, "", None, False, reason, say))

    def is_last(self, subscription: Subscription, reason: Reason) -> bool:
        """Whether no more than this answer is to be given about *subscription* for this reason."""
        if self.asked.names_subscriber:
            return False
        key = (subscription.sub_id, reason)
        self._limits[key] += 1
        if self._limits[key] < MOST_LINES:
            return False
        del self._limits[key]
        return True
