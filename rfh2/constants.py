"""Constants of IBM MQ that the wire needs, under IBM's own names (cmqc.h, cmqcfc.h, cmqpsc.h).

Reason codes spelt out: name and sentence (guide 6.7.7; wire formats 4.4), and the feedback codes beside them.
"""

from __future__ import annotations

from typing import Final

# Encoding: an integer, a decimal and a float part; byte order follows from the integer part alone.
MQENC_INTEGER_MASK: Final = 0x00F
MQENC_INTEGER_NORMAL: Final = 1
MQENC_INTEGER_REVERSED: Final = 2
MQENC_NATIVE: Final = 546

MQCCSI_DEFAULT: Final = 0
MQCCSI_EMBEDDED: Final = -1
MQCCSI_INHERIT: Final = -2

MQFMT_NONE: Final = ""
MQFMT_STRING: Final = "MQSTR"
MQFMT_RF_HEADER_1: Final = "MQHRF"
MQFMT_RF_HEADER_2: Final = "MQHRF2"
MQFMT_DEAD_LETTER_HEADER: Final = "MQDEAD"
MQFMT_XMIT_Q_HEADER: Final = "MQXMIT"
MQFMT_MD_EXTENSION: Final = "MQHMDE"

MQMT_REQUEST: Final = 1
MQMT_REPLY: Final = 2
MQMT_REPORT: Final = 4
MQMT_DATAGRAM: Final = 8

MQRO_NONE: Final = 0
MQRO_PAN: Final = 0x00000001
MQRO_NAN: Final = 0x00000002
MQRO_PASS_CORREL_ID: Final = 0x00000040
MQRO_PASS_MSG_ID: Final = 0x00000080
MQRO_PASS_DISCARD_AND_EXPIRY: Final = 0x00004000
MQRO_DISCARD_MSG: Final = 0x08000000

MQEI_UNLIMITED: Final = -1
LARGEST_MQLONG: Final = 2**31 - 1
MQPRI_PRIORITY_AS_Q_DEF: Final = -1
MQPER_NOT_PERSISTENT: Final = 0
MQPER_PERSISTENT: Final = 1
MQPER_PERSISTENCE_AS_Q_DEF: Final = 2

MQAT_BROKER: Final = 26
MQOL_UNDEFINED: Final = -1

MQ_MSG_ID_LENGTH: Final = 24
MQ_TOPIC_STR_LENGTH: Final = 10240
MQ_SUB_NAME_LENGTH: Final = 10240
MQ_SELECTOR_LENGTH: Final = 10240
MQ_USER_DATA_LENGTH: Final = 10240
MQ_SUB_IDENTITY_LENGTH: Final = 64  # the guide's limit (6.7.4); the header file says 128
MQ_OBJECT_NAME_LENGTH: Final = 48

# Reason codes (guide 6.7.7; wire formats 4.4)
MQRC_NONE: Final = 0
MQRC_UNKNOWN_OBJECT_NAME: Final = 2085
MQRC_NOT_AUTHORIZED: Final = 2035
MQRC_PUT_INHIBITED: Final = 2051
MQRC_Q_FULL: Final = 2053
MQRC_MSG_TOO_BIG_FOR_Q: Final = 2030
MQRC_UNKNOWN_REMOTE_Q_MGR: Final = 2087
MQRC_SOURCE_CCSID_ERROR: Final = 2111
MQRC_HEADER_ERROR: Final = 2142
MQRC_FORMAT_ERROR: Final = 2110
MQRC_RESOURCE_PROBLEM: Final = 2102
MQRC_BACKOUT_THRESHOLD_REACHED: Final = 2362
MQRC_RFH_ERROR: Final = 2334
MQRC_RFH_STRING_ERROR: Final = 2335
MQRC_RFH_COMMAND_ERROR: Final = 2336
MQRC_RFH_PARM_ERROR: Final = 2337
MQRC_RFH_DUPLICATE_PARM: Final = 2338
MQRC_RFH_PARM_MISSING: Final = 2339
MQRC_RFH_FORMAT_ERROR: Final = 2421
MQRC_DURABILITY_NOT_ALLOWED: Final = 2436
MQRC_SUB_INHIBITED: Final = 2503
MQRC_TOPIC_NOT_ALTERABLE: Final = 2510
MQRC_SELECTOR_NOT_ALTERABLE: Final = 2524
MQRC_PUBLISH_EXIT_ERROR: Final = 2557
MQRCCF_COMMAND_FAILED: Final = 3008
MQRCCF_MSG_LENGTH_ERROR: Final = 3016
MQRCCF_BROKER_DELETED: Final = 3070
MQRCCF_STREAM_ERROR: Final = 3071
MQRCCF_TOPIC_ERROR: Final = 3072
MQRCCF_NOT_REGISTERED: Final = 3073
MQRCCF_Q_MGR_NAME_ERROR: Final = 3074
MQRCCF_INCORRECT_STREAM: Final = 3075
MQRCCF_Q_NAME_ERROR: Final = 3076
MQRCCF_NO_RETAINED_MSG: Final = 3077
MQRCCF_DUPLICATE_IDENTITY: Final = 3078
MQRCCF_INCORRECT_Q: Final = 3079
MQRCCF_CORREL_ID_ERROR: Final = 3080
MQRCCF_NOT_AUTHORIZED: Final = 3081
MQRCCF_UNKNOWN_STREAM: Final = 3082
MQRCCF_REG_OPTIONS_ERROR: Final = 3083
MQRCCF_PUB_OPTIONS_ERROR: Final = 3084
MQRCCF_DEL_OPTIONS_ERROR: Final = 3087
MQRCCF_FILTER_ERROR: Final = 3150
MQRCCF_WRONG_USER: Final = 3151
MQRCCF_DUPLICATE_SUBSCRIPTION: Final = 3152
MQRCCF_SUB_NAME_ERROR: Final = 3153
MQRCCF_SUB_IDENTITY_ERROR: Final = 3154
MQRCCF_SUBSCRIPTION_IN_USE: Final = 3155
MQRCCF_SUBSCRIPTION_LOCKED: Final = 3156
MQRCCF_ALREADY_JOINED: Final = 3157
MQ_CHANNEL_NAME_LENGTH: Final = 20
MQ_EXIT_DATA_LENGTH: Final = 32


def names_of(prefix: str) -> dict[int, str]:
    """The constants whose names begin with *prefix* (``MQRC``), by value."""
    return {value: name for name, value in globals().items() if name.startswith(prefix) and isinstance(value, int)}


REASON_NAMES: Final = names_of("MQRC")


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
