"""PCF: programmable command format, a header (MQCFH) and parameters (wire formats 5.1).

    MQCFH      Type  StrucLength  Version  Command  MsgSeqNumber  Control  CompCode  Reason  ParameterCount
    parameter  Type  StrucLength  Parameter  what its type has

PCF is a body (Format MQADMIN, MQPCF, MQEVENT), not a chained header; only an MQEPH embeds one. The byte order is read
off the header's StrucLength, which is 36 in exactly one. A group counts as one parameter; its members follow it and are
counted by its own ParameterCount. Whatever stands between the end of a parameter's value and its StrucLength, and
behind the last parameter, is kept: ``encode`` gives back the bytes that were decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.constants import MQENC_NATIVE
from rfh2.errors import EncodeError
from rfh2.layouts import LENGTH, MQCFGR, MQCFH, MQRFH, PARAMETER, HeaderKind, Layout, decode_prologue, prologue_fields
from rfh2.pcf_names import MQCFC_LAST, MQCFT_COMMAND, MQRCCF_CFH_LENGTH_ERROR, MQRCCF_CFH_PARM_COUNT_ERROR
from rfh2.pcf_parameters import DECODERS, Area, Cfgr, Parameter, UnknownParameter, refused

FORMATS: Final = ("MQADMIN", "MQPCF", "MQEVENT")

# Real groups are three deep at most; a bound, so that no message can exhaust the stack.
MAX_DEPTH: Final = 32

_ORDERS: Final[dict[bytes, ByteOrder]] = {b"\0\0\0\x24": "big", b"\x24\0\0\0": "little"}


@dataclass(frozen=True, slots=True)
class Pcf:
    """One PCF message: the fields of its MQCFH and its parameters. rest: bytes behind the last parameter."""

    command: int
    parameters: tuple[Parameter, ...] = ()
    type: int = MQCFT_COMMAND
    version: int = 1
    msg_seq_number: int = 1
    control: int = MQCFC_LAST
    comp_code: int = 0
    reason: int = 0
    order: ByteOrder = "little"
    rest: bytes = b""

    @property
    def length(self) -> int:
        """Header, parameters and rest in bytes."""
        return MQCFH.size + sum(parameter.length for parameter in self.parameters) + len(self.rest)

    def first(self, parameter: int) -> Parameter | None:
        """The first parameter of that number, not looking into groups."""
        return next(self.all(parameter), None)

    def all(self, parameter: int) -> Iterator[Parameter]:
        """The parameters of that number in order, not looking into groups."""
        return (found for found in self.parameters if found.parameter == parameter)

    def encode(self) -> bytes:
        """The bytes of this message. Raises EncodeError."""
        own = (self.version, self.command, self.msg_seq_number, self.control, self.comp_code, self.reason)
        header = MQCFH.pack(self.order, self.type, MQCFH.size, *own, len(self.parameters))
        return b"".join([header, *(parameter.encode(self.order) for parameter in self.parameters), self.rest])


def decode_pcf(data: bytes, ccsid: int = 0, offset: int = 0) -> Pcf:
    """The PCF message that *data* is.

    ccsid: CodedCharSetId that describes it; strings whose own is 0 are in it. offset: of *data* in the message that it
    is part of, for the offsets of errors. Raises DecodeError.
    """
    if len(data) < MQCFH.size:
        raise refused(
            offset + len(data), "MQCFH", f"{MQCFH.size} bytes are needed, {len(data)} are there", "short-header"
        )
    order = _ORDERS.get(data[4:8])
    if order is None:
        why = f"StrucLength is not {MQCFH.size} in either byte order"
        raise refused(offset + 4, "MQCFH", why, "bad-struc-length", MQRCCF_CFH_LENGTH_ERROR)
    kind, _, version, command, number, control, comp_code, reason, count = MQCFH.fast[order].unpack_from(data)
    if count < 0:
        why = f"ParameterCount {count} is negative"
        raise refused(offset + 32, "MQCFH", why, "bad-parameter-count", MQRCCF_CFH_PARM_COUNT_ERROR)
    parameters, at = _Reader(data, offset, order, ccsid).parameters(MQCFH.size, count)
    own = (kind, version, number, control, comp_code, reason)
    return Pcf(command, parameters, *own, order, data[at:])


class _Reader(NamedTuple):
    data: bytes
    base: int
    order: ByteOrder
    ccsid: int

    def parameters(self, at: int, count: int, depth: int = MAX_DEPTH) -> tuple[tuple[Parameter, ...], int]:
        """*count* parameters from *at* on, and the offset behind the last one with its members."""
        found: list[Parameter] = []
        for _ in range(count):
            there = len(self.data) - at
            if there < PARAMETER.size:
                why = f"{count} parameters are announced, {len(found)} are there"
                raise refused(self.base + at, "PCF parameter", why, "bad-parameter-count")
            kind, length, number = PARAMETER.fast[self.order].unpack_from(self.data, at)
            if not PARAMETER.size <= length <= there:
                why = f"StrucLength {length} is not between {PARAMETER.size} and the {there} bytes that are there"
                raise refused(self.base + at + 4, "PCF parameter", why, "bad-struc-length")
            if kind == Cfgr.type:
                group, at = self.group(at, length, depth)
                found.append(group)
                continue
            known = DECODERS.get(kind)
            if known is None:
                found.append(UnknownParameter(number, kind, self.data[at + PARAMETER.size : at + length]))
            else:
                layout, decoder = known
                fields, area = self.split(layout, at, length)
                found.append(decoder(number, fields, area))
            at += length
        return tuple(found), at

    def group(self, at: int, length: int, depth: int) -> tuple[Cfgr, int]:
        """The group at *at*, and the offset behind its members."""
        if depth == 0:
            raise refused(self.base + at, "MQCFGR", f"groups nested more than {MAX_DEPTH} deep", "too-deep")
        (count,), area = self.split(MQCFGR, at, length)
        if count < 0:
            raise refused(self.base + at + 12, "MQCFGR", f"ParameterCount {count} is negative", "bad-parameter-count")
        members, behind = self.parameters(at + length, count, depth - 1)
        number = PARAMETER.fast[self.order].unpack_from(self.data, at)[2]
        return Cfgr(number, members, area.data), behind

    def split(self, layout: Layout, at: int, length: int) -> tuple[tuple[int, ...], Area]:
        """The fields behind the three that every parameter has, and the bytes behind those."""
        if length < layout.size:
            why = f"StrucLength {length} is less than {layout.size}"
            raise refused(self.base + at + 4, layout.name, why, "bad-struc-length")
        start = at + layout.size
        fields = layout.fast[self.order].unpack_from(self.data, at)[3:]
        return fields, Area(self.data[start : at + length], self.base + start, self.order, self.ccsid)


# The embedded PCF header: PCF in front of other data, such as a trace of its route (wire formats, section 5).
#
#     the prologue of 32 bytes, then an MQCFH and its parameters, all within StrucLength
#
# Integers and characters of the PCF are, like those of the prologue, in the Encoding and CCSID of the *preceding*
# header.

EPH_KIND: Final = HeaderKind("MQEPH", "EPH ", "MQHEPCF", {1: LENGTH + MQCFH.size})


@dataclass(frozen=True, slots=True)
class Eph:
    """One MQEPH. data: the PCF as on the wire, read only when somebody asks.

    ccsid: CodedCharSetId of the *preceding* header, in which PCF strings are that name none of their own. offset: where
    *data* stood in the message that it was decoded from; it does not take part in comparison.
    """

    data: bytes
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    ccsid: int = 0
    offset: int = field(default=0, compare=False)

    kind = EPH_KIND.name
    own_format = EPH_KIND.format
    version = 1

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, the PCF included."""
        return LENGTH + len(self.data)

    def pcf(self) -> Pcf:
        """The PCF message. Raises DecodeError, with an offset into the message."""
        return decode_pcf(self.data, self.ccsid, self.offset)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if len(self.data) < MQCFH.size:
            raise EncodeError(f"MQEPH: {len(self.data)} bytes are less than an MQCFH has")
        return MQRFH.pack(self.order, *prologue_fields(EPH_KIND, self)) + self.data


def decode_eph(data: bytes, offset: int, ccsid: int) -> Eph:
    """The MQEPH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(EPH_KIND, data, offset, ccsid)
    start, described = offset + LENGTH, (p.encoding, p.coded_char_set_id, p.format, p.flags)
    return Eph(data[start : offset + p.length], *described, p.order, p.charset, ccsid, start)
