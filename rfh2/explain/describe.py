"""From what could be decoded of a message to its JSON form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rfh2.elements import as_json, number
from rfh2.errors import DecodeError
from rfh2.explain.fields import descriptor_layout, layout_of, offsets_of, read_fields
from rfh2.explain.form import FieldValue, Json, Problem
from rfh2.explain.reading import Located, PartialMessage, Salvage, Salvaged, salvage, whole_fields
from rfh2.folders import Folder
from rfh2.message import body_text
from rfh2.mqmd import Mqmd, Xqh
from rfh2.pcf import FORMATS, Cfbs, Cfgr, Cfil, Cfil64, Cfin, Cfin64, Cfsl, Cfst, Eph, Parameter, Pcf, decode_pcf
from rfh2.pcf_admin_names import COMMANDS, PARAMETERS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

# PCF in JSON form: the fields of its MQCFH and its parameters, in IBM's names.


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


def described(
    partial: PartialMessage,
    source: str = "",
    index: int = 0,
    command: Json | None = None,
    problems: Iterable[Problem] = (),
) -> Json:
    """The JSON form of one message. command: the parsed command as JSON; problems: those to report."""
    return {
        "source": source,
        "index": index,
        "mqmd": _descriptor(partial.mqmd, partial.captured.md),
        "headers": [header_form(located, partial.captured.body) for located in partial.headers],
        "command": command,
        "body": body_form(partial),
        "problems": [problem.model_dump(exclude_defaults=True) for problem in problems],
        "captured": partial.captured,
        **({} if partial.fault is None else {"salvaged": _salvage(salvage(partial), partial)}),
    }


def describe_unreadable(source: str, index: int, problem: Problem) -> Json:
    """The JSON form of a record of a capture that could not be read; it has no message."""
    nothing: Json = {"mqmd": None, "headers": [], "command": None, "body": None}
    problems = [problem.model_dump(exclude_defaults=True)]
    return {"source": source, "index": index, **nothing, "problems": problems, "captured": None}


def _descriptor(mqmd: Mqmd | None, md: bytes | None) -> dict[str, FieldValue] | None:
    """The fields of a descriptor in IBM's names; None where there is none that can be read."""
    if mqmd is None or md is None:
        return None
    return read_fields(descriptor_layout(mqmd.version), md, mqmd.order, mqmd.charset)


def header_form(located: Located, body: bytes) -> Json:
    """The JSON form of one header; *body*: all bytes from the first header on."""
    header, offset = located.header, located.offset
    data = body[offset : offset + header.length]
    layout = layout_of(header.kind)
    order, charset = getattr(header, "order", None), getattr(header, "charset", None)
    form: Json = {"type": header.kind, "offset": offset, "length": len(data)}
    if layout is None or order is None or charset is None:
        return form | {"fields": {}, "hex": data.hex()}
    form |= {"byte_order": order, "charset": charset, "fields": read_fields(layout, data, order, charset)}
    if isinstance(header, Rfh2):
        form["folders"] = [folder_form(folder) for folder in header.folders]
    elif isinstance(header, Rfh1):
        form |= {"pairs": _pairs(header), "raw": _raw(header.data, header.string_charset)}
    elif isinstance(header, Xqh):
        form["mqmd"] = _descriptor(header.mqmd, data[layout.size :])
    else:
        if isinstance(header, Eph):
            pcf = embedded_pcf(header)
            form["pcf"] = None if pcf is None else describe_pcf(pcf)
        if len(data) > layout.size:
            form["hex"] = data[layout.size :].hex()
    return form


def _salvage(found: Salvage, partial: PartialMessage) -> Json:
    """What can be read behind the fault at which decoding stopped. ``encode`` goes by the other keys."""
    headers = [
        header_form(part, partial.captured.body) if isinstance(part, Located) else _with_fault(part)
        for part in found.parts
    ]
    form: Json = {"headers": headers}
    message = found.message
    if message is not None and message.body:
        described = {"format": message.body_format, "encoding": message.body_encoding, "ccsid": message.body_ccsid}
        text = {"text": body_text(message), "hex": message.body.hex()}
        form["body"] = {"offset": found.body_offset, "length": len(message.body), **described, **text}
    return form


def _with_fault(part: Salvaged) -> Json:
    form: Json = {"type": part.kind, "offset": part.offset, "length": len(part.data), "fields": {}}
    if part.layout is not None:
        size = whole_fields(part)
        values = read_fields(part.layout, part.fixed[:size].ljust(part.layout.size, b"\0"), part.order, part.charset)
        at = offsets_of(part.layout)
        form |= {"byte_order": part.order, "charset": part.charset}
        form["fields"] = {name: value for name, value in values.items() if at[name] < size}
    if part.rfh2 is not None:
        form["folders"] = [folder_form(folder) for folder in part.folders]
    if (string := part.rfh1) is not None:
        form |= {"pairs": _pairs(string), "raw": _raw(string.data, string.string_charset)}
    form["unread"] = [
        {"offset": unread.offset, "length": len(unread.data), "why": unread.why, "hex": unread.data.hex()}
        for unread in part.unread
    ]
    return form


def folder_form(folder: Folder) -> Json:
    """The JSON form of one NameValueData."""
    values: Json | None
    try:
        values = {tag: as_json(value) for tag, value in folder.values().items()}
    except DecodeError:
        values = None
    raw = _raw(folder.data, folder.charset)
    form = {"name": folder.name, "offset": folder.offset, "length": len(folder.data), "raw": raw, "values": values}
    if raw is None:
        form["hex"] = folder.data.hex()
    return form


def body_form(partial: PartialMessage) -> Json:
    """The JSON form of what follows the last header."""
    message, pcf = partial.message, body_pcf(partial)
    form: Json = {
        "offset": partial.rest_offset,
        "length": len(partial.rest),
        "format": message.body_format,
        "encoding": message.body_encoding,
        "ccsid": message.body_ccsid,
        "text": None if partial.fault is not None else body_text(message),
        "hex": partial.rest.hex(),
    }
    if pcf is not None:
        form["pcf"] = describe_pcf(pcf)
    return form


def _pairs(header: Rfh1) -> list[tuple[str, str]] | None:
    try:
        return header.pairs()
    except DecodeError:
        return None


def _raw(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        return None
