"""What a program asks for and would not get: IBM's reason says so at once, and the call does nothing.

A queue manager does these things, and the bridge does not. A program that asks for one relies on it: a report that
never comes, or a group that is not complete, is worse than a call that fails. Each row is in docs/listener.md too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2 import constants, mqi_constants as m
from rfh2.constants import MQRO_NAN, MQRO_PAN
from rfh2.errors import QPubSubError
from rfh2.mqmd import RawMqmd


class MqiError(QPubSubError):
    """A call fails with *reason* (MQRC_*). why: one clause for people, for the log."""

    def __init__(self, reason: int, why: str, comp_code: int = m.MQCC_FAILED) -> None:
        super().__init__(reason, why, comp_code)
        self.reason, self.why, self.comp_code = reason, why, comp_code

    def __str__(self) -> str:
        return f"{self.why} (reason {self.reason})"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row. bits: any of them is refused; 0 where the option is no bit. why: what the program would not get."""

    option: str
    bits: int
    reason: int
    why: str


_NO_SEGMENTS: Final = "messages are not put together from segments"

OF_PUT: Final = (
    Refusal(
        "MQPMO_MD_FOR_OUTPUT_ONLY", m.MQPMO_MD_FOR_OUTPUT_ONLY, m.MQRC_OPTIONS_ERROR, "a put has no message handle"
    ),
    Refusal(
        "MQPMO_WARN_IF_NO_SUBS_MATCHED",
        m.MQPMO_WARN_IF_NO_SUBS_MATCHED,
        m.MQRC_OPTIONS_ERROR,
        "a publication is matched after its MQPUT has succeeded",
    ),
)
_REPORTS: Final = (
    ("MQRO_COA", m.MQRO_COA),
    ("MQRO_COD", m.MQRO_COD),
    ("MQRO_EXPIRATION", m.MQRO_EXPIRATION),
    ("MQRO_EXCEPTION", m.MQRO_EXCEPTION),
)
OF_ANY_REPORT: Final = (
    Refusal("MQRO_ACTIVITY", m.MQRO_ACTIVITY, m.MQRC_REPORT_OPTIONS_ERROR, "no activity is recorded"),
)
# Of what is put on a topic, alone.
OF_REPORT: Final = tuple(
    Refusal(f"{name}, on a topic", bit, m.MQRC_REPORT_OPTIONS_ERROR, "no report is made of what subscribers get")
    for name, bit in _REPORTS
)
OF_FLAGS: Final = (
    Refusal(
        "MQMF_SEGMENT, MQMF_LAST_SEGMENT",
        m.MQMF_SEGMENT | m.MQMF_LAST_SEGMENT,
        m.MQRC_SEGMENTS_NOT_SUPPORTED,
        _NO_SEGMENTS,
    ),
)
OF_GET: Final = (
    Refusal("MQGMO_SET_SIGNAL", m.MQGMO_SET_SIGNAL, m.MQRC_OPTIONS_ERROR, "no signal is sent"),
    Refusal("MQGMO_MARK_SKIP_BACKOUT", m.MQGMO_MARK_SKIP_BACKOUT, m.MQRC_OPTIONS_ERROR, "a backout leaves nothing out"),
    Refusal("MQGMO_COMPLETE_MSG", m.MQGMO_COMPLETE_MSG, m.MQRC_OPTIONS_ERROR, _NO_SEGMENTS),
    Refusal("MQGMO_ALL_SEGMENTS_AVAILABLE", m.MQGMO_ALL_SEGMENTS_AVAILABLE, m.MQRC_OPTIONS_ERROR, _NO_SEGMENTS),
)
OF_MATCH: Final = (Refusal("MQMO_MATCH_OFFSET", m.MQMO_MATCH_OFFSET, m.MQRC_MATCH_OPTIONS_ERROR, _NO_SEGMENTS),)
DISTRIBUTION_LIST: Final = Refusal(
    "a distribution list (MQOD RecsPresent)", 0, m.MQRC_FUNCTION_NOT_SUPPORTED, "a put goes to one queue"
)
ALL: Final = (*OF_PUT, *OF_ANY_REPORT, *OF_REPORT, *OF_FLAGS, *OF_GET, *OF_MATCH, DISTRIBUTION_LIST)

# What IBM's queue managers refuse too.
_ON_TOPICS: Final = (
    Refusal(
        "a message of a group",
        m.MQMF_MSG_IN_GROUP | m.MQMF_LAST_MSG_IN_GROUP,
        m.MQRC_GROUPING_NOT_ALLOWED,
        "no message of a group can be published (guide 4.5)",
    ),
)
# MQRO_REJECT_UNSUP_MASK without MQRO_EXCEPTION and its data.
_UNKNOWN_REPORTS: Final = (
    Refusal("MQMD Report", 0x101C_0000, m.MQRC_REPORT_OPTIONS_ERROR, "no such report option is known"),
)
# Of the options of each of these no more than one may be given.
_ONE_OF_PUT: Final = (
    m.MQPMO_SYNCPOINT | m.MQPMO_NO_SYNCPOINT,
    m.MQPMO_DEFAULT_CONTEXT
    | m.MQPMO_NO_CONTEXT
    | m.MQPMO_PASS_IDENTITY_CONTEXT
    | m.MQPMO_PASS_ALL_CONTEXT
    | m.MQPMO_SET_IDENTITY_CONTEXT
    | m.MQPMO_SET_ALL_CONTEXT,
)
_ONE_OF_GET: Final = (m.MQGMO_SYNCPOINT | m.MQGMO_NO_SYNCPOINT | m.MQGMO_SYNCPOINT_IF_PERSISTENT,)
_REQUEST: Final = 1
_MESSAGE_TYPES: Final = frozenset({_REQUEST, 2, 4, 8, 112, 113})
_OF_APPLICATIONS: Final = range(65_536, 1_000_000_000)
_NEEDS_REPLY_TO: Final = MQRO_PAN | MQRO_NAN


