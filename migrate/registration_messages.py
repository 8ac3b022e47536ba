"""Register Subscriber commands for subscriptions that MQSC cannot define.

A subscription without a name is found by its traditional identity, which only a command can give it. Only a command
can give persistence options, identity sets and the prefix that is removed again. The command is put with the context of
its user. If the subscription would be sent retained publications at once, the command has NewPubsOnly, because the
subscriber received them before the migration.

Registration options as a subscription keeps them, and as words; the words are what items hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from commands.broker import subscription_attributes
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.state import tenths_until
from commands.broker.subscription_attributes import words_of
from commands.headers.pcf import FORMAT
from commands.headers.publication import BY_TAG, COMMAND_IDS
from commands.model import RegisterSubscriber, RegOpt
from rfh2.captured import CapturedMessage
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQFMT_RF_HEADER_1, MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQPER_PERSISTENT
from rfh2.folders import Folder, write
from rfh2.message import Message, encode
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from rfh2.options import REGISTRATION
from rfh2.pcf import Pcf
from rfh2.pcf_parameters import Cfin, Cfst
from rfh2.rfh1 import MQPS_COMMAND, Rfh1
from rfh2.rfh2 import Rfh2
from streams.patterns import is_read_alike, remove_pattern_prefix
from streams.subscriptions import (
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)


@lru_cache(maxsize=4096)
def kept_options(words: tuple[str, ...]) -> SubscriptionOptions:
    """What a subscription keeps of registration options."""
    return subscription_attributes.options_of(words)


def options_of(options: SubscriptionOptions, correl_as_id: bool) -> tuple[str, ...]:
    """The words of *options*, CorrelAsId first where it was given; PersAsPub, the default, is left out."""
    first = [RegOpt.CORREL_AS_ID.value] if correl_as_id else []
    return (*first, *words_of(options))


_HEADERS = {
    PublicationFormat.RFH2: WildcardScheme.TOPIC,
    PublicationFormat.RFH1: WildcardScheme.CHAR,
    PublicationFormat.PCF: WildcardScheme.CHAR,
}


def cannot_register(subscription: Subscription) -> str:
    """Why no command can make *subscription*; "" if one can."""
    scheme = _HEADERS.get(subscription.format)
    if scheme is None:
        return f"no command asks for publications as {subscription.format}"
    if scheme is not subscription.wildcard and not is_read_alike(subscription.topic_string):
        return "its header has the other wildcard scheme"
    if subscription.format is not PublicationFormat.RFH2 and (subscription.sub_point or subscription.selector):
        return "only an MQRFH2 has a subscription point or a filter"
    if subscription.format is PublicationFormat.RFH2 and subscription.stream:
        return "an MQRFH2 names no stream"
    if subscription.topic_string.startswith(("$SYS/", "MQ/")):
        return "a command for this topic is accepted and ignored"
    return ""


def registrations(
    subscription: Subscription, seq: int, now: datetime, qmgr: str, *, is_sent_retained: bool
) -> Iterator[CapturedMessage]:
    """The commands, one for each member of the identity set, at least one. Raises EncodeError.

    is_sent_retained: whether a retained publication matches it.
    """
    for identity in subscription.identities or (None,):
        mqmd, body = _command(subscription, identity, now, qmgr, is_sent_retained)
        yield CapturedMessage(
            seq=seq,
            time=now,
            qmgr=qmgr,
            queue=CONTROL_QUEUE,
            user=subscription.user or None,
            md_hex=mqmd.encode().hex(),
            body_hex=body.hex(),
        )


def _command(
    subscription: Subscription, identity: str | None, now: datetime, qmgr: str, is_sent_retained: bool
) -> tuple[Mqmd, bytes]:
    identified = subscription.correl_id != MQCI_NONE
    words = list(options_of(subscription.options, identified))
    if is_sent_retained and not subscription.options.pub_on_req_only and RegOpt.NEW_PUBS_ONLY not in words:
        words.append(RegOpt.NEW_PUBS_ONLY)
    if identity is not None:
        words.append(RegOpt.JOIN_EXCL if subscription.exclusive else RegOpt.JOIN_SHARED)
    pairs = [("Command", RegisterSubscriber.word)]
    pairs.append(
        ("Topic", remove_pattern_prefix(subscription.prefix, subscription.topic_string, subscription.wildcard))
    )
    if subscription.sub_point:
        pairs.append(("SubPoint", subscription.sub_point))
    if subscription.selector:
        pairs.append(("Filter", subscription.selector))
    pairs += [("QMgrName", subscription.dest_qmgr), ("QName", subscription.dest_queue)]
    pairs += [("RegOpt", str(word)) for word in words]
    optional = (("SubName", subscription.name), ("SubIdentity", identity), ("SubUserData", subscription.user_data))
    pairs += [(tag, value) for tag, value in optional if value is not None]
    fmt, headers, data = _form(subscription, pairs)
    left = tenths_until(subscription.expires_at, now)
    mqmd = Mqmd(
        msg_type=MQMT_DATAGRAM,
        expiry=MQEI_UNLIMITED if left is None else left,
        coded_char_set_id=UTF8_CCSID,
        format=fmt,
        persistence=MQPER_PERSISTENT,
        correl_id=subscription.correl_id,
        user_identifier=subscription.user,
        accounting_token=subscription.accounting_token,
        appl_identity_data=subscription.appl_identity_data,
    )
    return mqmd, encode(Message(mqmd, headers, data))


def _form(subscription: Subscription, pairs: list[tuple[str, str]]) -> tuple[str, tuple[Rfh1 | Rfh2, ...], bytes]:
    """Format, headers and body of the command in the header that the subscriber used."""
    if subscription.format is PublicationFormat.RFH2:
        return MQFMT_RF_HEADER_2, (Rfh2((Folder.of(write("psc", pairs)),)),), b""
    (_, command), *rest = pairs
    if subscription.stream and subscription.stream != DEFAULT_STREAM:
        rest.append(("StreamName", subscription.stream))
    if subscription.format is PublicationFormat.RFH1:
        named = [(MQPS_COMMAND, command), *((BY_TAG[tag].mqps, value) for tag, value in rest)]
        header = Rfh1(charset="utf-8", string_charset="utf-8").with_pairs(named)
        return MQFMT_RF_HEADER_1, (header,), b""
    texts = (Cfst.of(BY_TAG[tag].pcf, value, UTF8_CCSID) for tag, value in rest if not BY_TAG[tag].integer)
    options = Cfin(BY_TAG["RegOpt"].pcf, REGISTRATION.mask(value for tag, value in rest if tag == "RegOpt"))
    return FORMAT, (), Pcf(COMMAND_IDS[command], (*texts, options)).encode()
