"""Makes the message on the outgoing queue for a publication in the topic space, and reads it back.

Pure. The message is the publication in the form that a program with message properties gets (guide 4.4, table 1). It
has one more folder, for the link alone:

    <qps><Do>publish</Do><Top>Sport/Soccer</Top><Ret>1</Ret><Loc>0</Loc></qps> <mqpse>..</mqpse> <usr>..</usr> other
    <qps><Do>clear</Do><Top>Sport/Soccer</Top><Ret>1</Ret><Loc>0</Loc></qps>

So a person can read it with ``qpubsub browse``, the queue handles expiry and persistence, and the body is unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from commands.broker.puts import Outgoing, PutKind
from commands.headers.publication import DeliveryForm
from commands.headers.registry import content_of, render
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQPER_PERSISTENT
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.layouts import MQMD1
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import FIXED_LENGTH, Rfh2
from streams.operations import PublishToTopic
from streams.subscriptions import PublicationFormat

FOLDER: Final = "qps"
_OWN: Final = (FOLDER, "mqps")
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
    folders = tuple(folder for folder in header.folders if folder.name not in _OWN)
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
