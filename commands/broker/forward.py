"""Publications on their way to subscribers: rendered in each one's format, with the descriptor of guide 6.7.9.

Subscribers that get the same form share the bytes: ``Forwarder`` makes them once for each publication and form.
Programs often put the same header with different data. ``RenderedHeaders`` keeps the forwarded form of such headers
between commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from commands.broker.descriptor import Origin, fitting
from commands.broker.objects import DEFAULT_STREAM, Objects
from commands.broker.puts import Outgoing, PutKind
from commands.headers.publication import Content, DeliveryForm, RenderedPublication
from commands.headers.registry import content_of, render
from commands.model import Command, TopicPut
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQEI_UNLIMITED, MQMT_DATAGRAM, MQPER_PERSISTENT, MQPRI_PRIORITY_AS_Q_DEF
from rfh2.layouts import MQMD1
from rfh2.message import Message, encode
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, identifier
from rfh2.pcf import FORMATS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from streams.operations import Delivery, Published
from streams.subscriptions import DeliveryPersistence, PublicationFormat, Subscription
from streams.topic_strings import remove_prefix

# A header, the form it is rendered in, and the fields of the descriptor that can matter: CodedCharSetId, ReplyToQ,
# ReplyToQMgr.
_HeaderKey = tuple[Rfh1 | Rfh2, DeliveryForm, int, str, str]

_SLICES: Final = MQMD1.slices()
_MSG_ID: Final = _SLICES["MsgId"]
_PRIORITY: Final = _SLICES["Priority"].start
_IDS_END: Final = _SLICES["BackoutCount"].start
_IDENTITY, _IDENTITY_END = _SLICES["UserIdentifier"].start, _SLICES["PutApplType"].start

_HEADERS_BYTES: Final = 8 << 20
# The size of an entry without the bytes of its headers: their objects, and the entry itself.
_ENTRY_BYTES: Final = 3_000
_FOLDER_BYTES: Final = 200
_READ_AGAIN_BYTES: Final = 1_024


class RenderedHeaders:
    """A bounded cache of the broker: the header of a publication that has only one, its forwarded form, and the bytes.

    most_bytes: the bound for all entries. Headers of more than some kilobytes are not kept, because two messages seldom
    have the same large folders.
    """

    __slots__ = ("_rendered",)

    def __init__(self, most_bytes: int = _HEADERS_BYTES) -> None:
        self._rendered: BoundedCache[_HeaderKey, tuple[RenderedPublication, bytes]] = BoundedCache(most_bytes)

    def __len__(self) -> int:
        return len(self._rendered)

    def render(self, key: _HeaderKey, content: Callable[[], Content]) -> tuple[RenderedPublication, bytes]:
        """The forwarded form of the header, and its bytes. content: reads the header if the cache does not have it."""
        header, form = key[0], key[1]
        # Looking up a header takes as long as reading all its bytes, and the cache has no large one.
        length = header.length
        may_be_kept = length <= self._rendered.largest_bytes
        made = self._rendered.get(key) if may_be_kept else None
        if made is None:
            rendered = render(content(), form)
            made = rendered, encode(rendered.message)
            if may_be_kept:
                folders = 1 if isinstance(header, Rfh1) else len(header.folders)
                held = length + _FOLDER_BYTES * folders + 4 * sum(map(len, form.topics)) + 2 * len(made[1])
                self._rendered.keep(key, made, _ENTRY_BYTES + held)
        return made


class _Descriptor(NamedTuple):
    """A descriptor without what each subscriber has of its own, in its bytes."""

    before: bytes  # Priority
    between: bytes  # from BackoutCount to UserIdentifier
    behind: bytes  # ApplIdentityData
    order: ByteOrder
    charset: str

    @classmethod
    def of(cls, mqmd: Mqmd) -> _Descriptor:
        """The descriptors that are like *mqmd*. Raises EncodeError."""
        md = mqmd.encode()
        return cls(md[:_PRIORITY], md[_IDS_END:_IDENTITY], md[_IDENTITY_END:], mqmd.order, mqmd.charset)

    def md(self, priority: int, persistence: int, msg_id: bytes, correl_id: bytes, subscription: Subscription) -> bytes:
        """The one for a subscriber. Raises EncodeError."""
        numbers = priority.to_bytes(4, self.order, signed=True) + persistence.to_bytes(4, self.order, signed=True)
        ids = msg_id + identifier(correl_id, 24, "CorrelId")
        token, data = subscription.accounting_token, subscription.appl_identity_data
        identity = _identity(subscription.user, token, data, self.charset)
        return b"".join((self.before, numbers, ids, self.between, identity, self.behind))


@lru_cache(maxsize=4096)
def _identity(user: str, accounting_token: bytes, appl_identity_data: str, charset: str) -> bytes:
    """The identity context of one subscriber."""
    of = Mqmd(
        user_identifier=fitting(user, 12),
        accounting_token=accounting_token,
        appl_identity_data=appl_identity_data,
        charset=charset,
    )
    return of.encode()[_IDENTITY:_IDENTITY_END]


class _Made(NamedTuple):
    """A publication in one form."""

    published: Mqmd
    rendered: RenderedPublication
    body: bytes
    descriptor: _Descriptor


class Forwarder:
    """Makes the messages for the deliveries of one command.

    command: the one that is being processed. headers: the cache from earlier commands. lost: the parts of the
    publications that a subscriber's format cannot hold, after the name of its queue (guide 8.7).
    """

    def __init__(
        self,
        qmgr: str,
        now: datetime,
        origin: Origin,
        command: Command | None = None,
        headers: RenderedHeaders | None = None,
    ) -> None:
        self._qmgr, self._now, self._origin, self._command = fitting(qmgr, 48), now, origin, command
        self._headers = RenderedHeaders() if headers is None else headers
        self._contents: dict[int, Content] = {}
        self._header_contents: dict[int, Content] = {}
        self._made: dict[tuple[int, DeliveryForm], _Made] = {}
        self.lost: list[str] = []

    def put(self, delivery: Delivery, msg_id: bytes, objects: Objects, *others: Delivery) -> Outgoing:
        """The put of the message for one subscriber. objects: for its queue, if PersAsQueue. others: as below."""
        subscription = delivery.subscription
        default = 0
        if subscription.options.persistence is DeliveryPersistence.AS_QUEUE:  # a queue may have to be looked up
            queue = objects.queue(subscription.dest_queue)
            default = int(queue is not None and queue.def_persistent)
        made = self._form((delivery, *others))
        self.lost += [f"{subscription.dest_queue}: {what}" for what in made.rendered.lost]
        published = made.published
        priority = published.priority if subscription.pub_priority is None else subscription.pub_priority
        if priority == MQPRI_PRIORITY_AS_Q_DEF:
            # PUBPRTY(ASQDEF): a queue of another queue manager is not known here.
            queue = objects.queue(subscription.dest_queue)
            priority = 0 if queue is None else queue.def_priority
        persistence = _persistence(subscription, published.persistence, default)
        return Outgoing(
            PutKind.PUBLICATION,
            subscription.dest_qmgr,
            subscription.dest_queue,
            made.descriptor.md(priority, persistence, msg_id, _correl_id(subscription, published), subscription),
            made.body,
            delivery.topic_string,
            subscription.name,
            expires_at=delivery.publication.expires_at,
            sub_ids=(subscription.sub_id, *[other.subscription.sub_id for other in others]),
            temporary=_temporary(delivery, *others) if subscription.temporary else (),
        )

    def _form(self, deliveries: Sequence[Delivery]) -> _Made:
        """What the subscribers of one form get of a publication. More than one: the message names all their topics."""
        delivery = deliveries[0]
        publication = delivery.publication
        form = delivery_form(deliveries)
        key = (id(publication), form)
        made = self._made.get(key)
        if made is None:
            message = publication.message  # of a retained one, read from the store
            rendered, body = self._rendered(delivery, message, form)
            made = _Made(message.mqmd, rendered, body, self._descriptor(publication, message.mqmd, rendered))
            # A command delivers tens of thousands of retained publications, each of them once.
            if not delivery.from_retained:
                self._made[key] = made
        return made

    def _rendered(self, delivery: Delivery, message: Message, form: DeliveryForm) -> tuple[RenderedPublication, bytes]:
        publication = delivery.publication
        # What is retained was published by another command.
        command = None if delivery.from_retained else self._command
        if form.format in _IN_HEADERS and len(message.headers) == 1:
            (header,) = message.headers
            if isinstance(header, Rfh1 | Rfh2) and message.body_format not in FORMATS:
                mqmd = message.mqmd
                # Only MQRFH has DirectReq.
                reply_to = (mqmd.reply_to_q, mqmd.reply_to_qmgr) if isinstance(header, Rfh1) else ("", "")
                key = (header, form, mqmd.coded_char_set_id, *reply_to)
                like, head = self._headers.render(key, lambda: self._header_content(id(publication), key, command))
                same = Message(_described(mqmd, like.message.mqmd), like.message.headers, message.body)
                return replace(like, message=same), head + message.body
        content = self._contents.get(id(publication))
        if content is None:
            content = self._contents[id(publication)] = content_of(message, command)
        rendered = render(content, form)
        return rendered, encode(rendered.message)

    def _header_content(self, publication: int, key: _HeaderKey, command: Command | None) -> Content:
        """The content of a publication with only one header, read once although it may be rendered for many topics."""
        content = self._header_contents.get(publication)
        if content is None:
            header, _, ccsid, reply_to_q, reply_to_qmgr = key
            mqmd = Mqmd(
                format=header.own_format,
                coded_char_set_id=ccsid,
                reply_to_q=reply_to_q,
                reply_to_qmgr=reply_to_qmgr,
                order=header.order,
            )
            content = content_of(Message(mqmd, (header,)), command)
            # A short header is soon read again; what was read of it takes more memory than the message.
            if header.length > _READ_AGAIN_BYTES:
                self._header_contents[publication] = content
        return content

    def _descriptor(self, publication: Published, published: Mqmd, rendered: RenderedPublication) -> _Descriptor:
        """What the descriptors of one form have in common (guide 6.7.9). published: that of the publication.

        Its priority and persistence were resolved when it was published.
        """
        body = rendered.message.mqmd
        reply_to_q, reply_to_qmgr = self._reply_to(published, rendered.put)
        return _Descriptor.of(
            Mqmd(
                msg_type=MQMT_DATAGRAM,
                expiry=remaining_expiry(published.expiry, publication.published_at, self._now),
                encoding=body.encoding,
                coded_char_set_id=body.coded_char_set_id,
                format=body.format,
                reply_to_q=reply_to_q,
                reply_to_qmgr=reply_to_qmgr,
                put_appl_type=self._origin.put_appl_type,
                put_appl_name=self._origin.put_appl_name,
                put_date=self._origin.put_date,
                put_time=self._origin.put_time,
                order=published.order,
                charset=published.charset,
            )
        )

    def _reply_to(self, published: Mqmd, put: TopicPut | None) -> tuple[str, str]:
        """ReplyToQ and ReplyToQMgr: a program's MQPUT gives its own to subscribers, a command does not (4.7, 7.2.4)."""
        if put is None:
            return "", self._qmgr
        return ("", "") if put.suppress_reply_to else (published.reply_to_q, published.reply_to_qmgr or self._qmgr)


