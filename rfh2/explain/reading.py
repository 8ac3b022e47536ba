"""Read as much of a message as can be read: where ``rfh2.decode`` refuses, this keeps what came before the fault.

The chain of headers is walked as ``rfh2.chain.decode_chain`` walks it; a header that cannot be decoded ends it, and
everything from there on counts as the body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rfh2.captured import CapturedMessage
from rfh2.chain import MAX_HEADERS, Header, decoder_of, sniffed
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT
from rfh2.errors import DecodeError
from rfh2.message import Message
from rfh2.mqmd import Mqmd, decode_mqmd


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
    headers, at, fault = _chain(captured.body, assumed)
    message = Message(assumed, tuple([located.header for located in headers]), captured.body[at:])
    return PartialMessage(captured, mqmd, assumed, length, headers, message, mqmd_fault, fault)


def _assumed(body: bytes) -> Mqmd:
    found = sniffed(body)
    if found is None:
        return Mqmd()
    return replace(Mqmd(), format=found[0], encoding=found[1], coded_char_set_id=found[2])


def _chain(data: bytes, mqmd: Mqmd) -> tuple[tuple[Located, ...], int, DecodeError | None]:
    headers: list[Located] = []
    at, fmt, ccsid = 0, mqmd.format, mqmd.coded_char_set_id
    while (decoder := decoder_of(fmt)) is not None and len(headers) < MAX_HEADERS:
        if headers and at == len(data):
            break
        try:
            header = decoder(data, at, ccsid)
        except DecodeError as error:
            return tuple(headers), at, error
        headers.append(Located(header, at))
        at += header.length
        fmt = header.format
        if header.coded_char_set_id not in (MQCCSI_INHERIT, MQCCSI_DEFAULT):
            ccsid = header.coded_char_set_id
    return tuple(headers), at, None
