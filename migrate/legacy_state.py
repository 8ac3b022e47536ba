"""What a legacy broker knew, as values: the one model that every reader fills and every plan is made of.

Each thing is an *item* with the place it was found at. Nothing is dropped on the way here: what a reader did not
understand is an item too (``Unread``), so that whoever counts items in and fates out counts all of it. A state is plain
data and goes to JSON and back without loss.

Topics are those that programs used, without any prefix of a stream or a subscription point: they get one from the plan
(guide 6.1, 6.2). ``None`` in a field means that the source did not say; ``unknown`` names what the source could not say
although the broker knew it.

Whether two readings of a broker are the same, and how they differ.

The fingerprint depends on the contents of the items, not on where they were found or on their order: two listings of
the same broker have the same fingerprint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from sys import intern
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter
from pydantic.dataclasses import dataclass

from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import DEFAULT_STREAM

STATE_FORMAT: Final = "qpubsub-legacy-state"
STATE_VERSION: Final = 1
_VERSION_7: Final = 700


@lru_cache(maxsize=4096)
def _same_words(words: tuple[str, ...]) -> tuple[str, ...]:
    return words


@lru_cache(maxsize=4096)
def _same_moment(moment: datetime, _zone: tzinfo | None) -> datetime:
    return moment


def _shared_moment(moment: datetime) -> datetime:
    # Two equal times may have different zones.
    return _same_moment(moment, moment.tzinfo)


# A broker with 100,000 items has few queues, users, streams and sets of options: equal ones are one object.
Name = Annotated[str, AfterValidator(intern)]
Words = Annotated[tuple[str, ...], AfterValidator(_same_words)]
Moment = Annotated[datetime, AfterValidator(_shared_moment)]
Hex = Annotated[str, StringConstraints(pattern=r"^(?:[0-9A-Fa-f]{2})*$"), AfterValidator(intern)]
CorrelId = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{48}$")]
Key = tuple[str, int]
"""What names an item within its state: its kind, and its number there from 1."""


class Frozen(BaseModel):
    """A value; unknown fields in JSON are an error, because they would be lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# A broker may have 100,000 items, and more: slots make an item a quarter as large as a model of pydantic.
_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class Source:
    """Where an item was found. position: a line or a record, counted from 1, or a byte offset: *unit* says which."""

    file: Name
    position: int | None = None
    unit: Literal["line", "record", "byte"] = "line"

    def __str__(self) -> str:
        return self.file if self.position is None else f"{self.file}, {self.unit} {self.position}"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Item:
    """One thing of the legacy state. called: the form of ``label``, with the item as ``{0}``."""

    kind: ClassVar[str]
    called: ClassVar[str] = ""

    source: Source

    @property
    def label(self) -> str:
        """What a person calls it, on one line."""
        return self.called.format(self)


class Product(StrEnum):
    """Whose broker: WebSphere MQ version 6's own, or Event Broker's and Message Broker's."""

    MQ = "mq"
    WMB = "wmb"


@dataclass(frozen=True, slots=True, config=_STRICT)
class BrokerItem(Item):
    """The broker itself. qmgr: its queue manager; "" where the source did not say.

    command_level: that of the queue manager, 700 or more where it is no broker of version 6; 0 where the source did not
    say.
    """

    kind = "broker"
    called = "broker {0.name}"

    name: str
    product: Product = Product.MQ
    qmgr: str = ""
    command_level: int = 0


@dataclass(frozen=True, slots=True, config=_STRICT)
class Relation(Item):
    """A neighbour in the broker hierarchy (guide 7.4)."""

    kind = "relation"
    called = "{0.role} {0.qmgr}"

    role: Literal["parent", "child"]
    qmgr: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class Stream(Item):
    """A stream that the broker supported; its queue has the same name (guide 6.1)."""

    kind = "stream"
    called = "stream {0.name}"

    name: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class LegacySubscription(Item):
    """A registered subscription, with every option.

    options: registration options by their words (guide 6.7.4); unknown_options: words and bits that are none. queue,
    qmgr, correl_id: the traditional identity, no correl_id where CorrelAsId was not given. unknown: of ``expires_at``,
    ``format``, ``user`` those that are not in the source. temp_dynamic: the queue is a temporary dynamic one.
    client_context: hexadecimal, of WebSphere Message Broker. client_id: of a client that has no queue, "" for others.
    """

    kind = "subscription"

    topic: str
    queue: Name
    qmgr: Name = ""
    correl_id: CorrelId | None = None
    stream: Name = DEFAULT_STREAM
    sub_point: Name | None = None
    scheme: WildcardScheme = WildcardScheme.CHAR
    format: PublicationFormat = PublicationFormat.RFH1
    user: Name = ""
    name: str | None = None
    user_data: str | None = None
    identities: Words = ()
    exclusive: bool = False
    filter: str | None = None
    options: Words = ()
    unknown_options: Words = ()
    created: Moment | None = None
    expires_at: Moment | None = None
    temp_dynamic: bool = False
    accounting_token: Hex = ""
    appl_identity_data: str = ""
    client_context: Hex = ""
    client_id: str = ""
    unknown: Words = ()

    @property
    def label(self) -> str:
        name = f" named {self.name}" if self.name else ""
        return f"subscription{name} to {self.topic} on {self.stream} for {self.client_id or self.queue}"

    @property
    def identity(self) -> tuple[str, str, str, str, str, str, str]:
        """What no other registration of the broker had."""
        own = (self.qmgr, self.client_id or self.queue, (self.correl_id or "").upper())
        return (self.stream, *own, self.topic, self.sub_point or "", self.filter or "")


