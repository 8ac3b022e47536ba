"""Which family a message belongs to, and what each family does. Only this module knows all families."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from commands.headers import message_properties, mqrfh, pcf, psc
from commands.headers.psc_folder import lone_psc, split_psc
from commands.headers.psc_shapes import command_of_leaves
from commands.headers.publication import Content, DeliveryForm, RenderedPublication, frame_before
from commands.headers.response import Reply
from commands.model import Command, Publish, PubOpt
from rfh2.errors import DecodeError, QPubSubError
from rfh2.message import Message
from rfh2.mqmd import name_of
from rfh2.pcf import FORMATS
from rfh2.rfh1 import MQPS_COMMAND, Rfh1
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
    PublicationFormat.PROPERTIES: message_properties.render,
    PublicationFormat.NONE: message_properties.render_bare,
}


def header_format_of(message: Message) -> PublicationFormat:
    """The header that holds the command of *message*: the first that has one, or MQRFH2 where there is none.

    A message that could not be decoded belongs to the family that its Format announces.
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
    family = header_format_of(message)
    if family is _PCF:
        return pcf.is_command(message)
    if family is _RFH1:
        header = message.rfh1
        return header is not None and MQPS_COMMAND.encode(header.string_charset) in header.data
    header2 = message.rfh2
    return header2 is not None and bool(split_psc(header2)[0])


def content_of(message: Message, command: Command | None = None) -> Content:
    """The content of *message*, a publication; without a publish/subscribe header it is the body alone.

    command: the result of ``parse``, where that is known.
    """
    family = header_format_of(message)
    if command is None:
        with suppress(QPubSubError):
            command = parse(message)
    publish = command if isinstance(command, Publish) else None
    content: Content | None = None
    if family is _PCF:
        try:
            content = pcf.content(message, publish)
        except DecodeError:
            content = None
    else:
        kind, read = (Rfh1, mqrfh.content) if family is _RFH1 else (Rfh2, psc.content)
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
    PubOpt.RETAIN_PUB: 0x0020_0000,
    PubOpt.OTHER_SUBS_ONLY: 0x1000_0000,
    PubOpt.LOCAL: 0x0400_0000,
}
_SUPPRESS_REPLYTO: Final = 0x0800_0000


def _put_options(command: Publish) -> int:
    options = sum(_PUT_OPTIONS.get(option, 0) for option in set(command.options))
    return options | (_SUPPRESS_REPLYTO if command.anonymous else 0)


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
