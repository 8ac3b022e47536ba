"""PCF: commands, responses and publications as a header (MQCFH) and parameters (wire formats 5.1).

A PCF message is a body. Data that a PCF publisher puts behind the last parameter stays there; no field describes it.
Data that was published with another header becomes a parameter, because a queue manager refuses PCF that is longer than
its structures (2149): text MQCACF_STRING_DATA, other bytes MQBACF_MESSAGE_DATA.

A response is one MQCFH, MsgSeqNumber 1 and Control MQCFC_LAST. With an error or a warning it has at most one parameter,
an MQCFIN: MQIACF_PARAMETER_ID with the number of the parameter in error, or MQIACF_ERROR_ID with a further reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from commands.headers import publication
from commands.headers.response import Reply, Tags
from commands.headers.rfh1_pcf_commands import Given, Reasons, command_of, publisher_of
from commands.model import Command, Publish, PubOpt
from rfh2 import constants as mq
from rfh2.ccsid import UTF8_CCSID, ByteOrder, byte_order, text_codec
from rfh2.errors import CommandError, DecodeError, EncodeError
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.options import OptionSet
from rfh2.pcf import FORMATS, Cfbs, Cfin, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import (
    MQBACF_MESSAGE_DATA,
    MQCACF_STRING_DATA,
    MQCFC_LAST,
    MQCFT_COMMAND,
    MQCFT_RESPONSE,
    MQRCCF_CFH_COMMAND_ERROR,
    MQRCCF_CFH_TYPE_ERROR,
    MQRCCF_CFIN_DUPLICATE_PARM,
    MQRCCF_CFIN_PARM_ID_ERROR,
    MQRCCF_CFST_DUPLICATE_PARM,
    MQRCCF_CFST_PARM_ID_ERROR,
    MQRCCF_PARM_COUNT_TOO_SMALL,
    MQRCCF_STRUCTURE_TYPE_ERROR,
)
from streams.subscriptions import PublicationFormat

FORMAT: Final = "MQPCF"
_WIDE: Final = (1200, 13488, 17584)
_LONG: Final = range(-(1 << 31), 1 << 31)
_REASONS: Final = Reasons(
    unknown=(MQRCCF_CFST_PARM_ID_ERROR, MQRCCF_CFIN_PARM_ID_ERROR),
    duplicate=(MQRCCF_CFST_DUPLICATE_PARM, MQRCCF_CFIN_DUPLICATE_PARM),
    missing=MQRCCF_PARM_COUNT_TOO_SMALL,
)


def parse(message: Message) -> Command:
    """The command in the PCF body of *message*.

    Raises DecodeError where the body is not PCF. Raises CommandError 3001 and 3007 for its header, 3013 to 3015 and
    3017 to 3019 for parameters, and what ``command_of`` raises.
    """
    pcf = _decoded(message)
    if pcf.type != MQCFT_COMMAND:
        raise CommandError(MQRCCF_CFH_TYPE_ERROR, why=f"Type is {pcf.type}, not MQCFT_COMMAND")
    word = publication.COMMAND_WORDS.get(pcf.command)
    if word is None:
        why = f"Command {pcf.command} is not a publish/subscribe command"
        raise CommandError(MQRCCF_CFH_COMMAND_ERROR, why=why, tags=(("Command", str(pcf.command)),))
    given = [_given(parameter) for parameter in pcf.parameters]
    missing = (("ParmId", str(publication.BY_TAG["Topic"].pcf)),)
    return command_of(word, given, PublicationFormat.PCF, _REASONS, missing)


def is_command(message: Message) -> bool:
    """Whether the body is a publish/subscribe command; the parameters after its header may be malformed."""
    try:
        pcf = _decoded(message)
    except DecodeError:
        return False
    return pcf.type == MQCFT_COMMAND and pcf.command in publication.COMMAND_WORDS


def _decoded(message: Message) -> Pcf:
    return decode_pcf(message.body, message.body_ccsid, message.body_offset)


def _given(parameter: Parameter) -> Given:
    known = publication.BY_PCF.get(parameter.parameter)
    where = (("ParmId", str(parameter.parameter)),)
    if known is None:
        reason = _REASONS.unknown[isinstance(parameter, Cfin)]
        raise CommandError(reason, why=f"parameter {parameter.parameter} is not allowed here", tags=where)
    if known.integer and isinstance(parameter, Cfin):
        options = known.options.of_mask(parameter.value) if known.options is not None else None
        return Given(known.tag, str(parameter.value), where if options is None else (), options, integer=True)
    if not known.integer and isinstance(parameter, Cfst):
        try:
            text = parameter.text
        except DecodeError as error:
            raise CommandError(error.reason, why=error.why, tags=where) from error
        if known.tag == "Topic" and "\0" in text:
            tags = (("Topic", text.split("\0")[0]), *where)
            raise CommandError(mq.MQRCCF_TOPIC_ERROR, why="a topic cannot hold a null", tags=tags)
        return Given(known.tag, text.rstrip(" ") if known.padded else text, where)
    why = f"parameter {parameter.parameter} has Type {parameter.type}"
    raise CommandError(MQRCCF_STRUCTURE_TYPE_ERROR, why=why, tags=where)


def reply(command: Message, says: Reply) -> Message:
    """The response to *command*: one MQCFH of type response. If there are several warnings, it has the first."""
    order = _order(command)
    number = 0
    try:
        asked = _decoded(command)
        order, number = asked.order, asked.command
    except DecodeError:
        pass
    mqmd = command.mqmd
    encoding = mqmd.encoding
    if byte_order(encoding) != order:
        encoding = 273 if order == "big" else 546
    group = says.groups[0]
    parameters = _error_parameters(group.tags) if says.answers else _attributes(group.tags, mqmd.coded_char_set_id)
    response = Pcf(number, tuple(parameters), MQCFT_RESPONSE, 1, 1, MQCFC_LAST, says.comp_code, group.reason, order)
    fmt = mqmd.format if mqmd.format in FORMATS else FORMAT
    return Message(Mqmd(encoding=encoding, coded_char_set_id=mqmd.coded_char_set_id, format=fmt), (), response.encode())


def _error_parameters(tags: Tags) -> tuple[Cfin, ...]:
    """The parameter that names the command's parameter in error, or gives a further reason; none for neither."""
    told = dict(tags)
    if (parameter := told.get("ParmId")) is not None:
        return (Cfin(publication.BY_TAG["ParmId"].pcf, int(parameter)),)
    if (reason := told.get("ErrorId")) is not None:
        return (Cfin(publication.BY_TAG["ErrorId"].pcf, int(reason)),)
    culprit = next((publication.BY_TAG[tag].pcf for tag in told if tag in publication.BY_TAG), None)
    return () if culprit is None else (Cfin(publication.BY_TAG["ParmId"].pcf, culprit),)