@dataclass(frozen=True, slots=True, config=_STRICT)
class LegacyRetained(Item):
    """A retained publication. md_hex, body_hex: the message; no body where only its existence is known.

    delivered: the message is a copy that the broker sent to a subscriber, not the publisher's own.
    """

    kind = "retained"

    topic: str
    stream: Name = DEFAULT_STREAM
    sub_point: Name | None = None
    md_hex: Hex | None = None
    body_hex: Hex | None = None
    published_at: Moment | None = None
    expires_at: Moment | None = None
    local: bool = False
    delivered: bool = False

    @property
    def label(self) -> str:
        point = f" at subscription point {self.sub_point}" if self.sub_point else ""
        return f"retained publication on {self.topic} of {self.stream}{point}"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Publisher(Item):
    """A registered publisher; version 7 keeps none (guide 7.5)."""

    kind = "publisher"

    topic: str
    stream: Name = DEFAULT_STREAM
    qmgr: Name = ""
    queue: Name = ""
    correl_id: CorrelId | None = None
    user: Name = ""
    options: Words = ()

    @property
    def label(self) -> str:
        return f"publisher {self.queue or 'without a queue'} of {self.topic} on {self.stream}"


@dataclass(frozen=True, slots=True, config=_STRICT)
class SubPoint(Item):
    """A subscription point of Event Broker or Message Broker (guide 6.2)."""

    kind = "sub_point"
    called = "subscription point {0.name}"

    name: str


class Access(StrEnum):
    """What an entry of an access control list says about one right."""

    ALLOW = "true"
    DENY = "false"
    INHERIT = "inherit"


@dataclass(frozen=True, slots=True, config=_STRICT)
class AclEntry(Item):
    """An entry of a topic's access control list (guide 8.1). topic: "" for the root."""

    kind = "acl"

    topic: str
    principal: str
    principal_type: Literal["user", "group", "unknown"] = "unknown"
    stream: str = DEFAULT_STREAM
    publish: Access = Access.INHERIT
    subscribe: Access = Access.INHERIT
    persistent: Access = Access.INHERIT

    @property
    def label(self) -> str:
        whose = self.principal if self.principal_type == "unknown" else f"{self.principal_type} {self.principal}"
        return f"ACL entry of {whose} on {self.topic or 'the root'}"


@dataclass(frozen=True, slots=True, config=_STRICT)
class LegacyAuthority(Item):
    """What a user or a group may do with a queue or another object (setmqaut, SET AUTHREC).

    authorities: MQSC's words (PUT, BROWSE ...); removed: those that the source takes away again. qmgr: the queue
    manager that the source names, "" where it names none.
    """

    kind = "authority"

    object_type: str
    profile: str
    entity_type: Literal["PRINCIPAL", "GROUP"]
    entity: str
    authorities: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    qmgr: str = ""

    @property
    def label(self) -> str:
        return f"authority of {self.entity_type.lower()} {self.entity} on {self.object_type.lower()} {self.profile}"


@dataclass(frozen=True, slots=True, config=_STRICT)
class Principal(Item):
    """A user or a group, with the groups that a user is in."""

    kind = "principal"
    called = "{0.type} {0.name}"

    name: str
    type: Literal["user", "group"]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, config=_STRICT)
class StanzaAttribute(Item):
    """One attribute of a stanza of qm.ini (guide 7.3)."""

    kind = "attribute"
    called = "{0.stanza}: {0.name}={0.value}"

    stanza: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class FlowInput(Item):
    """An input queue of a message flow with a Publication node (guide 8.2, step 7)."""

    kind = "flow_input"
    called = "flow input queue {0.queue}"

    queue: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class Unread(Item):
    """A piece of a source that no reader understood, or that is no state of the broker.

    count: how many alike it stands for. is_state: whether it may have been the broker's state, which would be lost
    without it. warns: whether a person should see it although it was none. problem: the known problem it is. qmgr:
    another queue manager that it belongs to, and of_count: how many there were of all queue managers in that source.
    """

    kind = "unread"

    text: str
    why: str
    count: int = 1
    is_state: bool = True
    warns: bool = False
    problem: str = ""
    qmgr: str = ""
    of_count: int = 0

    @property
    def label(self) -> str:
        if self.qmgr:
            return f"of another queue manager: {self.text[:80]}"
        return f"not understood: {self.text[:80]}" if self.is_state else f"not state: {self.text[:80]}"


