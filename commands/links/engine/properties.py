"""Properties that begin with ``mq.``: what a tree of another make has no field for. Pure.

MQ keeps such names for itself, so that no program's own property is in their way.

    to the tree             from                               from the tree
    content type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
    mq.Format, mq.Encoding, the same                           the same, where they are given
      mq.CodedCharSetId
    mq.Priority             the publication's                  Priority, where it is given
    mq.PubTime, mq.SeqNum   psc                                psc
    mq.Data                 IntData, StringData                user property
    mq.Bridge               name of this bridge at the tree    its own is not taken again
    other properties        folder usr                         folder usr

Makes the message on the outgoing queue for a publication in the topic space, and reads it back.

Pure. The message is the publication in the form that a program with message properties gets (guide 4.4, table 1). It
has one more folder, for the link alone:

    <qps><Do>publish</Do><Top>Sport/Soccer</Top><Ret>1</Ret><Loc>0</Loc></qps> <mqpse>..</mqpse> <usr>..</usr> other
    <qps><Do>clear</Do><Top>Sport/Soccer</Top><Ret>1</Ret><Loc>0</Loc></qps>

So a person can read it with ``qpubsub browse``, the queue handles expiry and persistence, and the body is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import quote

from commands.broker.puts import Outgoing, PutKind
from commands.headers.publication import DeliveryForm
from commands.headers.registry import content_of, render
from commands.links.engine.inbound_writer import NativePublication, is_format
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import UTF8_CCSID, text_codec
from rfh2.constants import MQENC_NATIVE, MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQPER_PERSISTENT
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.layouts import MQMD1
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import FIXED_LENGTH, Rfh2
from streams.operations import PublishToTopic
from streams.subscriptions import PublicationFormat

FOLDER: Final = "qps"
_OWN_FOLDERS: Final = (FOLDER, "mqps")
_SPANS: Final = {name: (offset, offset + size) for name, offset, size in MQMD1.spans()}
_MSG_ID: Final = slice(*_SPANS["MsgId"])
_STAMP: Final = slice(_SPANS["PutDate"][0], _SPANS["PutTime"][1])
_PUBLISH, _CLEAR = "publish", "clear"
# Written by ``clearing``, whose folders are UTF-8.
_CLEAR_TAG: Final = f"<Do>{_CLEAR}</Do>".encode()


class ForTree(NamedTuple):
    """The request to the tree: publish, or clear the retained publication on a topic.

    properties: (name, value) of the usr folder. stamps: of mqpse (publication time, sequence number, data). other:
    names of the other properties of the publication. format, encoding, ccsid: of *payload*. expiry: tenths of a second,
    -1 for never. local: scope was this queue manager.
    """

    topic: str
    clear: bool = False
    payload: bytes = b""
    retain: bool = False
    local: bool = False
    persistent: bool = True
    expiry: int = -1
    priority: int = 0
    format: str = ""
    encoding: int = 546
    ccsid: int = UTF8_CCSID
    properties: tuple[tuple[str, str], ...] = ()
    stamps: tuple[tuple[str, str], ...] = ()
    other: tuple[str, ...] = ()


# Requests by descriptor, without what is different in each message, and header, where that is the only one.
_Key = tuple[bytes, bytes, bytes, bytes]
_KNOWN_BYTES: Final = 4 << 20
_ENTRY_BYTES: Final = 1_500
_KNOWN: Final[BoundedCache[_Key, ForTree]] = BoundedCache(_KNOWN_BYTES)


def publishing(operation: PublishToTopic, qmgr: str, queue: str, local: bool) -> Outgoing:
    """The message for *queue* that carries this publication; it is put when the publication is published.

    local: whether its scope is this queue manager.
    """
    publication = operation.publication
    published = publication.message.mqmd
    form = DeliveryForm(PublicationFormat.PROPERTIES, (operation.topic_string,))
    rendered = render(content_of(publication.message), form)
    headers = list(rendered.message.headers)
    at = next(at for at, header in enumerate(headers) if isinstance(header, Rfh2))
    header = headers[at]
    assert isinstance(header, Rfh2)
    own = _own_folder(_PUBLISH, operation.topic_string, operation.retain, local)
    folders = tuple(folder for folder in header.folders if folder.name not in _OWN_FOLDERS)
    charset = header.folders[0].charset
    headers[at] = header.with_folders((Folder.of(own, charset), *folders))
    described = rendered.message.mqmd
    mqmd = Mqmd(
        expiry=published.expiry,
        encoding=described.encoding,
        coded_char_set_id=described.coded_char_set_id,
        format=described.format,
        persistence=published.persistence,
        msg_type=MQMT_DATAGRAM,
        # One priority for all, so that messages go to the tree in the order in which they were published.
        priority=0,
        appl_identity_data=str(published.priority),
        order=described.order,
        charset=described.charset,
    )
    message = Message(mqmd, tuple(headers), rendered.message.body)
    return _outgoing(qmgr, queue, message, operation.topic_string, publication.expires_at)


def clearing(topic_string: str, qmgr: str, queue: str, local: bool = False) -> Outgoing:
    """The message for *queue* that clears what is retained on *topic_string*, which has no wildcards."""
    header = Rfh2((Folder.of(_own_folder(_CLEAR, topic_string, True, local)),), coded_char_set_id=UTF8_CCSID)
    mqmd = Mqmd(format=MQFMT_RF_HEADER_2, persistence=MQPER_PERSISTENT, priority=0, coded_char_set_id=UTF8_CCSID)
    return _outgoing(qmgr, queue, Message(mqmd, (header,)), topic_string, None)


def for_tree(md: bytes, body: bytes) -> ForTree:
    """The request of a message from the outgoing queue. Raises DecodeError if the bridge did not put it there."""
    length = _first_length(body)
    key = (md[: _MSG_ID.start], md[_MSG_ID.stop : _STAMP.start], md[_STAMP.stop :], body[:length])
    known = _KNOWN.get(key) if length else None
    if known is not None:
        return known._replace(payload=body[length:])
    message = decode(body, md)
    wanted = _for_tree(message)
    if len(message.headers) == 1 and length == len(body) - len(message.body):
        _KNOWN.keep(key, wanted._replace(payload=b""), _ENTRY_BYTES + 4 * length + len(md))
    return wanted


def _first_length(body: bytes) -> int:
    """How long the MQRFH2 is with which *body* begins; 0 where it does not, or is not that long."""
    length = int.from_bytes(body[8:12], "big" if body[4:5] == b"\0" else "little")
    return length if body[:4] == b"RFH " and FIXED_LENGTH <= length <= len(body) else 0


def _for_tree(message: Message) -> ForTree:
    mqmd = message.mqmd
    at = next((at for at, header in enumerate(message.headers) if isinstance(header, Rfh2)), None)
    header = None if at is None else message.headers[at]
    if not isinstance(header, Rfh2) or not header.folders or header.folders[0].name != FOLDER:
        raise DecodeError(0, "message", f"no {FOLDER} folder: it was not put by the bridge", "no-command-header")
    assert at is not None
    own = dict(header.folders[0].pairs())
    properties: tuple[tuple[str, str], ...] = ()
    stamps: tuple[tuple[str, str], ...] = ()
    other: list[str] = [type(before).__name__ for before in message.headers[:at]]
    for folder in header.folders[1:]:
        if folder.name == "usr":
            properties += tuple(folder.pairs())
        elif folder.name == "mqpse":
            stamps += tuple(folder.pairs())
        else:
            other.append(f"folder {folder.name}")
    payload = b"".join([*(after.encode() for after in message.headers[at + 1 :]), message.body])
    priority = name_of(mqmd.appl_identity_data)
    within = replace(message, headers=message.headers[: at + 1])
    return ForTree(
        own.get("Top", ""),
        own.get("Do") == _CLEAR,
        payload,
        own.get("Ret") == "1",
        own.get("Loc") == "1",
        mqmd.persistence == MQPER_PERSISTENT,
        mqmd.expiry,
        int(priority) if priority.isdigit() else 0,
        name_of(header.format),
        header.encoding,
        within.body_ccsid,
        properties,
        stamps,
        tuple(other),
    )


def is_clearing(md: bytes, body: bytes) -> bool:
    """Whether this message from the outgoing queue clears a topic; False if ``for_tree`` cannot read it."""
    if _CLEAR_TAG not in body:
        return False
    try:
        return for_tree(md, body).clear
    except Exception:  # the sender finds and reports the fault
        return False


def _own_folder(do: str, topic: str, retain: bool, local: bool) -> str:
    return write(FOLDER, (("Do", do), ("Top", topic), ("Ret", str(int(retain))), ("Loc", str(int(local)))))


def _outgoing(qmgr: str, queue: str, message: Message, topic: str, expires_at: datetime | None) -> Outgoing:
    return Outgoing(
        PutKind.PUBLICATION, qmgr, queue, message.mqmd.encode(), encode(message), topic, expires_at=expires_at
    )


Pairs = tuple[tuple[str, str], ...]

TEXT: Final = "text/plain"
BYTES: Final = "application/octet-stream"
BRIDGE: Final = "mq.Bridge"
_STRING: Final = "MQSTR"
_FORMAT, _PRIORITY = "mq.Format", "mq.Priority"
_ENCODING, _CCSID = "mq.Encoding", "mq.CodedCharSetId"
_STAMPS: Final = {"Pts": "mq.PubTime", "Seq": "mq.SeqNum", "Sid": "mq.Data"}
_TAGS: Final = {"mq.PubTime": "PubTime", "mq.SeqNum": "SeqNum"}
_OWN: Final = frozenset({BRIDGE, _FORMAT, _PRIORITY, _ENCODING, _CCSID, *_TAGS})
_NUMBER: Final = re.compile("-?[0-9]{1,10}", re.ASCII)


def properties_of(wanted: ForTree, bridge: str) -> Pairs:
    """The properties of a publication to the tree; those of folder usr are last. bridge: its name at the tree."""
    own = [(BRIDGE, bridge), (_FORMAT, wanted.format)] if wanted.format else [(BRIDGE, bridge)]
    if wanted.ccsid > 0 and wanted.ccsid != UTF8_CCSID:
        own.append((_CCSID, str(wanted.ccsid)))
    if wanted.encoding != MQENC_NATIVE:
        own.append((_ENCODING, str(wanted.encoding)))
    if wanted.priority:
        own.append((_PRIORITY, str(wanted.priority)))
    stamps = [(_STAMPS.get(name, f"mq.{name}"), value) for name, value in wanted.stamps]
    return (*own, *stamps, *wanted.properties)


def native_from(
    topic: str,
    payload: bytes,
    pairs: Pairs,
    *,
    retain: bool,
    persistent: bool,
    expiry_s: float | None,
    is_text: bool,
    default_format: str = "",
    more: Pairs = (),
) -> NativePublication:
    """The publication that came with the properties *pairs*.

    is_text: whether the tree says that the payload is text in UTF-8. default_format: of a payload about which nothing
    is said. more: properties for folder usr that the tree has fields for.
    """
    given = dict(pairs)
    fmt = given.get(_FORMAT)
    if fmt is None or not is_format(fmt):
        fmt = _STRING if is_text else default_format
    return NativePublication(
        topic,
        payload,
        retain,
        persistent,
        expiry_s,
        _number(given.get(_PRIORITY), 0, 9, 0),
        (*((name, value) for name, value in pairs if name not in _OWN), *more),
        tuple((_TAGS[name], value) for name, value in pairs if name in _TAGS),
        fmt,
        _number(given.get(_ENCODING), 0, 0x7FFF_FFFF, MQENC_NATIVE),
        _number(given.get(_CCSID), -2, 0x7FFF_FFFF, UTF8_CCSID),
    )


def content_type_of(wanted: ForTree, fits: Callable[[str], bool]) -> tuple[bool, str]:
    """Whether the payload is text in UTF-8; and its content type. fits: whether the tree can carry a text as it is."""
    if wanted.format != _STRING:
        if not wanted.format:
            return False, BYTES
        name = wanted.format if fits(wanted.format) else quote(wanted.format, safe=" ")
        return False, f"application/x-ibm-mq; format={name}"
    codec = text_codec(wanted.ccsid, wanted.encoding)
    if codec is None:
        return False, TEXT
    utf8 = codec.replace("-", "").replace("_", "").lower() == "utf8"
    return utf8 and _is_utf8(wanted.payload), f"{TEXT}; charset={'utf-8' if utf8 else codec}"


def is_text_type(content_type: str | None) -> bool:
    """Whether a content type says that the payload is text in UTF-8."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    charset = (content_type or "").lower().partition("charset=")[2].strip(' "')
    is_text = kind.startswith("text/") or kind in ("application/json", "application/xml")
    return is_text and charset in ("", "utf-8", "utf8", "us-ascii")


