"""INITIAL_DATA as a client writes it: what it offers, and what was agreed (docs/wire-formats.md).

The client offers. The queue manager answers with its own values, and marks those that it does not accept; the client
then repeats them, until nothing is marked. A client that shares its connection repeats them in conversation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from commands.client.errors import ProtocolError
from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_PROTECTION, ID_SHARING
from rfh2.channel.segments import (
    CAPABILITIES1,
    CAPABILITIES2,
    CCSID,
    FAP_OF_PLAIN_PASSWORDS,
    HAS_SPI,
    HIGHEST_FAP,
    LARGEST_SEGMENT,
    NO_HEADER_COMPRESSION,
    NO_MESSAGE_COMPRESSION,
    TRANSMISSION_SIZE,
    SegmentHeader,
    Structure,
)

ROUNDS: Final = 4
"""The most answers before nothing is marked: two are usual."""
_PRODUCT: Final = "MQJB09040000"  # the segments are those of IBM's Java classes
_IDENTIFIER: Final = "CANNED_DATA"
# Of three flags that a Java client offers, a queue manager accepts the first.
_CAPABILITIES3: Final = 0x28
_PASSWORD_PROTECTION: Final = (1, 0, *[0xFFFF] * 8)
_SMALLEST_SEGMENT: Final = 1_024


@dataclass(frozen=True, slots=True)
class Offer:
    """What a client asks for. fap: protocol level. sharing: conversations on a connection, 0 for none.

    heartbeat_s: HBINT. longest_message: bytes. random: 12 bytes. process, thread, trace: numbers for the log of the
    queue manager.
    """

    channel: str
    qmgr: str = ""
    fap: int = HIGHEST_FAP
    sharing: int = 10
    heartbeat_s: int = 300
    longest_message: int = 104_857_600
    product: str = _PRODUCT
    capabilities: int = _CAPABILITIES3
    random: bytes = bytes(12)
    process: int = 1
    thread: int = 1
    trace: int = 1

    def encode(self, order: ByteOrder) -> bytes:
        """The payload of the first INITIAL_DATA. Raises EncodeError for a name that is too long."""
        with_protection = self.fap > FAP_OF_PLAIN_PASSWORDS
        data = bytearray(
            ID_BEGIN.size + ID_MORE.size + ID_SHARING.size + (ID_PROTECTION.size if with_protection else 0)
        )
        begin = Structure(ID_BEGIN, data, 0, order)
        begin["StrucId"], begin["FapLevel"], begin["CapabilityFlags1"] = b"ID  ", self.fap, CAPABILITIES1
        begin["MaxTransmissionSize"], begin["MaxMessageSize"] = TRANSMISSION_SIZE, self.longest_message
        begin.put_text("ChannelName", self.channel)
        more = Structure(ID_MORE, data, begin.end, order)
        more["CapabilityFlags2"], more["CodedCharSetId"] = CAPABILITIES2, CCSID
        more["HeartbeatInterval"], more["LengthOfRest"] = self.heartbeat_s, len(data) - more.end
        more.put_text("QMgrName", self.qmgr or "*")
        shared = Structure(ID_SHARING, data, more.end, order)
        shared["HeaderCompression"], shared["MessageCompression"] = NO_HEADER_COMPRESSION, NO_MESSAGE_COMPRESSION
        shared["ConversationsPerSocket"], shared["CapabilityFlags3"] = self.sharing, self.capabilities
        shared["ProcessId"], shared["ThreadId"], shared["TraceId"] = self.process, self.thread, self.trace
        shared.put_text("ProductId", self.product)
        shared.put_text("QMgrIdentifier", _IDENTIFIER)
        if with_protection:
            protection = Structure(ID_PROTECTION, data, shared.end, order)
            protection["PasswordProtection"] = b"".join(n.to_bytes(2, order) for n in _PASSWORD_PROTECTION)
            protection["Random"] = self.random
        return bytes(data)


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed. qmgr, identifier: of the queue manager. largest: bytes of a segment. sharing: 0 for none.

    has_spi: whether it offers the calls of type SPI.
    """

    fap: int
    qmgr: str
    identifier: str
    largest: int
    longest_message: int
    heartbeat_s: int
    sharing: int
    has_spi: bool


def agreed(header: SegmentHeader, payload: bytes, offer: Offer) -> Terms:
    """What the answer of a queue manager says. Raises ProtocolError, DecodeError."""
    data = bytearray(payload)
    begin = Structure(ID_BEGIN, data, 0, header.order, header.charset)
    fap, largest, longest = begin["FapLevel"], begin["MaxTransmissionSize"], begin["MaxMessageSize"]
    if not 1 <= fap <= offer.fap:
        raise ProtocolError(f"the queue manager answers level {fap} to {offer.fap}")
    if not _SMALLEST_SEGMENT <= largest <= LARGEST_SEGMENT:
        raise ProtocolError(f"the queue manager wants segments of {largest} bytes")
    if not 0 < longest <= offer.longest_message:
        raise ProtocolError(f"the queue manager answers {longest} bytes as the longest message")
    qmgr = identifier = ""
    heartbeat_s = sharing = capabilities = 0
    if len(data) >= begin.end + ID_MORE.size:
        more = Structure(ID_MORE, data, begin.end, header.order, header.charset)
        qmgr, heartbeat_s, capabilities = more.text("QMgrName"), more["HeartbeatInterval"], more["CapabilityFlags2"]
        if len(data) >= more.end + ID_SHARING.size:
            shared = Structure(ID_SHARING, data, more.end, header.order, header.charset)
            sharing, identifier = shared["ConversationsPerSocket"], shared.text("QMgrIdentifier")
    if not 0 <= sharing <= offer.sharing or heartbeat_s < 0:
        raise ProtocolError(f"the queue manager answers {sharing} conversations and a heartbeat of {heartbeat_s} s")
    return Terms(fap, qmgr, identifier, largest, longest, heartbeat_s, sharing, bool(capabilities & HAS_SPI))


def repeated(header: SegmentHeader, payload: bytes, offer: Offer) -> bytes:
    """INITIAL_DATA once more, with the values of the answer, and what is the client's own. Raises DecodeError."""
    data = bytearray(payload)
    order, charset = header.order, header.charset
    begin = Structure(ID_BEGIN, data, 0, order, charset)
    begin["NotAccepted1"] = begin["ErrorFlags1"] = 0
    if len(data) < begin.end + ID_MORE.size:
        return bytes(data)
    more = Structure(ID_MORE, data, begin.end, order, charset)
    more["NotAccepted2"], more["LengthOfRest"] = 0, len(data) - more.end
    more.put_text("QMgrName", offer.qmgr or "*")
    if len(data) < more.end + ID_SHARING.size:
        return bytes(data)
    shared = Structure(ID_SHARING, data, more.end, order, charset)
    shared["ErrorFlags2"] = shared["NotAccepted3"] = 0
    shared["ProcessId"], shared["ThreadId"], shared["TraceId"] = offer.process, offer.thread, offer.trace
    shared.put_text("ProductId", offer.product)
    if len(data) >= shared.end + ID_PROTECTION.size:
        Structure(ID_PROTECTION, data, shared.end, order)["Random"] = offer.random
    return bytes(data)
