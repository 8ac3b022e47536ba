"""PCF in another character set and encoding.

Strings expand and contract as their characters need; those of a list are filled up with blanks to the length of the
longest. A string that names its own CCSID names the new one afterwards (IBM's usage notes on PCF structures).
"""

from __future__ import annotations

from dataclasses import replace

from rfh2.ccsid import ENCODINGS
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_EMBEDDED, MQCCSI_INHERIT, MQRC_FORMAT_ERROR
from rfh2.conversion.text import ConversionError, Representation, convert_text
from rfh2.errors import DecodeError
from rfh2.pcf import Pcf, decode_pcf
from rfh2.pcf_parameters import Cfgr, Cfsf, Cfsl, Cfst, Parameter, UnknownParameter

_OF_THE_MESSAGE = (MQCCSI_DEFAULT, MQCCSI_EMBEDDED, MQCCSI_INHERIT)


def convert_pcf(data: bytes, source: Representation, target: Representation) -> bytes:
    """The PCF message *data* as *target* has it. Raises ConversionError: 2110, and as ``convert_text`` does."""
    try:
        pcf = decode_pcf(data, source.ccsid)
    except DecodeError as error:
        raise ConversionError(MQRC_FORMAT_ERROR, str(error)) from error
    if pcf.rest.strip(b"\0 "):
        raise ConversionError(MQRC_FORMAT_ERROR, f"{len(pcf.rest)} bytes are behind the last PCF parameter")
    parameters = tuple(_converted(each, pcf, source, target) for each in pcf.parameters)
    return replace(pcf, parameters=parameters, order=target.order).encode()


def _converted(parameter: Parameter, pcf: Pcf, source: Representation, target: Representation) -> Parameter:
    if isinstance(parameter, UnknownParameter):
        raise ConversionError(MQRC_FORMAT_ERROR, f"PCF has a parameter of the unknown type {parameter.type}")
    if isinstance(parameter, Cfgr):
        members = tuple(_converted(member, pcf, source, target) for member in parameter.members)
        return replace(parameter, members=members)
    if isinstance(parameter, (Cfst, Cfsf)):
        ccsid, now, then = _representations(parameter.coded_char_set_id, pcf, source, target)
        string = convert_text(parameter.data, now, then)
        fixed = parameter.length - len(parameter.data) - len(parameter.tail)
        tail = parameter.tail if len(string) == len(parameter.data) else bytes(-(fixed + len(string)) % 4)
        return replace(parameter, data=string, coded_char_set_id=ccsid, tail=tail)
    if isinstance(parameter, Cfsl):
        ccsid, now, then = _representations(parameter.coded_char_set_id, pcf, source, target)
        strings = [convert_text(string, now, then) for string in parameter.strings]
        size = max(map(len, strings), default=parameter.string_length)
        blank = " ".encode(then.codec or "ascii")
        filled = tuple(string + blank * ((size - len(string)) // len(blank)) for string in strings)
        tail = parameter.tail if size == parameter.string_length else bytes(-size * len(filled) % 4)
        return replace(parameter, strings=filled, string_length=size, coded_char_set_id=ccsid, tail=tail)
    return parameter


def _representations(
    own: int, pcf: Pcf, source: Representation, target: Representation
) -> tuple[int, Representation, Representation]:
    """CodedCharSetId of a string afterwards; how it is written, and how it will be."""
    inherits = own in _OF_THE_MESSAGE
    now = Representation(source.ccsid if inherits else own, ENCODINGS[pcf.order])
    stays = not inherits and source.ccsid == target.ccsid
    then = Representation(own if stays else target.ccsid, target.encoding)
    return own if inherits else then.ccsid, now, then
