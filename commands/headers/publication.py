"""The content of a publication, independent of its header, and the place of the header in the message.

A subscriber gets a publication in its own format (guide 8.7; wire formats 2, 4, 5.1). Each family therefore reads its
header into ``Content``, and writes a header from a ``Content`` and a ``DeliveryForm``. ``RenderedPublication.lost``
names what the format cannot hold.

                MQRFH2                        MQRFH                          PCF
    user pairs  folder usr                    as they are                    lost
    user tags   in psc, as they are           user pairs                     lost
    usr         as it is                      user pairs                     lost
    folders     as they are                   lost                           lost
    data items  property mqpse.Sid            MQPSIntData, MQPSStringData    IntegerData, StringData
    text        as it is                      as it is                       StringData
    other data  as it is                      as it is                       MQBACF_MESSAGE_DATA
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from commands.model import TopicPut
from rfh2.ccsid import ByteOrder, byte_order, field_codec, is_ebcdic
from rfh2.chain import Header, ccsid_behind, describing
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT
from rfh2.folders import Folder
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.subscriptions import PublicationFormat

Pairs = tuple[tuple[str, str], ...]


@dataclass(slots=True, unsafe_hash=True)
class DeliveryForm:
    """How one subscriber gets a publication: the format, and what the header says besides the publication itself.

    topics: without the prefix of a stream or subscription point; several under version 6's semantics only. stream: its
    name, for subscribers that asked for it. is_retained: for subscribers that asked for it. keep_pcf: PSPROP(COMPAT),
    which leaves PCF as it is. user_data, retain, from_retained: for message properties (guide 4.4, table 1).
    """

    format: PublicationFormat
    topics: tuple[str, ...]
    sub_point: str | None = None
    stream: str | None = None
    is_retained: bool = False
    keep_pcf: bool = False
    user_data: str | None = None
    from_retained: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A message with a gap at the place of the publish/subscribe header, whether or not it had one.

    order, charset, ccsid: of the numbers and characters in the gap. encoding, coded_char_set_id, format, flags: those
    fields of the header in the gap, which describe the bytes behind it.
    """

    mqmd: Mqmd
    before: tuple[Header, ...]
    after: tuple[Header, ...]
    body: bytes
    order: ByteOrder
    charset: str
    ccsid: int
    encoding: int
    coded_char_set_id: int
    format: str
    flags: int = 0

    @property
    def ccsid_behind(self) -> int:
        """CodedCharSetId of the bytes behind the gap; where it is inherited, that of the gap."""
        own = self.coded_char_set_id
        return self.ccsid if own in (MQCCSI_INHERIT, MQCCSI_DEFAULT) else own

    def with_header(self, header: Header, ccsid: int | None = None) -> Message:
        """The message with *header* in the gap. ccsid: of the header's characters, if it differs from the gap's."""
        announced = self._announced({"format": header.own_format, **({} if ccsid is None else _ccsid(ccsid))})
        return Message(announced.mqmd, (*announced.headers, header, *self.after), self.body)

    def closed(self) -> Message:
        """The message without the gap."""
        described: dict[str, Any] = {"format": self.format, "encoding": self.encoding}
        if self.coded_char_set_id not in (MQCCSI_INHERIT, MQCCSI_DEFAULT):
            described |= _ccsid(self.coded_char_set_id)
        announced = self._announced(described)
        return Message(announced.mqmd, (*announced.headers, *self.after), self.body)

    def with_body(self, data: bytes, fmt: str) -> Message:
        """The message with *data* in the gap; the bytes that stood behind the gap follow it."""
        behind = b"".join([*(header.encode() for header in self.after), self.body])
        return replace(self._announced({"format": fmt}), body=data + behind)

    def _announced(self, described: dict[str, Any]) -> Message:
        """The descriptor and the headers before the gap; the last of them describes the contents of the gap."""
        if not self.before:
            mqmd = self.mqmd
            # The descriptor is usually right already, and replacing one of its many fields is expensive.
            same = all(getattr(mqmd, name) == value for name, value in described.items())
            return Message(mqmd if same else replace(mqmd, **described))
        *first, last = self.before
        return Message(self.mqmd, (*first, describing(last, described)))


def _ccsid(ccsid: int) -> dict[str, int]:
    return {"coded_char_set_id": ccsid}


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a publication, independent of its header.

    form: the kind of header that it arrived in, None for none. header: that header. publisher: QMgrName and QName,
    where subscribers may put requests. data: IntData and StringData, in order. user: the pairs of an MQRFH whose names
    do not belong to publish/subscribe. user_tags: the program's own tags in a psc folder. folders: the folders of an
    MQRFH2 other than psc. put_options: the MQPMO_* that are equal to the publisher's options. put: what a program's
    MQPUT said beside them.
    """

    form: PublicationFormat | None
    frame: Frame
    header: Header | None = None
    pub_time: str | None = None
    seq_num: str | None = None
    publisher: Pairs = ()
    data: Pairs = ()
    user: Pairs = ()
    user_tags: Pairs = ()
    folders: tuple[Folder, ...] = ()
    put_options: int = 0
    put: TopicPut | None = None

    @property
    def time_and_number(self) -> Pairs:
        """PubTime and SeqNum, which pass through (guide 6.7.3)."""
        time_and_number = (("PubTime", self.pub_time), ("SeqNum", self.seq_num))
        return tuple((tag, value) for tag, value in time_and_number if value)


@dataclass(frozen=True, slots=True)
class RenderedPublication:
    """A publication in a subscriber's format. Only those fields of its descriptor count that describe the body.

    lost: the parts that the format cannot hold, in words for people. put: as in ``Content``.
    """

    message: Message
    lost: tuple[str, ...] = ()
    put: TopicPut | None = None


def frame_around(message: Message, at: int) -> Frame:
    """The frame of *message* around its header number *at*."""
    header: Any = message.headers[at]
    before = message.headers[:at]
    return Frame(
        *(message.mqmd, before, message.headers[at + 1 :], message.body),
        *(header.order, header.charset, _ccsid_after(message.mqmd, before)),
        *(header.encoding, header.coded_char_set_id, header.format, header.flags),
    )


def frame_before(message: Message) -> Frame:
    """The frame of a message without such a header: the gap is before its first header and its body."""
    mqmd = message.mqmd
    ccsid = mqmd.coded_char_set_id
    return Frame(
        *(mqmd, (), message.headers, message.body),
        *(byte_order(mqmd.encoding) or "little", field_codec(ccsid, is_ebcdic(ccsid)), ccsid),
        *(mqmd.encoding, ccsid, mqmd.format),
    )


def frame_of_body(message: Message, rest: bytes) -> Frame:
    """The frame of a message whose body is a PCF message and then *rest*, of which nothing is known."""
    ccsid = message.body_ccsid
    order = byte_order(message.body_encoding) or "little"
    charset = field_codec(ccsid, is_ebcdic(ccsid))
    return Frame(message.mqmd, message.headers, (), rest, order, charset, ccsid, message.body_encoding, ccsid, "")


def _ccsid_after(mqmd: Mqmd, headers: Sequence[Header]) -> int:
    ccsid = mqmd.coded_char_set_id
    for header in headers:
        ccsid = ccsid_behind(header, ccsid)
    return ccsid
