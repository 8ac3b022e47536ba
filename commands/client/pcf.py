"""Commands of administration (PCF): put on the command queue, and the responses that come on a queue of the moment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from commands.client.calls import Target, Wanted
from commands.client.connection import Connection
from commands.client.errors import MqError, failure, reason_word
from rfh2 import mqi_constants as m
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQMT_REQUEST
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfbs, Cfgr, Cfil, Cfil64, Cfin, Cfin64, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import MQCFC_LAST

COMMAND_QUEUE: Final = "SYSTEM.ADMIN.COMMAND.QUEUE"
MODEL_QUEUE: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
_LITTLE_ENDIAN: Final = 546
_NO_ANSWER: Final = 2033

Value = int | str | bytes | Sequence[int] | Sequence[str]


def parameter_of(number: int, value: Value) -> Parameter:
    """The parameter *number* with *value*. Raises EncodeError."""
    if isinstance(value, bool | int):
        return Cfin(number, int(value))
    if isinstance(value, str):
        return Cfst.of(number, value, UTF8_CCSID)
    if isinstance(value, bytes):
        return Cfbs.of(number, value)
    if all(isinstance(each, int) for each in value):
        return Cfil(number, tuple(int(each) for each in value))
    return Cfsl.of(number, tuple(str(each) for each in value), UTF8_CCSID)


def value_of(parameter: Any) -> Any:
    """The value of a parameter: a number, a text without blanks at its end, bytes, a list; of a group a dictionary."""
    match parameter:
        case Cfgr():
            return {each.parameter: value_of(each) for each in parameter.members}
        case Cfst():
            return parameter.text.rstrip()
        case Cfsl():
            return [text.rstrip() for text in parameter.texts]
        case Cfil() | Cfil64():
            return list(parameter.values)
        case Cfin() | Cfin64():
            return parameter.value
        case _:
            return getattr(parameter, "data", b"")


def exchange(connection: Connection, command: Pcf, *, wait_s: float = 10.0, model: str = MODEL_QUEUE) -> Iterator[Pcf]:
    """The responses to *command*, up to the last one. Raises MqError: 2033 where one does not come in *wait_s*."""
    options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_FAIL_IF_QUIESCING
    opened = connection.open(Target(model, dynamic="QPUBSUB.*"), options)
    try:
        mqmd = Mqmd(
            version=2,
            msg_type=MQMT_REQUEST,
            expiry=int(wait_s * 10) or 1,
            encoding=_LITTLE_ENDIAN,
            coded_char_set_id=UTF8_CCSID,
            format="MQADMIN",
            msg_id=os.urandom(24),
            reply_to_q=opened.name,
        )
        connection.put1(Target(COMMAND_QUEUE), mqmd.encode(), command.encode(), m.MQPMO_NO_SYNCPOINT)
        get = m.MQGMO_NO_SYNCPOINT | m.MQGMO_FAIL_IF_QUIESCING | m.MQGMO_CONVERT
        wanted = Wanted(
            get,
            int(wait_s * 1_000),
            match=m.MQMO_MATCH_CORREL_ID,
            correl_id=mqmd.msg_id,
            ccsid=UTF8_CCSID,
            encoding=_LITTLE_ENDIAN,
        )
        while True:
            got = connection.get(opened.handle, wanted)
            if got is None:
                raise MqError("the answer of the command server", _NO_ANSWER, reason_word(_NO_ANSWER))
            message = decode(got.body, got.md)
            response = decode_pcf(message.body, message.body_ccsid, message.body_offset)
            yield response
            if response.control == MQCFC_LAST:
                return
    finally:
        if connection.is_up:
            connection.close(opened.handle, m.MQCO_DELETE_PURGE)


def execute(
    connection: Connection, command: int, parameters: Mapping[int, Value], *, wait_s: float = 10.0
) -> list[dict[int, Any]]:
    """Run a command (MQCMD_*): the parameters of each response that has some. Raises MqError where it fails."""
    asked = Pcf(command, tuple(parameter_of(number, value) for number, value in parameters.items()))
    found: list[dict[int, Any]] = []
    for response in exchange(connection, asked, wait_s=wait_s):
        if response.comp_code == 2:
            raise failure(f"PCF command {command}", response.reason, reason_word(response.reason))
        if response.parameters:
            found.append({each.parameter: value_of(each) for each in response.parameters})
    return found
