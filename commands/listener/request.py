"""One call of a client: the bytes of its segments together, and the bytes of the reply."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from commands.listener.limits import Held
from rfh2.channel.layouts import API_HEADER, TSH
from rfh2.channel.segments import REPLY, WHOLE, SegmentHeader, Structure
from rfh2.errors import DecodeError
from rfh2.layouts import MQMD1, MQMD2, Layout
from rfh2.mqi_constants import MQCC_OK
from rfh2.mqmd import Mqmd, decode_mqmd

NO_HANDLE: Final = -1


@dataclass(frozen=True, slots=True)
class Request:
    """A call. data: from its API header on. held: the memory that it and its reply use."""

    header: SegmentHeader
    data: bytearray
    held: Held

    def structure(self, layout: Layout, at: int) -> Structure:
        """The structure at *at*. Raises DecodeError."""
        return Structure(layout, self.data, at, self.header.order, self.header.charset)

    @property
    def api(self) -> Structure:
        """The API header. Raises DecodeError."""
        return self.structure(API_HEADER, 0)

    @property
    def handle(self) -> int:
        """The number of the open object that the call is about."""
        return int(self.api["ObjectHandle"])

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

    def mqmd(self, at: int) -> tuple[Mqmd, int]:
        """The descriptor at *at*, and where it ends. Raises DecodeError."""
        mqmd, length = decode_mqmd(bytes(self.data[at : at + MQMD2.size]))
        return mqmd, at + length

    def in_own_terms(self, mqmd: Mqmd, version: int) -> bytes:
        """*mqmd* as the caller reads descriptors: in its byte order and version. Raises EncodeError."""
        order, charset = self.header.order, self.header.charset
        if (mqmd.version, mqmd.order, mqmd.charset) != (version, order, charset):
            mqmd = replace(mqmd, version=version, order=order, charset=charset)
        return mqmd.encode()[: MQMD1.size if version == 1 else MQMD2.size]

    def reply_header(self) -> SegmentHeader:
        """The header of the reply's segments."""
        asked = self.header
        return SegmentHeader(
            *(asked.kind + REPLY, WHOLE, asked.flags2, asked.order, asked.encoding, asked.ccsid, asked.conversation),
            *(asked.request, asked.charset),
        )

    def reply(self, body: bytes | bytearray = b"", comp_code: int = MQCC_OK, reason: int = 0, handle: int = 0) -> bytes:
        """The payload of the reply: the API header and *body*."""
        api = Structure.new(API_HEADER, self.header.order)
        api["ReplyLength"] = (TSH.size + API_HEADER.size + len(body)).to_bytes(4, "big")
        api["CompCode"], api["Reason"], api["ObjectHandle"] = comp_code, reason, handle
        return bytes(api.data) + body
