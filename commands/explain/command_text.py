"""The pairs of tag and text in a command, each with its offset, for the problems that point to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from commands.headers.psc import split_psc
from commands.headers.psc_commands import ALL_TAGS as BY_PSC
from commands.headers.publication import BY_MQPS, BY_PCF
from commands.headers.registry import header_format_of
from rfh2.ccsid import UTF8_CCSID
from rfh2.elements import elements
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.layouts import MQCFH
from rfh2.message import Message
from rfh2.pcf import FORMATS, Cfin, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import MQCFT_COMMAND, MQCFT_RESPONSE
from rfh2.rfh1 import MQPS_COMMAND, Rfh1
from rfh2.rfh2 import Rfh2
from streams.subscriptions import PublicationFormat


class TagAndText(NamedTuple):
    """A tag of psc, a name of an MQRFH or a parameter of PCF, with its value. number: the parameter, 0 elsewhere.

    tag: psc's word for it where it has one. known: whether it is IBM's. offset: from the start of the first header.
    """

    tag: str
    text: str
    offset: int
    known: bool = True
    number: int = 0


@dataclass(frozen=True, slots=True)
class CommandPairs:
    """What a message says as a command. offset: of the folder, string or PCF. second: of a second psc, if any."""

    message: Message
    holder: Rfh2 | Rfh1 | Pcf
    pairs: tuple[TagAndText, ...]
    offset: int
    second: int | None = None

    def without(self, culprits: Sequence[TagAndText]) -> Message:
        """The message with some of its pairs left out, and none but the first psc folder."""
        left_out = frozenset(culprits)
        kept = [at for at, pair in enumerate(self.pairs) if pair not in left_out]
        if isinstance(self.holder, Pcf):
            pcf = replace(self.holder, parameters=tuple(self.holder.parameters[at] for at in kept))
            return replace(self.message, body=pcf.encode())
        header: Rfh2 | Rfh1
        if isinstance(self.holder, Rfh2):
            pairs = [(self.pairs[at].tag, self.pairs[at].text) for at in kept]
            header = replace(self.holder, folders=(Folder.of(write("psc", pairs)),), name_value_ccsid=UTF8_CCSID)
        else:
            pairs = self.holder.pairs()
            header = self.holder.with_pairs(pairs[at] for at in kept)
        at = self.message.headers.index(self.holder)
        headers = (*self.message.headers[:at], header, *self.message.headers[at + 1 :])
        return replace(self.message, headers=headers)


def command_text(message: Message) -> CommandPairs | None:
    """The command's text in the header, or the PCF, that holds it; None where there is none.

    None too where the text is not well formed: the readers of folders and strings report that.
    """
    try:
        match header_format_of(message):
            case PublicationFormat.RFH1:
                return _of_string(message)
            case PublicationFormat.PCF:
                return _of_pcf(message)
        return _of_folder(message)
    except DecodeError:
        return None


def is_response(message: Message) -> bool:
    """Whether a message is a broker's response: its pscr folder stands first, and a psc behind it is the command's."""
    try:
        match header_format_of(message):
            case PublicationFormat.RFH1:
                header = message.rfh1
                return header is not None and [name for name, _ in header.pairs()][:1] == ["MQPSCompCode"]
            case PublicationFormat.PCF:
                return decode_pcf(message.body, message.body_ccsid).type == MQCFT_RESPONSE
    except DecodeError:
        return False
    header2 = message.rfh2
    for folder in () if header2 is None else header2.folders:
        name = folder.name
        if name in ("psc", "pscr"):
            return name == "pscr"
    return False


def is_report(message: Message) -> bool:
    """Whether a message is PCF that is no command: an event, statistics, a trace of a route."""
    if message.body_format not in FORMATS:
        return False
    try:
        pcf = decode_pcf(message.body, message.body_ccsid)
    except DecodeError:
        return False
    return pcf.type != MQCFT_COMMAND


def _of_folder(message: Message) -> CommandPairs | None:
    header = message.rfh2
    if header is None:
        return None
    found, _ = split_psc(header)
    if not found:
        return None
    leaves = [element for element in elements(found[0]) if element.depth == 1]
    known = BY_PSC | {"Command"}
    pairs = tuple(TagAndText(leaf.tag, leaf.text or "", leaf.offset, leaf.tag in known) for leaf in leaves)
    return CommandPairs(message, header, pairs, found[0].offset, found[1].offset if len(found) > 1 else None)


def _of_string(message: Message) -> CommandPairs | None:
    header = message.rfh1
    if header is None:
        return None
    pairs = []
    for name, value, at in header.name_values():
        known = BY_MQPS.get(name)
        tag = "Command" if name == MQPS_COMMAND else known.tag if known is not None else name
        pairs.append(TagAndText(tag, value, header.offset + at, known is not None or name == MQPS_COMMAND))
    return CommandPairs(message, header, tuple(pairs), header.offset)


def _of_pcf(message: Message) -> CommandPairs | None:
    at = message.body_offset
    pcf = decode_pcf(message.body, message.body_ccsid, at)
    return CommandPairs(message, pcf, tuple(_parameters(pcf, at + MQCFH.size)), at)


def _parameters(pcf: Pcf, at: int) -> Iterator[TagAndText]:
    for parameter in pcf.parameters:
        known = BY_PCF.get(parameter.parameter)
        tag = str(parameter.parameter) if known is None else known.tag
        yield TagAndText(tag, _text(parameter), at, known is not None, parameter.parameter)
        at += parameter.length


def _text(parameter: Parameter) -> str:
    if isinstance(parameter, Cfin):
        return str(parameter.value)
    if isinstance(parameter, Cfst):
        try:
            return parameter.text
        except DecodeError:
            pass
    return parameter.encode("big").hex()
