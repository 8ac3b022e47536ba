"""SPI calls: what Java programs use in place of MQOPEN, and to ask which of these calls there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from commands.listener.calls import ERROR_QUEUE, asked_for, got_written, put_fields, put_written, write_defaults
from commands.listener.conversation import Conversation
from commands.listener.request import Request, object_descriptor, subscription_descriptor, write_descriptor
from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m
from rfh2.channel import layouts
from rfh2.channel.segments import Structure
from rfh2.pcf import Cfin, Cfst, Pcf

_IN_SYNCPOINT, _DEFERRED = 0x2, 0x4
_COMMITS = 0x2
_SPGI_VERSION: Final = 2
_CANCEL, _CANCEL_WAIT = 2, 1
# A program counts in three bytes of its identifiers, from this one on, the first being number 1.
_COUNTS_FROM: Final = 21
_MOST_RESERVED: Final = (1 << 24) - 1
# What JMS sets for a shared subscription, and for no other; and for one that another program has open, by its SubId.
_SHARED, _BY_SUB_ID = 0x50, 0x20000


async def answered(conversation: Conversation, request: Request) -> bytes:
    """The payload of the reply to an SPI call. Raises what MQOPEN raises, DecodeError."""
    spi = request.structure(layouts.SPI, layouts.API_HEADER.size)
    call = next((verb.call for verb in VERBS if verb.number == spi["Verb"]), None)
    if call is None:
        return request.reply(request.data[layouts.API_HEADER.size :], m.MQCC_FAILED, m.MQRC_FUNCTION_NOT_SUPPORTED)
    return await call(conversation, request, spi)


def _block(request: Request, name: str, version: int, length: int) -> bytes:
    made = Structure.new(layouts.SPI_BLOCK, request.header.order)
    made["StrucId"], made["Version"], made["StrucLength"] = name.encode(request.header.charset), version, length
    return bytes(made)


async def _query(_conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Which of these calls there are; 9 and 10 are those of no queue manager."""
    known = {verb.number: (verb.number, *verb.versions, 1) for verb in VERBS}
    numbers = range(1, VERBS[-1].number + 1)
    entries = b"".join(request.bytes_of(each) for number in numbers for each in known.get(number, (0,) * 5))
    listed = request.bytes_of(len(numbers)) + entries
    head = _block(request, "SPQU", 1, layouts.SPI_BLOCK.size) + _block(
        request, "SPQO", 1, layouts.SPI_BLOCK.size + len(listed)
    )
    return request.reply(bytes(spi) + head + listed)


