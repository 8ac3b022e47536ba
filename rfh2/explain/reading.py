"""Read as much of a message as can be read: where ``rfh2.decode`` refuses, this keeps what came before the fault.

A header that cannot be decoded ends the chain of headers, and everything from there on counts as the body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rfh2.captured import CapturedMessage
from rfh2.ccsid import ENCODINGS
from rfh2.chain import Header, headers_of, sniffed
from rfh2.errors import DecodeError
from rfh2.layouts import MQCFH
from rfh2.message import Message
from rfh2.mqmd import Mqmd, decode_mqmd
from rfh2.pcf_names import (
    MESSAGE_TYPES,
    MQCFT_EVENT,
    MQCMD_BROKER_INTERNAL,
    MQCMD_DELETE_PUBLICATION,
)

_COMPLETIONS: Final = (-1, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Located:
    """One header, and the offset of its first byte, counted from the start of the first header."""

    header: Header
    offset: int


@dataclass(frozen=True, slots=True)
class PartialMessage:
    """What could be decoded of one message.

    mqmd: None where there is none, or none that can be read; ``assumed`` then stands in for it. mqmd_length: its bytes.
    message: all that was decoded, and the rest as its body. mqmd_fault, fault: why the descriptor, or a header, could
    not be; the offset of the first counts in the descriptor, of the second from the first header.
    """

    captured: CapturedMessage
    mqmd: Mqmd | None
    assumed: Mqmd
    mqmd_length: int
    headers: tuple[Located, ...]
    message: Message
    mqmd_fault: DecodeError | None = None
    fault: DecodeError | None = None

    @property
    def rest(self) -> bytes:
        """The body, or what begins with the header that could not be decoded."""
        return self.message.body

    @property
    def rest_offset(self) -> int:
        """Where *rest* begins, from the start of the first header."""
        return len(self.captured.body) - len(self.rest)


def read_message(captured: CapturedMessage) -> PartialMessage:
    """Everything of *captured* that can be decoded; never an error for bad bytes."""
    mqmd, length, mqmd_fault = None, 0, None
    if captured.md is not None:
        try:
            mqmd, length = decode_mqmd(captured.md)
        except DecodeError as error:
            mqmd_fault = error
    assumed = mqmd if mqmd is not None else _assumed(captured.body)
    headers, at, fault = read_chain(captured.body, 0, assumed.format, assumed.coded_char_set_id)
    message = Message(assumed, tuple([located.header for located in headers]), captured.body[at:])
    return PartialMessage(captured, mqmd, assumed, length, headers, message, mqmd_fault, fault)


def _assumed(body: bytes) -> Mqmd:
    found = sniffed(body) or pcf_described(body)
    if found is None:
        return Mqmd()
    return replace(Mqmd(), format=found[0], encoding=found[1], coded_char_set_id=found[2])


def pcf_described(body: bytes) -> tuple[str, int, int] | None:
    """(Format, Encoding, CodedCharSetId) that a lost MQMD must have had where *body* begins as PCF does; else None.

    A broker does not guess so: without a descriptor, PCF is data to it.
    """
    if len(body) < MQCFH.size:
        return None
    for order, encoding in ENCODINGS.items():
        kind, length, version, command, _, control, comp_code, _, count = MQCFH.fast[order].unpack_from(body)
        is_pcf = kind in MESSAGE_TYPES and length == MQCFH.size and version in (1, 2, 3)
        if is_pcf and command >= 0 and control in (0, 1) and comp_code in _COMPLETIONS and 0 <= count <= len(body):
            is_ours = MQCMD_DELETE_PUBLICATION <= command <= MQCMD_BROKER_INTERNAL
            return "MQEVENT" if kind == MQCFT_EVENT else "MQPCF" if is_ours else "MQADMIN", encoding, 0
    return None


def read_chain(data: bytes, at: int, fmt: str, ccsid: int) -> tuple[tuple[Located, ...], int, DecodeError | None]:
    """The headers from *at* on, where they end, and the fault that ends them, if one does.

    fmt, ccsid: Format and CodedCharSetId of what stands before them.
    """
    headers: list[Located] = []
    end, fault = at, None
    try:
        for header, offset in headers_of(data, at, fmt, ccsid):
            headers.append(Located(header, offset))
            end = offset + header.length
    except DecodeError as error:
        fault = error
    return tuple(headers), end, fault
