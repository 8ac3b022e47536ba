"""Captured messages: command traffic is replayed with version 6 semantics, the broker's own publications are read.

What a captured message is to a migration:

* a command on the control queue or on a stream queue: replayed, by one broker for each stream, as version 6 kept its
  streams apart (names, identities, retained publications); the state at the end is the broker's;
* a publication in PCF on a metatopic: the broker about itself (``metatopics``);
* a publication that a broker put: a retained one if it says so; otherwise a delivered message, which is no state. The
  same is true for other messages on a queue: they are counted, an item for each queue.

Commands of a capture that numbers its messages are taken in that order; those of a dump of queues in the order of their
times, because a broker's queues need not be in order (APAR IZ66777). Subscriptions are numbered in the order in which
they were registered. Wildcards of MQRFH2 commands are those of the product: by character in version 6 (guide 2.5.1.1),
by level in the message brokers (guide 8.1). A message that cannot be read is an item, as are the messages of each other
queue manager in each source.

Registrations on a stream for topics that version 6 took, and that are too long with the stream's prefix.

Version 6 kept its streams apart; the replay puts the topics of a stream below its name, as version 7 does. Therefore
the replay refuses a topic that is within the limit by itself and beyond it with the prefix. Such a registration is an
item of the state like any other: the plan says that it cannot be migrated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from commands import model
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, Objects, QueueManager, is_object_name
from commands.broker.outcome import Outcome
from commands.broker.reading import natural_queue
from commands.headers.psc import split_psc
from commands.headers.registry import parse
from commands.headers.response import Completion
from commands.mqsc.broker import Broker
from commands.terminal.counted import counted
from migrate.legacy_state import (
    Item,
    LegacyRetained,
    LegacySubscription,
    Product,
    Publisher,
    Source,
    Stream,
    SubPoint,
    Unread,
)
from migrate.readers import metatopics
from migrate.readers.jms_records import JmsRecords
from migrate.readers.no_state import Foreign, Left, RefusedCommands
from migrate.retained_plan import Delivered, delivered_publication
from migrate.subscription_files import options_of
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.constants import MQ_TOPIC_STR_LENGTH, MQAT_BROKER
from rfh2.errors import QPubSubError
from rfh2.message import Message, encode
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import name_of
from rfh2.pcf import FORMATS as PCF_FORMATS
from streams.operations import (
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.patterns import remove_pattern_prefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import DEFAULT_STREAM, QUEUE_NAMELIST, Namelist
from streams.topic_strings import add_prefix, remove_prefix


class Registrant(NamedTuple):
    """The traditional identity of a command, and its user."""

    queue: str
    qmgr: str
    correl_id: str | None
    user: str


@dataclass(slots=True)
class LongTopics:
    """The registrations that exist after the commands so far."""

    found: dict[tuple[str, str, str, str | None, str], LegacySubscription] = field(default_factory=dict)

    def takes(self, command: model.Command, stream: str, source: Source, registrant: Registrant) -> bool:
        """Carry out a command that the replay refused because of its topics' length; whether it was one."""
        if not isinstance(command, model.RegisterSubscriber | model.DeregisterSubscriber) or stream == DEFAULT_STREAM:
            return False
        own = max(map(len, command.topics), default=0)
        with_prefix = max((len(add_prefix(stream, topic)) for topic in command.topics), default=0)
        if not own <= MQ_TOPIC_STR_LENGTH < with_prefix:
            return False
        for topic in command.topics:
            key = (stream, registrant.qmgr, registrant.queue, registrant.correl_id, topic)
            if isinstance(command, model.DeregisterSubscriber):
                self.found.pop(key, None)
            else:
                self.found[key] = _too_long_subscription(command, topic, stream, source, registrant)
        return True

    def items(self) -> Iterator[LegacySubscription]:
        """An item for each."""
        yield from self.found.values()


def _too_long_subscription(
    command: model.RegisterSubscriber, topic: str, stream: str, source: Source, registrant: Registrant
) -> LegacySubscription:
    identity = command.sub_identity
    return LegacySubscription(
        source=source,
        topic=topic,
        queue=registrant.queue,
        qmgr=registrant.qmgr,
        correl_id=registrant.correl_id,
        stream=stream,
        sub_point=command.sub_point,
        scheme=WildcardScheme.CHAR,
        format=command.header,
        user=registrant.user,
        name=command.sub_name,
        user_data=command.sub_user_data,
        identities=() if identity is None else (identity,),
        filter=command.filter,
        options=tuple(option.value for option in command.options or () if option is not model.RegOpt.NONE),
        unknown=("expires_at",),
    )