def _attributes(tags: Tags, ccsid: int) -> Iterator[Parameter]:
    """The parameters for the attributes of a subscription; the options of one tag are added up in one parameter."""
    sums: dict[str, int] = {}
    for tag, value in tags:
        known = publication.BY_TAG.get(tag)
        if known is None:
            continue
        if known.options is not None:
            sums[tag] = sums.get(tag, 0) | _mask(known.options, value)
        elif not known.integer:
            yield _string(known.pcf, value, ccsid)
        elif _is_long(value):
            yield Cfin(known.pcf, int(value))
    for tag, mask in sums.items():
        if mask in _LONG:
            yield Cfin(publication.BY_TAG[tag].pcf, mask)


def _mask(options: OptionSet, value: str) -> int:
    """The sum of options that *value* means: an option's word, or the sum that a program gave."""
    return int(value) if _is_long(value) else options.mask(options.read([value]).words)


def _is_long(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 11 and int(text) in _LONG


def _string(parameter: int, text: str, ccsid: int) -> Cfst:
    if ccsid not in (mq.MQCCSI_DEFAULT, mq.MQCCSI_INHERIT) and text_codec(ccsid, mq.MQENC_NATIVE) is not None:
        try:
            return Cfst.of(parameter, text, ccsid)
        except EncodeError:
            pass
    return Cfst.of(parameter, text, UTF8_CCSID)


def _order(message: Message) -> ByteOrder:
    return byte_order(message.body_encoding) or "little"


def content(message: Message, command: Publish | None) -> publication.Content:
    """The publication in the PCF body of *message*. Raises DecodeError where the body is not PCF."""
    pcf = _decoded(message)
    data: list[tuple[str, str]] = []
    for parameter in pcf.parameters:
        if isinstance(parameter, Cfin) and parameter.parameter == publication.BY_TAG["IntData"].pcf:
            data.append(("IntData", str(parameter.value)))
        elif isinstance(parameter, Cfst) and parameter.parameter == publication.BY_TAG["StringData"].pcf:
            data.append(("StringData", parameter.text))
    found = publication.Content(PublicationFormat.PCF, publication.frame_of_body(message, pcf.rest), data=tuple(data))
    found = replace(found, frame=replace(found.frame, order=pcf.order))
    if command is None:
        return found
    publisher = publisher_of(command, message.mqmd)
    return replace(found, pub_time=command.pub_time, seq_num=command.seq_num, publisher=publisher)


def render(content: publication.Content, form: publication.DeliveryForm) -> publication.RenderedPublication:
    """The publication as PCF: its data is the last parameter, or follows the last if a PCF publisher put it there."""
    frame = content.frame
    from_folders, lost = publication.pairs_of_folders(content.folders, lambda _name: True)
    lost_here = [f"user pair {name}" for name, _ in (*content.user, *content.user_tags, *from_folders.user)]
    parameters: list[Parameter] = []
    if form.is_retained:
        options = publication.BY_TAG["PubOpt"].options
        assert options is not None
        parameters.append(Cfin(publication.BY_TAG["PubOpt"].pcf, options.mask([PubOpt.IS_RETAINED_PUB.value])))
    pairs = [("StreamName", form.stream)] if form.stream else []
    pairs += [("Topic", topic) for topic in form.topics]
    pairs += (*content.publisher, *content.time_and_number, *content.data, *from_folders.data)
    for tag, value in pairs:
        known = publication.BY_TAG[tag]
        if not known.integer:
            parameters.append(_string(known.pcf, value, frame.ccsid))
        elif _is_long(value):
            parameters.append(Cfin(known.pcf, int(value)))
        else:
            lost_here.append(f"{tag} {value!r}, which is not a number")
    if form.sub_point:
        lost_here.append(f"SubPoint {form.sub_point}")
    if content.form is not PublicationFormat.PCF and (data := _data(frame)) is not None:
        parameters.append(data)
        if isinstance(data, Cfbs):
            lost_here.append("Format, Encoding and CodedCharSetId of the data")
        frame = replace(frame, after=(), body=b"")
    pcf = Pcf(publication.COMMAND_IDS[Publish.word], tuple(parameters), MQCFT_COMMAND, order=frame.order)
    fmt = frame.mqmd.format if not frame.before and frame.mqmd.format in FORMATS else FORMAT
    return publication.RenderedPublication(frame.with_body(pcf.encode(), fmt), (*lost, *lost_here))


def _data(frame: publication.Frame) -> Cfst | Cfbs | None:
    """The data behind the gap as a parameter: a string as it is, with its own code page; other data as bytes."""
    if frame.format.rstrip(" ") == mq.MQFMT_STRING and not frame.after:
        ccsid = frame.ccsid_behind
        if not frame.body:
            return None
        if ccsid not in _WIDE:
            return Cfst(MQCACF_STRING_DATA, frame.body, max(ccsid, mq.MQCCSI_DEFAULT), tail=bytes(-len(frame.body) % 4))
        # These depend on the byte order of the data, and a parameter has no byte order of its own.
        with suppress(LookupError, UnicodeDecodeError):
            text = frame.body.decode(text_codec(ccsid, frame.encoding) or "")
            return Cfst.of(MQCACF_STRING_DATA, text, UTF8_CCSID)
    data = b"".join([*(header.encode() for header in frame.after), frame.body])
    return Cfbs.of(MQBACF_MESSAGE_DATA, data) if data else None
