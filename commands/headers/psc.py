"""MQRFH2: commands in its psc folder, responses in a pscr folder, publications in a psc folder (guide 6.6, 6.7).

Nearly all folders that a program writes are like earlier ones, of which only some texts differ:

    <psc><Command>Publish</Command><Topic> text </Topic><SeqNum> text </SeqNum></psc>

All that is not one of these texts is the shape of the folder. A folder is read with all rules when its shape is new
(``psc_commands``). What these rules say depends on the shape alone, because a text that may differ has characters, and
none that XML changes or refuses. So another folder of that shape is a command with other texts, and nothing is checked
again. ``tests/commands/headers/test_psc_shapes.py`` proves that both ways give the same.

New programs get publications with message properties, or without publish/subscribe data. PSPROP(MSGPROP) puts the
properties of guide 4.4, table 1, into folders mqps and mqpse; PSPROP(NONE) puts nothing. User pairs of an MQRFH become
properties under both: they are the program's data.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from commands.headers import publication
from commands.headers.psc_commands import ALL_TAGS, RULES, parse_psc
from commands.headers.response import Completion, Reply, Tags, Warned
from commands.model import Command, Publish, PubOpt, TopicPut, command_like
from rfh2 import constants as mq
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import UTF8_CCSID, byte_order, field_codec, is_ebcdic
from rfh2.errors import CommandError, DecodeError
from rfh2.folders import LEAF_CHARACTER, Element, Folder, parse as folder_roots, tag_of, write, write_nested
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2, split_roots
from streams.subscriptions import PublicationFormat

PSC = "psc"
_BEGIN = b"<psc>"
_MARK = b"<psc"


def lone_psc(header: Rfh2) -> Folder | None:
    """The psc folder of *header*, if a quick look shows exactly one; None where a quick look is not enough."""
    if header.name_value_ccsid != UTF8_CCSID:
        return None
    found = None
    for folder in header.folders:
        data = folder.data
        if _MARK in data:
            if found is not None or not data.startswith(_BEGIN):
                return None
            found = folder
    return found


def split_psc(header: Rfh2) -> tuple[tuple[Folder, ...], tuple[Folder, ...]]:
    """The psc folders of *header*, and all its other folders, each in order.

    A NameValueData that holds a psc folder among others is split; every other one stays as it is, byte for byte. If no
    psc folder is sound, a NameValueData with text or a declaration in front of ``<psc>`` counts as one: the error then
    comes from reading it.
    """
    commands: list[Folder] = []
    others: list[Folder] = []
    doubtful: list[Folder] = []
    for folder in header.folders:
        if _is_psc_alone(folder):
            commands.append(folder)
            continue
        if not _mentions_psc(folder):
            others.append(folder)
            continue
        parts = split_roots(folder)
        found = [part for part in parts if part.name == PSC]
        if not found:
            others.append(folder)
            if folder.name[:1] in ("", "!", "?"):
                doubtful.append(folder)
            continue
        commands += found
        others += [part for part in parts if part.name != PSC]
    if doubtful and not commands:
        return tuple(doubtful[:1]), tuple(folder for folder in others if folder is not doubtful[0])
    return tuple(commands), tuple(others)


def _is_psc_alone(folder: Folder) -> bool:
    """The result in the usual case, without parsing the text."""
    data = folder.data
    return data.startswith(_BEGIN) and data.count(b"<psc") == 1 and data.rstrip(b" \0").endswith(b"</psc>")


def _mentions_psc(folder: Folder) -> bool:
    return _mark(folder.charset) in folder.data


@cache
def _mark(charset: str) -> bytes:
    return f"<{PSC}".encode(charset)


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
        raise DecodeError(0, "message", why, "no-command-header", mq.MQRC_FORMAT_ERROR)
    found, _ = split_psc(header)
    if not found:
        raise CommandError(mq.MQRC_RFH_COMMAND_ERROR, why="the MQRFH2 has no psc folder")
    if len(found) > 1:
        raise CommandError(mq.MQRC_RFH_DUPLICATE_PARM, why="the MQRFH2 has more than one psc folder")
    return parse_psc(_pairs(found[0]))


def _pairs(psc: Folder) -> list[tuple[str, str]]:
    leaves = psc.leaves()
    if leaves is not None:
        return leaves
    for child in folder_roots(psc)[0]:
        if len(child):
            raise CommandError(mq.MQRC_RFH_PARM_ERROR, why=f"{tag_of(child)} holds other elements instead of a value")
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
    described = Mqmd(encoding=encoding, coded_char_set_id=command.mqmd.coded_char_set_id, format=mq.MQFMT_RF_HEADER_2)
    return Message(described, (rfh2,))


def _reason(answer: Warned) -> Element:
    return Element("Reason", str(answer.reason))


def _known(tags: Tags) -> list[Element]:
    return [Element(tag, publication.in_xml(value)) for tag, value in tags if tag in _TAGS]


def _charset(header: Rfh2) -> str:
    return "utf-8" if header.name_value_ccsid == UTF8_CCSID else f"utf-16-{header.order[0]}e"


def _header_for(command: Mqmd) -> Rfh2:
    """An empty header in the byte order and the characters that the sender of an unreadable message uses."""
    ccsid = command.coded_char_set_id
    return Rfh2(order=byte_order(command.encoding) or "little", charset=field_codec(ccsid, is_ebcdic(ccsid)))


def content(message: Message, at: int, command: Publish | None) -> publication.Content:
    """The publication whose MQRFH2 is header number *at*; command: the result of ``parse``, where it succeeded."""
    header = message.headers[at]
    assert isinstance(header, Rfh2)
    return publication.Content(
        PublicationFormat.RFH2,
        publication.frame_around(message, at),
        header,
        pub_time=None if command is None else command.pub_time,
        seq_num=None if command is None else command.seq_num,
        user_tags=() if command is None else command.user_tags,
        folders=split_psc(header)[1],
    )


def render(content: publication.Content, form: publication.DeliveryForm) -> publication.RenderedPublication:
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
    lost = tuple(
        f"{tag}: characters that XML does not allow" for tag, value in pairs if not publication.has_room_for(value)
    )
    if content.data:
        lost = (*lost, "IntData and StringData have no psc tag: they are in mqpse.Sid")
    rendered = with_folders(content, (write("psc", [(tag, publication.in_xml(value)) for tag, value in pairs]),))
    return replace(rendered, lost=(*rendered.lost, *lost)) if lost else rendered


def with_folders(
    content: publication.Content, texts: tuple[str, ...], time_and_number: publication.Pairs = ()
) -> publication.RenderedPublication:
    """The publication with an MQRFH2 of these folders and its own; the data of an MQRFH or of PCF goes into mqpse.

    time_and_number: PubTime and SeqNum, if mqpse shall have them too.
    """
    user, lost_user = publication.user_folder(content.user)
    data, lost_data = publication.data_text(content.data)
    all_texts = (*texts, *(text for text in (publication.extensions_folder(time_and_number, data), user) if text))
    if isinstance(content.header, Rfh2):
        header = content.header
    else:
        frame = content.frame
        described = (frame.encoding, frame.coded_char_set_id, frame.format, frame.flags)
        header = Rfh2((), *described, UTF8_CCSID, frame.order, frame.charset)
    charset = _charset(header)
    header = header.with_folders((*(Folder.of(text, charset) for text in all_texts), *content.folders))
    return publication.RenderedPublication(content.frame.with_header(header), (*lost_user, *lost_data))


# A rule looks at the other tags' texts, such as the length of a SubName, or they are the same in most folders.
_DIFFERING: Final = re.compile(rf"<(Topic|PubTime|SeqNum|QName|QMgrName)>({LEAF_CHARACTER}++)</\1>")
_MOST_CHARACTERS: Final = 4_096
_SHAPES_BYTES: Final = 1 << 20
_SHAPE_BYTES: Final = 1_500


class _Shape(NamedTuple):
    """The command of a folder, and the places of its fields among the texts that differ."""

    command: Command
    topics: tuple[int, ...]
    fields: tuple[tuple[str, int], ...]


_SHAPES: Final[BoundedCache[tuple[str, ...], _Shape]] = BoundedCache(_SHAPES_BYTES)


def command_of_leaves(folder: Folder) -> Command | None:
    """The command in a psc folder that holds leaves and nothing else; None for any other folder.

    Raises DecodeError for bytes that are not text, CommandError where the folder breaks a rule of its command.
    """
    text = folder.text
    if len(text) > _MOST_CHARACTERS:
        leaves = folder.leaves()
        return None if leaves is None else parse_psc(leaves)
    pieces = _DIFFERING.split(text)
    texts = pieces[2::3]
    del pieces[2::3]
    key = tuple(pieces)
    shape = _SHAPES.get(key)
    if shape is not None:
        command, topics, places = shape
        fields = command.__dict__.copy()
        fields["topics"] = (texts[topics[0]],) if len(topics) == 1 else tuple([texts[at] for at in topics])
        for name, at in places:
            fields[name] = texts[at]
        return command_like(command, fields)
    leaves = folder.leaves()
    if leaves is None:
        return None
    command = parse_psc(leaves)
    shape = _shape(command, pieces[1::2])
    if shape is not None:
        _SHAPES.keep(key, shape, _SHAPE_BYTES + 2 * len(text))
    return command


def _shape(command: Command, tags: list[str]) -> _Shape | None:
    """The shape of a folder with these tags, whose texts may differ; None where it has other topics, such as "" too."""
    rules = RULES[command.word]
    names = [rules.repeated.get(tag) or rules.once[tag] for tag in tags]
    topics = tuple([at for at, name in enumerate(names) if name == "topics"])
    if len(topics) != len(command.topics):
        return None
    return _Shape(command, topics, tuple([(name, at) for at, name in enumerate(names) if name != "topics"]))


PROPERTIES: Final = "mqps"
_DEFAULT_PUT: Final = TopicPut()


def render_properties(content: publication.Content, form: publication.DeliveryForm) -> publication.RenderedPublication:
    """The publication with its properties in an MQRFH2; they replace such folders of the publication itself."""
    own = tuple(folder for folder in content.folders if folder.name not in (PROPERTIES, publication.EXTENSIONS))
    properties = [Element("Top", publication.in_xml(topic)) for topic in form.topics]
    if form.user_data:
        properties.append(Element("Sud", publication.in_xml(form.user_data)))
    properties += (
        Element("Ret", str(int(form.from_retained)), "boolean"),
        Element("Pub", str(content.put_options), "i4"),
        Element("Pbl", str((content.put or _DEFAULT_PUT).level), "i4"),
    )
    text = write_nested(Element(PROPERTIES, properties))
    return with_folders(replace(content, folders=own), (text,), content.time_and_number)


def render_bare(content: publication.Content, _form: publication.DeliveryForm) -> publication.RenderedPublication:
    """The publication without its publish/subscribe header; an MQRFH2 keeps its other folders and its user pairs."""
    _, lost = publication.user_folder(content.user)
    lost = (*lost, *(tag for tag, _ in content.data))
    bare = replace(content, data=())
    if content.folders or content.user:
        return publication.RenderedPublication(with_folders(bare, ()).message, lost)
    return publication.RenderedPublication(content.frame.closed(), lost)