@dataclass(slots=True)
class _Traffic:
    """One message with its place and, once parsed, its command."""

    source: Source
    message: CapturedMessage
    decoded: Message | None = None
    command: model.Command | None = None

    def numbered(self, seq: int) -> _Traffic:
        """The same with another ``seq``."""
        return _Traffic(self.source, self.message.model_copy(update={"seq": seq}), self.decoded)


@dataclass(slots=True)
class Legacy:
    """The version 6 brokers of a capture, one for each stream, and where their state came from."""

    qmgr: str
    product: Product = Product.MQ
    brokers: dict[str, Broker] = field(default_factory=dict)
    subscription_sources: dict[str, dict[bytes, Source]] = field(default_factory=lambda: defaultdict(dict))
    retained_sources: dict[tuple[str, str], Source] = field(default_factory=dict)
    sub_points: dict[str, Source] = field(default_factory=dict)
    streams: dict[str, Source] = field(default_factory=dict)
    jms: JmsRecords = field(default_factory=JmsRecords)
    long_topics: LongTopics = field(default_factory=LongTopics)

    def broker(self, stream: str) -> Broker:
        """The broker of *stream*."""
        if stream not in self.brokers:
            objects = Objects(QueueManager(self.qmgr))
            if stream != DEFAULT_STREAM:
                objects.put(Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM, stream)))
            scheme = WildcardScheme.CHAR if self.product is Product.MQ else WildcardScheme.TOPIC
            self.brokers[stream] = Broker(self.qmgr, semantics="v6", objects=objects, rfh2_wildcards=scheme)
        return self.brokers[stream]


class OutOfOrderError(Exception):
    """The commands of a capture are not in the order of their arrival: they have to be sorted first."""


def read(
    records: Iterable[CaptureRecord],
    numbered: bool,
    qmgr: str,
    product: Product = Product.MQ,
    jms: JmsRecords | None = None,
    *,
    is_sorted: bool = False,
) -> Iterator[Item]:
    """The state that *records* lead to. numbered: whether their ``seq`` is the order of arrival.

    qmgr: the broker's queue manager; messages of another one are none of its state. product: whose broker it was.
    jms: takes what JMS classes keep on queues; what it comes to depends on all sources. is_sorted: expect the commands
    in the order of their arrival, so that none of them has to be kept; raises OutOfOrderError if they are not.
    """
    legacy = Legacy(qmgr, product, jms=JmsRecords() if jms is None else jms)
    yield from replayed(records, numbered, legacy, is_sorted=is_sorted)
    yield from state_of(legacy, is_last=True)


def replayed(
    records: Iterable[CaptureRecord], numbered: bool, legacy: Legacy, *, is_sorted: bool = False
) -> Iterator[Item]:
    """Replay *records* into *legacy*; the items that come from elsewhere than its brokers."""
    replay = _Replay(legacy, Left(), Foreign(legacy.qmgr))
    if is_sorted:
        order = _Order(numbered)
        for found in replay.commands(records):
            yield from replay.run(order.next(found)) if isinstance(found, _Traffic) else (found,)
    else:
        traffic: list[_Traffic] = []
        for found in replay.commands(records):
            if isinstance(found, _Traffic):
                # The decoded message is several times as large.
                found.decoded = None
                traffic.append(found)
            else:
                yield found
        ordered = _ordered(traffic, numbered)
        if not numbered and [one.source for one in ordered] != [one.source for one in traffic]:
            why = "they were taken in the order of their times, not in that of the source"
            what = counted(len(traffic), "command")
            yield Unread(source=traffic[0].source, text=what, why=why, is_state=False, warns=True, problem="P14")
        for one in ordered:
            yield from replay.run(one)
    yield from replay.rest()


@dataclass(slots=True)
class _Order:
    """Checks that commands come in the order of their arrival; those without ``seq`` get it here."""

    numbered: bool
    count: int = 0
    last: int | datetime | None = None

    def next(self, one: _Traffic) -> _Traffic:
        """*one* as the broker gets it. Raises OutOfOrderError."""
        self.count += 1
        key = one.message.seq if self.numbered else one.message.time
        if key is None or (self.last is not None and key < self.last):  # type: ignore[operator]
            raise OutOfOrderError
        self.last = key
        return one if self.numbered else one.numbered(self.count)


