"""MQRFH, the header of version 1: commands, responses and publications as names and values (wire formats, section 2).

Names that begin with ``MQ`` are IBM's; MQPSCommand must be the first of them. Other names belong to the program. They
are part of a publication, and are ignored in other commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from commands.headers import publication
from commands.headers.response import Reply, Tags, reason_text
from commands.headers.rfh1_pcf_commands import Given, Reasons, command_of, publisher_of
from commands.model import Command, Publish, PubOpt
from rfh2 import constants as mq, rfh1
from rfh2.ccsid import ASCII_FIELDS, UTF8_CCSID, byte_order, field_codec, is_ebcdic, text_codec
from rfh2.errors import CommandError, DecodeError, EncodeError
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.subscriptions import PublicationFormat

_RESERVED: Final = "MQ"
_REASONS: Final = Reasons(
    unknown=(mq.MQRC_RFH_PARM_ERROR,) * 2, duplicate=(mq.MQRC_RFH_DUPLICATE_PARM,) * 2, missing=mq.MQRC_RFH_PARM_MISSING
)
# With these reasons the string itself is not reliable, so the response does not repeat it.
_WITHOUT_COMMAND: Final = (mq.MQRC_RFH_ERROR, mq.MQRCCF_MSG_LENGTH_ERROR)


def parse(message: Message) -> Command:
    """The command in the NameValueString of the message's MQRFH.

    Raises CommandError: 2335 to 2339 with MQPSErrorPos, the position in the string in bytes from 0, and what
    ``command_of`` raises.
    """
    header = message.rfh1
    assert header is not None
    pairs = _name_values(header)
    reserved = [pair for pair in pairs if pair.name.startswith(_RESERVED)]
    if not reserved or reserved[0].name != rfh1.MQPS_COMMAND:
        position = reserved[0].position if reserved else 0
        why = "the first MQPS name is not MQPSCommand"
        raise CommandError(mq.MQRC_RFH_COMMAND_ERROR, why=why, tags=_place(position))
    command, *rest = reserved
    if command.value not in publication.COMMAND_IDS:
        why = f"{command.value!r} is not one of {', '.join(publication.COMMAND_IDS)}"
        tags = (("Command", command.value), *_place(command.position))
        raise CommandError(mq.MQRC_RFH_COMMAND_ERROR, why=why, tags=tags)
    given = [_given(pair) for pair in rest]
    return command_of(command.value, given, PublicationFormat.RFH1, _REASONS, (("ParmId", rfh1.MQPS_TOPIC),))


def _name_values(header: rfh1.Rfh1) -> list[rfh1.NameValue]:
    try:
        return header.name_values()
    except DecodeError as error:
        raise CommandError(
            mq.MQRC_RFH_STRING_ERROR, why=error.why, tags=_place(max(error.offset - header.offset, 0))
        ) from error


def _given(pair: rfh1.NameValue) -> Given:
    known = publication.BY_MQPS.get(pair.name)
    where = (("ParmId", pair.name), *_place(pair.position))
    if known is None:
        reason = mq.MQRC_RFH_DUPLICATE_PARM if pair.name == rfh1.MQPS_COMMAND else mq.MQRC_RFH_PARM_ERROR
        raise CommandError(reason, why=f"{pair.name} is not allowed here", tags=where)
    options = known.options.read([pair.value]) if known.options is not None else None
    text = pair.value.rstrip(" ") if known.padded else pair.value
    return Given(known.tag, text, where if options is None else _place(pair.position), options)


def _place(position: int) -> Tags:
    return (("ErrorPos", str(position)),)


def reply(command: Message, says: Reply) -> Message:
    """The response to *command*: its MQRFH, and for a warning or an error the command's string as the data behind it.

    Byte order and code page are the command's. Each answer is a group that begins with MQPSCompCode.
    """
    asked = command.rfh1
    header = rfh1.Rfh1() if asked is None else replace(asked, data=b"", encoding=0, format="", flags=0)
    mqmd = command.mqmd
    if asked is None:
        order, ccsid = byte_order(mqmd.encoding) or "little", mqmd.coded_char_set_id
        charset = field_codec(ccsid, is_ebcdic(ccsid))
        header = replace(header, order=order, charset=charset, string_charset=charset)
    encoding = mqmd.encoding
    if byte_order(encoding) != header.order:
        encoding = 273 if header.order == "big" else 546
    header = replace(header, encoding=encoding, coded_char_set_id=mqmd.coded_char_set_id, offset=0)
    data = b""
    if says.answers and asked is not None and not any(one.reason in _WITHOUT_COMMAND for one in says.answers):
        data = asked.data
        header = replace(header, format=mq.MQFMT_STRING)
    pairs = [(name, _fitting(value, header.string_charset)) for name, value in _response(says)]
    described = Mqmd(encoding=encoding, coded_char_set_id=mqmd.coded_char_set_id, format=mq.MQFMT_RF_HEADER_1)
    return Message(described, (header.with_pairs(pairs),), data)


def _response(says: Reply) -> Iterable[tuple[str, str]]:
    for group in says.groups:
        yield rfh1.MQPS_COMP_CODE, str(says.comp_code)
        yield rfh1.MQPS_REASON, str(group.reason)
        yield rfh1.MQPS_REASON_TEXT, reason_text(group.reason)
        for tag, value in group.tags:
            if tag == "Command":
                yield rfh1.MQPS_COMMAND, value
            elif (known := publication.BY_TAG.get(tag)) is not None:
                yield known.mqps, value


def _fitting(text: str, charset: str) -> str:
    return text.replace("\0", "?").encode(charset, "replace").decode(charset)


def content(message: Message, at: int, command: Publish | None) -> publication.Content:
    """The publication whose MQRFH is header number *at*; command: the result of ``parse``, where it succeeded."""
    header = message.headers[at]
    assert isinstance(header, rfh1.Rfh1)
    try:
        pairs = header.pairs()
    except DecodeError:
        pairs = []
    data = tuple((publication.BY_MQPS[name].tag, value) for name, value in pairs if name in _DATA)
    user = tuple((name, value) for name, value in pairs if not name.startswith(_RESERVED))
    found = publication.Content(
        PublicationFormat.RFH1, publication.frame_around(message, at), header, data=data, user=user
    )
    if command is None:
        return found
    return replace(
        found, pub_time=command.pub_time, seq_num=command.seq_num, publisher=publisher_of(command, message.mqmd)
    )


_DATA: Final = (publication.BY_TAG["IntData"].mqps, publication.BY_TAG["StringData"].mqps)


def render(content: publication.Content, form: publication.DeliveryForm) -> publication.RenderedPublication:
    """The publication with an MQRFH: one name for each value, quoted where a value needs it.

    The string is in the code page in force if that has all its characters. Otherwise the whole header is in UTF-8, and
    the structure before it says so.
    """
    from_folders, lost = publication.pairs_of_folders(content.folders, _is_free)
    data = (*content.data, *from_folders.data)
    pairs = [(rfh1.MQPS_COMMAND, Publish.word)]
    if form.is_retained:
        pairs.append((rfh1.MQPS_PUBLICATION_OPTIONS, PubOpt.IS_RETAINED_PUB.value))
    if form.stream:
        pairs.append((rfh1.MQPS_STREAM_NAME, form.stream))
    pairs += [(rfh1.MQPS_TOPIC, topic) for topic in form.topics]
    pairs += [
        (publication.BY_TAG[tag].mqps, value) for tag, value in (*content.publisher, *content.time_and_number, *data)
    ]
    pairs += (*content.user, *content.user_tags, *from_folders.user)
    lost = (*lost, *(f"{name}: its value holds a null" for name, value in pairs if "\0" in value))
    pairs = [(name, value) for name, value in pairs if "\0" not in value]
    if form.sub_point:
        lost = (*lost, f"SubPoint {form.sub_point}")
    frame = content.frame
    header = rfh1.Rfh1(
        b"",
        frame.encoding,
        frame.coded_char_set_id,
        frame.format,
        frame.flags,
        frame.order,
        frame.charset,
        rfh1.string_codec(frame.ccsid, frame.charset),
    )
    # IBM's JMS client takes nulls behind the last value for a part of it: noLocal would not work.
    blanks = bool(content.user or content.user_tags)
    # A publication with an MQRFH in an unknown code page leaves in the same code page, byte for byte.
    known = isinstance(content.header, rfh1.Rfh1) or text_codec(frame.ccsid, mq.MQENC_NATIVE) is not None
    if known or _is_ascii(pairs):
        try:
            return publication.RenderedPublication(frame.with_header(header.with_pairs(pairs, blanks=blanks)), lost)
        except EncodeError:
            pass
    wide = replace(header, charset=ASCII_FIELDS, string_charset="utf-8", coded_char_set_id=frame.ccsid_behind)
    return publication.RenderedPublication(
        frame.with_header(wide.with_pairs(pairs, blanks=blanks), ccsid=UTF8_CCSID), lost
    )


def _is_ascii(pairs: Iterable[tuple[str, str]]) -> bool:
    return all(name.isascii() and value.isascii() for name, value in pairs)


def _is_free(name: str) -> bool:
    return bool(name) and not name.startswith(_RESERVED) and "\0" not in name