def _is_utf8(payload: bytes) -> bool:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _number(text: str | None, least: int, most: int, otherwise: int) -> int:
    if text is None or _NUMBER.fullmatch(text) is None:
        return otherwise
    number = int(text)
    return number if least <= number <= most else otherwise


# Publications as messages with headers, and back, for trees that have such messages: NATS, Kafka. Pure.
#
# The payload is never touched.
#
#     to the tree             from                               from the tree
#     content type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
#     mq.Retain               1: RetainPub                       RetainPub
#     mq.Persistence          0: not persistent                  persistence
#     other headers           mq. properties, folder usr         the same (commands.links.engine.properties)
#
# An adapter adds the topic, the expiry, and what clears a topic: each tree has a place of its own for them.

RETAIN: Final = "mq.Retain"
PERSISTENCE: Final = "mq.Persistence"
CONTENT_TYPE: Final = "content-type"
"""In small letters; trees differ in how they spell it."""


@dataclass(frozen=True, slots=True)
class TreeMessage:
    """A message of a tree. topic: its topic string; None for none: then *near* is like it, "" for nothing like it.

    headers: without those that are the tree's own; the first of a name counts. is_kept: whether it is where the tree
    keeps what is retained. is_copy: whether a bridge sends the same elsewhere too. clears: whether it only clears what
    is retained. expires_at: seconds since 1970, None for never.
    """

    topic: str | None
    payload: bytes
    headers: Pairs
    near: str = ""
    is_kept: bool = False
    is_copy: bool = False
    clears: bool = False
    expires_at: float | None = None

    @property
    def bridge(self) -> str | None:
        """The bridge that sent it; None if a native program did."""
        return next((value for name, value in self.headers if name == BRIDGE), None)


