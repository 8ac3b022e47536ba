"""The MQOD of a call: what it opens, and what the queue manager writes into it."""

from __future__ import annotations

from dataclasses import dataclass

from commands.listener.request import Request
from commands.qmgr.mqi.calls import Target
from rfh2.ccsid import text_codec
from rfh2.channel.layouts import MQOD
from rfh2.channel.structure import Structure
from rfh2.errors import DecodeError


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
    """The MQOD at *at*, and where it and its strings end. Raises DecodeError."""
    fields = request.versioned(MQOD, at)
    end = fields.end
    strings: dict[str, str] = {}
    if fields["Version"] >= 4:
        strings, end = _strings(fields)
    target = Target(fields["ObjectType"], fields.text("ObjectName"), fields.text("ObjectQMgrName"), **strings)
    return ObjectDescriptor(fields, target, fields.text("DynamicQName")), end


def _strings(fields: Structure) -> tuple[dict[str, str], int]:
    """ObjectString and SelectionString, as ``Target`` calls them, and where the strings end behind the MQOD."""
    end = fields.end
    found: dict[str, str] = {}
    for name, meaning in (("ObjectString", "topic"), ("SelectionString", "selector"), ("ResObjectString", None)):
        offset, length = fields[f"{name}Offset"], fields[f"{name}Length"]
        if offset < fields.layout.size or length <= 0:
            continue
        start = fields.at + offset
        if start + length > len(fields.data):
            raise DecodeError(fields.at, "MQOD", f"{name} ends behind the call")
        if meaning is not None:
            raw = bytes(fields.data[start : start + length])
            found[meaning] = raw.decode(text_codec(fields[f"{name}CodedCharSetId"], 0) or fields.charset, "replace")
        end = max(end, fields.at + offset + -(-length // 4) * 4)
    return found, end
