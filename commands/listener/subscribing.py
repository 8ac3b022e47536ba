"""MQSUB and MQSUBRQ on a channel, and the SPI call that JMS programs use in place of MQSUB.

MQSUB       API header (queue), handle of the subscription, 0, MQSD, its strings
SUBSCRIBE   API header (queue), SPI, SPBU, SPBI with the handle of the subscription, LSD, MQSD, strings of both
MQSUBRQ     API header (subscription), action, MQSRO
"""

from __future__ import annotations

from typing import Final

from commands.listener.conversation import Conversation
from commands.listener.request import Request
from commands.listener.strings import read_string, write_strings
from commands.qmgr.mqi.subscription_requests import SubscriptionAnswer, SubscriptionDescriptor
from rfh2.channel.layouts import API_HEADER, MQSD, MQSRO
from rfh2.channel.segments import Structure
from rfh2.errors import DecodeError

_START: Final = API_HEADER.size
_LONG: Final = 4


def read_descriptor(request: Request, at: int) -> tuple[SubscriptionDescriptor, Structure]:
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


def written(asked: Structure, given: SubscriptionDescriptor, answer: SubscriptionAnswer) -> bytes:
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


async def subscribe(conversation: Conversation, request: Request) -> bytes:
    """MQSUB."""
    descriptor, fields = read_descriptor(request, _START + 2 * _LONG)
    hsub, hobj, answer = await conversation.subscribe(descriptor, request.handle)
    return request.reply(request.bytes_of(hsub) + bytes(_LONG) + written(fields, descriptor, answer), handle=hobj)


async def request_retained(conversation: Conversation, request: Request) -> bytes:
    """MQSUBRQ."""
    fields = request.structure(MQSRO, _START + _LONG)
    fields["NumPubs"] = await conversation.request_retained(request.handle, request.long(_START))
    return request.reply(request.data[_START:], handle=request.handle)
