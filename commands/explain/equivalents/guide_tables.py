"""The tables of guide 7.2: what replaces each option, each tag and each reason code of the queued interface.

The guide leaves some cells blank, and names two that do not exist in the header files; what stands here instead is in
docs/translate.md, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from commands.broker.subscription_attributes import MQSO_NAMES, OPTIONS as REGISTRATION


@dataclass(frozen=True, slots=True)
class Equivalent:
    """What replaces an option or a tag. mqi: the constant or field, or None where there is none. note: for a person."""

    mqi: str | None
    note: str = ""


_IDENTITY: Final = Equivalent(None, "the name of a subscription is its only identity (guide 7.2, Identity)")
_STREAM: Final = Equivalent("ObjectName of a topic object", "the stream's topic object, or its prefix in ObjectString")
_NO_SETS: Final = Equivalent(None, "deprecated: a subscription has no identity set (guide 7.2.6, note 6)")
_PERSISTENCE: Final = Equivalent(
    None,
    "the guide names an MQSO constant that the header files lack: register through the queued interface to keep it",
)
_PUBLISHER_IDENTITY: Final = Equivalent(None, "publishers have no identity (guide 7.2, Identity)")
_HANDLE: Final = Equivalent("Hsub", "implied by the handle from MQSUB (guide 7.2.3, note 1)")
_DIRECT: Final = Equivalent("MQMD.ReplyToQ, ReplyToQMgr", "implied by a ReplyToQ on each publication (guide 7.2.5)")
_ANONYMOUS: Final = Equivalent("MQPMO_SUPPRESS_REPLYTO", "on each publication (guide 7.2.4)")

# By command word and option word; None stands for itself and needs no row.
OPTIONS: Final[dict[str, dict[str, Equivalent]]] = {
    "RegSub": {
        **{
            each.option.value: Equivalent(MQSO_NAMES[each.mqso[True]])
            for each in REGISTRATION
            if each.option and each.mqso
        },
        "AddName": Equivalent(None, "deprecated: a subscription has its name from the start (guide 7.2.6, note 1)"),
        "Anon": _IDENTITY,
        "CorrelAsId": Equivalent("MQSO_SET_CORREL_ID", "with MQSD.SubCorrelId; or use the one that MQSUB returns"),
        "DupsOK": Equivalent(None, "deprecated with the queued interface (guide 7.2.6, note 2)"),
        "FullResp": Equivalent("MQSD", "what the response held is returned in the MQSD (guide 7.2.6, note 3)"),
        "InclStreamName": Equivalent(None, "the stream name is part of the topic string (guide 7.2.6, note 4)"),
        "InformIfRet": Equivalent("MQIsRetained", "a property that is always there (guide 7.2.6, note 5)"),
        "JoinExcl": _NO_SETS,
        "JoinShared": _NO_SETS,
        "Locked": _NO_SETS,
        "NoAlter": Equivalent("MQSO_RESUME", "in place of MQSO_ALTER, beside MQSO_CREATE"),
        "NonPers": _PERSISTENCE,
        "Pers": _PERSISTENCE,
        "PersAsPub": Equivalent("the default", "what is published decides"),
        "PersAsQueue": _PERSISTENCE,
    },
    "DeregSub": {
        "CorrelAsId": _HANDLE,
        "DeregAll": Equivalent(None, "one MQCLOSE for each subscription, or MQDISC (guide 7.2.3, note 2)"),
        "FullResp": Equivalent("MQSD", "returned by the MQSUB that gets the handle (guide 7.2.3, note 3)"),
        "LeaveOnly": _NO_SETS,
        "VariableUserId": _HANDLE,
    },
    "ReqUpdate": {"CorrelAsId": _HANDLE, "VariableUserId": Equivalent("MQSO_ANY_USERID", "on the MQSUB (7.2.7)")},
    "Publish": {
        "CorrelAsId": _PUBLISHER_IDENTITY,
        "IsRetainedPub": Equivalent("MQIsRetained", "a message property (guide 7.2.4)"),
        "Local": Equivalent("MQPMO_SCOPE_QMGR"),
        "NoReg": Equivalent(None, "deprecated: publishers are not registered (guide 7.2.4)"),
        "OtherSubsOnly": Equivalent("MQPMO_NOT_OWN_SUBS", "own: subscriptions made through the same connection"),
        "RetainPub": Equivalent("MQPMO_RETAIN"),
        "Anon": _ANONYMOUS,
        "DirectReq": _DIRECT,
    },
    "DeletePub": {"Local": Equivalent("ClearScope(MQCLRS_LOCAL)", "of PCF Clear Topic String (guide 7.2.1)")},
    "RegPub": {
        "Anon": _ANONYMOUS,
        "CorrelAsId": _PUBLISHER_IDENTITY,
        "DirectReq": _DIRECT,
        "Local": Equivalent("MQPMO_SCOPE_QMGR", "on each publication (guide 7.2.5)"),
    },
    "DeregPub": {
        "CorrelAsId": _PUBLISHER_IDENTITY,
        "DeregAll": Equivalent(None, "one MQCLOSE for each topic, or MQDISC (guide 7.2.2, note 1)"),
    },
}

# By command word and tag of psc, or name of an MQRFH without MQPS.
TAGS: Final[dict[str, dict[str, Equivalent]]] = {
    "RegSub": {
        "Topic": Equivalent("MQSD.ObjectString", "one MQSUB for each topic"),
        "StreamName": _STREAM,
        "QName": Equivalent("Hobj", "of the queue, opened; or MQSO_MANAGED"),
        "QMgrName": Equivalent("Hobj", "of a queue opened with that ObjectQMgrName"),
        "SubName": Equivalent("MQSD.SubName"),
        "SubIdentity": _NO_SETS,
        "SubUserData": Equivalent("MQSD.SubUserData"),
        "Filter": Equivalent("MQSD.SelectionString"),
        "SubPoint": Equivalent("ObjectName of a topic object", "the subscription point's, or its prefix"),
    },
    "DeregSub": {
        "Topic": _HANDLE,
        "StreamName": _HANDLE,
        "QName": _HANDLE,
        "QMgrName": _HANDLE,
        "SubName": _HANDLE,
        "SubIdentity": _NO_SETS,
        "SubUserData": _HANDLE,
        "Filter": _HANDLE,
        "SubPoint": _HANDLE,
    },
    "ReqUpdate": {
        "Topic": _HANDLE,
        "StreamName": _HANDLE,
        "QName": _HANDLE,
        "QMgrName": _HANDLE,
        "SubName": _HANDLE,
        "Filter": _HANDLE,
        "SubPoint": _HANDLE,
    },
    "Publish": {
        "Topic": Equivalent("MQOD.ObjectString", "one MQPUT1, or MQOPEN and MQPUT, for each topic"),
        "StreamName": _STREAM,
        "QName": Equivalent("MQMD.ReplyToQ"),
        "QMgrName": Equivalent("MQMD.ReplyToQMgr", "set by the queue manager without MQPMO_SUPPRESS_REPLYTO"),
        "SubPoint": Equivalent("ObjectName of a topic object", "the subscription point's, or its prefix"),
        "MQPut": Equivalent(
            "MQPMO.PubLevel", "and MQPMO_SUPPRESS_REPLYTO, MQPMO_NOT_OWN_SUBS: the command stands for an MQPUT"
        ),
        "PubTime": Equivalent("MQPubTime", "a message property"),
        "SeqNum": Equivalent("MQPubSeqNum", "a message property"),
        "IntData": Equivalent("MQPubStrIntData", "a message property"),
        "StringData": Equivalent("MQPubStrIntData", "a message property"),
    },
    "DeletePub": {"Topic": Equivalent("TopicString", "one command for each topic"), "StreamName": _STREAM},
    "RegPub": {
        "Topic": Equivalent("MQOD.ObjectString", "one MQOPEN for each topic"),
        "StreamName": _STREAM,
        "QName": Equivalent("MQMD.ReplyToQ", "on each publication"),
        "QMgrName": Equivalent("MQMD.ReplyToQMgr", "on each publication"),
    },
    "DeregPub": {
        "Topic": Equivalent("Hobj", "implied by the handle from MQOPEN"),
        "StreamName": Equivalent("Hobj", "implied by the handle from MQOPEN"),
        "QName": Equivalent("Hobj", "implied by the handle from MQOPEN"),
        "QMgrName": Equivalent("Hobj", "implied by the handle from MQOPEN"),
    },
}

_HOBJ: Final = 2019
_BY_HANDLE: Final[dict[int, int | None]] = {
    **dict.fromkeys((3071, 3072, 3073, 3074, 3076, 3078, 3082), _HOBJ),
    3083: 2046,
}

# By command word and reason: the MQRC with which the calls that replace the command fail; None where there is none.
# Blank cells of the guide are filled with what the calls are documented to give.
REASONS: Final[dict[str, dict[int, int | None]]] = {
    "DeletePub": {3071: 2085, 3072: 2441, 3075: None, 3081: 2035},
    "DeregPub": _BY_HANDLE,
    "DeregSub": _BY_HANDLE | {3080: None, 3081: 2035, 3150: None, 3151: 2035, 3153: 2428, 3154: None, 3155: 2429},
    "RegSub": {
        3071: 2085,
        3072: 2441,
        3074: 2087,
        3076: 2085,
        3078: 2434,
        3080: 2207,
        3081: 2035,
        3082: 2085,
        3083: 2046,
        3150: 2459,
        3151: 2035,
        3152: 2432,
        3153: 2440,
        3154: None,
        3155: 2429,
        3156: None,
        3157: None,
    },
    "ReqUpdate": _BY_HANDLE | {3077: 2437, 3080: None, 3081: 2035, 3151: 2035, 3153: 2428},
    "Publish": {3071: 2085, 3072: 2441, 3074: 2087, 3075: None, 3076: 2085, 3080: None, 3081: 2035, 3084: 2046},
    "RegPub": {3071: 2085, 3072: 2441, 3081: 2035, 3082: 2085, 3083: 2046},
}

MQRC_NAMES: Final[dict[int, str]] = {
    2019: "MQRC_HOBJ_ERROR",
    2035: "MQRC_NOT_AUTHORIZED",
    2046: "MQRC_OPTIONS_ERROR",
    2085: "MQRC_UNKNOWN_OBJECT_NAME",
    2087: "MQRC_UNKNOWN_REMOTE_Q_MGR",
    2207: "MQRC_CORREL_ID_ERROR",
    2428: "MQRC_NO_SUBSCRIPTION",
    2429: "MQRC_SUBSCRIPTION_IN_USE",
    2432: "MQRC_SUB_ALREADY_EXISTS",
    2434: "MQRC_IDENTITY_MISMATCH",
    2437: "MQRC_NO_RETAINED_MSG",
    2440: "MQRC_SUB_NAME_ERROR",
    2441: "MQRC_OBJECT_STRING_ERROR",
    2459: "MQRC_SELECTOR_SYNTAX_ERROR",
}


def equivalent_reason(word: str, reason: int) -> str | None:
    """The MQRC that takes the place of *reason*, number and name; None where there is none."""
    found = REASONS.get(word, {}).get(reason)
    return None if found is None else f"{found} {MQRC_NAMES[found]}"
