"""Queue Manager Response messages: when one is due, what it says, and its descriptor (guide 6.7.6, 6.7.8, 6.7.10)."""

from __future__ import annotations

from commands.model import RegOpt
from commands.plan import Tags, Warned
from commands.psc_folder import split_psc
from commands.puts import Completion
from commands.stamps import Origin
from rfh2.ccsid import byte_order, field_codec, is_ebcdic
from rfh2.constants import (
    MQFMT_RF_HEADER_2,
    MQMT_REPLY,
    MQMT_REQUEST,
    MQRO_NAN,
    MQRO_PAN,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_MSG_ID,
)
from rfh2.folders import Folder, write
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.subscriptions import MQCI_NONE, DeliveryPersistence, Subscription
from streams.topic_strings import remove_prefix

_UTF8 = 1208


def is_due(mqmd: Mqmd, completion: Completion) -> bool:
    """Whether a command with this descriptor is to be answered (guide 6.7.8, MsgType).

    A request always is; anything else as PAN (on success), NAN (on failure), or either (on a warning) ask for it.
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
    """The response to *command*, in its byte order, code page and NameValueCCSID.

    answers: one for an error, one for each warning, none for ok. full: the subscription whose attributes FullResp asks
    for. The psc folder of the command follows a warning or an error as it came (guide 6.7.6).
    """
    asked = command.rfh2
    header = asked if asked is not None else _header_for(command.mqmd)
    charset = "utf-8" if header.name_value_ccsid == _UTF8 else f"utf-16-{header.order[0]}e"
    pairs = [("Completion", completion.value)]
    text = write("pscr", pairs)[: -len("</pscr>")]
    text += "".join(write("Response", (("Reason", str(answer.reason)), *answer.tags)) for answer in answers)
    if full is not None and completion is not Completion.ERROR:
        text += write("x", attributes(full))[len("<x>") : -len("</x>")]
    folders = [Folder.of(text + "</pscr>", charset)]
    if completion is not Completion.OK and asked is not None:
        folders += split_psc(asked)[0][:1]
    encoding = command.mqmd.encoding
    if byte_order(encoding) != header.order:
        encoding = 273 if header.order == "big" else 546
    rfh2 = Rfh2(
        tuple(folders),
        encoding,
        _UTF8,
        name_value_ccsid=header.name_value_ccsid,
        order=header.order,
        charset=header.charset,
    )
    return Message(_descriptor(command.mqmd, encoding, msg_id, priority, persistence, origin), (rfh2,))


def _header_for(command: Mqmd) -> Rfh2:
    """An empty header in the byte order and the characters that the sender of an unreadable message uses."""
    ccsid = command.coded_char_set_id
    return Rfh2(order=byte_order(command.encoding) or "little", charset=field_codec(ccsid, is_ebcdic(ccsid)))


def attributes(subscription: Subscription) -> Tags:
    """All attributes of a subscription as psc properties, for FullResp (guide 6.7.4)."""
    options = subscription.options
    words = [
        (RegOpt.CORREL_AS_ID, subscription.correl_id != MQCI_NONE),
        (RegOpt.DUPS_OK, options.dups_ok),
        (RegOpt.INFORM_IF_RET, options.inform_if_ret),
        (RegOpt.LOCAL, options.local),
        (RegOpt.NEW_PUBS_ONLY, options.new_pubs_only),
        (RegOpt.PUB_ON_REQ_ONLY, options.pub_on_req_only),
        (RegOpt.VARIABLE_USER_ID, options.variable_user_id),
        (RegOpt.NON_PERS, options.persistence is DeliveryPersistence.NON_PERSISTENT),
        (RegOpt.PERS, options.persistence is DeliveryPersistence.PERSISTENT),
        (RegOpt.PERS_AS_PUB, options.persistence is DeliveryPersistence.AS_PUBLISHED),
        (RegOpt.PERS_AS_QUEUE, options.persistence is DeliveryPersistence.AS_QUEUE),
        (RegOpt.JOIN_EXCL, subscription.exclusive),
        (RegOpt.JOIN_SHARED, bool(subscription.identities) and not subscription.exclusive),
    ]
    optional = (
        ("SubPoint", subscription.sub_point),
        ("Filter", subscription.selector),
        ("CorrelId", subscription.correl_id.hex().upper() if subscription.correl_id != MQCI_NONE else None),
        ("SubName", subscription.name),
        ("SubUserData", subscription.user_data),
    )
    return (
        ("Topic", remove_prefix(subscription.prefix, subscription.topic_string)),
        ("QMgrName", subscription.dest_qmgr),
        ("QName", subscription.dest_queue),
        ("UserId", subscription.user),
        *(("RegOpt", word.value) for word, holds in words if holds),
        *((tag, value) for tag, value in optional if value is not None),
        *(("SubIdentity", identity) for identity in subscription.identities),
    )


def _descriptor(command: Mqmd, encoding: int, msg_id: bytes, priority: int, persistence: int, origin: Origin) -> Mqmd:
    """Guide 6.7.10; identity context is passed on, all other fields have their defaults."""
    return Mqmd(
        msg_type=MQMT_REPLY,
        expiry=command.expiry,
        encoding=encoding,
        coded_char_set_id=command.coded_char_set_id,
        format=MQFMT_RF_HEADER_2,
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
