"""Which property a name in a selection string means, and which names are refused (guide 2.4.3).

==========================  ========================================  =======================
written                     means                                     canonical
==========================  ========================================  =======================
``Root.MQMD.Priority``      the MQMD field, spelt as in C             ``Root.MQMD.Priority``
``Root.MQRFH2.usr.Colour``  element Colour of the MQRFH2 folder usr   ``usr.Colour``
``Root.MQRFH2.Format``      the field of the MQRFH2, spelt as in C    ``Root.MQRFH2.Format``
``mqps.Top``                the same, as MQ writes it                 ``mqps.Top``
``Colour``                  a property of the application             ``usr.Colour``
``MQTopicString``           the property's name in the MQI            ``mqps.Top``
``JMSPriority``             the JMS header field                      ``Root.MQMD.Priority``
==========================  ========================================  =======================

A name that can mean nothing is refused. If it counted as a property that no message has, the filter would select
nothing, and the subscriber would not notice.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streams.selectors.errors import Refusal
from streams.selectors.values import ValueKind

MQMD_PREFIX: Final = "Root.MQMD."
MQRFH2_PREFIX: Final = "Root.MQRFH2."

# StrucId and Version are no properties (IBM MQ, message descriptor fields as properties).
MQMD_FIELDS: Final = MappingProxyType(
    dict.fromkeys(
        (
            *("Report", "MsgType", "Expiry", "Feedback", "Encoding", "CodedCharSetId", "Priority", "Persistence"),
            *("BackoutCount", "PutApplType", "MsgSeqNumber", "Offset", "MsgFlags", "OriginalLength"),
        ),
        ValueKind.NUMBER,
    )
    | dict.fromkeys(("MsgId", "CorrelId", "AccountingToken", "GroupId"), ValueKind.BYTES)
    | dict.fromkeys(
        (
            *("Format", "ReplyToQ", "ReplyToQMgr", "UserIdentifier", "ApplIdentityData"),
            *("PutApplName", "PutDate", "PutTime", "ApplOriginData"),
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

# These are made of several fields, or are not worth what the field is; properties.py works them out.
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
            *("jms.Dlv", "jms.Exp", "jms.Pri", "jms.Tms", "jms.Seq"),
            *("mqps.Pub", "mqps.Pbl", "mqpse.Seq", "mqpse.Pfmt"),
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
        *("inputroot", "outputroot", "properties", "inputproperties", "database", "environment"),
        *("localenvironment", "inputlocalenvironment", "outputlocalenvironment"),
        *("destinationlist", "inputdestinationlist", "outputdestinationlist"),
        *("exceptionlist", "inputexceptionlist", "outputexceptionlist"),
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
