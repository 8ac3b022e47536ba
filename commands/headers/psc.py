"""MQRFH2: commands in its psc folder, responses in a pscr folder, publications in a psc folder (guide 6.6, 6.7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.headers.psc_commands import ALL_TAGS, parse_psc
from commands.headers.psc_folder import split_psc
from commands.headers.publication import Content, DeliveryForm, Pairs, RenderedPublication, frame_around
from commands.headers.response import Completion, Reply, Tags, Warned
from commands.headers.user_folders import data_text, extensions_folder, user_folder
from commands.headers.xml_text import has_room_for, in_xml
from commands.model import Command, Publish, PubOpt
from rfh2.ccsid import UTF8_CCSID, byte_order, field_codec, is_ebcdic
from rfh2.constants import (
    MQFMT_RF_HEADER_2,
    MQRC_FORMAT_ERROR,
    MQRC_RFH_COMMAND_ERROR,
    MQRC_RFH_DUPLICATE_PARM,
    MQRC_RFH_PARM_ERROR,
)
from rfh2.errors import CommandError, DecodeError
from rfh2.folders import Element, Folder, parse as folder_roots, tag_of, write, write_nested
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.subscriptions import PublicationFormat

# What a pscr folder may hold beside the tags of psc (wire formats 4.3).
_TAGS: Final = ALL_TAGS | {"UserId", "CorrelId"}


def parse(message: Message) -> Command:
    """The command in the psc folder of the message's first MQRFH2. Other folders belong to the publication.

    Raises DecodeError where there is no MQRFH2 or the folder's text is broken, CommandError where the folder breaks a
    rule of its command (guide 6.7).
    """
    header = message.rfh2
    if header is None:
        why = f"no MQRFH2: Format of the message is {message.mqmd.format!r}"
        raise DecodeError(0, "message", why, "no-command-header", MQRC_FORMAT_ERROR)
    found, _ = split_psc(header)
    if not found:
        raise CommandError(MQRC_RFH_COMMAND_ERROR, why="the MQRFH2 has no psc folder")
    if len(found) > 1:
        raise CommandError(MQRC_RFH_DUPLICATE_PARM, why="the MQRFH2 has more than one psc folder")
    return parse_psc(_pairs(found[0]))


def _pairs(psc: Folder) -> list[tuple[str, str]]:
    leaves = psc.leaves()
    if leaves is not None:
        return leaves
    for child in folder_roots(psc)[0]:
        if len(child):
            raise CommandError(MQRC_RFH_PARM_ERROR, why=f"{tag_of(child)} holds other elements instead of a value")
    return psc.pairs()


def reply(command: Message, says: Reply) -> Message:
    """The response to *command*, in its byte order, code page and NameValueCCSID.

    The psc folder of the command follows a warning or an error as it came (guide 6.7.6).
    """
    asked = command.rfh2
    header = asked if asked is not None else _header_for(command.mqmd)
    response = [Element("Completion", says.completion.value)]
    response += (Element("Response", (_reason(answer), *_known(answer.tags))) for answer in says.answers)
    response += _known(says.attributes)
    folders = [Folder.of(write_nested(Element("pscr", response)), _charset(header))]
    if says.completion is not Completion.OK and asked is not None:
        folders += split_psc(asked)[0][:1]
    encoding = command.mqmd.encoding
    if byte_order(encoding) != header.order:
        encoding = 273 if header.order == "big" else 546
    rfh2 = Rfh2(
        tuple(folders),
        encoding,
        UTF8_CCSID,
        name_value_ccsid=header.name_value_ccsid,
        order=header.order,
        charset=header.charset,
    )
    described = Mqmd(encoding=encoding, coded_char_set_id=command.mqmd.coded_char_set_id, format=MQFMT_RF_HEADER_2)
    return Message(described, (rfh2,))


def _reason(answer: Warned) -> Element:
    return Element("Reason", str(answer.reason))


def _known(tags: Tags) -> list[Element]:
    return [Element(tag, in_xml(value)) for tag, value in tags if tag in _TAGS]


def _charset(header: Rfh2) -> str:
    return "utf-8" if header.name_value_ccsid == UTF8_CCSID else f"utf-16-{header.order[0]}e"


def _header_for(command: Mqmd) -> Rfh2:
    """An empty header in the byte order and the characters that the sender of an unreadable message uses."""
    ccsid = command.coded_char_set_id
    return Rfh2(order=byte_order(command.encoding) or "little", charset=field_codec(ccsid, is_ebcdic(ccsid)))


def content(message: Message, at: int, command: Publish | None) -> Content:
    """The publication whose MQRFH2 is header number *at*; command: the result of ``parse``, where it succeeded."""
    header = message.headers[at]
    assert isinstance(header, Rfh2)
    return Content(
        PublicationFormat.RFH2,
        frame_around(message, at),
        header,
        pub_time=None if command is None else command.pub_time,
        seq_num=None if command is None else command.seq_num,
        user_tags=() if command is None else command.user_tags,
        folders=split_psc(header)[1],
    )


def render(content: Content, form: DeliveryForm) -> RenderedPublication:
    """The publication with an MQRFH2 whose first folder is psc; its other folders stay, byte for byte.

    The program's own tags stand last: noLocal of a JMS client looks for one of them.
    """
    pairs = [("Command", Publish.word)]
    if form.is_retained:
        pairs.append(("PubOpt", PubOpt.IS_RETAINED_PUB.value))
    pairs += [("Topic", topic) for topic in form.topics]
    if form.sub_point:
        pairs.append(("SubPoint", form.sub_point))
    pairs += content.time_and_number
    pairs += content.user_tags
    lost = tuple(f"{tag}: characters that XML does not allow" for tag, value in pairs if not has_room_for(value))
    if content.data:
        lost = (*lost, "IntData and StringData have no psc tag: they are in mqpse.Sid")
    rendered = with_folders(content, (write("psc", [(tag, in_xml(value)) for tag, value in pairs]),))
    return replace(rendered, lost=(*rendered.lost, *lost)) if lost else rendered


def with_folders(content: Content, texts: tuple[str, ...], time_and_number: Pairs = ()) -> RenderedPublication:
    """The publication with an MQRFH2 of these folders and its own; the data of an MQRFH or of PCF goes into mqpse.

    time_and_number: PubTime and SeqNum, if mqpse shall have them too.
    """
    user, lost_user = user_folder(content.user)
    data, lost_data = data_text(content.data)
    all_texts = (*texts, *(text for text in (extensions_folder(time_and_number, data), user) if text))
    if isinstance(content.header, Rfh2):
        header = content.header
    else:
        frame = content.frame
        described = (frame.encoding, frame.coded_char_set_id, frame.format, frame.flags)
        header = Rfh2((), *described, UTF8_CCSID, frame.order, frame.charset)
    charset = _charset(header)
    header = header.with_folders((*(Folder.of(text, charset) for text in all_texts), *content.folders))
    return RenderedPublication(content.frame.with_header(header), (*lost_user, *lost_data))
