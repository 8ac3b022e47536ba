"""Queue Manager Response messages: when one is due, what it says, and its descriptor (guide 6.7.6, 6.7.8, 6.7.10)."""

from __future__ import annotations

from dataclasses import replace

from commands.broker.descriptor import Origin
from commands.broker.identity import name_without_stream
from commands.broker.subscription_attributes import PERSISTENCE_WORDS, options_given
from commands.headers.registry import HEADER_FORMATS, header_format_of
from commands.headers.response import Completion, Reply, Tags, Warned
from commands.model import RegOpt
from rfh2.constants import MQMT_REPLY, MQMT_REQUEST, MQRO_NAN, MQRO_PAN, MQRO_PASS_CORREL_ID, MQRO_PASS_MSG_ID
from rfh2.message import Message
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from streams.patterns import written_topic
from streams.subscriptions import Subscription


def is_due(mqmd: Mqmd, completion: Completion) -> bool:
    """Whether a command with this descriptor gets a response (guide 6.7.8, MsgType).

    A request always does. Any other message does with PAN (on success), NAN (on failure) or either (on a warning).
    """
    if mqmd.msg_type == MQMT_REQUEST:
        return True
    wanted = {Completion.OK: MQRO_PAN, Completion.ERROR: MQRO_NAN, Completion.WARNING: MQRO_PAN | MQRO_NAN}
    return bool(mqmd.report & wanted[completion])


def response(
    command: Message,
    completion: Completion,
    answers: tuple[Warned, ...],
    msg_id: bytes,
    priority: int,
    persistence: int,
    origin: Origin,
    full: Subscription | None = None,
) -> Message:
    """The response to *command*, in its header, byte order and code page.

    answers: one for an error, one for each warning, none for ok. full: the subscription whose attributes FullResp asks
    for.
    """
    asked = full is not None and completion is not Completion.ERROR
    says = Reply(completion, answers, attributes(full) if full is not None and asked else ())
    made = HEADER_FORMATS[header_format_of(command)].reply(command, says)
    asks = command.mqmd
    return replace(made, mqmd=reply_descriptor(asks, made.mqmd, msg_id, asks.expiry, priority, persistence, origin))


def attributes(subscription: Subscription) -> Tags:
    """All attributes of a subscription as psc properties, for FullResp (guide 6.7.4)."""
    options, name = subscription.options, subscription.name
    given = options_given(options)
    if subscription.correl_id != MQCI_NONE:
        given.append(RegOpt.CORREL_AS_ID)
    given.sort()
    given.append(PERSISTENCE_WORDS[options.persistence])
    if subscription.exclusive:
        given.append(RegOpt.JOIN_EXCL)
    elif subscription.identities:
        given.append(RegOpt.JOIN_SHARED)
    optional = (
        ("SubPoint", subscription.sub_point),
        ("Filter", subscription.selector),
        ("CorrelId", subscription.correl_id.hex().upper() if subscription.correl_id != MQCI_NONE else None),
        ("SubName", name and name_without_stream(name, subscription.stream)),
        ("SubUserData", subscription.user_data),
    )
    return (
        ("Topic", written_topic(subscription)),
        *((("StreamName", subscription.stream),) if subscription.stream else ()),
        ("QMgrName", subscription.dest_qmgr),
        ("QName", subscription.dest_queue),
        ("UserId", subscription.user),
        *(("RegOpt", option.value) for option in given),
        *((tag, value) for tag, value in optional if value is not None),
        *(("SubIdentity", identity) for identity in subscription.identities),
    )


def reply_descriptor(
    command: Mqmd, made: Mqmd, msg_id: bytes, expiry: int, priority: int, persistence: int, origin: Origin
) -> Mqmd:
    """The descriptor (guide 6.7.10): identity context is passed on, other fields are defaults.

    made: has the Format, Encoding and CodedCharSetId of the body. msg_id: unless the command's is to be passed on.
    """
    return Mqmd(
        msg_type=MQMT_REPLY,
        expiry=expiry,
        encoding=made.encoding,
        coded_char_set_id=made.coded_char_set_id,
        format=made.format,
        priority=priority,
        persistence=persistence,
        msg_id=command.msg_id if command.report & MQRO_PASS_MSG_ID else msg_id,
        correl_id=command.correl_id if command.report & MQRO_PASS_CORREL_ID else command.msg_id,
        user_identifier=command.user_identifier,
        accounting_token=command.accounting_token,
        appl_identity_data=command.appl_identity_data,
        put_appl_type=origin.put_appl_type,
        put_appl_name=origin.put_appl_name,
        put_date=origin.put_date,
        put_time=origin.put_time,
        order=command.order,
        charset=command.charset,
    )