_SEVERAL: Final = ("MQOO_ANY_INPUT", "MQGMO_ANY_BROWSE")


def _bits(prefix: str) -> dict[str, int]:
    names = vars(constants) | vars(m)
    return {name: bit for name, bit in names.items() if name.startswith(prefix) and bit and name not in _SEVERAL}


FAMILIES: Final = {
    "MQOPEN": (_bits("MQOO_"), ()),
    "MQCLOSE": (_bits("MQCO_"), ()),
    "MQPUT": (_bits("MQPMO_"), OF_PUT),
    "MQMD Report": (_bits("MQRO_"), OF_ANY_REPORT),
    "MQMD MsgFlags": (_bits("MQMF_"), OF_FLAGS),
    "MQGET": (_bits("MQGMO_"), OF_GET),
    "MQGET MatchOptions": (_bits("MQMO_"), OF_MATCH),
    "MQSUB": (_bits("MQSO_"), ()),
}
"""The options of each call, by IBM's names, and those that are refused."""


def coverage() -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Of each family of options the names of those that are done, and of those that are refused, with the reason."""
    rows: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    for family, (bits, refusals) in FAMILIES.items():
        reasons = {name: row.reason for name, bit in bits.items() for row in refusals if bit & row.bits == bit}
        done = tuple(name for name in bits if name not in reasons)
        rows.append((family, done, tuple(f"{name} ({reason})" for name, reason in reasons.items())))
    return rows


def known(family: str) -> int:
    """All bits of a family of options that are done or refused."""
    return sum({1 << n for bit in FAMILIES[family][0].values() for n in range(32) if bit >> n & 1})


_OF_MQPUT, _OF_MQGET = known("MQPUT"), known("MQGET")


def check_put(mqmd: RawMqmd, options: int, *, on_topic: bool) -> None:
    """Raises MqiError for what MQPUT refuses. on_topic: a publication.

    The reasons are those of the rows, 2046 for options that exclude each other, 2029 for a MsgType, 2061 for a report
    option that is not known, and 2027 where a ReplyToQ is missing (guide 4.7).
    """
    _exclude(options, _ONE_OF_PUT)
    if options & ~_OF_MQPUT:
        raise MqiError(m.MQRC_OPTIONS_ERROR, f"MQPMO Options are {options:#x}")
    _refuse(options, OF_PUT)
    if mqmd.report:
        _refuse(mqmd.report, (*_UNKNOWN_REPORTS, *OF_ANY_REPORT, *(OF_REPORT if on_topic else ())))
    if mqmd.msg_flags:
        _refuse(mqmd.msg_flags, (*OF_FLAGS, *(_ON_TOPICS if on_topic else ())))
    if mqmd.msg_type not in _MESSAGE_TYPES and mqmd.msg_type not in _OF_APPLICATIONS:
        raise MqiError(m.MQRC_MSG_TYPE_ERROR, f"MsgType is {mqmd.msg_type}")
    if mqmd.msg_type == _REQUEST and not mqmd.name(mqmd.reply_to_q):
        raise MqiError(m.MQRC_MISSING_REPLY_TO_Q, "a request has no ReplyToQ")
    if mqmd.report & m.MQRO_OF_QUEUE_MANAGERS and not mqmd.name(mqmd.reply_to_q):
        raise MqiError(m.MQRC_MISSING_REPLY_TO_Q, "a report is asked for, and there is no ReplyToQ")
    if options & m.MQPMO_SUPPRESS_REPLYTO and mqmd.report & _NEEDS_REPLY_TO:
        raise MqiError(m.MQRC_MISSING_REPLY_TO_Q, "a report needs the ReplyToQ that MQPMO_SUPPRESS_REPLYTO removes")


def check_get(options: int, match: int) -> None:
    """Raises MqiError for what MQGET refuses: as the rows say, and 2046 for options that exclude each other."""
    _exclude(options, _ONE_OF_GET)
    if options & ~_OF_MQGET:
        raise MqiError(m.MQRC_OPTIONS_ERROR, f"MQGMO Options are {options:#x}")
    _refuse(options, OF_GET)
    _refuse(match, OF_MATCH)
    if options & m.MQGMO_LOGICAL_ORDER and match & m.MQMO_MATCH_MSG_SEQ_NUMBER:
        raise MqiError(m.MQRC_MATCH_OPTIONS_ERROR, "MQGMO_LOGICAL_ORDER says which MsgSeqNumber is next")


def check_destinations(records: int) -> None:
    """Raises MqiError 2298 for an MQOD with object records."""
    if records:
        raise MqiError(DISTRIBUTION_LIST.reason, f"{DISTRIBUTION_LIST.option}: {DISTRIBUTION_LIST.why}")


def _refuse(value: int, rows: tuple[Refusal, ...]) -> None:
    for row in rows:
        if value & row.bits:
            raise MqiError(row.reason, f"{row.option}: {row.why}")


def _exclude(options: int, groups: tuple[int, ...]) -> None:
    for group in groups:
        given = options & group
        if given & (given - 1):
            raise MqiError(m.MQRC_OPTIONS_ERROR, f"options {given:#x} cannot be used together")