@dataclass(slots=True)
class _Replay:
    """A replay into *legacy*, and the messages that are no state of its brokers."""

    legacy: Legacy
    left: Left
    foreign: Foreign
    refused: RefusedCommands = field(default_factory=RefusedCommands)
    publishers: dict[tuple[str, ...], Publisher] = field(default_factory=dict)

    def commands(self, records: Iterable[CaptureRecord]) -> Iterator[_Traffic | Item]:
        """The messages that may be commands for the broker; items of the others."""
        for record in records:
            unit = Source(file=record.source, position=record.index + 1, unit="record")
            if record.message is None:
                yield Unread(source=unit, text="a record of the capture", why=str(record.problem))
                continue
            message = record.message
            if self.foreign.takes(message.qmgr, unit):
                continue
            one = _Traffic(unit, message)
            items = _broker_items(one, self.left, self.foreign)
            if items is not None:
                yield from items
            elif not self.legacy.jms.takes(unit, message, one.decoded):
                yield one

    def run(self, one: _Traffic) -> Iterator[Item]:
        """Carry out one command; an item if it is none."""
        try:
            one.decoded = one.message.decode() if one.decoded is None else one.decoded
            one.command = parse(one.decoded)
        except QPubSubError as error:
            yield from self._no_command(one, error)
            return
        _note(one, self.legacy)
        stream = _stream(one)
        message = one.message if one.message.queue else one.message.model_copy(update={"queue": _queue(one)})
        outcome, _ = self.legacy.broker(stream).replay(message)
        _effects(outcome, stream, one.source, self.legacy)
        if outcome.completion is not Completion.ERROR:
            _publishers(one, stream, self.legacy.qmgr, self.publishers)
        elif not self.legacy.long_topics.takes(one.command, stream, one.source, _registrant(one, self.legacy.qmgr)):
            self.refused.add(one.source, one.command.word, outcome)

    def _no_command(self, one: _Traffic, error: QPubSubError) -> Iterator[Item]:
        queue = one.message.queue
        is_refused = _is_refused_command(one)
        if queue in ("", CONTROL_QUEUE, DEFAULT_STREAM, ADMIN_STREAM) or is_refused:
            why = f"it is not a command that a broker takes: {error}"
            state = not queue or is_refused or _is_damaged(one)
            text = f"a message on {queue or 'no queue'}"
            yield Unread(source=one.source, text=text, why=why, is_state=state, warns=True)
        else:
            self.left.add(
                one.source, f"messages on {queue}", "they are not commands: messages, which stay where they are"
            )

    def rest(self) -> Iterator[Item]:
        """What is known when all commands were carried out."""
        yield from self.publishers.values()
        yield from self.refused.items()
        yield from self.left.items()
        yield from self.foreign.items()


def state_of(legacy: Legacy, *, is_last: bool = False) -> Iterator[Item]:
    """The items of the present state of the brokers of *legacy*.

    is_last: nothing else is asked of the brokers. They end before the items are made, because their indexes need as
    much memory as the items.
    """
    for stream, source in legacy.streams.items():
        yield Stream(source=source, name=stream)
    for point, source in legacy.sub_points.items():
        yield SubPoint(source=source, name=point)
    subscriptions = [(s, stream) for stream, broker in legacy.brokers.items() for s in broker.space.subscriptions()]
    subscriptions.sort(key=lambda found: found[0].sub_id, reverse=True)
    kept = [
        (retained, stream, legacy.retained_sources[stream, retained.topic_string])
        for stream, broker in legacy.brokers.items()
        for retained in broker.space.retained_publications()
    ]
    if is_last:
        legacy.brokers.clear()
    while subscriptions:
        subscription, stream = subscriptions.pop()
        yield _subscription(subscription, stream, legacy.subscription_sources[stream][subscription.sub_id])
    yield from legacy.long_topics.items()
    yield from _all_retained(kept)


def state_of_broker(broker: Broker, source: Source) -> Iterator[Item]:
    """The items of a broker with version 6 semantics that has all its streams in one topic space."""
    for stream in broker.objects.namelists[QUEUE_NAMELIST].names:
        yield Stream(source=source, name=stream)
    for subscription in broker.space.subscriptions():
        yield _subscription(subscription, subscription.stream or DEFAULT_STREAM, source)
    kept = broker.space.retained_publications()
    yield from _all_retained([(each, each.publication.stream or DEFAULT_STREAM, source) for each in kept])


