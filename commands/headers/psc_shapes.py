"""Psc folders like earlier ones, of which only some texts differ: nearly all that a program writes.

    <psc><Command>Publish</Command><Topic> text </Topic><SeqNum> text </SeqNum></psc>

All that is not one of these texts is the shape of the folder. A folder is read with all rules when its shape is new
(``psc_commands``). What these rules say depends on the shape alone, because a text that may differ has characters, and
none that XML changes or refuses. So another folder of that shape is a command with other texts, and nothing is checked
again. ``tests/commands/headers/test_psc_shapes.py`` proves that both ways give the same.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from commands.headers.psc_commands import RULES, parse_psc
from commands.model import Command, command_like
from rfh2.bounded_cache import BoundedCache
from rfh2.folders import LEAF_CHARACTER, Folder

# A rule looks at the other tags' texts, such as the length of a SubName, or they are the same in most folders.
_DIFFERING: Final = re.compile(rf"<(Topic|PubTime|SeqNum|QName|QMgrName)>({LEAF_CHARACTER}++)</\1>")
_MOST_CHARACTERS: Final = 4_096
_SHAPES_ROOM: Final = 1 << 20
_SHAPE_BYTES: Final = 1_500


class _Shape(NamedTuple):
    """The command of a folder, and the places of its fields among the texts that differ."""

    command: Command
    topics: tuple[int, ...]
    fields: tuple[tuple[str, int], ...]


_SHAPES: Final[BoundedCache[tuple[str, ...], _Shape]] = BoundedCache(_SHAPES_ROOM)


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