class MadePuts:
    """The publications that another broker of the queue manager put for the same arrival.

    copies: the deliveries that each of them stands for. puts: they, and what else there may be behind them.
    """

    def __init__(self, copies: Sequence[Sequence[Delivery]], puts: Sequence[Outgoing]) -> None:
        self._made = {_place(copy): (copy, put) for copy, put in zip(copies, puts, strict=False)}

    def put(self, copy: Sequence[Delivery], msg_id: bytes) -> Outgoing | None:
        """The put for the same deliveries, with this MsgId; None where there is none."""
        made, put = self._made.get(_place(copy), _NOT_MADE)
        if put is None or made != copy or _asks_queue(copy[0].subscription):
            return None
        md = put.md
        return put if md[_MSG_ID] == msg_id else put._replace(md=md[: _MSG_ID.start] + msg_id + md[_MSG_ID.stop :])


def _asks_queue(subscription: Subscription) -> bool:
    """Whether the definition of the subscriber's queue decides on a put: each broker has its own."""
    of_queue = subscription.options.persistence is DeliveryPersistence.AS_QUEUE
    return of_queue or subscription.pub_priority == MQPRI_PRIORITY_AS_Q_DEF


def _place(copy: Sequence[Delivery]) -> tuple[bytes, str]:
    return copy[0].subscription.sub_id, copy[0].topic_string


