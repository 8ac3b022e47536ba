"""The properties of a message, looked up by the names that selection strings use (guide 2.4.3; wire formats 3.2, 3.3).

A property is an MQMD field or an element of a folder of the first MQRFH2, as the publisher sent it. A property is read
only when a selector asks for it, and a folder only once. A property that cannot be read is NULL: a group of elements,
or an element of a folder whose text is damaged. If an element or a folder occurs twice, the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rfh2 import folders
from rfh2.errors import DecodeError
from rfh2.message import Message
from rfh2.mqmd import name_of
from streams.selectors.expressions import Literal, Lookup, Refusal, Value, ValueKind

# Which property a name in a selection string means, and which names are refused (guide 2.4.3).
#
# ==========================  ========================================  =======================
# written                     means                                     canonical
# ==========================  ========================================  =======================
# ``Root.MQMD.Priority``      the MQMD field, spelt as in C             ``Root.MQMD.Priority``
# ``Root.MQRFH2.usr.Colour``  element Colour of the MQRFH2 folder usr   ``usr.Colour``
# ``Root.MQRFH2.Format``      the field of the MQRFH2, spelt as in C    ``Root.MQRFH2.Format``
# ``mqps.Top``                the same, as MQ writes it                 ``mqps.Top``
# ``Colour``                  a property of the application             ``usr.Colour``
# ``MQTopicString``           the property's name in the MQI            ``mqps.Top``
# ``JMSPriority``             the JMS header field                      ``Root.MQMD.Priority``
# ==========================  ========================================  =======================
#
# A name that can mean nothing is refused. If it counted as a property that no message has, the filter would select
# nothing, and the subscriber would not notice.

MQMD_PREFIX: Final = "Root.MQMD."
MQRFH2_PREFIX: Final = "Root.MQRFH2."

# StrucId and Version are no properties (IBM MQ, message descriptor fields as properties).
MQMD_FIELDS: Final = MappingProxyType(
    dict.fromkeys(
        (
            "Report",
            "MsgType",
            "Expiry",
            "Feedback",
            "Encoding",
            "CodedCharSetId",
            "Priority",
            "Persistence",
            "BackoutCount",
            "PutApplType",
            "MsgSeqNumber",
            "Offset",
            "MsgFlags",
            "OriginalLength",
        ),
        ValueKind.NUMBER,
    )
    | dict.fromkeys(("MsgId", "CorrelId", "AccountingToken", "GroupId"), ValueKind.BYTES)
    | dict.fromkeys(
        (
            "Format",
            "ReplyToQ",
            "ReplyToQMgr",
            "UserIdentifier",
            "ApplIdentityData",
            "PutApplName",
            "PutDate",
            "PutTime",
            "ApplOriginData",
        ),
        ValueKind.STRING,
    )
)

# The header's own fields; a JMS client asks for Format. StrucId and Version are the same in each, StrucLength is no
# property of a message.
MQRFH2_FIELDS: Final = MappingProxyType(
    dict.fromkeys(("Encoding", "CodedCharSetId", "Flags", "NameValueCCSID"), ValueKind.NUMBER)
    | {"Format": ValueKind.STRING}
)

# These are made of several fields, or are not worth what the field is; they are worked out below.
DERIVED: Final = MappingProxyType(
    {
        "JMSMessageID": ValueKind.STRING,
        "JMSCorrelationID": ValueKind.STRING,
        "JMSDeliveryMode": ValueKind.STRING,
        "JMSTimestamp": ValueKind.NUMBER,
        "JMSType": ValueKind.STRING,
    }
)

# Elements whose type is fixed: clients write them without dt (wire formats 3.2).
FOLDER_KINDS: Final = MappingProxyType(
    dict.fromkeys(
        (
            "jms.Dlv",
            "jms.Exp",
            "jms.Pri",
            "jms.Tms",
            "jms.Seq",
            "mqps.Pub",
            "mqps.Pbl",
            "mqpse.Seq",
            "mqpse.Pfmt",
        ),
        ValueKind.NUMBER,
    )
    | {"mqps.Ret": ValueKind.BOOLEAN}
)

_SYNONYMS: Final = MappingProxyType(
    {
        "JMSPriority": "Root.MQMD.Priority",
        "JMSXUserID": "Root.MQMD.UserIdentifier",
        "JMSXAppID": "Root.MQMD.PutApplName",
        "JMSXGroupID": "jms.Gid",
        "JMSXGroupSeq": "jms.Seq",
        "JMS_IBM_MsgType": "Root.MQMD.MsgType",
        "JMS_IBM_Feedback": "Root.MQMD.Feedback",
        "JMS_IBM_PutApplType": "Root.MQMD.PutApplType",
        "JMS_IBM_PutDate": "Root.MQMD.PutDate",
        "JMS_IBM_PutTime": "Root.MQMD.PutTime",
        "MQTopicString": "mqps.Top",
        "MQSubUserData": "mqps.Sud",
        "MQIsRetained": "mqps.Ret",
        "MQPubOptions": "mqps.Pub",
        "MQPubLevel": "mqps.Pbl",
        "MQPubTime": "mqpse.Pts",
        "MQPubSeqNum": "mqpse.Seq",
        "MQPubStrIntData": "mqpse.Sid",
        "MQPubFormat": "mqpse.Pfmt",
    }
)

# Correlation names of the broker's ESQL that lead into the body or out of the message, whatever their case.
_BODY_ROOTS: Final = frozenset({"body", "inputbody", "outputbody"})
_OTHER_ROOTS: Final = frozenset(
    {
        "inputroot",
        "outputroot",
        "properties",
        "inputproperties",
        "database",
        "environment",
        "localenvironment",
        "inputlocalenvironment",
        "outputlocalenvironment",
        "destinationlist",
        "inputdestinationlist",
        "outputdestinationlist",
        "exceptionlist",
        "inputexceptionlist",
        "outputexceptionlist",
    }
)
_MQRFH2_PARSERS: Final = frozenset({"MQRFH2", "MQRFH2C"})


def canonical_name(text: str, at: int) -> str:
    """The one name under which a property is looked up.

    at: where the name stands in the selection string. Raises Refusal.
    """
    if text in _SYNONYMS:
        return _SYNONYMS[text]
    if text in DERIVED:
        return text
    first, dot, rest = text.partition(".")
    if not dot:
        if first.startswith("JMS"):
            raise Refusal(at, f"{text} is not a header field or property that can be selected on (JMS... is reserved)")
        return f"usr.{first}"
    if first == "Root":
        return _under_root(text, rest, at)
    folded = first.casefold()
    if folded in _BODY_ROOTS:
        raise Refusal(at, f"{text} is in the message body, which cannot be selected on")
    if folded in _OTHER_ROOTS:
        raise Refusal(at, f"{text} is not a message property, and {first} cannot be selected on")
    if folded in ("root", "mqmd", "mqrfh2"):
        raise Refusal(at, f"{text} is not a property: write Root.MQMD.<field> or Root.MQRFH2.<folder>.<element>")
    return text


def _under_root(text: str, rest: str, at: int) -> str:
    parser, _, path = rest.partition(".")
    if parser == "MQMD":
        if path not in MQMD_FIELDS:
            raise Refusal(at, f"{text} is not an MQMD field that can be selected on (spell it as in C)")
        return text
    if parser in _MQRFH2_PARSERS:
        if path in MQRFH2_FIELDS:
            return MQRFH2_PREFIX + path
        if "." not in path:
            raise Refusal(at, f"{text} names no element: write Root.MQRFH2.<folder>.<element>")
        return path
    if parser.casefold() in ("mqmd", "mqrfh2", "mqrfh2c"):
        raise Refusal(at, f"{text} is spelt wrongly: write Root.MQMD or Root.MQRFH2")
    if parser.startswith("MQ") or parser == "Properties":
        raise Refusal(at, f"{text} cannot be selected on: only MQMD fields and MQRFH2 elements can")
    raise Refusal(at, f"{text} is in the message body, which cannot be selected on")


def kind_of_name(name: str) -> ValueKind | None:
    """The kind of value that a canonical name has by definition, or None where each message decides."""
    if name.startswith(MQMD_PREFIX):
        return MQMD_FIELDS[name.removeprefix(MQMD_PREFIX)]
    if name.startswith(MQRFH2_PREFIX):
        return MQRFH2_FIELDS[name.removeprefix(MQRFH2_PREFIX)]
    return DERIVED.get(name) or FOLDER_KINDS.get(name)


class Language(NamedTuple):
    """What the names and literals of a condition mean; the grammar is always that of selection strings.

    canonical: the name under which a text, at that character, is looked up. kind: of a canonical name's values, if they
    are always of one. beside: a literal as it is meant where it is compared with a name. listed: kinds of literals that
    IN takes. Two of them raise Refusal.
    """

    canonical: Callable[[str, int], str] = canonical_name
    kind: Callable[[str], ValueKind | None] = kind_of_name
    beside: Callable[[Literal, str], Literal] = lambda literal, _: literal
    listed: frozenset[ValueKind] = frozenset({ValueKind.STRING})


FILTERS: Final = Language()
EARLIER_FILTERS: Final = Language(listed=frozenset(ValueKind))
"""Filters as they were once taken: subscriptions that are there may have any literals in a list."""

_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MQMD_FIELD: Final[dict[str, Callable[[Any], Any]]] = {
    MQMD_PREFIX + field: attrgetter(_CAPITAL.sub("_", field).lower()) for field in MQMD_FIELDS
}
_MQRFH2_FIELD: Final[dict[str, Callable[[Any], Any]]] = {
    MQRFH2_PREFIX + field: attrgetter(_CAPITAL.sub("_", field).lower()) for field in MQRFH2_FIELDS
}
_MQMD_TEXTS: Final = frozenset(MQMD_PREFIX + field for field, kind in MQMD_FIELDS.items() if kind is ValueKind.STRING)
_BOOLEANS: Final = {"1": True, "TRUE": True, "true": True, "0": False, "FALSE": False, "false": False}
# MQPER_NOT_PERSISTENT and MQPER_PERSISTENT; jms.Dlv counts from one
_DELIVERY_MODES: Final = {0: "NON_PERSISTENT", 1: "PERSISTENT"}


_Found = Value | None  # evaluated once, and not with each message


def message_properties(message: Message) -> Lookup:
    """A look-up of the properties of *message* by canonical name, for Selector.matches. It raises nothing.

    Values have the type that the message gives them: an element without ``dt`` is a string, whatever it looks like, but
    for the few of the folders jms, mqps and mqpse whose type is fixed. Character fields of the MQMD come without the
    blanks or nulls that fill them.
    """
    rfh2 = message.rfh2
    held = () if rfh2 is None else rfh2.folders
    read: dict[str, list[dict[str, folders.Value]]] = {}
    resolved: dict[str, Value | None] = {}

    def element(folder: str, path: str) -> _Found:
        if folder not in read:
            read[folder] = [values for one in held for values in _contents(one, folder)]
        for values in read[folder]:
            value = _followed(values, path)
            if value is not None:
                return value
        return None

    def resolve(name: str) -> _Found:
        field = _MQMD_FIELD.get(name)
        if field is not None:
            content: Value = field(message.mqmd)
            return name_of(content) if name in _MQMD_TEXTS and isinstance(content, str) else content
        if (of_header := _MQRFH2_FIELD.get(name)) is not None:
            found_there: Value | None = None if rfh2 is None else of_header(rfh2)
            return name_of(found_there) if isinstance(found_there, str) else found_there
        if name in DERIVED:
            return _DERIVATIONS[name](get)
        folder, _, path = name.partition(".")
        value = element(folder, path)
        if value is None and folder != "usr":
            # A property whose group is no folder of its own: MQ keeps it in mq_usr, others write a dotted tag
            value = element("mq_usr", name)
            return element("usr", name) if value is None else value
        return _typed(value, FOLDER_KINDS.get(name))

    def get(name: str) -> _Found:
        # Many selectors are applied to one message, and they ask for the same few names
        if name not in resolved:
            resolved[name] = resolve(name)
        return resolved[name]

    return get


def user_properties(message: Message) -> dict[str, Value | None]:
    """The properties in folder usr, by name; the first counts where a name is there twice. It raises nothing.

    The names of nested elements are joined with periods. A folder whose text is damaged has no properties.
    """
    rfh2 = message.rfh2
    found: dict[str, Value | None] = {}
    for folder in () if rfh2 is None else rfh2.folders:
        for values in _contents(folder, "usr"):
            _flatten(values, "", found)
    return found


def _flatten(values: dict[str, folders.Value], prefix: str, found: dict[str, Value | None]) -> None:
    for tag, given in values.items():
        value = given[0] if isinstance(given, list) else given
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{tag}.", found)
        elif not isinstance(value, list):
            found.setdefault(prefix + tag, value)


def _contents(folder: folders.Folder, name: str) -> Iterator[dict[str, folders.Value]]:
    # One NameValueData is one folder as a rule; programs are met that put several into one
    closing = f"</{name}>"
    try:
        text = folder.text.strip()
        if f"<{name}" not in text:
            return
        if folder.name == name and text.count(closing) == 1 and text.endswith(closing):
            yield folder.values()
        elif len(folders.parse(folder)) > 1:
            roots = folder.values().get(name)
            yield from (root for root in (roots if isinstance(roots, list) else [roots]) if isinstance(root, dict))
        elif folder.name == name:
            yield folder.values()
    except DecodeError:
        return


def _followed(values: dict[str, folders.Value], path: str) -> Value | None:
    value = values.get(path)
    if value is None:
        head, dot, rest = path.partition(".")
        group = values.get(head) if dot else None
        if isinstance(group, list):
            group = group[0]
        return _followed(group, rest) if isinstance(group, dict) else None
    if isinstance(value, list):
        value = value[0]
    return None if isinstance(value, dict | list) else value


def _typed(value: Value | None, kind: ValueKind | None) -> Value | None:
    if kind is None or not isinstance(value, str):
        return value
    if kind is ValueKind.BOOLEAN:
        return _BOOLEANS.get(value.strip())
    try:
        return int(value)
    except ValueError:
        return None


def _identifier(identifier: Value | None) -> str | None:
    # MQMI_NONE, MQCI_NONE: no identifier
    return f"ID:{identifier.hex()}" if isinstance(identifier, bytes) and any(identifier) else None


def _message_id(get: Lookup) -> Value | None:
    return _identifier(get("Root.MQMD.MsgId"))


def _correlation_id(get: Lookup) -> Value | None:
    chosen = get("jms.Cid")
    return _identifier(get("Root.MQMD.CorrelId")) if chosen is None else chosen


def _delivery_mode(get: Lookup) -> Value | None:
    mode = get("jms.Dlv")
    number = mode - 1 if isinstance(mode, int) else get("Root.MQMD.Persistence")
    return _DELIVERY_MODES.get(number) if isinstance(number, int) else None


def _timestamp(get: Lookup) -> Value | None:
    sent = get("jms.Tms")
    if sent is not None:
        return sent
    date, time = str(get("Root.MQMD.PutDate")), str(get("Root.MQMD.PutTime"))
    try:
        to_seconds = datetime.strptime(date + time[:6], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        return int(to_seconds.timestamp()) * 1000 + int(time[6:] or "0") * 10
    except ValueError:
        return None


def _type(get: Lookup) -> Value | None:
    name, within, form = get("mcd.Type"), get("mcd.Set"), get("mcd.Fmt")
    if within is None and form is None:
        return name
    uri = f"mcd://{_blank(get('mcd.Msd'))}/{_blank(within)}/{_blank(name)}"
    return uri if form is None else f"{uri}?format={_blank(form)}"


def _blank(value: Value | None) -> str:
    return "" if value is None else str(value)


_DERIVATIONS: Final[dict[str, Callable[[Lookup], Value | None]]] = {
    "JMSMessageID": _message_id,
    "JMSCorrelationID": _correlation_id,
    "JMSDeliveryMode": _delivery_mode,
    "JMSTimestamp": _timestamp,
    "JMSType": _type,
}