async def _notify(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """End the calls of another conversation that wait for a message: a program closes what its other thread uses."""
    asked = request.structure(layouts.SPNI, spi.end + layouts.SPI_BLOCK.size)
    if asked["Action"] != _CANCEL_WAIT:
        raise MqiError(m.MQRC_FUNCTION_NOT_SUPPORTED, f"action {asked['Action']} on another connection is not known")
    conversation.cancel_waits(asked["ConnectionId"], asked["Reason"])
    blocks = _block(request, "SPNU", 1, layouts.SPI_BLOCK.size) + _block(request, "SPNO", 1, layouts.SPI_BLOCK.size)
    return request.reply(bytes(spi) + blocks)


async def _open(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Like MQOPEN. Clients before 9.1.5 ask in version 1, and read its answer only in that: without the policy."""
    asked = request.structure(layouts.SPI_BLOCK, spi.end + layouts.SPI_BLOCK.size)
    lpoo = request.versioned(layouts.LPOO, asked.end)
    od, end = object_descriptor(request, lpoo.end)
    handle = await conversation.open(od, lpoo["Options"])
    write_defaults(lpoo, conversation.defaults(handle))
    described, policy = end - asked.at, b""
    if lpoo["Version"] > 1:
        lpoo.put_text("ErrorQName", ERROR_QUEUE)
        policy = _policy(od.structure.text("ObjectName"))
        lpoo["ExtraOffset"], lpoo["ExtraLength"] = described, len(policy)
    made = _block(request, "SPOO", asked["Version"], described + len(policy))
    head = _block(request, "SPOU", 1, layouts.SPI_BLOCK.size) + made
    body = bytes(spi) + head + bytes(request.data[lpoo.at : end]) + policy
    return request.reply(body, handle=handle)


async def _put(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Like MQPUT; its options can defer the message."""
    described = spi.end + layouts.SPI_BLOCK.size
    mqmd, pmo_at = request.mqmd(described)
    pmo = request.versioned(layouts.MQPMO, pmo_at)
    block = request.structure(layouts.SPI_DATA, pmo.end)
    options, length = block["Options"], block["DataLength"]
    start = block.at + block["StrucLength"] - length
    body = bytes(request.data[start : start + max(0, length)])
    if start < block.end or length < 0 or len(body) < length:
        raise MqiError(m.MQRC_DATA_LENGTH_ERROR, f"{len(body)} of {length} bytes of the message came")
    put, queue = await conversation.put(
        None,
        request.handle,
        mqmd,
        _put_options(pmo["Options"], options),
        body,
        bool(options & _DEFERRED),
        put_fields(pmo),
    )
    written = put_written(conversation, pmo, request.in_own_terms(put, mqmd.version), queue)
    reply = bytes(spi) + _block(request, "SPPU", 1, layouts.SPI_BLOCK.size + len(written)) + written
    return request.reply(reply + _block(request, "SPPO", 1, layouts.SPI_BLOCK.size), handle=request.handle)


async def _get(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Like MQGET; its options can end the unit of work first: a JMS program so acknowledges what it got before."""
    described = spi.end + layouts.SPI_BLOCK.size
    mqmd, gmo_at = request.mqmd(described)
    gmo = request.versioned(layouts.MQGMO, gmo_at)
    wanted = request.structure(layouts.SPGI, gmo.end)
    if wanted["Version"] != _SPGI_VERSION:
        raise MqiError(m.MQRC_FUNCTION_NOT_SUPPORTED, f"SPGI has version {wanted['Version']}, not {_SPGI_VERSION}")
    asked, wait_ms = asked_for(mqmd, gmo, wanted["MaxMsgLength"])
    if wanted["Options"] & _COMMITS:
        await conversation.commit()
    made = Structure.new(layouts.SPGO2, request.header.order)
    try:
        got = await conversation.get(request.handle, asked, wait_ms, request.held)
    except MqiError as error:
        if error.reason != m.MQRC_NO_MSG_AVAILABLE:
            raise
        written, body, comp_code, reason = bytes(request.data[described : gmo.end]), b"", m.MQCC_FAILED, error.reason
    else:
        assert got is not None
        written, body = got_written(request, gmo, mqmd.version, got), got.body
        made["DataLength"], comp_code, reason = got.length, got.comp_code, got.reason
    made["StrucId"], made["Version"], made["StrucLength"] = b"SPGO", wanted["Version"], made.layout.size + len(body)
    head = bytes(spi) + _block(request, "SPGU", wanted["Version"], layouts.SPI_BLOCK.size + len(written)) + written
    return request.reply(head + bytes(made) + body, comp_code, reason, request.handle)


async def _activate(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Have a deferred message put now, or take it back."""
    asked = request.structure(layouts.SPAI, spi.end + layouts.SPI_BLOCK.size)
    await conversation.activate(asked["MsgId"], put=asked["Mode"] != _CANCEL)
    blocks = _block(request, "SPAU", 1, layouts.SPI_BLOCK.size) + _block(request, "SPAO", 1, layouts.SPI_BLOCK.size)
    return request.reply(bytes(spi) + blocks)


async def _subscribe(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Like MQSUB."""
    block = request.structure(layouts.SPI_BLOCK, spi.end + layouts.SPI_BLOCK.size)
    lsd = request.structure(layouts.LSD, block.end + 4)
    descriptor, asked = subscription_descriptor(request, lsd.end)
    descriptor = descriptor.model_copy(update={"shared": bool(lsd["Options"] & _SHARED)})
    if lsd["Options"] & _BY_SUB_ID:
        hsub, hobj, answer = await conversation.join(lsd["SubId"])
    else:
        hsub, hobj, answer = await conversation.subscribe(descriptor, request.handle)
    lsd.put_text("QName", answer.queue)
    lsd.put_text("QMgrName", answer.qmgr)
    lsd["SubId"] = answer.sub_id
    described = request.bytes_of(hsub) + bytes(lsd) + write_descriptor(asked, descriptor, answer)
    head = _block(request, "SPBU", 1, layouts.SPI_BLOCK.size) + _block(
        request, "SPBO", 1, layouts.SPI_BLOCK.size + len(described)
    )
    return request.reply(bytes(spi) + head + described, handle=hobj)


async def _reserve(conversation: Conversation, request: Request, spi: Structure) -> bytes:
    """Message identifiers that a program may give itself, as it does for puts whose answers it does not wait for."""
    asked = request.structure(layouts.SPRI, spi.end + layouts.SPI_BLOCK.size)
    base = conversation.reserve_ids()
    if asked["TagSize"] != len(base):
        raise MqiError(m.MQRC_FUNCTION_NOT_SUPPORTED, f"identifiers have {len(base)} bytes, not {asked['TagSize']}")
    count = min(max(1, asked["Count"]), _MOST_RESERVED)
    made = request.bytes_of(count) + request.bytes_of(_COUNTS_FROM) + base
    blocks = _block(request, "SPRU", 1, layouts.SPI_BLOCK.size) + _block(
        request, "SPRO", 1, layouts.SPI_BLOCK.size + len(made)
    )
    return request.reply(bytes(spi) + blocks + made)


def _put_options(options: int, spi_options: int) -> int:
    return options | m.MQPMO_SYNCPOINT if spi_options & _IN_SYNCPOINT else options


def _policy(queue: str) -> bytes:
    """The message protection policy of a queue: none. It is PCF, in big-endian whatever the channel has."""
    name = Cfst.of(6, queue.ljust(48), 819)
    rest = (Cfin(number, 0) for number in (7, 8, 9, 14, 10, 12))
    return Pcf(0, (Cfin(5, 1), name, *rest), type=8, version=3, order="big").encode()


class Verb(NamedTuple):
    """An SPI call. versions: the highest of its input-output, input and output part, as queue managers list them.

    call: None where it is refused.
    """

    number: int
    name: str
    versions: tuple[int, int, int]
    call: Callable[[Conversation, Request, Structure], Awaitable[bytes]] | None


VERBS: Final = (
    Verb(1, "which calls there are", (2, 2, 2), _query),
    Verb(2, "MQPUT, also deferred", (1, 3, 1), _put),
    Verb(3, "MQGET that commits what was got before", (2, 2, 3), _get),
    Verb(4, "put a deferred message, or take it back", (1, 1, 1), _activate),
    Verb(5, "no Java program uses it", (1, 1, 1), None),
    Verb(6, "reserve message identifiers", (1, 1, 1), _reserve),
    Verb(7, "MQSUB, also shared and by SubId", (1, 1, 1), _subscribe),
    Verb(8, "no Java program uses it", (1, 1, 1), None),
    Verb(11, "end a wait of another thread", (1, 1, 1), _notify),
    Verb(12, "MQOPEN", (1, 2, 2), _open),
)


def coverage() -> tuple[str, str, str]:
    """The verbs that are done, and those that are refused with their reason: a row of the table of options."""
    done = ", ".join(f"{verb.number} ({verb.name})" for verb in VERBS if verb.call is not None)
    refused = ", ".join(
        f"{verb.number} ({verb.name}: {m.MQRC_FUNCTION_NOT_SUPPORTED})" for verb in VERBS if verb.call is None
    )
    return "SPI verbs", done, refused
