"""The content of a publication, independent of its header, and the place of the header in the message.

A subscriber gets a publication in its own format (guide 8.7; wire formats 2, 4, 5.1). Each format therefore reads its
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

User-defined properties are pairs in an MQRFH, and a usr folder in an MQRFH2. An MQRFH2 has no tags for IntData and
StringData: the property MQPubStrIntData, ``<mqpse><Sid>`` (guide 4.4, table 1), holds their part of the
NameValueString, so that nothing is lost when they are read back. XML allows all characters except most control
characters, which MQRFH and PCF strings may hold.

One property, three spellings: its psc tag, its name in an MQRFH, its parameter in PCF (wire formats 2.3, 4.1, 5.1).

The rest of the bridge uses the psc tags of properties. A property without a psc tag has its MQRFH name without the
``MQPS`` in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from commands.model import TopicPut
from rfh2 import pcf_names, rfh1
from rfh2.ccsid import ByteOrder, byte_order, field_codec, is_ebcdic
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT
from rfh2.errors import DecodeError
from rfh2.folders import Element, Folder, parse, tag_of, write, write_nested
from rfh2.message import Header, Message, ccsid_behind, describing
from rfh2.mqmd import Mqmd
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet
from rfh2.rfh1 import parse as parse_name_values, write as write_name_values
from streams.subscriptions import PublicationFormat


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a command, a publication or a response.

    tag: its name in psc. mqps: its name in an MQRFH. pcf: its parameter. integer: whether PCF has it as an MQCFIN.
    options: the set of its options, if it holds options. padded: whether blanks at its end are ignored.
    """

    tag: str
    mqps: str
    pcf: int
    integer: bool = False
    options: OptionSet | None = None
    padded: bool = False


PROPERTIES: Final = (
    Property("Topic", rfh1.MQPS_TOPIC, pcf_names.MQCACF_TOPIC),
    Property("StreamName", rfh1.MQPS_STREAM_NAME, pcf_names.MQCACF_STREAM_NAME, padded=True),
    Property("QMgrName", rfh1.MQPS_Q_MGR_NAME, pcf_names.MQCA_Q_MGR_NAME, padded=True),
    Property("QName", rfh1.MQPS_Q_NAME, pcf_names.MQCA_Q_NAME, padded=True),
    Property("RegOpt", rfh1.MQPS_REGISTRATION_OPTIONS, pcf_names.MQIACF_REGISTRATION_OPTIONS, True, REGISTRATION),
    Property("PubOpt", rfh1.MQPS_PUBLICATION_OPTIONS, pcf_names.MQIACF_PUBLICATION_OPTIONS, True, PUBLICATION),
    Property("DelOpt", rfh1.MQPS_DELETE_OPTIONS, pcf_names.MQIACF_DELETE_OPTIONS, True, DELETE),
    Property("PubTime", rfh1.MQPS_PUBLISH_TIMESTAMP, pcf_names.MQCACF_PUBLISH_TIMESTAMP),
    Property("SeqNum", rfh1.MQPS_SEQUENCE_NUMBER, pcf_names.MQIACF_SEQUENCE_NUMBER, True),
    Property("IntData", rfh1.MQPS_INTEGER_DATA, pcf_names.MQIACF_INTEGER_DATA, True),
    Property("StringData", rfh1.MQPS_STRING_DATA, pcf_names.MQCACF_STRING_DATA),
    Property("SubName", rfh1.MQPS_SUBSCRIPTION_NAME, pcf_names.MQCACF_SUBSCRIPTION_NAME),
    Property("SubIdentity", rfh1.MQPS_SUBSCRIPTION_IDENTITY, pcf_names.MQCACF_SUBSCRIPTION_IDENTITY),
    Property("SubUserData", rfh1.MQPS_SUBSCRIPTION_USER_DATA, pcf_names.MQCACF_SUBSCRIPTION_USER_DATA),
    Property("CorrelId", rfh1.MQPS_CORREL_ID, pcf_names.MQCACF_CORREL_ID),
    Property("UserId", rfh1.MQPS_USER_ID, pcf_names.MQCACF_REG_USER_ID),
    Property("ErrorId", rfh1.MQPS_ERROR_ID, pcf_names.MQIACF_ERROR_ID, True),
    Property("ErrorPos", rfh1.MQPS_ERROR_POS, pcf_names.MQIACF_ERROR_OFFSET, True),
    Property("ParmId", rfh1.MQPS_PARAMETER_ID, pcf_names.MQIACF_PARAMETER_ID, True),
)

BY_TAG: Final = {known.tag: known for known in PROPERTIES}
BY_MQPS: Final = {known.mqps: known for known in PROPERTIES}
BY_PCF: Final = {known.pcf: known for known in PROPERTIES}

# The command words, and their values in the Command field of the MQCFH.
COMMAND_IDS: Final = {
    rfh1.MQPS_DELETE_PUBLICATION: pcf_names.MQCMD_DELETE_PUBLICATION,
    rfh1.MQPS_DEREGISTER_PUBLISHER: pcf_names.MQCMD_DEREGISTER_PUBLISHER,
    rfh1.MQPS_DEREGISTER_SUBSCRIBER: pcf_names.MQCMD_DEREGISTER_SUBSCRIBER,
    rfh1.MQPS_PUBLISH: pcf_names.MQCMD_PUBLISH,
    rfh1.MQPS_REGISTER_PUBLISHER: pcf_names.MQCMD_REGISTER_PUBLISHER,
    rfh1.MQPS_REGISTER_SUBSCRIBER: pcf_names.MQCMD_REGISTER_SUBSCRIBER,
    rfh1.MQPS_REQUEST_UPDATE: pcf_names.MQCMD_REQUEST_UPDATE,
}
COMMAND_WORDS: Final = {number: word for word, number in COMMAND_IDS.items()}


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
        mqmd=message.mqmd,
        before=before,
        after=message.headers[at + 1 :],
        body=message.body,
        order=header.order,
        charset=header.charset,
        ccsid=_ccsid_after(message.mqmd, before),
        encoding=header.encoding,
        coded_char_set_id=header.coded_char_set_id,
        format=header.format,
        flags=header.flags,
    )


