"""INITIAL_DATA: what the two ends of a client channel agree on (docs/wire-formats.md).

The client offers its values. The server answers with its own, and marks those of the client that it does not accept;
then the client offers again. A server lowers, it never raises, except for the heartbeat interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from commands.qmgr.mqi.attributes import identifier
from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_PROTECTION, ID_SHARING
from rfh2.channel.segments import (
    CAPABILITIES1,
    CAPABILITIES2,
    CCSID,
    ERROR,
    HIGHEST_FAP,
    IS_CLIENT,
    NO_HEADER_COMPRESSION,
    NO_MESSAGE_COMPRESSION,
    TRANSMISSION_SIZE,
    Structure,
)

_PRODUCT: Final = "MQMM09040300"
_PROTECTED, _PLAIN, _UNUSED = 1, 0, 0xFFFF
_CAPABILITIES3: Final = 0x20
# Error flags 2, the list that is refused, and the one in its place.
_COMPRESSION: Final = (
    (0x01, "HeaderCompression", NO_HEADER_COMPRESSION),
    (0x02, "MessageCompression", NO_MESSAGE_COMPRESSION),
)
# Error flags 1.
_BAD_FAP, _BAD_TRANSMISSION_SIZE, _BAD_MESSAGE_SIZE, _BAD_HEARTBEAT = 0x08, 0x04, 0x10, 0x80


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed. conversations: on one connection, 0 where it is not shared. largest: bytes of a segment."""

    fap: int
    channel: str
    qmgr: str
    largest: int
    longest_message: int
    heartbeat_s: int
    conversations: int
    product: str
    is_client: bool
    trace_id: int = 0


@dataclass(frozen=True, slots=True)
class NegotiationAnswer:
    """The server's INITIAL_DATA, the control flags of its segment, and the terms if the client accepts them."""

    payload: bytes
    flags: int
    terms: Terms

    @property
    def is_agreed(self) -> bool:
        """Whether the client's offer was accepted as it was."""
        return not self.flags & ERROR


@dataclass(frozen=True, slots=True)
class Most:
    """What the server accepts. sharing: conversations on a connection. fap: protocol level. heartbeat_s: HBINT."""

    sharing: int = 10
    fap: int = HIGHEST_FAP
    longest_message: int = 104_857_600
    heartbeat_s: int = 300


def channel_of(offer: bytes, order: ByteOrder) -> str:
    """The channel that a client names. Raises DecodeError."""
    return Structure(ID_BEGIN, bytearray(offer), 0, order).text("ChannelName")


def answer(offer: bytes, order: ByteOrder, qmgr: str, random: bytes, most: Most) -> NegotiationAnswer:
    """The answer to *offer*, in *order*. Raises DecodeError."""
    data = bytearray(offer)
    begin = Structure(ID_BEGIN, data, 0, order)
    fap = min(begin["FapLevel"], most.fap)
    errors = _BAD_FAP if fap < begin["FapLevel"] else 0
    begin["FapLevel"] = fap
    size = min(begin["MaxTransmissionSize"], TRANSMISSION_SIZE)
    longest = min(begin["MaxMessageSize"], most.longest_message)
    errors |= _BAD_TRANSMISSION_SIZE if size < begin["MaxTransmissionSize"] else 0
    errors |= _BAD_MESSAGE_SIZE if longest < begin["MaxMessageSize"] else 0
    begin["MaxTransmissionSize"], begin["MaxMessageSize"] = size, longest
    is_client = bool(begin["CapabilityFlags1"] & IS_CLIENT)
    begin["CapabilityFlags1"], refused = _accepted(begin["CapabilityFlags1"], CAPABILITIES1)
    begin["NotAccepted1"] = refused
    heartbeat, conversations, trace_id, product = 0, 0, 0, ""
    if len(data) >= ID_BEGIN.size + ID_MORE.size:
        more = Structure(ID_MORE, data, ID_BEGIN.size, order)
        more["CapabilityFlags2"], more["NotAccepted2"] = _accepted(more["CapabilityFlags2"], CAPABILITIES2)
        refused |= more["NotAccepted2"]
        more["CodedCharSetId"] = CCSID
        more.put_text("QMgrName", qmgr)
        heartbeat = max(more["HeartbeatInterval"], most.heartbeat_s) if more["HeartbeatInterval"] else 0
        errors |= _BAD_HEARTBEAT if heartbeat != more["HeartbeatInterval"] else 0
        more["HeartbeatInterval"], more["LengthOfRest"] = heartbeat, 0
    if len(data) >= ID_BEGIN.size + ID_MORE.size + ID_SHARING.size:
        shared = Structure(ID_SHARING, data, ID_BEGIN.size + ID_MORE.size, order)
        product = shared.text("ProductId")
        # A client that is not told so compresses, whatever is behind its first choice.
        bad_lists = 0
        for bit, name, nothing in _COMPRESSION:
            bad_lists |= bit if set(shared[name]) - set(nothing) else 0
            shared[name] = nothing
        shared["ErrorFlags2"], refused = bad_lists, refused | bad_lists
        conversations = max(0, min(shared["ConversationsPerSocket"], most.sharing))
        shared["ConversationsPerSocket"] = conversations
        shared["CapabilityFlags3"], shared["NotAccepted3"] = _accepted(shared["CapabilityFlags3"], _CAPABILITIES3)
        refused |= shared["NotAccepted3"]
        shared["ProcessId"], shared["ThreadId"], trace_id = 1, 1, shared["TraceId"]
        shared.put_text("ProductId", _PRODUCT)
        shared.put_text("QMgrIdentifier", identifier(qmgr))
        if len(data) >= shared.end + ID_PROTECTION.size:
            protection = Structure(ID_PROTECTION, data, shared.end, order)
            protection["PasswordProtection"] = b"".join(
                n.to_bytes(2, order) for n in (_PROTECTED, _PLAIN, *[_UNUSED] * 8)
            )
            protection["Random"] = random
    begin["ErrorFlags1"] = errors
    flags = ERROR if errors or refused else 0
    terms = Terms(
        fap, begin.text("ChannelName"), qmgr, size, longest, heartbeat, conversations, product, is_client, trace_id
    )
    return NegotiationAnswer(bytes(data), flags, terms)


def _accepted(offered: int, known: int) -> tuple[int, int]:
    """Of the capabilities offered, those accepted and those not."""
    return offered & known, offered & ~known & 0xFF