class LegacyState(Frozen):
    """Everything known of one broker. qmgr: its queue manager. Subscriptions are in the order of their numbers.

    notes: about the sources as a whole, for the report. until: the time of the last record in the sources, UTC; what
    registered or was published later is not in it. None where the sources have no times.
    """

    format: Literal["qpubsub-legacy-state"] = STATE_FORMAT
    version: Literal[1] = STATE_VERSION
    qmgr: str
    brokers: tuple[BrokerItem, ...] = ()
    relations: tuple[Relation, ...] = ()
    streams: tuple[Stream, ...] = ()
    sub_points: tuple[SubPoint, ...] = ()
    subscriptions: tuple[LegacySubscription, ...] = ()
    retained: tuple[LegacyRetained, ...] = ()
    publishers: tuple[Publisher, ...] = ()
    acl: tuple[AclEntry, ...] = ()
    authorities: tuple[LegacyAuthority, ...] = ()
    principals: tuple[Principal, ...] = ()
    attributes: tuple[StanzaAttribute, ...] = ()
    flow_inputs: tuple[FlowInput, ...] = ()
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    until: Moment | None = None

    def items(self) -> Iterator[tuple[Key, Item]]:
        """Every item under its key, kind by kind."""
        for name in ITEM_FIELDS:
            for number, item in enumerate(getattr(self, name), 1):
                yield (item.kind, number), item

    def default_topics(self) -> Iterator[str]:
        """The topics that programs used on the default stream, wildcards included."""
        for items in (self.subscriptions, self.retained, self.publishers):
            yield from (item.topic for item in items if item.stream == DEFAULT_STREAM)

    @property
    def product(self) -> Product:
        """Whose broker it was; WebSphere MQ's where no source said."""
        return self.brokers[0].product if self.brokers else Product.MQ

    @property
    def is_modern(self) -> bool:
        """Whether it is that of a queue manager of version 7 or later, whose subscriptions have their own wildcards."""
        return any(broker.command_level >= _VERSION_7 for broker in self.brokers)

    @property
    def broker_name(self) -> str:
        """The broker's name; that of the queue manager where no source said."""
        return self.brokers[0].name if self.brokers else self.qmgr


ITEM_FIELDS: Final = tuple(
    name for name in LegacyState.model_fields if name not in ("format", "version", "qmgr", "notes", "until")
)
CLASS_OF_FIELD: Final[dict[str, type[Item]]] = {
    field: get_args(LegacyState.model_fields[field].annotation)[0] for field in ITEM_FIELDS
}
FIELD_OF_KIND: Final = {cls.kind: field for field, cls in CLASS_OF_FIELD.items()}


class StateJson(Frozen):
    """A state file holds one state or several, one for each broker."""

    states: tuple[LegacyState, ...] = Field(min_length=1)


_ADAPTERS: Final = {cls.kind: TypeAdapter[Item](cls) for cls in CLASS_OF_FIELD.values()}


def digest(item: Item) -> str:
    """32 hexadecimal digits for the contents of *item*."""
    said = _ADAPTERS[item.kind].dump_json(item, exclude={"source"}, exclude_defaults=True)
    return sha256(b"%s %s" % (item.kind.encode(), said)).hexdigest()[:32]


def fingerprint(state: LegacyState) -> str:
    """40 hexadecimal digits for the whole state."""
    return combined(digest(item) for _, item in state.items())


def combined(digests: Iterable[str]) -> str:
    """The fingerprint of items that have these digests, in whatever order."""
    whole = sha256()
    for one in sorted(digests):
        whole.update(one.encode())
    return whole.hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class ReadingDifference:
    """What changed from one reading to a later one: labels of new items, and how many of each kind are gone."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def labelled(state: LegacyState) -> Iterator[tuple[str, str]]:
    """(digest, label) of every item: what to keep of a reading in order to compare a later one with it."""
    return ((digest(item), item.label) for _, item in state.items())


def difference(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> ReadingDifference:
    """The items that only *after* has and those that only *before* has, each in its own order."""
    before, after = list(before), list(after)
    were, are = Counter(d for d, _ in before), Counter(d for d, _ in after)
    return ReadingDifference(_beyond(after, were), _beyond(before, are))


def _beyond(items: Iterable[tuple[str, str]], others: Counter[str]) -> tuple[str, ...]:
    left = Counter(others)
    found = []
    for one, label in items:
        if left[one]:
            left[one] -= 1
        else:
            found.append(label)
    return tuple(found)
