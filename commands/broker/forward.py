"""Publications on their way to subscribers: rendered in each one's format, with the descriptor of guide 6.7.9.

Subscribers that get the same form share the bytes: ``Forwarder`` makes them once for each publication and form.
Programs often put the same header with different data. ``RenderedHeaders`` keeps the forwarded form of such headers
between commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from commands.broker.identifiers import Origin, fitting
from commands.broker.objects import DEFAULT_STREAM, Objects
from commands.broker.puts import Outgoing, PutKind
from commands.headers.publication import Content, DeliveryForm, RenderedPublication
from commands.headers.registry import content_of, render
from commands.model import Command, TopicPut
from rfh2.bounded_cache import BoundedCache
from rfh2.constants import MQEI_UNLIMITED, MQMT_DATAGRAM, MQPER_PERSISTENT, MQPRI_PRIORITY_AS_Q_DEF
from rfh2.layouts import MQMD1
from rfh2.message import Message, encode
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from rfh2.pcf import FORMATS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from streams.operations import Delivery
from streams.subscriptions import DeliveryPersistence, PublicationFormat, Subscription
from streams.topic_strings import remove_prefix

# A header, the form it is rendered in, and the fields of the descriptor that can matter: CodedCharSetId, ReplyToQ,
# ReplyToQMgr.
_HeaderKey = tuple[Rfh1 | Rfh2, DeliveryForm, int, str, str]

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
        self._made: dict[tuple[int, DeliveryForm], tuple[RenderedPublication, bytes]] = {}
        self.lost: list[str] = []

    def put(self, delivery: Delivery, msg_id: bytes, objects: Objects, *others: Delivery) -> Outgoing:
        """The put of the message for one subscriber. objects: for its queue, if PersAsQueue. others: as below."""
        subscription = delivery.subscription
        default = 0
        if subscription.options.persistence is DeliveryPersistence.AS_QUEUE:  # a queue may have to be looked up
            queue = objects.queue(subscription.dest_queue)
            default = int(queue is not None and queue.def_persistent)
        message, body = self.forward(delivery, msg_id, default, *others)
        if message.mqmd.priority == MQPRI_PRIORITY_AS_Q_DEF:
            # PUBPRTY(ASQDEF): a queue of another queue manager is not known here.
            queue = objects.queue(subscription.dest_queue)
            priority = 0 if queue is None else queue.def_priority
            message = replace(message, mqmd=replace(message.mqmd, priority=priority))
        return Outgoing(
            PutKind.PUBLICATION,
            subscription.dest_qmgr,
            subscription.dest_queue,
            message.mqmd.encode(),
            body,
            delivery.topic_string,
            subscription.name,
            expires_at=delivery.publication.expires_at,
            sub_ids=(subscription.sub_id, *[other.subscription.sub_id for other in others]),
            temporary=_temporary(delivery, *others) if subscription.temporary else (),
        )

    def forward(
        self, delivery: Delivery, msg_id: bytes, queue_default: int, *others: Delivery
    ) -> tuple[Message, bytes]:
        """The message for one subscriber, and its body. queue_default: DEFPSIST of its queue, for PersAsQueue.

        others: deliveries of the same publication to that subscriber on other topics, which the message also names.
        """
        publication = delivery.publication
        published = publication.message  # of a retained one, read from the store
        form = delivery_form((delivery, *others))
        key = (id(publication), form)
        made = self._made.get(key)
        if made is None:
            made = self._rendered(delivery, published, form)
            # A command delivers tens of thousands of retained publications, each of them once.
            if not delivery.from_retained:
                self._made[key] = made
        rendered, body = made
        self.lost += [f"{delivery.subscription.dest_queue}: {what}" for what in rendered.lost]
        mqmd = self._descriptor(delivery, published.mqmd, rendered, msg_id, queue_default)
        return Message(mqmd, rendered.message.headers, rendered.message.body), body

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

    def _descriptor(
        self, delivery: Delivery, published: Mqmd, rendered: RenderedPublication, msg_id: bytes, queue_default: int
    ) -> Mqmd:
        """The descriptor (guide 6.7.9); priority and persistence were resolved when the publication was published.

        published: of the publication.
        """
        subscription, publication, body = delivery.subscription, delivery.publication, rendered.message.mqmd
        reply_to_q, reply_to_qmgr = self._reply_to(published, rendered.put)
        return Mqmd(
            msg_type=MQMT_DATAGRAM,
            expiry=remaining_expiry(published.expiry, publication.published_at, self._now),
            encoding=body.encoding,
            coded_char_set_id=body.coded_char_set_id,
            format=body.format,
            priority=published.priority if subscription.pub_priority is None else subscription.pub_priority,
            persistence=_persistence(subscription, published.persistence, queue_default),
            msg_id=msg_id,
            correl_id=_correl_id(subscription, published),
            reply_to_q=reply_to_q,
            reply_to_qmgr=reply_to_qmgr,
            user_identifier=fitting(subscription.user, 12),
            accounting_token=subscription.accounting_token,
            appl_identity_data=subscription.appl_identity_data,
            put_appl_type=self._origin.put_appl_type,
            put_appl_name=self._origin.put_appl_name,
            put_date=self._origin.put_date,
            put_time=self._origin.put_time,
            order=published.order,
            charset=published.charset,
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
_MSG_ID: Final = MQMD1.slices()["MsgId"]
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