_NOT_MADE: Final[tuple[Sequence[Delivery], None]] = ((), None)
_IN_HEADERS = (PublicationFormat.RFH2, PublicationFormat.RFH1)


def _described(mqmd: Mqmd, header: Mqmd) -> Mqmd:
    """*mqmd* with the fields that describe *header*."""
    fmt, ccsid = header.format, header.coded_char_set_id
    if (mqmd.format, mqmd.coded_char_set_id) == (fmt, ccsid):
        return mqmd
    return replace(mqmd, format=fmt, coded_char_set_id=ccsid)


def remaining_expiry(expiry: int, since: datetime, now: datetime) -> int:
    """Tenths of a second left of *expiry*, which began to run at *since*; at least one."""
    if expiry <= 0:
        return MQEI_UNLIMITED
    elapsed = int((now - since).total_seconds() * 10)
    return max(expiry - max(elapsed, 0), 1)


def _correl_id(subscription: Subscription, published: Mqmd) -> bytes:
    """The registered one, or one chosen by the queue manager; the publisher's if DESTCORL is zeros (guide 4.8)."""
    if subscription.keep_correl_id:
        return published.correl_id
    return subscription.correl_id if subscription.correl_id != MQCI_NONE else subscription.sub_id


def _persistence(subscription: Subscription, published: int, queue_default: int) -> int:
    wanted = subscription.options.persistence
    if wanted is DeliveryPersistence.AS_PUBLISHED:
        return published
    if wanted is DeliveryPersistence.AS_QUEUE:
        return queue_default
    return MQPER_PERSISTENT if wanted is DeliveryPersistence.PERSISTENT else 0