def frame_before(message: Message) -> Frame:
    """The frame of a message without such a header: the gap is before its first header and its body."""
    mqmd = message.mqmd
    ccsid = mqmd.coded_char_set_id
    return Frame(
        mqmd=mqmd,
        before=(),
        after=message.headers,
        body=message.body,
        order=byte_order(mqmd.encoding) or "little",
        charset=field_codec(ccsid, is_ebcdic(ccsid)),
        ccsid=ccsid,
        encoding=mqmd.encoding,
        coded_char_set_id=ccsid,
        format=mqmd.format,
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


_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def has_room_for(text: str) -> bool:
    """Whether XML text can hold *text* as it is."""
    return _FORBIDDEN.search(text) is None


def in_xml(text: str) -> str:
    """*text* with U+FFFD for each character that XML cannot hold."""
    return _FORBIDDEN.sub(_REPLACEMENT, text)


USER: Final = "usr"
EXTENSIONS: Final = "mqpse"
DATA: Final = "Sid"

_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]*")
_INT32: Final = re.compile("-?[0-9]{1,9}")


class FromFolders(NamedTuple):
    """The parts of folders that an MQRFH or PCF takes."""

    user: Pairs = ()
    data: Pairs = ()


def pairs_of_folders(folders: tuple[Folder, ...], fits: Callable[[str], bool]) -> tuple[FromFolders, tuple[str, ...]]:
    """The user pairs and the data in *folders*, and the parts that only an MQRFH2 can hold.

    fits: whether a name may be that of a user pair. A typed property (``dt``) becomes its text.
    """
    user: list[tuple[str, str]] = []
    data: list[tuple[str, str]] = []
    lost: list[str] = []
    for folder in folders:
        try:
            leaves, nested = _leaves(folder)
        except DecodeError:
            leaves, nested = [], [""]
        if folder.name == USER:
            user += [(name, value) for name, value in leaves if fits(name) and "\0" not in value]
            lost += [f"{USER}.{name}" for name, value in leaves if not fits(name) or "\0" in value]
            lost += [f"{USER}.{name}".rstrip(".") for name in nested]
        elif folder.name == EXTENSIONS:
            for name, value in leaves:
                if name == DATA and (found := _data_of(value)) is not None:
                    data += found
                else:
                    lost.append(f"{EXTENSIONS}.{name}")
        else:
            lost.append(f"folder {folder.name}" if folder.name else "a folder without a name")
    return FromFolders(tuple(user), tuple(data)), tuple(lost)


def user_folder(pairs: Pairs) -> tuple[str, tuple[str, ...]]:
    """The text of the usr folder of these pairs, "" for none, and the names of the pairs that XML cannot hold."""
    fitting: list[tuple[str, str]] = []
    lost: list[str] = []
    for name, value in pairs:
        if _NAME.fullmatch(name) and has_room_for(value):
            fitting.append((name, value))
        else:
            lost.append(f"user pair {name}")
    return write(USER, fitting) if fitting else "", tuple(lost)


def data_text(data: Pairs) -> tuple[str, tuple[str, ...]]:
    """The value of MQPubStrIntData, "" for none, and the parts of *data* that XML cannot hold."""
    if not data:
        return "", ()
    fitting = [(BY_TAG[tag].mqps, value) for tag, value in data if has_room_for(value)]
    lost = tuple(BY_TAG[tag].mqps for tag, value in data if not has_room_for(value))
    return write_name_values(fitting), lost


def extensions_folder(time_and_number: Pairs, data: str) -> str:
    """The text of the mqpse folder: publication time, sequence number and data (guide 4.4, table 1); "" for none."""
    if not time_and_number and not data:
        return ""
    names = {"PubTime": "Pts", "SeqNum": "Seq"}
    elements = [Element(names[tag], in_xml(value), _kind(tag, value)) for tag, value in time_and_number]
    if data:
        elements.append(Element(DATA, data))
    return write_nested(Element(EXTENSIONS, elements))


def _kind(tag: str, value: str) -> str | None:
    return "i4" if tag == "SeqNum" and _INT32.fullmatch(value) else None


def _data_of(text: str) -> Pairs | None:
    try:
        pairs = parse_name_values(text)
    except DecodeError:
        return None
    names = {BY_TAG["IntData"].mqps, BY_TAG["StringData"].mqps}
    if any(pair.name not in names for pair in pairs):
        return None
    return tuple((BY_MQPS[pair.name].tag, pair.value) for pair in pairs)


def _leaves(folder: Folder) -> tuple[list[tuple[str, str]], list[str]]:
    """(tag, text) of the properties of a folder, and the tags of its groups."""
    pairs = folder.pairs()
    nested = [tag_of(child) for child in parse(folder)[0] if len(child)]
    groups = frozenset(nested)
    return [(tag, text) for tag, text in pairs if tag not in groups], nested
