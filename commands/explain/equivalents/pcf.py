"""Operations as PCF commands for a command server: readable, and as the bytes of the message (wire formats 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from commands.broker.attribute_kinds import Choice, Number
from commands.broker.subscription_attributes import SubscriptionAttribute, in_scripts
from commands.mqsc.equivalents import BLANK_TOPIC, OperationContext, said, sub_name, topics_cleared, wildcards_note
from commands.mqsc.script import comment
from rfh2 import pcf_admin_names as c
from rfh2.pcf import Cfbs, Cfin, Cfst, Parameter, Pcf
from rfh2.pcf_names import MQCA_TOPIC_STRING, MQCMD_CLEAR_TOPIC_STRING, TYPE_NAMES
from streams import operations as op
from streams.subscriptions import Subscription
from streams.topic_strings import is_present

_HEX_BYTES: Final = 32
_IN_ORDER: Final = in_scripts(
    "TOPICSTR",
    "WSCHEMA",
    "DEST",
    "DESTQMGR",
    "DESTCORL",
    "PSPROP",
    "VARUSER",
    "SUBSCOPE",
    "REQONLY",
    "EXPIRY",
    "SUBUSER",
    "SELECTOR",
    "USERDATA",
    "PUBACCT",
    "PUBAPPID",
)
_ALWAYS: Final = frozenset({"DESTQMGR", "SUBSCOPE", "REQONLY", "EXPIRY"})


def to_pcf(operation: op.Operation, context: OperationContext) -> list[str]:
    """The lines that show the PCF commands of *operation*; what PCF cannot say is a comment."""
    lines = [comment(note) for note in _notes(operation, context)]
    for message in messages(operation, context):
        lines += readable(message)
    return lines


def messages(operation: op.Operation, context: OperationContext) -> list[Pcf]:
    """The PCF messages that carry out *operation*, Format MQADMIN; none where PCF has no command for it."""
    match operation:
        case op.Subscribe(subscription):
            return [_command(c.MQCMD_CREATE_SUBSCRIPTION, _definition(subscription, context, new=True))]
        case op.AlterSubscription(subscription):
            return [_command(c.MQCMD_CHANGE_SUBSCRIPTION, _definition(subscription, context, new=False))]
        case op.Unsubscribe(subscription):
            name = Cfst.of(c.MQCACF_SUB_NAME, sub_name(subscription))
            return [_command(c.MQCMD_DELETE_SUBSCRIPTION, (name,))]
        case op.ClearRetained():
            scope = c.MQCLRS_LOCAL if operation.local else c.MQCLRS_GLOBAL
            return [
                _command(
                    MQCMD_CLEAR_TOPIC_STRING,
                    (
                        Cfst.of(MQCA_TOPIC_STRING, topic),
                        Cfin(c.MQIACF_CLEAR_TYPE, c.MQCLRT_RETAINED),
                        Cfin(c.MQIACF_CLEAR_SCOPE, scope),
                    ),
                )
                for topic in topics_cleared(operation, context)[0]
            ]
    return []


def readable(message: Pcf) -> list[str]:
    """A PCF message for a person: its command, its parameters by name, and its bytes in hex."""
    kind = TYPE_NAMES.get(message.type, str(message.type))
    lines = [f"{_named(c.COMMANDS, message.command)} {kind}, {len(message.parameters)} parameters"]
    for parameter in message.parameters:
        lines.append(f"  {_named(c.PARAMETERS, parameter.parameter):38} {_shown(parameter)}")
    data = message.encode()
    lines += [f"  hex {data[at : at + _HEX_BYTES].hex()}" for at in range(0, len(data), _HEX_BYTES)]
    return lines


def _command(number: int, parameters: tuple[Parameter, ...]) -> Pcf:
    return Pcf(number, parameters)


def _definition(subscription: Subscription, context: OperationContext, new: bool) -> tuple[Parameter, ...]:
    """The attributes of a subscription as parameters, SubName first; what cannot be changed only when it is made."""
    known = subscription if new or context.before is None else context.before
    out: list[Parameter] = [Cfst.of(c.MQCACF_SUB_NAME, sub_name(known))]
    for each, value in said(subscription, context, _IN_ORDER, _ALWAYS):
        if each.fixed and not new:
            continue
        out.append(_parameter(each, value))
        if each.keyword == "WSCHEMA":
            out.append(Cfin(c.MQIACF_DESTINATION_CLASS, c.MQDC_PROVIDED))
    return tuple(out)


def _parameter(attribute: SubscriptionAttribute, value: Any) -> Parameter:
    if isinstance(value, bytes):
        return Cfbs.of(attribute.number, value)
    kind, shown = attribute.kind, attribute.kind.show(value)
    if isinstance(kind, Choice | Number):
        return Cfin(attribute.number, shown if isinstance(shown, int) else kind.numbers[str(shown)])
    return Cfst.of(attribute.number, str(shown))


def _notes(operation: op.Operation, context: OperationContext) -> Iterator[str]:
    match operation:
        case op.PublishToTopic(topic_string):
            yield f"no PCF command publishes; see --to mqi: a put to topic '{topic_string}'"
        case op.RequestRetained(subscription):
            yield f"no PCF command asks for retained publications; see --to mqi: MQSUBRQ on '{sub_name(subscription)}'"
        case op.Subscribe(subscription) if not is_present(subscription.topic_string):
            yield BLANK_TOPIC
        case op.Subscribe(subscription) if (
            subscription.options.new_pubs_only and not subscription.options.pub_on_req_only
        ):
            yield "Create Subscription delivers what is retained; NewPubsOnly has no parameter"
        case op.ClearRetained() if topics_cleared(operation, context)[1]:
            yield f"Clear Topic String: {wildcards_note(operation, topics_cleared(operation, context)[0])}"


def _named(names: dict[int, str], number: int) -> str:
    return f"{names[number]} ({number})" if number in names else str(number)


def _shown(parameter: Parameter) -> str:
    if isinstance(parameter, Cfin):
        name = c.value_name(parameter.parameter, parameter.value)
        return f"{parameter.value} {name}" if name else str(parameter.value)
    if isinstance(parameter, Cfst):
        return f"'{parameter.text}'"
    return parameter.data.hex().upper() if isinstance(parameter, Cfbs) else parameter.encode("big").hex()