def own_headers(wanted: ForTree, content_type: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The headers of a publication beside its properties.

    content_type: how the tree's programs spell that header. fits: whether a header can have a text as it is.
    """
    own = [(content_type, content_type_of(wanted, fits)[1])]
    if wanted.retain:
        own.append((RETAIN, "1"))
    if not wanted.persistent:
        own.append((PERSISTENCE, "0"))
    return own


def native_of(record: TreeMessage, now_s: float, default_format: str = "") -> NativePublication | None:
    """The publication in a record that has a topic string; None if it has expired. now_s: seconds since 1970."""
    topic = record.topic or ""
    if record.clears:
        return NativePublication(topic, b"", retain=True)
    left_s = None if record.expires_at is None else record.expires_at - now_s
    if left_s is not None and left_s <= 0:
        return None
    given = dict(reversed(record.headers))
    kind = next((each for each in record.headers if each[0].lower() == CONTENT_TYPE), None)
    return native_from(
        topic,
        record.payload,
        tuple(each for each in record.headers if each is not kind and each[0] not in (RETAIN, PERSISTENCE)),
        retain=(record.is_kept or given.get(RETAIN) == "1") and bool(record.payload),
        persistent=given.get(PERSISTENCE) != "0",
        expiry_s=left_s,
        is_text=kind is not None and is_text_type(kind[1]),
        default_format=default_format,
    )
