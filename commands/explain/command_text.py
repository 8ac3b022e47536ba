"""The pairs of tag and text that a command is made of, each with its offset: what problems with a command point at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from commands.psc_folder import split_psc
from rfh2.errors import DecodeError
from rfh2.explain.elements import elements
from rfh2.folders import Folder, write
from rfh2.message import Message
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


class Pair(NamedTuple):
    """A tag of psc, or a name of an MQRFH, with its value. offset: of the tag, from the start of the first header."""

    tag: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class CommandText:
    """What a message says as a command. offset: of the folder or the string. second: of a second psc, if any."""

    message: Message
    header: Rfh2 | Rfh1
    pairs: tuple[Pair, ...]
    offset: int
    second: int | None = None

    def without(self, culprits: Sequence[Pair]) -> Message:
        """The message with some of its pairs left out, and none but the first psc folder."""
        pairs = [(pair.tag, pair.text) for pair in self.pairs if pair not in culprits]
        header: Rfh2 | Rfh1
        if isinstance(self.header, Rfh2):
            header = self.header.with_folders((Folder.of(write("psc", pairs)),))
            header = replace(header, name_value_ccsid=1208)
        else:
            header = self.header.with_pairs(pairs)
        at = self.message.headers.index(self.header)
        headers = (*self.message.headers[:at], header, *self.message.headers[at + 1 :])
        return replace(self.message, headers=headers)


def command_text(message: Message) -> CommandText | None:
    """The command's text in the first MQRFH2 or MQRFH; None where there is none.

    None too where the text is not well formed: that is the business of whoever reads folders and strings.
    """
    for header in message.headers:
        if isinstance(header, Rfh2):
            return _of_folder(message, header)
        if isinstance(header, Rfh1):
            return _of_string(message, header)
    return None


def is_response(message: Message) -> bool:
    """Whether a message is a broker's response: its pscr folder stands first, and a psc behind it is the command's."""
    header = message.rfh2
    if header is not None:
        names = [folder.name for folder in header.folders if folder.name in ("psc", "pscr")]
        return names[:1] == ["pscr"]
    for other in message.headers:
        if isinstance(other, Rfh1):
            try:
                return [name for name, _ in other.pairs()][:1] == ["MQPSCompCode"]
            except DecodeError:
                return False
    return False


def _of_folder(message: Message, header: Rfh2) -> CommandText | None:
    found, _ = split_psc(header)
    if not found:
        return None
    try:
        leaves = [element for element in elements(found[0]) if element.depth == 1]
    except DecodeError:
        return None
    pairs = tuple(Pair(leaf.tag, leaf.text or "", leaf.offset) for leaf in leaves)
    return CommandText(message, header, pairs, found[0].offset, found[1].offset if len(found) > 1 else None)


def _of_string(message: Message, header: Rfh1) -> CommandText | None:
    try:
        pairs = tuple(Pair(name, value, header.offset + at) for name, value, at in header.name_values())
    except DecodeError:
        return None
    return CommandText(message, header, pairs, header.offset)
