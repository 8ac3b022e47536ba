"""Reason codes spelt out: name and sentence (guide 6.7.7; wire formats 4.4), and the feedback codes beside them."""

from __future__ import annotations

from typing import Final

from rfh2.constants import REASON_NAMES

_SENTENCES: Final[dict[str, str]] = {
    "MQRC_NONE": "nothing is wrong",
    "MQRC_HOBJ_ERROR": "the object handle is not valid",
    "MQRC_MSG_TOO_BIG_FOR_Q": "the message is longer than the queue allows",
    "MQRC_NOT_AUTHORIZED": "the user has no authority",
    "MQRC_OPTIONS_ERROR": "the options cannot be used together",
    "MQRC_PUT_INHIBITED": "the queue, or the topic, does not allow puts",
    "MQRC_Q_FULL": "the queue is full",
    "MQRC_UNKNOWN_OBJECT_NAME": "no object has this name",
    "MQRC_UNKNOWN_REMOTE_Q_MGR": "the remote queue manager is not known",
    "MQRC_RESOURCE_PROBLEM": "the command needs more time, topics, puts or memory than one command may use",
    "MQRC_FORMAT_ERROR": "the data is not of the Format that its header names",
    "MQRC_SOURCE_CCSID_ERROR": "the CodedCharSetId is not valid or not supported",
    "MQRC_NOT_CONVERTED": "the data could not be converted",
    "MQRC_HEADER_ERROR": "a header's structure is not valid",
    "MQRC_RFH_ERROR": "the MQRFH or MQRFH2 is not valid",
    "MQRC_RFH_STRING_ERROR": "the NameValueString is not valid",
    "MQRC_RFH_COMMAND_ERROR": "the command is missing, in the wrong place or unknown",
    "MQRC_RFH_PARM_ERROR": "the command does not take this tag or name",
    "MQRC_RFH_DUPLICATE_PARM": "a tag or name occurs more than once where only one is allowed",
    "MQRC_RFH_PARM_MISSING": "a tag or name that the command needs is missing",
    "MQRC_RFH_FORMAT_ERROR": "a folder's text is not well formed",
    "MQRC_BACKOUT_THRESHOLD_REACHED": "the message ended the processor, or made it hang, twice",
    "MQRC_DURABILITY_NOT_ALLOWED": "the topic does not allow durable subscriptions",
    "MQRC_NO_SUBSCRIPTION": "no subscription has this name",
    "MQRC_SUB_INHIBITED": "the topic does not allow subscriptions",
    "MQRC_TOPIC_NOT_ALTERABLE": "a subscription's topic cannot be altered",
    "MQRC_SELECTOR_NOT_ALTERABLE": "a subscription's selector cannot be altered",
    "MQRC_NO_SUBS_MATCHED": "no subscription matches the topic",
    "MQRC_PUBLISH_EXIT_ERROR": "the publish exit failed",
    "MQRCCF_COMMAND_FAILED": "the command failed",
    "MQRCCF_MSG_LENGTH_ERROR": "the message's length does not agree with its parts",
    "MQRCCF_BROKER_DELETED": "the broker was deleted",
    "MQRCCF_STREAM_ERROR": "the stream name is not valid, or a stream queue cannot have it",
    "MQRCCF_TOPIC_ERROR": "the topic is empty, too long or has a forbidden wildcard, or its SubPoint is unknown",
    "MQRCCF_NOT_REGISTERED": "the publisher or subscriber is not registered",
    "MQRCCF_Q_MGR_NAME_ERROR": "the queue manager name is missing, not valid or not known",
    "MQRCCF_INCORRECT_STREAM": "the stream name differs from that of the queue that the command was put on",
    "MQRCCF_Q_NAME_ERROR": "the queue name is missing, not valid or not known",
    "MQRCCF_NO_RETAINED_MSG": "the topic has no retained publication",
    "MQRCCF_DUPLICATE_IDENTITY": "another user has registered with that identity",
    "MQRCCF_INCORRECT_Q": "the command belongs on another queue",
    "MQRCCF_CORREL_ID_ERROR": "CorrelAsId was given, and the CorrelId is zero",
    "MQRCCF_NOT_AUTHORIZED": "the user has no authority for the topic or the queue",
    "MQRCCF_UNKNOWN_STREAM": "the stream does not exist",
    "MQRCCF_REG_OPTIONS_ERROR": "a registration option is not valid, or cannot be used with another one",
    "MQRCCF_PUB_OPTIONS_ERROR": "a publication option is not valid, or cannot be used with another one",
    "MQRCCF_UNKNOWN_BROKER": "the broker is not known",
    "MQRCCF_DEL_OPTIONS_ERROR": "the delete options are not valid",
    "MQRCCF_FILTER_ERROR": "the filter is not valid",
    "MQRCCF_WRONG_USER": "the subscription belongs to another user",
    "MQRCCF_DUPLICATE_SUBSCRIPTION": "a matching subscription, or one with this name, exists already",
    "MQRCCF_SUB_NAME_ERROR": "the subscription name is not valid, or no matching subscription has it",
    "MQRCCF_SUB_IDENTITY_ERROR": "the identity is too long, missing, or not in the set",
    "MQRCCF_SUBSCRIPTION_IN_USE": "members of the identity set other than the sender use the subscription",
    "MQRCCF_SUBSCRIPTION_LOCKED": "another member of the identity set has locked the subscription",
    "MQRCCF_ALREADY_JOINED": "the identity is in the set already",
}

