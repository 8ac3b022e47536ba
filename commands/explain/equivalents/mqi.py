"""Operations as MQI calls: what a program does in place of the command (guide 7.2.1 to 7.2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from commands.broker.subscription_attributes import (
    BY_KEYWORD,
    MQSO_NAMES,
    OPTIONS as REGISTRATION_OPTIONS,
    SubscriptionAttribute,
)
from commands.broker.times import tenths_until
from commands.explain.equivalents.pcf import to_pcf
from commands.headers.publication import data_text
from commands.headers.registry import content_of, parse
from commands.model import Command, DeregisterPublisher, Publish, RegisterPublisher, RegOpt
from commands.mqsc.equivalents import BLANK_TOPIC, OperationContext, sub_name
from commands.mqsc.script import comment
from rfh2 import mqi_constants
from rfh2.constants import MQEI_UNLIMITED
from rfh2.errors import QPubSubError
from rfh2.message import Message
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from rfh2.terminal_escape import visible
from streams import operations as op
from streams.subscriptions import HIGHEST_PUB_LEVEL, DeliveryPersistence, Subscription
from streams.topic_strings import is_present

OPTIONS: Final[dict[str, int]] = {"MQCO_NONE": 0} | {
    name: value
    for name, value in vars(mqi_constants).items()
    if name.startswith(("MQSO_", "MQPMO_", "MQCO_", "MQOO_", "MQSR_")) and name != "MQOO_ANY_INPUT"  # a mask
}
"""The options of calls, with their values (migration sources, section 10)."""


_WHOSE: Final = (BY_KEYWORD["VARUSER"],)
_WILDCARDS: Final = (BY_KEYWORD["WSCHEMA"],)
# Whether what is retained is sent is asked of the operation.
_OTHER_OPTIONS: Final = tuple(
    each for each in REGISTRATION_OPTIONS if each not in _WHOSE and each.option is not RegOpt.NEW_PUBS_ONLY
)


@dataclass(frozen=True, slots=True)
class MqiCall:
    """One MQI call. fields: the parameters and structure fields that matter, in order. gives: the handle it returns."""

    verb: str
    fields: tuple[tuple[str, str], ...]
    gives: str = ""


def to_mqi(operation: op.Operation, context: OperationContext) -> list[str]:
    """The lines that show the calls of *operation*; what no call does is a comment."""
    lines: list[str] = []
    if isinstance(operation, op.ClearRetained):
        lines = [
            comment("no MQI call clears a topic: put this PCF command on SYSTEM.ADMIN.COMMAND.QUEUE (guide 7.2.1)")
        ]
        return lines + to_pcf(operation, context)
    lines += [comment(note) for note in _notes(operation)]
    for call in calls(operation, context):
        lines += shown(call)
    return lines


def calls(operation: op.Operation, context: OperationContext) -> list[MqiCall]:
    """The calls that carry out *operation*; none where that takes a PCF command."""
    match operation:
        case op.Subscribe(subscription):
            options = [*_making(context), *_subscribing(subscription)]
            if not operation.send_retained and not subscription.options.pub_on_req_only:
                options.append("MQSO_NEW_PUBLICATIONS_ONLY")
            return [_open_queue(subscription, context), _mqsub(subscription, options, context)]
        case op.AlterSubscription(subscription):
            return [
                _open_queue(subscription, context),
                _mqsub(subscription, [*_making(context), *_subscribing(subscription)], context),
            ]
        case op.Unsubscribe(subscription):
            return [
                _resume(subscription),
                MqiCall("MQCLOSE", (("Hobj", "Hsub"), _options("Options", ["MQCO_REMOVE_SUB"]))),
            ]
        case op.RequestRetained(subscription):
            action = _options("Action", ["MQSR_ACTION_PUBLICATION"])
            return [_resume(subscription), MqiCall("MQSUBRQ", (("Hsub", "Hsub"), action))]
        case op.PublishToTopic():
            return list(_publishing(operation))
    return []


def command_calls(command: Command, topics: Iterable[str]) -> list[MqiCall]:
    """The calls that replace a command which has no operation: RegPub and DeregPub (guide 7.2.2, 7.2.5).

    topics: complete topic strings, the stream's prefix included.
    """
    if isinstance(command, RegisterPublisher):
        return [_open_topic(topic) for topic in topics]
    if isinstance(command, DeregisterPublisher):
        return [
            MqiCall("MQCLOSE", (("Hobj", f"of topic '{topic}'"), _options("Options", ["MQCO_NONE"])))
            for topic in topics
        ]
    return []


def shown(call: MqiCall) -> list[str]:
    """A call as lines: the verb, then a field a line."""
    lines = [call.verb]
    lines += [f"  {name:24} {visible(value)}" for name, value in call.fields]
    if call.gives:
        lines.append(f"  {'gives':24} {call.gives}")
    return lines


def _making(context: OperationContext) -> list[str]:
    """What RegSub is: the subscription is made where it is not there, else altered, or with NoAlter left (7.2.6).

    MQSO_CREATE alone fails with 2432 where the program subscribes again, MQSO_ALTER alone with 2428 the first time.
    """
    return ["MQSO_CREATE", "MQSO_RESUME" if context.no_alter else "MQSO_ALTER"]


def _subscribing(subscription: Subscription) -> list[str]:
    """The MQSO options that say what a subscription is, whether it is made or altered (guide 7.2.6)."""
    words = ["MQSO_DURABLE", *_mqso(subscription, _WHOSE), *_mqso(subscription, _WILDCARDS)]
    if subscription.correl_id != MQCI_NONE:
        words.append("MQSO_SET_CORREL_ID")
    words += _mqso(subscription, _OTHER_OPTIONS)
    if any(subscription.accounting_token) or subscription.appl_identity_data:
        words.append("MQSO_SET_IDENTITY_CONTEXT")
    return words


def _mqso(subscription: Subscription, attributes: Iterable[SubscriptionAttribute]) -> Iterator[str]:
    for attribute in attributes:
        option = attribute.mqso.get(attribute.of(subscription))
        if option is not None:
            yield MQSO_NAMES[option]


def _mqsub(subscription: Subscription, options: list[str], context: OperationContext) -> MqiCall:
    left = tenths_until(subscription.expires_at, context.now)
    fields = [_options("MQSD.Options", options), ("MQSD.ObjectString", f"'{subscription.topic_string}'")]
    fields.append(("MQSD.SubName", f"'{sub_name(subscription)}'"))
    fields.append(("MQSD.SubExpiry", f"{MQEI_UNLIMITED} MQEI_UNLIMITED" if left is None else str(left)))
    optional = (
        ("MQSD.SubUserData", _quoted(subscription.user_data)),
        ("MQSD.SelectionString", _quoted(subscription.selector)),
        ("MQSD.SubCorrelId", subscription.correl_id.hex().upper() if subscription.correl_id != MQCI_NONE else None),
        (
            "MQSD.PubAccountingToken",
            subscription.accounting_token.hex().upper() if any(subscription.accounting_token) else None,
        ),
        ("MQSD.PubApplIdentityData", _quoted(subscription.appl_identity_data or None)),
    )
    fields += [(name, value) for name, value in optional if value is not None]
    return MqiCall("MQSUB", (*fields, ("Hobj", f"of queue {subscription.dest_queue}")), "Hsub")


def _resume(subscription: Subscription) -> MqiCall:
    """The handle of a subscription that this program, or another, made before (guide 7.2.3)."""
    options = _options("MQSD.Options", ["MQSO_RESUME", "MQSO_DURABLE", *_mqso(subscription, _WHOSE)])
    return MqiCall("MQSUB", (options, ("MQSD.SubName", f"'{sub_name(subscription)}'")), "Hsub")


def _open_queue(subscription: Subscription, context: OperationContext) -> MqiCall:
    fields = [("MQOD.ObjectType", "MQOT_Q"), ("MQOD.ObjectName", subscription.dest_queue)]
    if subscription.dest_qmgr != context.qmgr:
        fields.append(("MQOD.ObjectQMgrName", subscription.dest_qmgr))
        fields.append(_options("Options", ["MQOO_OUTPUT"]))
    else:
        fields.append(_options("Options", ["MQOO_INPUT_AS_Q_DEF"]))
    return MqiCall("MQOPEN", tuple(fields), f"Hobj of queue {subscription.dest_queue}")


def _open_topic(topic: str) -> MqiCall:
    named = (("MQOD.ObjectType", "MQOT_TOPIC"), ("MQOD.ObjectString", f"'{topic}'"))
    return MqiCall("MQOPEN", (*named, _options("Options", ["MQOO_OUTPUT"])), f"Hobj of topic '{topic}'")


def _publishing(operation: op.PublishToTopic) -> Iterator[MqiCall]:
    publication = operation.publication
    message = publication.message
    properties = _properties(message)
    if properties:
        yield MqiCall("MQCRTMH", (), "Hmsg")
        for name, value in properties:
            yield MqiCall("MQSETMP", (("Hmsg", "Hmsg"), ("Name", name), ("Value", value)))
    options = _put_options(operation, publication)
    fields = [("MQOD.ObjectType", "MQOT_TOPIC"), ("MQOD.ObjectString", f"'{operation.topic_string}'")]
    fields.append(_options("MQPMO.Options", options))
    if operation.pub_level != HIGHEST_PUB_LEVEL:
        fields.append(("MQPMO.PubLevel", str(operation.pub_level)))
    if properties:
        fields.append(("MQPMO.OriginalMsgHandle", "Hmsg"))
    fields += _descriptor(message)
    fields.append(("BufferLength", str(len(message.body))))
    yield MqiCall("MQPUT1", tuple(fields))


def _put_options(operation: op.PublishToTopic, publication: op.Publication) -> list[str]:
    command = _command_in(publication.message)
    words = []
    if operation.retain:
        words.append("MQPMO_RETAIN")
    if operation.not_to is not None:
        words.append("MQPMO_NOT_OWN_SUBS")
    if publication.local:
        words.append("MQPMO_SCOPE_QMGR")
    if command is not None and (command.anonymous or (command.put is not None and command.put.suppress_reply_to)):
        words.append("MQPMO_SUPPRESS_REPLYTO")
    return words


def _descriptor(message: Message) -> Iterator[tuple[str, str]]:
    """The MQMD fields that the program sets: what describes the data, and what is not the default."""
    mqmd, default = message.mqmd, Mqmd()
    command = _command_in(message)
    yield "MQMD.Format", f"'{message.body_format}'"
    yield "MQMD.Encoding", str(message.body_encoding)
    yield "MQMD.CodedCharSetId", str(message.body_ccsid)
    for name, value, usual in (
        ("MQMD.Persistence", mqmd.persistence, default.persistence),
        ("MQMD.Priority", mqmd.priority, default.priority),
        ("MQMD.Expiry", mqmd.expiry, default.expiry),
    ):
        if value != usual:
            yield name, str(value)
    queue = (command.q_name if command else None) or name_of(mqmd.reply_to_q)
    qmgr = (command.qmgr_name if command else None) or name_of(mqmd.reply_to_qmgr)
    if queue:
        yield "MQMD.ReplyToQ", queue
    if qmgr:
        yield "MQMD.ReplyToQMgr", qmgr


@lru_cache(maxsize=1)
def _properties(message: Message) -> tuple[tuple[str, str], ...]:
    """Message properties in place of psc tags and of the usr folder (guide 7.2.4)."""
    return tuple(_each_property(message))


def _each_property(message: Message) -> Iterator[tuple[str, str]]:
    command = _command_in(message)
    if command is not None:
        if command.pub_time:
            yield "MQPubTime", f"'{command.pub_time}'"
        if command.seq_num:
            yield "MQPubSeqNum", command.seq_num
        found = content_of(message, command)
        data, _ = data_text(found.data)
        if data:
            yield "MQPubStrIntData", _property(data)
        for name, text in found.user:
            yield name, _property(text)
    header = message.rfh2
    folder = header.folder("usr") if header is not None else None
    if folder is None:
        return
    try:
        values = folder.values()
    except QPubSubError:
        return
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            yield name, _property(one)


def _property(value: Any) -> str:
    if isinstance(value, bool):
        return f"{str(value).upper()} (MQTYPE_BOOLEAN)"
    if isinstance(value, int):
        return f"{value} ({'MQTYPE_INT32' if -(1 << 31) <= value < 1 << 31 else 'MQTYPE_INT64'})"
    if isinstance(value, float):
        return f"{value!r} (MQTYPE_FLOAT64)"
    if isinstance(value, bytes):
        return f"{value.hex().upper()} (MQTYPE_BYTE_STRING)"
    if value is None:
        return "(MQTYPE_NULL)"
    return f"'{value}' (MQTYPE_STRING)"


# A publication to many topics is shown as many times.
@lru_cache(maxsize=1)
def _command_in(message: Message) -> Publish | None:
    try:
        command = parse(message)
    except QPubSubError:
        return None
    return command if isinstance(command, Publish) else None


def _notes(operation: op.Operation) -> Iterator[str]:
    if isinstance(operation, op.Subscribe | op.AlterSubscription):
        subscription = operation.subscription
        if not is_present(subscription.topic_string):
            yield BLANK_TOPIC
        if subscription.name is None:
            yield "MQSUB finds a durable subscription by SubName; this one is made of the traditional identity"
        if subscription.options.persistence is not DeliveryPersistence.AS_PUBLISHED:
            yield f"persistence {subscription.options.persistence}: no MQSO option; publications come as published"
        if subscription.identities:
            yield f"identity set {', '.join(subscription.identities)}: has no equivalent (guide 7.2.6, note 6)"
    if isinstance(operation, op.Unsubscribe | op.RequestRetained):
        yield "a program that still has the handle from its own MQSUB needs no MQSO_RESUME"


def _options(name: str, words: list[str]) -> tuple[str, str]:
    total = sum(OPTIONS[word] for word in words)
    return name, f"{' + '.join(words) or 'none'} (0x{total:08X})"


def _quoted(text: str | None) -> str | None:
    return None if text is None else f"'{text}'"
