"""PCF in JSON form: the fields of its MQCFH and its parameters, in IBM's names."""

from __future__ import annotations

from typing import Any

from rfh2.eph import Eph
from rfh2.errors import DecodeError
from rfh2.explain.form import number
from rfh2.explain.reading import PartialMessage
from rfh2.pcf import FORMATS, Pcf, decode_pcf
from rfh2.pcf_admin_names import COMMANDS, PARAMETERS
from rfh2.pcf_parameters import Cfbs, Cfgr, Cfil, Cfil64, Cfin, Cfin64, Cfsl, Cfst, Parameter


def body_pcf(partial: PartialMessage) -> Pcf | None:
    """The PCF message that the body is; None where its Format is no PCF, or it cannot be decoded."""
    message = partial.message
    if partial.fault is not None or message.body_format not in FORMATS:
        return None
    try:
        return decode_pcf(message.body, message.body_ccsid, partial.rest_offset)
    except DecodeError:
        return None


def embedded_pcf(header: Eph) -> Pcf | None:
    """The PCF message in an MQEPH; None where it cannot be decoded."""
    try:
        return header.pcf()
    except DecodeError:
        return None


def describe_pcf(pcf: Pcf) -> dict[str, Any]:
    """The JSON form of a PCF message."""
    return {
        "Type": pcf.type,
        "Command": pcf.command,
        "name": COMMANDS.get(pcf.command),
        "CompCode": pcf.comp_code,
        "Reason": pcf.reason,
        "parameters": [describe_parameter(parameter) for parameter in pcf.parameters],
    }


def describe_parameter(parameter: Parameter) -> dict[str, Any]:
    """The JSON form of a parameter: number, Type, name where that is known, value; bytes as hex."""
    name = PARAMETERS.get(parameter.parameter)
    return {"Parameter": parameter.parameter, "Type": parameter.type, "name": name, "value": _value(parameter)}


def _value(parameter: Parameter) -> Any:
    if isinstance(parameter, Cfin | Cfin64):
        return number(parameter.value)
    if isinstance(parameter, Cfil | Cfil64):
        return [number(value) for value in parameter.values]
    if isinstance(parameter, Cfgr):
        return [describe_parameter(member) for member in parameter.members]
    if isinstance(parameter, Cfbs):
        return parameter.data.hex()
    if isinstance(parameter, Cfst | Cfsl):
        try:
            return parameter.text if isinstance(parameter, Cfst) else list(parameter.texts)
        except DecodeError:
            return parameter.data.hex() if isinstance(parameter, Cfst) else [s.hex() for s in parameter.strings]
    return parameter.encode("big").hex()