def delivered_topic(subscription: Subscription, topic_string: str) -> str:
    """The topic in the subscriber's message: without its prefix, unless nothing follows it (guide 6.1, 6.2).

    ``#`` on subscription point USD also matches topic USD, and no command can name a topic without characters.
    """
    return remove_prefix(subscription.prefix, topic_string) or topic_string


def delivery_form(deliveries: Sequence[Delivery]) -> DeliveryForm:
    """The form in which the subscriber of these deliveries gets their publication."""
    first = deliveries[0]
    subscription, options = first.subscription, first.subscription.options
    topics = tuple([delivered_topic(each.subscription, each.topic_string) for each in deliveries])
    if subscription.format is PublicationFormat.PROPERTIES:
        return DeliveryForm(
            subscription.format, topics, user_data=subscription.user_data, from_retained=first.from_retained
        )
    return DeliveryForm(
        subscription.format,
        topics,
        sub_point=subscription.sub_point,
        stream=(subscription.stream or DEFAULT_STREAM) if options.incl_stream_name else None,
        is_retained=first.from_retained and options.inform_if_ret,
        keep_pcf=subscription.admin and subscription.format is PublicationFormat.RFH1,
    )


def _temporary(*deliveries: Delivery) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(d.subscription.sub_id for d in deliveries if d.subscription.temporary))
