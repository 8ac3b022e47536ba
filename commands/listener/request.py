"""One call of a client: the bytes of its segments together, and the bytes of the reply.

What clients may use of the listener: connections, and memory for calls that are received or answered.

Memory is counted by the bytes of messages. A client that sends more than is left is sent away; a message that there is
no room for stays on its queue, and the program gets 2102. So the listener never holds more than the limit, whatever
clients send and however slowly they read.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from commands.qmgr.mqi.handles import Target
from commands.qmgr.mqi.refusals import MqiError, check_destinations
from commands.qmgr.mqi.subscription_rules import SubscriptionAnswer, SubscriptionDescriptor
from rfh2.channel.layouts import API_HEADER, MQOD, MQSD, TSH
from rfh2.channel.segments import REPLY, WHOLE, SegmentHeader, Structure, read_string, span, write_strings
from rfh2.constants import MQRC_RESOURCE_PROBLEM
from rfh2.errors import DecodeError
from rfh2.layouts import Layout
from rfh2.mqi_constants import MQCC_OK, MQRC_CONNECTION_BROKEN
from rfh2.mqmd import RawMqmd, in_form, read_mqmd


@dataclass(slots=True)
class Connections:
    """The connections that there are. most: in all. most_of_address: of one address."""

    most: int
    most_of_address: int
    count: int = 0
    of_address: Counter[str] = field(default_factory=Counter)

    def refusal(self, address: str) -> str | None:
        """Why no further one of *address* may come; None where it may."""
        if self.count >= self.most:
            return f"there are {self.count} connections, the most that may be (connections)"
        if self.of_address[address] >= self.most_of_address:
            return (
                f"{address} has {self.of_address[address]} connections, the most that it may (connections_of_address)"
            )
        return None

    def begin(self, address: str) -> None:
        """One of *address* has come."""
        self.count += 1
        self.of_address[address] += 1

    def end(self, address: str) -> None:
        """One of *address* has gone."""
        self.count -= 1
        self.of_address[address] -= 1
        if not self.of_address[address]:
            del self.of_address[address]


class Instances:
    """The connections of each channel, which may have limits (MAXINST, MAXINSTC)."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def begin(self, channel: str, address: str, most: int, most_of_address: int) -> bool:
        """Count one of *address* more; false, and nothing is counted, where a limit is reached."""
        keys = ((channel, ""), (channel, address))
        if any(self._counts[key] >= limit for key, limit in zip(keys, (most, most_of_address), strict=True)):
            return False
        self._counts.update(keys)
        return True

    def end(self, channel: str, address: str) -> None:
        """One of *address* has gone."""
        for key in ((channel, ""), (channel, address)):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


class Memory:
    """Bytes that all connections together may hold. It is used by several threads."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.used_bytes = limit_bytes, 0
        self.lock = threading.Lock()


class Held:
    """What one call holds of the memory, from its first segment until its reply is sent."""

    __slots__ = ("_is_released", "_memory", "_size_bytes")

    def __init__(self, memory: Memory) -> None:
        self._memory, self._size_bytes, self._is_released = memory, 0, False

    def add(self, size_bytes: int) -> None:
        """Hold *size_bytes* more. Raises MqiError 2102 where there is no room, 2009 where nobody waits any more."""
        memory = self._memory
        with memory.lock:
            if self._is_released:
                raise MqiError(MQRC_CONNECTION_BROKEN, "the connection has ended")
            if memory.used_bytes + size_bytes > memory.limit_bytes:
                why = f"all clients together would hold more than {memory.limit_bytes} bytes (memory_megabytes)"
                raise MqiError(MQRC_RESOURCE_PROBLEM, why)
            memory.used_bytes += size_bytes
            self._size_bytes += size_bytes

    def release(self) -> None:
        """Hold nothing any more, for good."""
        with self._memory.lock:
            self._memory.used_bytes -= self._size_bytes
            self._size_bytes, self._is_released = 0, True


NO_HANDLE: Final = -1
_HANDLE_AT: Final = API_HEADER.offset("ObjectHandle")


class Request(NamedTuple):
    """A call. data: from its API header on. held: the memory that it and its reply use."""

    header: SegmentHeader
    data: bytearray
    held: Held

    def structure(self, layout: Layout, at: int) -> Structure:
        """The structure at *at*. Raises DecodeError."""
        return Structure(layout, self.data, at, self.header.order, self.header.charset)

    @property
    def handle(self) -> int:
        """The number of the open object that the call is about."""
        return self.long(_HANDLE_AT)

    def long(self, at: int) -> int:
        """The number at *at*. Raises DecodeError."""
        if len(self.data) < at + 4:
            raise DecodeError(len(self.data), "MQI call", f"it ends before the number at offset {at}")
        return int.from_bytes(self.data[at : at + 4], self.header.order, signed=True)

    def bytes_of(self, value: int) -> bytes:
        """*value* as the call writes numbers."""
        return value.to_bytes(4, self.header.order, signed=True)

    def versioned(self, layouts: dict[int, Layout], at: int) -> Structure:
        """The structure at *at*, as long as its version says. Raises DecodeError."""
        version = self.long(at + 4)
        layout = layouts.get(version)
        if layout is None:
            name = next(iter(layouts.values())).name
            raise DecodeError(at + 4, name, f"Version is {version}, not one of {', '.join(map(str, layouts))}")
        return self.structure(layout, at)

    def mqmd(self, at: int) -> tuple[RawMqmd, int]:
        """The descriptor at *at*, and where it ends. Raises DecodeError."""
        mqmd = read_mqmd(self.data, at)
        return mqmd, at + len(mqmd.data)

    def in_own_terms(self, md: bytes, version: int) -> bytes:
        """The descriptor *md* as the caller reads them: in its byte order and *version*. Raises EncodeError."""
        return in_form(md, version, self.header.order, self.header.charset)

    def reply_header(self) -> SegmentHeader:
        """The header of the reply's segments."""
        return self.header._replace(kind=self.header.kind + REPLY, flags=WHOLE, of_connection=False)

    def reply(self, body: bytes | bytearray = b"", comp_code: int = MQCC_OK, reason: int = 0, handle: int = 0) -> bytes:
        """The payload of the reply: the API header and *body*."""
        length = (TSH.size + API_HEADER.size + len(body)).to_bytes(4, "big")
        return API_HEADER.pack(self.header.order, length, comp_code, reason, handle) + body


