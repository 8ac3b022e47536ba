"""A message with slots in place of its texts, and without its data: what templates are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from commands.explain.reading import command_of
from commands.explain.templates.parts import Parts, folder_of
from commands.model import Command
from rfh2.explain.reading import Located, PartialMessage
from rfh2.folders import Folder
from rfh2.message import Message
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


class Model(NamedTuple):
    """The message, and its command. header: its only one. texts: of its folders, or of its string."""

    partial: PartialMessage
    header: Rfh2 | Rfh1
    command: Command | None
    texts: list[str]


def model_of(parts: Parts, partial: PartialMessage, texts: Sequence[str]) -> Model:
    """The model of a message. texts: what stands in place of those that differ."""
    given = iter(texts)
    folders = [folder_of(shape, [*islice(given, len(shape) // 3)]) for shape in parts.shapes]
    header = partial.headers[0].header
    if isinstance(header, Rfh2):
        header = header.with_folders(tuple([Folder(folder.encode()) for folder in folders]))
    else:
        assert isinstance(header, Rfh1)
        # Slots are in UTF-8.
        header = replace(header, data=folders[0].encode(), string_charset="utf-8", offset=0)
    message = Message(partial.assumed, (header,))
    whole = replace(partial, headers=(Located(header, 0),), message=message)
    return Model(whole, header, command_of(whole) if parts.topic else None, folders)
