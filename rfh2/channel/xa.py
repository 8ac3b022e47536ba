"""Global transactions on a client channel: their identifiers, and the return values and flags of X/Open's XA."""

from __future__ import annotations

from typing import Final, NamedTuple

from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import XID
from rfh2.channel.segments import Structure
from rfh2.errors import DecodeError

XA_OK, XA_RDONLY, XA_RBROLLBACK = 0, 3, 100
XAER_RMERR, XAER_NOTA, XAER_INVAL, XAER_PROTO, XAER_RMFAIL, XAER_DUPID, XAER_OUTSIDE = -3, -4, -5, -6, -7, -8, -9
TMNOFLAGS, TMJOIN, TMENDRSCAN, TMSTARTRSCAN, TMSUSPEND, TMSUCCESS, TMRESUME, TMFAIL, TMONEPHASE = (
    0,
    0x200000,
    0x800000,
    0x1000000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x20000000,
    0x40000000,
)
_LONGEST: Final = 64


class Xid(NamedTuple):
    """The identifier of a branch of a global transaction."""

    format: int
    transaction: bytes
    branch: bytes

    @classmethod
    def read(cls, data: bytearray, at: int, order: ByteOrder) -> Xid:
        """The one at *at*. Raises DecodeError."""
        fields = Structure(XID, data, at, order)
        lengths = fields["GlobalLength"], fields["BranchLength"]
        end = fields.end + sum(lengths)
        if max(lengths) > _LONGEST or end > len(data):
            raise DecodeError(at, "XID", f"its identifiers have {lengths[0]} and {lengths[1]} bytes")
        middle = fields.end + lengths[0]
        return cls(fields["FormatId"], bytes(data[fields.end : middle]), bytes(data[middle:end]))

    def __str__(self) -> str:
        """As DISPLAY CONN shows it (EXTURID)."""
        transaction, branch = self.transaction.hex().upper(), self.branch.hex().upper()
        return f"XA_FORMATID[{self.format & 0xFFFF_FFFF:08X}] XA_GTRID[{transaction}] XA_BQUAL[{branch}]"

    def write(self, order: ByteOrder) -> bytes:
        """As ``read`` reads it, with zeros up to a multiple of 4."""
        fields = Structure.new(XID, order)
        fields["FormatId"] = self.format
        fields["GlobalLength"], fields["BranchLength"] = len(self.transaction), len(self.branch)
        made = bytes(fields) + self.transaction + self.branch
        return made + bytes(-len(made) % 4)
