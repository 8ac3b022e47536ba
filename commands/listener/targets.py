"""The MQOD of a call: what it opens, and what the queue manager writes into it."""

from __future__ import annotations

from dataclasses import dataclass

from commands.listener.request import Request
from commands.listener.strings import read_string, span
from commands.qmgr.mqi.calls import Target
from commands.qmgr.mqi.refusals import check_destinations
from rfh2.channel.layouts import MQOD
from rfh2.channel.segments import Structure


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