# Reasons that a dead-letter header or a response in a capture may bear, though this broker never gives them.
_OTHERS: Final[dict[int, str]] = {
    2019: "MQRC_HOBJ_ERROR",
    2046: "MQRC_OPTIONS_ERROR",
    2052: "MQRC_Q_DELETED",
    2056: "MQRC_Q_SPACE_NOT_AVAILABLE",
    2082: "MQRC_UNKNOWN_ALIAS_BASE_Q",
    2092: "MQRC_XMIT_Q_USAGE_ERROR",
    2115: "MQRC_TARGET_CCSID_ERROR",
    2119: "MQRC_NOT_CONVERTED",
    2340: "MQRC_CHAR_CONVERSION_ERROR",
    2341: "MQRC_UCS2_CONVERSION_ERROR",
    2428: "MQRC_NO_SUBSCRIPTION",
    2429: "MQRC_SUBSCRIPTION_IN_USE",
    2432: "MQRC_SUB_ALREADY_EXISTS",
    2434: "MQRC_IDENTITY_MISMATCH",
    2437: "MQRC_NO_RETAINED_MSG",
    2441: "MQRC_OBJECT_STRING_ERROR",
    2527: "MQRC_RFH_RESTRICTED_FORMAT_ERR",
    2550: "MQRC_NO_SUBS_MATCHED",
    3085: "MQRCCF_UNKNOWN_BROKER",
    3086: "MQRCCF_Q_MGR_CCSID_ERROR",
    3088: "MQRCCF_CLUSTER_NAME_CONFLICT",
    3094: "MQRCCF_BROKER_COMMAND_FAILED",
}

FEEDBACK: Final[dict[int, str]] = {
    0: "MQFB_NONE",
    256: "MQFB_QUIT",
    258: "MQFB_EXPIRATION",
    259: "MQFB_COA",
    260: "MQFB_COD",
    275: "MQFB_PAN",
    276: "MQFB_NAN",
    279: "MQFB_STOPPED_BY_PUBSUB_EXIT",
    501: "MQFB_PUBLICATIONS_ON_REQUEST",
    502: "MQFB_SUBSCRIBER_IS_PUBLISHER",
    503: "MQFB_MSG_SCOPE_MISMATCH",
    504: "MQFB_SELECTOR_MISMATCH",
}


def reason_name(reason: int) -> str | None:
    """IBM's name of a reason code; None where it is not known here."""
    return REASON_NAMES.get(reason) or _OTHERS.get(reason)


def reason_number(name: str) -> int | None:
    """The reason code of that name (``MQRCCF_TOPIC_ERROR``); None where it is not known here."""
    known = {**_OTHERS, **REASON_NAMES}
    return next((number for number, each in known.items() if each == name), None)


def reason_text(reason: int) -> str:
    """A reason code for a person: name, and what it says; empty where it is not known."""
    name = reason_name(reason)
    if name is None:
        return ""
    sentence = _SENTENCES.get(name)
    return f"{name}: {sentence}" if sentence else name


def feedback_text(code: int) -> str:
    """What a Feedback, or the Reason of a dead-letter header, says: MQFB_* or MQRC_*."""
    if code >= 65_536:
        return "an application's own"
    return FEEDBACK.get(code) or reason_text(code)
