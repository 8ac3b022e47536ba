"""The context of a message that a program puts, and its identifiers: what MQPUT fills in before the queue does.

The options of MQPUT say which fields of the program's descriptor count (IBM's description of MQPMO, Options). What the
program may not set is made blank here; the store then writes who put it, and when.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from commands.qmgr.mqi.refusals import MqiError
from rfh2.mqi_constants import (
    MQOO_PASS_ALL_CONTEXT,
    MQOO_PASS_IDENTITY_CONTEXT,
    MQOO_SET_ALL_CONTEXT,
    MQOO_SET_IDENTITY_CONTEXT,
    MQPMO_NEW_CORREL_ID,
    MQPMO_NEW_MSG_ID,
    MQPMO_NO_CONTEXT,
    MQPMO_PASS_ALL_CONTEXT,
    MQPMO_PASS_IDENTITY_CONTEXT,
    MQPMO_SET_ALL_CONTEXT,
    MQPMO_SET_IDENTITY_CONTEXT,
    MQRC_NOT_OPEN_FOR_PASS_ALL,
    MQRC_NOT_OPEN_FOR_PASS_IDENT,
    MQRC_NOT_OPEN_FOR_SET_ALL,
    MQRC_NOT_OPEN_FOR_SET_IDENT,
)
from rfh2.mqmd import Mqmd

_OWN_IDENTITY: Final = MQPMO_SET_IDENTITY_CONTEXT | MQPMO_SET_ALL_CONTEXT
OF_CONTEXT: Final = (
    MQOO_PASS_IDENTITY_CONTEXT | MQOO_PASS_ALL_CONTEXT | MQOO_SET_IDENTITY_CONTEXT | MQOO_SET_ALL_CONTEXT
)
"""Options of MQOPEN, and of MQPUT1, for which they are the same bits."""
# Of each option of MQPUT, those of MQOPEN that allow it: IBM's implications among them.
_ALLOWED_BY: Final = (
    (MQPMO_PASS_IDENTITY_CONTEXT, OF_CONTEXT, MQRC_NOT_OPEN_FOR_PASS_IDENT),
    (MQPMO_PASS_ALL_CONTEXT, MQOO_PASS_ALL_CONTEXT | MQOO_SET_ALL_CONTEXT, MQRC_NOT_OPEN_FOR_PASS_ALL),
    (MQPMO_SET_IDENTITY_CONTEXT, MQOO_SET_IDENTITY_CONTEXT | MQOO_SET_ALL_CONTEXT, MQRC_NOT_OPEN_FOR_SET_IDENT),
    (MQPMO_SET_ALL_CONTEXT, MQOO_SET_ALL_CONTEXT, MQRC_NOT_OPEN_FOR_SET_ALL),
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


def put_descriptor(mqmd: Mqmd, options: int, application: Application, new_id: bytes, passed: Mqmd | None) -> Mqmd:
    """The descriptor with which the message is put. options: MQPMO_*. passed: of the message that is passed on.

    new_id: for a CorrelId that MQPMO_NEW_CORREL_ID asks for; the store makes MsgIds.
    """
    if options & MQPMO_NEW_MSG_ID:
        mqmd = replace(mqmd, msg_id=bytes(24))
    if options & MQPMO_NEW_CORREL_ID:
        mqmd = replace(mqmd, correl_id=new_id)
    if options & MQPMO_SET_ALL_CONTEXT:
        return mqmd
    if not options & _OWN_IDENTITY:
        mqmd = _with_identity(mqmd, options, application, passed)
    if options & MQPMO_PASS_ALL_CONTEXT and passed is not None:
        return replace(
            mqmd,
            put_appl_type=passed.put_appl_type,
            put_appl_name=passed.put_appl_name,
            put_date=passed.put_date,
            put_time=passed.put_time,
            appl_origin_data=passed.appl_origin_data,
        )
    name, kind = ("", 0) if options & MQPMO_NO_CONTEXT else (application.name, application.kind)
    return replace(mqmd, put_appl_type=kind, put_appl_name=name, put_date="", put_time="", appl_origin_data="")


def _with_identity(mqmd: Mqmd, options: int, application: Application, passed: Mqmd | None) -> Mqmd:
    if options & (MQPMO_PASS_IDENTITY_CONTEXT | MQPMO_PASS_ALL_CONTEXT) and passed is not None:
        user, token, data = passed.user_identifier, passed.accounting_token, passed.appl_identity_data
    elif options & MQPMO_NO_CONTEXT:
        user, token, data = "", bytes(32), ""
    else:
        user, token, data = application.user[:12], application.accounting_token, ""
    return replace(mqmd, user_identifier=user, accounting_token=token, appl_identity_data=data)