def _all_retained(kept: Iterable[tuple[RetainedPublication, str, Source]]) -> Iterator[LegacyRetained]:
    """Publications with their streams. Topics that retain the same publication share its text."""
    texts: dict[int, tuple[str, str]] = {}
    for retained, stream, source in kept:
        message = retained.publication.message
        md_hex, body_hex = texts.get(id(message)) or (message.mqmd.encode().hex(), encode(message).hex())
        texts[id(message)] = md_hex, body_hex
        yield _retained(retained, stream, source, md_hex, body_hex)


def _ordered(traffic: list[_Traffic], numbered: bool) -> list[_Traffic]:
    """In the order of arrival; the broker numbers what it makes by ``seq``, which therefore follows that order."""
    if numbered:
        return sorted(traffic, key=lambda one: one.message.seq)
    times = [one.message.time for one in traffic]
    if all(time is not None for time in times):
        traffic = sorted(traffic, key=lambda one: one.message.time)  # type: ignore[arg-type, return-value]
    return [one.numbered(seq) for seq, one in enumerate(traffic, 1)]


def _broker_items(one: _Traffic, left: Left, foreign: Foreign) -> list[Item] | None:
    """The items of a message that a broker put; none for a delivery; None for a message that is not a broker's."""
    try:
        one.decoded = one.message.decode()
    except QPubSubError:
        return None
    message = one.decoded
    try:
        publication = metatopics.pcf_of(message)
        metatopic = None if publication is None else metatopics.metatopic_published(publication)
        if publication is not None and metatopic is not None:
            if metatopic.qmgr != foreign.qmgr:
                foreign.add(metatopic.qmgr, one.source)
                return []
            return list(metatopics.read(publication, one.source))
        delivered = delivered_publication(message)
    except QPubSubError:
        return None
    if delivered is None:
        return None
    if delivered.is_retained:
        return [_copy(delivered, message, topic, one) for topic in delivered.topics]
    queue = one.message.queue
    if message.mqmd.put_appl_type == MQAT_BROKER and queue not in ("", DEFAULT_STREAM):
        left.add(one.source, f"publications on {queue}", "they were delivered: messages, which stay where they are")
        return []
    return None


def _copy(delivered: Delivered, message: Message, topic: str, one: _Traffic) -> LegacyRetained:
    return LegacyRetained(
        source=one.source,
        topic=topic,
        stream=delivered.stream or DEFAULT_STREAM,
        sub_point=delivered.sub_point,
        md_hex=message.mqmd.encode().hex(),
        body_hex=one.message.body_hex,
        published_at=one.message.time,
        delivered=True,
    )


def _is_refused_command(one: _Traffic) -> bool:
    """Whether a message that cannot be parsed was meant for a broker: it has its header, and no broker put it."""
    message = one.decoded
    if message is None or message.mqmd.put_appl_type == MQAT_BROKER:
        return False
    if message.rfh2 is not None:
        return bool(split_psc(message.rfh2)[0])
    return message.rfh1 is not None and b"MQPSCommand" in message.rfh1.data


def _is_damaged(one: _Traffic) -> bool:
    """Whether a message that cannot be parsed may have been a command before it was damaged: not plain data."""
    return one.decoded is None or one.decoded.body_format in PCF_FORMATS


def _queue(one: _Traffic) -> str:
    return natural_queue(one.message)


def _stream(one: _Traffic) -> str:
    """The stream that a command is about: that of its queue, or the one it names on the control queue."""
    queue = one.message.queue or _queue(one)
    if queue != CONTROL_QUEUE:
        return queue
    command = one.command
    return (name_of(command.stream_name or "") if command is not None else "") or DEFAULT_STREAM


def _note(one: _Traffic, legacy: Legacy) -> None:
    """Streams and subscription points that a command shows to exist."""
    stream = _stream(one)
    if is_object_name(stream):
        legacy.streams.setdefault(stream, one.source)
    point = getattr(one.command, "sub_point", None)
    if point:
        legacy.sub_points.setdefault(point, one.source)


def _effects(outcome: Outcome, stream: str, source: Source, legacy: Legacy) -> None:
    subscriptions = legacy.subscription_sources[stream]
    for effect in outcome.effects:
        match effect:
            case SubscriptionAdded(subscription):
                subscriptions[subscription.sub_id] = source
            case SubscriptionAltered(_, after):
                subscriptions.setdefault(after.sub_id, source)
            case SubscriptionRemoved(subscription):
                subscriptions.pop(subscription.sub_id, None)
            case RetainedStored(retained):
                legacy.retained_sources[stream, retained.topic_string] = source
            case RetainedCleared(topic_string):
                legacy.retained_sources.pop((stream, topic_string), None)


