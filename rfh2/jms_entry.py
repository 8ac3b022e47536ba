"""A subscription that IBM MQ classes for JMS keep on SYSTEM.JMS.ADMIN.QUEUE with SUBSTORE(QUEUE): one message each.

    signature  length  client:name  length  topic  length  queue  length  selector  flags
    20 bytes   4       ...          4       ...    4       ...    4       ...       2 (version 1), 6 (version 2)

IBM documents the queue but not the message. The layout is that of an independent program (qbroker's TConnector), which
writes and reads such messages; no message of IBM's classes was available. Lengths are integers in the descriptor's
Encoding, text is ASCII or UTF-8, and a queue may be padded with blanks. The flags are characters of two bytes, whose
meaning is not known: they are kept. The CorrelId of the subscriber's messages is the MsgId of this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2.ccsid import ByteOrder, byte_order
from rfh2.constants import MQRC_FORMAT_ERROR
from rfh2.errors import DecodeError

SIGNATURES: Final = {b"MQJMS_PS_ADMIN_ENTRY": 1, b"MQJMS_PS_SUBENTRY_v2": 2}
_SIGNATURE_LENGTH: Final = 20
_FLAGS_LENGTH: Final = {1: 2, 2: 6}
_FIELDS: Final = ("client and name", "topic", "queue", "selector")


@dataclass(frozen=True, slots=True)
class JmsEntry:
    """One entry. version: 1 or 2. identity: client id, a colon, name. queue: as written, blanks included.

    flags: the bytes at the end. order: of its integers.
    """

    version: int
    identity: str
    topic: str
    queue: str
    selector: str = ""
    flags: bytes = b""
    order: ByteOrder = "big"

    @property
    def client_id(self) -> str:
        """What stands before the first colon; all of it where there is none."""
        return self.identity.partition(":")[0]

    @property
    def name(self) -> str:
        """The subscription's name."""
        return self.identity.partition(":")[2]

    @property
    def queue_name(self) -> str:
        """The queue without the blanks that pad it."""
        return self.queue.rstrip(" \0")

    def encode(self) -> bytes:
        """The bytes of the message: the inverse of ``decode_entry``."""
        signature = next(mark for mark, version in SIGNATURES.items() if version == self.version)
        texts = (text.encode() for text in (self.identity, self.topic, self.queue, self.selector))
        return signature + b"".join(len(text).to_bytes(4, self.order) + text for text in texts) + self.flags


def is_entry(body: bytes) -> bool:
    """Whether *body* begins as an entry does."""
    return body[:_SIGNATURE_LENGTH] in SIGNATURES


def decode_entry(body: bytes, encoding: int) -> JmsEntry:
    """The entry that *body* is, whole. encoding: of the descriptor, MQENC_*.

    Where its lengths do not fit in that byte order and do in the other, they are taken in the other: a JMS program may
    write integers in an order that its descriptor does not tell. Raises DecodeError (2110).
    """
    if not is_entry(body):
        raise _refused(0, "it has no signature of an entry")
    order = byte_order(encoding) or "big"
    try:
        return _decoded(body, order)
    except DecodeError:
        try:
            return _decoded(body, "big" if order == "little" else "little")
        except DecodeError:
            pass
        raise


def _decoded(body: bytes, order: ByteOrder) -> JmsEntry:
    version = SIGNATURES[body[:_SIGNATURE_LENGTH]]
    at, texts = _SIGNATURE_LENGTH, []
    for name in _FIELDS:
        length = int.from_bytes(body[at : at + 4], order)
        if len(body) < at + 4 + length:
            raise _refused(at, f"the {name} would take {length} bytes, and {max(len(body) - at - 4, 0)} are left")
        try:
            texts.append(body[at + 4 : at + 4 + length].decode())
        except UnicodeDecodeError as error:
            raise _refused(at + 4 + error.start, f"the {name} is not UTF-8") from error
        at += 4 + length
    flags = body[at:]
    if len(flags) != _FLAGS_LENGTH[version]:
        raise _refused(at, f"{len(flags)} bytes are left for the flags, not {_FLAGS_LENGTH[version]}")
    identity, topic, queue, selector = texts
    return JmsEntry(version, identity, topic, queue, selector, flags, order)


def _refused(offset: int, why: str) -> DecodeError:
    return DecodeError(offset, "JMS subscription entry", why, "bad-jms-entry", MQRC_FORMAT_ERROR)
