"""User-defined properties between an MQRFH, where they are pairs, and an MQRFH2, where they are a usr folder.

An MQRFH2 has no tags for IntData and StringData. The property MQPubStrIntData, ``<mqpse><Sid>`` (guide 4.4, table 1),
holds their part of the NameValueString, so that nothing is lost when they are read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from commands.headers.property_names import BY_MQPS, BY_TAG
from commands.headers.publication import Pairs
from commands.headers.xml_text import has_room_for, in_xml
from rfh2.errors import DecodeError
from rfh2.folders import Element, Folder, parse, tag_of, write, write_nested
from rfh2.rfh1 import parse as parse_name_values, write as write_name_values

USER: Final = "usr"
EXTENSIONS: Final = "mqpse"
DATA: Final = "Sid"

_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]*")
_INT32: Final = re.compile("-?[0-9]{1,9}")


class FromFolders(NamedTuple):
    """The parts of folders that an MQRFH or PCF takes."""

    user: Pairs = ()
    data: Pairs = ()


def pairs_of_folders(folders: tuple[Folder, ...], fits: Callable[[str], bool]) -> tuple[FromFolders, tuple[str, ...]]:
    """The user pairs and the data in *folders*, and the parts that only an MQRFH2 can hold.

    fits: whether a name may be that of a user pair. A typed property (``dt``) becomes its text.
    """
    user: list[tuple[str, str]] = []
    data: list[tuple[str, str]] = []
    lost: list[str] = []
    for folder in folders:
        try:
            leaves, nested = _leaves(folder)
        except DecodeError:
            leaves, nested = [], [""]
        if folder.name == USER:
            user += [(name, value) for name, value in leaves if fits(name) and "\0" not in value]
            lost += [f"{USER}.{name}" for name, value in leaves if not fits(name) or "\0" in value]
            lost += [f"{USER}.{name}".rstrip(".") for name in nested]
        elif folder.name == EXTENSIONS:
            for name, value in leaves:
                if name == DATA and (found := _data_of(value)) is not None:
                    data += found
                else:
                    lost.append(f"{EXTENSIONS}.{name}")
        else:
            lost.append(f"folder {folder.name}" if folder.name else "a folder without a name")
    return FromFolders(tuple(user), tuple(data)), tuple(lost)


def user_folder(pairs: Pairs) -> tuple[str, tuple[str, ...]]:
    """The text of the usr folder of these pairs, "" for none, and the names of the pairs that XML cannot hold."""
    fitting: list[tuple[str, str]] = []
    lost: list[str] = []
    for name, value in pairs:
        if _NAME.fullmatch(name) and has_room_for(value):
            fitting.append((name, value))
        else:
            lost.append(f"user pair {name}")
    return write(USER, fitting) if fitting else "", tuple(lost)


def data_text(data: Pairs) -> tuple[str, tuple[str, ...]]:
    """The value of MQPubStrIntData, "" for none, and the parts of *data* that XML cannot hold."""
    if not data:
        return "", ()
    fitting = [(BY_TAG[tag].mqps, value) for tag, value in data if has_room_for(value)]
    lost = tuple(BY_TAG[tag].mqps for tag, value in data if not has_room_for(value))
    return write_name_values(fitting), lost


def extensions_folder(time_and_number: Pairs, data: str) -> str:
    """The text of the mqpse folder: publication time, sequence number and data (guide 4.4, table 1); "" for none."""
    if not time_and_number and not data:
        return ""
    names = {"PubTime": "Pts", "SeqNum": "Seq"}
    elements = [Element(names[tag], in_xml(value), _kind(tag, value)) for tag, value in time_and_number]
    if data:
        elements.append(Element(DATA, data))
    return write_nested(Element(EXTENSIONS, elements))


def _kind(tag: str, value: str) -> str | None:
    return "i4" if tag == "SeqNum" and _INT32.fullmatch(value) else None


def _data_of(text: str) -> Pairs | None:
    try:
        pairs = parse_name_values(text)
    except DecodeError:
        return None
    names = {BY_TAG["IntData"].mqps, BY_TAG["StringData"].mqps}
    if any(pair.name not in names for pair in pairs):
        return None
    return tuple((BY_MQPS[pair.name].tag, pair.value) for pair in pairs)


def _leaves(folder: Folder) -> tuple[list[tuple[str, str]], list[str]]:
    """(tag, text) of the properties of a folder, and the tags of its groups."""
    pairs = folder.pairs()
    nested = [tag_of(child) for child in parse(folder)[0] if len(child)]
    groups = frozenset(nested)
    return [(tag, text) for tag, text in pairs if tag not in groups], nested
