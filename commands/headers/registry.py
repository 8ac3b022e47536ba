"""Which header format a message has, and what each format does. Only this module knows all formats.

A program gives the queue manager of its queues in ReplyToQMgr and, in a command, in QMgrName. Usually this is the queue
manager that it was connected to. If such a message is put on a queue manager with another name, its responses go
through a transmission queue to the first one, unless it is changed to name the other (``other_qmgr``, ``renamed``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from commands.headers import mqrfh, pcf, psc
from commands.headers.psc import command_of_leaves, lone_psc, split_psc
from commands.headers.publication import Content, DeliveryForm, RenderedPublication, frame_before
from commands.headers.response import Reply
from commands.model import Command, Publish, PubOpt
from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError, QPubSubError
from rfh2.folders import Folder
from rfh2.message import Header, Message, encode
from rfh2.mqi_constants import MQPMO_NOT_OWN_SUBS, MQPMO_RETAIN, MQPMO_SCOPE_QMGR, MQPMO_SUPPRESS_REPLYTO
from rfh2.mqmd import name_of
from rfh2.pcf import FORMATS
from rfh2.rfh1 import MQPS_COMMAND, MQPS_Q_MGR_NAME, Rfh1
from rfh2.rfh2 import Rfh2
from streams.subscriptions import PublicationFormat

_HOLDERS: Final = (Rfh2, Rfh1)
_RFH2, _RFH1, _PCF = PublicationFormat.RFH2, PublicationFormat.RFH1, PublicationFormat.PCF


@dataclass(frozen=True, slots=True)
class HeaderFormat:
    """How one header carries commands and responses."""

    parse: Callable[[Message], Command]
    reply: Callable[[Message, Reply], Message]


HEADER_FORMATS: Final = {
    _RFH2: HeaderFormat(psc.parse, psc.reply),
    _RFH1: HeaderFormat(mqrfh.parse, mqrfh.reply),
    _PCF: HeaderFormat(pcf.parse, pcf.reply),
}

# How a publication is rendered in each format that a subscriber may have.
RENDERERS: Final[dict[PublicationFormat, Callable[[Content, DeliveryForm], RenderedPublication]]] = {
    _RFH2: psc.render,
    _RFH1: mqrfh.render,
    _PCF: pcf.render,
    PublicationFormat.PROPERTIES: psc.render_properties,
    PublicationFormat.NONE: psc.render_bare,
}


def header_format_of(message: Message) -> PublicationFormat:
    """The header that holds the command of *message*: the first that has one, or MQRFH2 where there is none.

    A message that could not be decoded has the format that its Format announces.
    """
    in_pcf = message.body_format in FORMATS
    if len(message.headers) == 1 and isinstance(message.headers[0], Rfh2) and not in_pcf:
        return _RFH2  # as nearly all are
    headers = [header for header in message.headers if isinstance(header, _HOLDERS)]
    if len(headers) + in_pcf > 1:
        for header in headers:
            if isinstance(header, Rfh1) and MQPS_COMMAND.encode(header.string_charset) in header.data:
                return _RFH1
            if isinstance(header, Rfh2) and split_psc(header)[0]:
                return _RFH2
        if in_pcf and pcf.is_command(message):
            return _PCF
    if headers:
        return _RFH1 if isinstance(headers[0], Rfh1) else _RFH2
    if in_pcf:
        return _PCF
    return _RFH1 if name_of(message.mqmd.format) == Rfh1.own_format else _RFH2


def is_command(message: Message) -> bool:
    """Whether *message* is meant for a broker: it has the signs of a command, though it may be malformed."""
    header_format = header_format_of(message)
    if header_format is _PCF:
        return pcf.is_command(message)
    if header_format is _RFH1:
        header = message.rfh1
        return header is not None and MQPS_COMMAND.encode(header.string_charset) in header.data
    header2 = message.rfh2
    return header2 is not None and bool(split_psc(header2)[0])


def content_of(message: Message, command: Command | None = None) -> Content:
    """The content of *message*, a publication; without a publish/subscribe header it is the body alone.

    command: the result of ``parse``, where that is known.
    """
    header_format = header_format_of(message)
    if command is None:
        with suppress(QPubSubError):
            command = parse(message)
    publish = command if isinstance(command, Publish) else None
    content: Content | None = None
    if header_format is _PCF:
        try:
            content = pcf.content(message, publish)
        except DecodeError:
            content = None
    else:
        kind, read = (Rfh1, mqrfh.content) if header_format is _RFH1 else (Rfh2, psc.content)
        at = next((at for at, header in enumerate(message.headers) if isinstance(header, kind)), None)
        if at is not None:
            content = read(message, at, publish)
    if content is None:
        return Content(None, frame_before(message))
    options, put = (0, None) if publish is None else (_put_options(publish), publish.put)
    return replace(content, put_options=options, put=put) if options or put else content


def render(content: Content, form: DeliveryForm) -> RenderedPublication:
    """The publication in this form."""
    keep = form.keep_pcf and content.form is _PCF
    rendered = RENDERERS[_PCF if keep else form.format](content, form)
    return rendered if content.put is None else replace(rendered, put=content.put)


# MQPMO_* of the put that replaces a Publish command (guide 7.2.4, 7.2.5).
_PUT_OPTIONS: Final = {
    PubOpt.RETAIN_PUB: MQPMO_RETAIN,
    PubOpt.OTHER_SUBS_ONLY: MQPMO_NOT_OWN_SUBS,
    PubOpt.LOCAL: MQPMO_SCOPE_QMGR,
}


def _put_options(command: Publish) -> int:
    options = sum(_PUT_OPTIONS.get(option, 0) for option in set(command.options))
    return options | (MQPMO_SUPPRESS_REPLYTO if command.anonymous else 0)


def parse(message: Message) -> Command:
    """The command that *message* carries in an MQRFH2, an MQRFH or PCF.

    Raises DecodeError where it carries no command or the header with the command is malformed. Raises CommandError
    where it breaks a rule of its command (guide 6.7; wire formats 2.5).

    >>> from commands import parse
    >>> from rfh2 import CommandError, Folder, Message, Mqmd, Rfh2
    >>> psc = "<psc><Command>RegSub</Command><Topic>Sport/#</Topic><RegOpt>Local</RegOpt></psc>"
    >>> parse(Message(Mqmd(), (Rfh2((Folder.of(psc),)),))).topics
    ('Sport/#',)
    >>> try:
    ...     parse(Message(Mqmd(), (Rfh2((Folder.of(psc.replace("Local", "Lokal")),)),)))
    ... except CommandError as error:
    ...     error.reason
    3083
    """
    # A short cut for the usual message: if it begins with an MQRFH2 whose psc folder a quick look can read, that is the
    # command, whatever follows it.
    if message.headers and isinstance(first := message.headers[0], Rfh2):
        psc_folder = lone_psc(first)
        if psc_folder is not None:
            command = command_of_leaves(psc_folder)
            if command is not None:
                return command
    return HEADER_FORMATS[header_format_of(message)].parse(message)


def other_qmgr(message: CapturedMessage, qmgr: str) -> str | None:
    """The queue manager other than *qmgr* that *message* names: first for its replies, then where it was captured."""
    descriptor = message.descriptor()
    reply_to = "" if descriptor is None else name_of(descriptor.reply_to_qmgr)
    return next((name for name in (reply_to, message.qmgr) if name and name != qmgr), None)


def renamed(message: CapturedMessage, qmgr: str) -> CapturedMessage:
    """*message* as one of queue manager *qmgr*: in ReplyToQMgr, and in QMgrName of its command.

    What names a queue manager that it was not captured on stays as it is: it is elsewhere still. Where the capture does
    not say, ReplyToQMgr does. A command in PCF keeps its QMgrName. Headers that do not name it stay byte for byte.
    """
    descriptor = message.descriptor()
    reply_to = "" if descriptor is None else name_of(descriptor.reply_to_qmgr)
    old = message.qmgr or reply_to
    if not old or old == qmgr:
        return message
    update: dict[str, str] = {"qmgr": qmgr}
    if descriptor is not None and reply_to == old:
        update["md_hex"] = replace(descriptor, reply_to_qmgr=qmgr).encode().hex()
    try:
        decoded = message.decode()
    except QPubSubError:
        # It is put as it is, for the processor to say what is wrong with it.
        return message.model_copy(update=update)
    headers = tuple(_renamed_header(header, old, qmgr) for header in decoded.headers)
    if headers != decoded.headers:
        update["body_hex"] = encode(replace(decoded, headers=headers)).hex()
    return CapturedMessage(**message.model_dump() | update)


def _renamed_header(header: Header, old: str, new: str) -> Header:
    if isinstance(header, Rfh2):
        folders = tuple(_renamed_folder(folder, old, new) for folder in header.folders)
        return header if folders == header.folders else replace(header, folders=folders)
    if isinstance(header, Rfh1):
        pairs = header.pairs()
        changed = [(tag, new if tag == MQPS_Q_MGR_NAME and name_of(value) == old else value) for tag, value in pairs]
        return header if changed == pairs else header.with_pairs(changed)
    return header


def _renamed_folder(folder: Folder, old: str, new: str) -> Folder:
    try:
        text = folder.text
    except QPubSubError:
        return folder
    changed = re.sub(rf"(<QMgrName(?:\s[^>]*)?>\s*){re.escape(old)}(?=\s*</QMgrName\s*>)", rf"\g<1>{new}", text)
    return folder if changed == text else Folder.of(changed, folder.charset)