@dataclass(frozen=True, slots=True)
class ObjectDescriptor:
    """An MQOD. dynamic_name: DynamicQName."""

    structure: Structure
    target: Target
    dynamic_name: str

    @property
    def object_type(self) -> int:
        """MQOT_*."""
        return self.target.object_type

    def resolve(self, queue: str, qmgr: str, dynamic: bool = False) -> None:
        """Write what was opened: counts, the names that they resolved to; *dynamic*: the name of the queue made."""
        fields = self.structure
        version = fields["Version"]
        if dynamic:
            fields.put_text("ObjectName", queue)
            fields.put_text("ObjectQMgrName", qmgr)
        if version >= 2:
            fields["KnownDestCount"], fields["UnknownDestCount"], fields["InvalidDestCount"] = 1, 0, 0
        if version >= 3:
            fields.put_text("ResolvedQName", queue)
            fields.put_text("ResolvedQMgrName", qmgr)
        if version >= 4:
            fields["ResolvedType"] = self.target.object_type


def object_descriptor(request: Request, at: int) -> tuple[ObjectDescriptor, int]:
    """The MQOD at *at*, and where it and its strings end. Raises DecodeError, MqiError 2298."""
    fields = request.versioned(MQOD, at)
    if fields["Version"] >= 2:
        check_destinations(fields["RecsPresent"])
    end = fields.end
    strings: dict[str, str] = {}
    if fields["Version"] >= 4:
        strings, end = _strings(fields)
    target = Target(
        fields["ObjectType"],
        fields.text("ObjectName"),
        fields.text("ObjectQMgrName"),
        alternate_user=fields.text("AlternateUserId"),
        **strings,
    )
    return ObjectDescriptor(fields, target, fields.text("DynamicQName")), end


def _strings(fields: Structure) -> tuple[dict[str, str], int]:
    """ObjectString and SelectionString, as ``Target`` calls them, and where the strings end behind the MQOD."""
    end = fields.end
    for name in ("ObjectString", "SelectionString", "ResObjectString"):
        found = span(fields, name)
        if found is not None:
            end = max(end, found[0] + -(-(found[1] - found[0]) // 4) * 4)
    return {"topic": read_string(fields, "ObjectString"), "selector": read_string(fields, "SelectionString")}, end


def subscription_descriptor(request: Request, at: int) -> tuple[SubscriptionDescriptor, Structure]:
    """The MQSD at *at*. Raises DecodeError."""
    fields = request.structure(MQSD, at)
    if fields["Version"] != 1:
        raise DecodeError(at + 4, "MQSD", f"Version is {fields['Version']}, not 1")
    descriptor = SubscriptionDescriptor(
        options=fields["Options"],
        topic_object=fields.text("ObjectName"),
        topic=read_string(fields, "ObjectString"),
        name=read_string(fields, "SubName").rstrip(),
        user_data=read_string(fields, "SubUserData"),
        selector=read_string(fields, "SelectionString"),
        correl_id=fields["SubCorrelId"],
        expiry=fields["SubExpiry"],
        priority=fields["PubPriority"],
        accounting_token=fields["PubAccountingToken"],
        identity_data=fields.text("PubApplIdentityData"),
        sub_level=fields["SubLevel"],
        alternate_user=fields.text("AlternateUserId"),
    )
    return descriptor, fields


def write_descriptor(asked: Structure, given: SubscriptionDescriptor, answer: SubscriptionAnswer) -> bytes:
    """The MQSD of the reply: the one that was *asked*, with what the subscription has, and its strings behind it."""
    made = Structure(MQSD, bytearray(bytes(asked)), 0, asked.order, asked.charset)
    now = answer.descriptor
    made["SubCorrelId"], made["PubPriority"] = now.correl_id, now.priority
    made["PubAccountingToken"] = now.accounting_token
    made["SubLevel"], made["SubExpiry"] = now.sub_level, now.expiry
    strings = {
        "ObjectString": given.topic,
        "SubName": given.name,
        "SubUserData": now.user_data,
        "SelectionString": now.selector,
        "ResObjectString": now.topic,
    }
    return write_strings(made, strings, frozenset({"ObjectString", "SubName"}))
