"""What the value of a field means: names of constants, bits, code pages, moments (wire formats, sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from rfh2.ccsid import byte_order, is_ebcdic, text_codec
from rfh2.constants import feedback_text, reason_text
from rfh2.explain.form import FieldValue
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet
from rfh2.pcf_names import MQIACF_DELETE_OPTIONS, MQIACF_PUBLICATION_OPTIONS, MQIACF_REGISTRATION_OPTIONS

MSG_TYPES: Final[dict[int, str]] = {
    1: "MQMT_REQUEST",
    2: "MQMT_REPLY",
    4: "MQMT_REPORT",
    8: "MQMT_DATAGRAM",
    112: "MQMT_MQE_FIELDS_FROM_MQE",
    113: "MQMT_MQE_FIELDS",
}
SYSTEM_MSG_TYPES: Final = range(1, 65_536)

# Widest first: COA_WITH_FULL_DATA holds the bits of COA_WITH_DATA, and that those of COA.
REPORT_OPTIONS: Final[tuple[tuple[int, str], ...]] = (
    (0x07000000, "MQRO_EXCEPTION_WITH_FULL_DATA"),
    (0x03000000, "MQRO_EXCEPTION_WITH_DATA"),
    (0x01000000, "MQRO_EXCEPTION"),
    (0x00E00000, "MQRO_EXPIRATION_WITH_FULL_DATA"),
    (0x00600000, "MQRO_EXPIRATION_WITH_DATA"),
    (0x00200000, "MQRO_EXPIRATION"),
    (0x00000700, "MQRO_COA_WITH_FULL_DATA"),
    (0x00000300, "MQRO_COA_WITH_DATA"),
    (0x00000100, "MQRO_COA"),
    (0x00003800, "MQRO_COD_WITH_FULL_DATA"),
    (0x00001800, "MQRO_COD_WITH_DATA"),
    (0x00000800, "MQRO_COD"),
    (0x00000001, "MQRO_PAN"),
    (0x00000002, "MQRO_NAN"),
    (0x00000004, "MQRO_ACTIVITY"),
    (0x00000040, "MQRO_PASS_CORREL_ID"),
    (0x00000080, "MQRO_PASS_MSG_ID"),
    (0x00004000, "MQRO_PASS_DISCARD_AND_EXPIRY"),
    (0x08000000, "MQRO_DISCARD_MSG"),
)
MSG_FLAGS: Final[tuple[tuple[int, str], ...]] = (
    (0x01, "MQMF_SEGMENTATION_ALLOWED"),
    (0x02, "MQMF_SEGMENT"),
    (0x04, "MQMF_LAST_SEGMENT"),
    (0x08, "MQMF_MSG_IN_GROUP"),
    (0x10, "MQMF_LAST_MSG_IN_GROUP"),
)
_PERSISTENCE = {
    -1: "MQPER_PERSISTENCE_AS_PARENT",
    0: "MQPER_NOT_PERSISTENT",
    1: "MQPER_PERSISTENT",
    2: "MQPER_PERSISTENCE_AS_Q_DEF",
}
_PRIORITY = {-1: "MQPRI_PRIORITY_AS_Q_DEF", -2: "MQPRI_PRIORITY_AS_PARENT", -3: "MQPRI_PRIORITY_AS_PUBLISHED"}
_APPL_TYPES = {
    -1: "MQAT_UNKNOWN",
    0: "MQAT_NO_CONTEXT",
    1: "MQAT_CICS",
    2: "MQAT_ZOS",
    3: "MQAT_IMS",
    4: "MQAT_OS2",
    5: "MQAT_DOS",
    6: "MQAT_UNIX",
    7: "MQAT_QMGR",
    8: "MQAT_OS400",
    9: "MQAT_WINDOWS",
    10: "MQAT_CICS_VSE",
    11: "MQAT_WINDOWS_NT",
    12: "MQAT_VMS",
    13: "MQAT_NSK",
    14: "MQAT_VOS",
    15: "MQAT_OPEN_TP1",
    18: "MQAT_VM",
    19: "MQAT_IMS_BRIDGE",
    20: "MQAT_XCF",
    21: "MQAT_CICS_BRIDGE",
    22: "MQAT_NOTES_AGENT",
    23: "MQAT_TPF",
    25: "MQAT_USER",
    26: "MQAT_BROKER: put by publish/subscribe",
    28: "MQAT_JAVA",
    29: "MQAT_DQM",
    30: "MQAT_CHANNEL_INITIATOR",
    31: "MQAT_WLM",
    32: "MQAT_BATCH",
    33: "MQAT_RRS_BATCH",
    34: "MQAT_SIB",
    35: "MQAT_SYSTEM_EXTENSION",
    36: "MQAT_MCAST_PUBLISH",
    37: "MQAT_AMQP",
}
FORMATS: Final[dict[str, str]] = {
    "": "MQFMT_NONE: the format is not given",
    "MQSTR": "MQFMT_STRING: text",
    "MQHRF": "MQFMT_RF_HEADER_1: an MQRFH follows",
    "MQHRF2": "MQFMT_RF_HEADER_2: an MQRFH2 follows",
    "MQDEAD": "MQFMT_DEAD_LETTER_HEADER: an MQDLH follows",
    "MQXMIT": "MQFMT_XMIT_Q_HEADER: an MQXQH follows",
    "MQHMDE": "MQFMT_MD_EXTENSION: an MQMDE follows",
    "MQHDIST": "MQFMT_DIST_HEADER: an MQDH follows",
    "MQCICS": "MQFMT_CICS: an MQCIH follows",
    "MQIMS": "MQFMT_IMS: an MQIIH follows",
    "MQIMSVS": "MQFMT_IMS_VAR_STRING: IMS segments",
    "MQHREF": "MQFMT_REF_MSG_HEADER: an MQRMH follows",
    "MQHWIH": "MQFMT_WORK_INFO_HEADER: an MQWIH follows",
    "MQHEPCF": "MQFMT_EMBEDDED_PCF: an MQEPH follows",
    "MQADMIN": "MQFMT_ADMIN: PCF for the command server",
    "MQPCF": "MQFMT_PCF: PCF of an application",
    "MQEVENT": "MQFMT_EVENT: an event, in PCF",
    "MQCMD1": "MQFMT_COMMAND_1: a command server's reply",
    "MQCMD2": "MQFMT_COMMAND_2: a command server's reply",
    "MQTRIG": "MQFMT_TRIGGER: a trigger message",
    "MQCHCOM": "MQFMT_CHANNEL_COMPLETED",
    "MQAMQP": "MQFMT_AMQP",
}
_FLOATS = {0x100: "IEEE", 0x200: "IEEE reversed", 0x300: "S/390", 0x400: "TNS"}
_CCSIDS = {
    0: "MQCCSI_DEFAULT: the CCSID is not given",
    -1: "MQCCSI_EMBEDDED",
    -2: "MQCCSI_INHERIT: as the header before",
    -3: "MQCCSI_APPL",
    -4: "MQCCSI_AS_PUBLISHED",
    1208: "UTF-8",
    1200: "UTF-16",
    13488: "UCS-2",
    17584: "UTF-16",
    819: "ISO 8859-1",
    367: "US-ASCII",
}


def meaning(name: str, value: FieldValue) -> str:
    """What the value of field *name* means; empty where it says all itself, or as a PutDate only beside the PutTime."""
    explain = _OF_FIELD.get(name)
    return "" if explain is None else explain(value)


def bits(value: int, options: tuple[tuple[int, str], ...]) -> tuple[list[str], int]:
    """The names of the bits set in *value*, and the bits that have no name."""
    names = []
    for mask, name in options:
        if value & mask == mask:
            names.append(name)
            value &= ~mask
    return names, value


# Few of them are in a capture, in each of its messages.
@lru_cache(maxsize=256)
def encoding_text(encoding: int) -> str:
    """An MQENC_* sum in words."""
    order = byte_order(encoding)
    integers = "integers of undefined byte order" if order is None else f"{order}-endian integers"
    decimals = {0x10: "normal decimals", 0x20: "reversed decimals"}.get(encoding & 0xF0)
    floats = _FLOATS.get(encoding & 0xF00)
    return ", ".join(part for part in (integers, decimals, floats and f"{floats} floats") if part)


@lru_cache(maxsize=256)
def ccsid_text(ccsid: int) -> str:
    """A coded character set in words; says so where it is not known."""
    if ccsid in _CCSIDS:
        return _CCSIDS[ccsid]
    codec = text_codec(ccsid, 0x111)
    if codec is None:
        return "not known here"
    return f"EBCDIC, {codec}" if is_ebcdic(ccsid) else codec


def time_text(date: str, time: str) -> str:
    """PutDate (YYYYMMDD) and PutTime (HHMMSSTH) as a moment; empty where they are none."""
    if not date:
        return ""
    digits = date + time[:6]
    try:
        if len(date) == 8 and len(digits) == 14 and digits.isascii() and digits.isdecimal():
            # What strptime reads in a tenth of the time; nearly all are whole.
            numbers = (int(date[:4]), int(date[4:6]), int(date[6:]), int(time[:2]), int(time[2:4]), int(time[4:6]))
            moment = datetime(*numbers, tzinfo=UTC)
            if date[0] != "0":  # strftime writes earlier years with fewer digits
                whole = f"{date[:4]}-{date[4:6]}-{date[6:]} {time[:2]}:{time[2:4]}:{time[4:6]}"
                return f"{whole}.{int(time[6:8] or '0'):02} UTC"
        else:
            moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        hundredths = int(time[6:8] or "0")
    except ValueError:
        return ""
    return f"{moment:%Y-%m-%d %H:%M:%S}.{hundredths:02} UTC"


def expiry_text(tenths: int) -> str:
    """An Expiry in tenths of a second."""
    if tenths < 0:
        return "MQEI_UNLIMITED" if tenths == -1 else ""
    return f"{timedelta(seconds=tenths // 10)}.{tenths % 10}"


def _report(value: int) -> str:
    names, rest = bits(value & 0xFFFFFFFF, REPORT_OPTIONS)
    if rest:
        names.append(f"unknown 0x{rest:08X}")
    return " + ".join(names) or "MQRO_NONE"


def _flags(value: int) -> str:
    names, rest = bits(value & 0xFFFFFFFF, MSG_FLAGS)
    if rest:
        names.append(f"unknown 0x{rest:08X}")
    return " + ".join(names) or "MQMF_NONE"


def _msg_type(value: int) -> str:
    known = MSG_TYPES.get(value)
    return known or ("an application's own" if value >= 65_536 else "not known")


def _identifier(value: str) -> str:
    data = bytes.fromhex(value)
    if not any(data):
        return "none"
    if data[:4] == b"AMQ ":
        return f"made by queue manager {data[4:16].decode('ascii', 'replace').rstrip()}"
    if data.rstrip(b" \0").isascii() and data.rstrip(b" \0").decode("ascii").isprintable():
        return f"'{data.rstrip(bytes(1) + b' ').decode('ascii')}'"
    return ""


def _ofstring(explain: Callable[[str], str]) -> Callable[[FieldValue], str]:
    return lambda value: explain(str(value))


def _ofnumber(explain: Callable[[int], str]) -> Callable[[FieldValue], str]:
    return lambda value: explain(int(value))


_OF_FIELD: Final[dict[str, Callable[[FieldValue], str]]] = {
    "Report": _ofnumber(_report),
    "MsgType": _ofnumber(_msg_type),
    "Expiry": _ofnumber(expiry_text),
    "Feedback": _ofnumber(feedback_text),
    "Reason": _ofnumber(feedback_text),
    "Encoding": _ofnumber(encoding_text),
    "CodedCharSetId": _ofnumber(ccsid_text),
    "NameValueCCSID": _ofnumber(ccsid_text),
    "Format": _ofstring(lambda value: FORMATS.get(value, "an application's own")),
    "Priority": _ofnumber(lambda value: _PRIORITY.get(value, "")),
    "Persistence": _ofnumber(lambda value: _PERSISTENCE.get(value, "not known")),
    "MsgId": _ofstring(_identifier),
    "CorrelId": _ofstring(_identifier),
    "GroupId": _ofstring(_identifier),
    "AccountingToken": _ofstring(lambda value: "" if value.strip("0") else "none"),
    "PutApplType": _ofnumber(lambda value: _APPL_TYPES.get(value, "an application's own" if value > 65_535 else "")),
    "MsgFlags": _ofnumber(_flags),
    "OriginalLength": _ofnumber(lambda value: "MQOL_UNDEFINED" if value == -1 else ""),
}

_MQPS_OPTIONS: Final = {
    "RegOpt": REGISTRATION,
    "PubOpt": PUBLICATION,
    "DelOpt": DELETE,
    "MQPSRegOpts": REGISTRATION,
    "MQPSPubOpts": PUBLICATION,
    "MQPSDelOpts": DELETE,
}
_REASONS: Final = ("Reason", "MQPSReason", "MQPSErrorId")
_TIMES: Final = ("PubTime", "MQPSPubTime", "Pts")
_MOMENTS: Final = ("Tms", "Exp")
_COMPLETIONS: Final = {"0": "MQCC_OK", "1": "MQCC_WARNING", "2": "MQCC_FAILED"}

# Folders beside psc whose tags have names elsewhere (wire formats 3.2).
_TAGS: Final[dict[str, dict[str, str]]] = {
    "mcd": {"Msd": "message domain", "Set": "message set", "Type": "message type", "Fmt": "physical format"},
    "jms": {
        "Dst": "JMSDestination",
        "Dlv": "JMSDeliveryMode",
        "Exp": "JMSExpiration",
        "Pri": "JMSPriority",
        "Tms": "JMSTimestamp",
        "Cid": "JMSCorrelationID",
        "Rto": "JMSReplyTo",
        "Gid": "JMSXGroupID",
        "Seq": "JMSXGroupSeq",
    },
    "mqps": {
        "Top": "MQTopicString",
        "Sud": "MQSubUserData",
        "Ret": "MQIsRetained",
        "Pub": "MQPubOptions",
        "Pbl": "MQPubLevel",
    },
    "mqpse": {"Pts": "MQPubTime", "Seq": "MQPubSeqNum", "Sid": "MQPubStrIntData", "Pfmt": "MQPubFormat"},
}


def tag_meaning(folder: str, tag: str, text: str) -> str:
    """What a tag of a folder, or a name of an MQRFH (folder ``MQRFH``), and its value mean; empty where not known."""
    if (options := _MQPS_OPTIONS.get(tag)) is not None:
        return options_text(options, text)
    if tag in _REASONS:
        return reason_text(int(text)) if text.isdecimal() and len(text) < _DIGITS else ""
    if tag == "MQPSCompCode":
        return _COMPLETIONS.get(text, "")
    if tag in _TIMES:
        return time_text(text[:8], text[8:16])
    named = _TAGS.get(folder, {}).get(tag, "")
    if tag in _MOMENTS and named and text.isdecimal() and len(text) < _MILLISECOND_DIGITS and text.strip("0"):
        moment = datetime.fromtimestamp(int(text) / 1000, UTC)
        return f"{named}, {moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"
    return named


# An MQLONG has ten digits; a moment of this era, in milliseconds, thirteen.
_DIGITS: Final = 11
_MILLISECOND_DIGITS: Final = 15


PCF_OPTIONS: Final = {
    MQIACF_REGISTRATION_OPTIONS: REGISTRATION,
    MQIACF_PUBLICATION_OPTIONS: PUBLICATION,
    MQIACF_DELETE_OPTIONS: DELETE,
}
"""Parameters of PCF that hold a sum of options."""


def options_text(options: OptionSet, text: str) -> str:
    """The options that *text*, a word or a sum, stands for, by the names of their constants."""
    found = options.read([text])
    names = [options.constant(word) for word in found.words]
    if text.strip().isdecimal():
        names = [f"{name} ({word})" for name, word in zip(names, found.words, strict=True)]
    return " + ".join([*names, *(f"{unknown!r} is not an option" for unknown in found.unknown)])