def _publishers(one: _Traffic, stream: str, qmgr: str, publishers: dict[tuple[str, ...], Publisher]) -> None:
    """Registered publishers, which version 6 kept and the replay does not."""
    command = one.command
    if isinstance(command, model.RegisterPublisher):
        for topic in command.topics:
            queue = _own_queue(one, command)
            publishers[stream, queue, topic] = Publisher(
                source=one.source,
                topic=topic,
                stream=stream,
                qmgr=name_of(command.qmgr_name or "") or qmgr,
                queue=queue,
                correl_id=_correl_id(one, model.RegOpt.CORREL_AS_ID in command.options),
                user=_user(one),
                options=tuple(option.value for option in command.options if option is not model.RegOpt.NONE),
            )
    elif isinstance(command, model.DeregisterPublisher):
        everything = model.RegOpt.DEREG_ALL in command.options
        for key in list(publishers):
            if key[:2] == (stream, _own_queue(one, command)) and (everything or key[2] in command.topics):
                del publishers[key]


def _own_queue(one: _Traffic, command: model.Command) -> str:
    reply_to = "" if one.decoded is None else name_of(one.decoded.mqmd.reply_to_q)
    return name_of(command.q_name or "") or reply_to


def _correl_id(one: _Traffic, given: bool) -> str | None:
    if not given or one.decoded is None or one.decoded.mqmd.correl_id == MQCI_NONE:
        return None
    return one.decoded.mqmd.correl_id.hex().upper()


def _registrant(one: _Traffic, qmgr: str) -> Registrant:
    command = one.command
    assert command is not None
    options = getattr(command, "options", None) or ()
    correl_id = _correl_id(one, model.RegOpt.CORREL_AS_ID in options)
    reply_to = "" if one.decoded is None else name_of(one.decoded.mqmd.reply_to_qmgr)
    owner = name_of(command.qmgr_name or "") or reply_to or qmgr
    return Registrant(_own_queue(one, command), owner, correl_id, _user(one))


def _user(one: _Traffic) -> str:
    if one.message.user is not None:
        return one.message.user
    return "" if one.decoded is None else name_of(one.decoded.mqmd.user_identifier)


def _subscription(subscription: Subscription, stream: str, source: Source) -> LegacySubscription:
    identified = subscription.correl_id != MQCI_NONE
    return LegacySubscription(
        source=source,
        topic=remove_pattern_prefix(subscription.prefix, subscription.topic_string, subscription.wildcard),
        queue=subscription.dest_queue,
        qmgr=subscription.dest_qmgr,
        correl_id=subscription.correl_id.hex().upper() if identified else None,
        stream=stream,
        sub_point=subscription.sub_point,
        scheme=subscription.wildcard,
        format=subscription.format,
        user=subscription.user,
        name=subscription.name,
        user_data=subscription.user_data,
        identities=subscription.identities,
        exclusive=subscription.exclusive,
        filter=subscription.selector,
        options=options_of(subscription.options, identified),
        created=subscription.created,
        expires_at=subscription.expires_at,
        accounting_token=subscription.accounting_token.hex() if any(subscription.accounting_token) else "",
        appl_identity_data=subscription.appl_identity_data,
    )


def _retained(retained: RetainedPublication, stream: str, source: Source, md_hex: str, body_hex: str) -> LegacyRetained:
    publication = retained.publication
    point: str | None = None
    try:
        command = parse(publication.message)
        point = command.sub_point if isinstance(command, model.Publish) else None
    except QPubSubError:
        point = None
    own = remove_prefix("" if stream == DEFAULT_STREAM else stream, retained.topic_string)
    return retained_item(retained, source, stream, own, point, (md_hex, body_hex))


def retained_item(
    retained: RetainedPublication, source: Source, stream: str, topic: str, point: str | None, texts: tuple[str, str]
) -> LegacyRetained:
    """What a topic keeps, as an item. topic: below its stream. texts: MQMD and body in hexadecimal."""
    publication = retained.publication
    return LegacyRetained(
        source=source,
        topic=remove_prefix(point or "", topic),
        stream=stream,
        sub_point=point,
        md_hex=texts[0],
        body_hex=texts[1],
        published_at=publication.published_at,
        expires_at=publication.expires_at,
        local=publication.local,
    )
