"""The context of a message that a program puts, and its identifiers: what MQPUT fills in before the queue does.

The options of MQPUT say which fields of the program's descriptor count (IBM's description of MQPMO, Options). What the
program may not set is made blank here; the store then writes who put it, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m
from rfh2.ccsid import ByteOrder
from rfh2.layouts import MQMD1
from rfh2.mqmd import Mqmd, RawMqmd, in_form

_AT: Final = MQMD1.slices()
_MSG_ID, _CORREL_ID, _USER = _AT["MsgId"], _AT["CorrelId"], _AT["UserIdentifier"]
# These stand one behind the other: who it is, from where the message comes, and of that what the store writes.
_IDENTITY: Final = slice(_USER.start, _AT["ApplIdentityData"].stop)
_ORIGIN: Final = slice(_IDENTITY.stop, _AT["ApplOriginData"].stop)
_PUT: Final = slice(_ORIGIN.start, _AT["PutTime"].stop)
OF_CONTEXT: Final = (
    m.MQOO_PASS_IDENTITY_CONTEXT | m.MQOO_PASS_ALL_CONTEXT | m.MQOO_SET_IDENTITY_CONTEXT | m.MQOO_SET_ALL_CONTEXT
)
"""Options of MQOPEN, and of MQPUT1, for which they are the same bits."""
# Of each option of MQPUT, those of MQOPEN that allow it: IBM's implications among them.
_ALLOWED_BY: Final = (
    (m.MQPMO_PASS_IDENTITY_CONTEXT, OF_CONTEXT, m.MQRC_NOT_OPEN_FOR_PASS_IDENT),
    (m.MQPMO_PASS_ALL_CONTEXT, m.MQOO_PASS_ALL_CONTEXT | m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_PASS_ALL),
    (m.MQPMO_SET_IDENTITY_CONTEXT, m.MQOO_SET_IDENTITY_CONTEXT | m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_SET_IDENT),
    (m.MQPMO_SET_ALL_CONTEXT, m.MQOO_SET_ALL_CONTEXT, m.MQRC_NOT_OPEN_FOR_SET_ALL),
)


@dataclass(frozen=True, slots=True)
class Application:
    """A program: its user, its name and kind (PutApplName, PutApplType), and its accounting token."""

    user: str
    name: str = ""
    kind: int = 0
    accounting_token: bytes = bytes(32)


def require_context(opened: int, options: int) -> None:
    """Raises MqiError 2093 to 2096 where an MQPUT sets or passes context, and the object is not open for that.

    opened, options: of MQOPEN and of MQPUT.
    """
    for asked, allowed, reason in _ALLOWED_BY:
        if options & asked and not opened & allowed:
            raise MqiError(reason, "it is not open for that context: see MQOO_*_CONTEXT")


def put_descriptor(mqmd: RawMqmd, options: int, application: Application, new_id: bytes, passed: bytes | None) -> bytes:
    """The descriptor with which the message is put. options: MQPMO_*. passed: of the message that is passed on.

    new_id: for a CorrelId that MQPMO_NEW_CORREL_ID asks for; the store makes MsgIds.
    """
    md = mqmd.data
    if options & m.MQPMO_NEW_MSG_ID:
        md = md[: _MSG_ID.start] + bytes(24) + md[_MSG_ID.stop :]
    if options & m.MQPMO_NEW_CORREL_ID:
        md = md[: _CORREL_ID.start] + new_id + md[_CORREL_ID.stop :]
    if options & m.MQPMO_SET_ALL_CONTEXT:
        return md
    given = _given(application, bool(options & m.MQPMO_NO_CONTEXT), mqmd.order, mqmd.charset)
    if passed is not None and options & (m.MQPMO_PASS_IDENTITY_CONTEXT | m.MQPMO_PASS_ALL_CONTEXT):
        seen = in_form(passed, mqmd.version, mqmd.order, mqmd.charset)
        given = seen if options & m.MQPMO_PASS_ALL_CONTEXT else seen[: _ORIGIN.start] + given[_ORIGIN]
    identity = md if options & m.MQPMO_SET_IDENTITY_CONTEXT else given
    return b"".join((md[: _IDENTITY.start], identity[_IDENTITY], given[_ORIGIN], md[_ORIGIN.stop :]))


@lru_cache(maxsize=4096)
def _given(application: Application, is_none: bool, order: ByteOrder, charset: str) -> bytes:
    """A descriptor with the context that the queue manager gives; the store says when. is_none: MQPMO_NO_CONTEXT."""
    if is_none:
        return Mqmd(order=order, charset=charset).encode()
    return Mqmd(
        user_identifier=application.user[:12],
        accounting_token=application.accounting_token,
        put_appl_type=application.kind,
        put_appl_name=application.name,
        order=order,
        charset=charset,
    ).encode()


def as_put(md: bytes, kept: bytes) -> bytes:
    """The descriptor *md* that was put, with what the store wrote into it: *kept* is what it keeps.

    That is MsgId, the user, the application and the time; the program does not see what queues have for defaults.
    """
    parts = md[: _MSG_ID.start], kept[_MSG_ID], md[_MSG_ID.stop : _USER.start], kept[_USER], md[_USER.stop : _PUT.start]
    return b"".join((*parts, kept[_PUT], md[_PUT.stop :]))
